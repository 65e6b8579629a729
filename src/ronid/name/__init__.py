"""Names, keyphrases and exemplars for discovered intents."""

from ronid.name.intents import name_intents

__all__ = ["name_intents"]
