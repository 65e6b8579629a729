"""RoNID: new intent discovery from a few labelled intents and a pile of raw utterances.

    from ronid import RoNID
    model = RoNID(n_intents=24).fit(texts, labels)   # None, "" or -1: unlabelled
    model.predict(["my card never arrived"])

Names are imported when first used, so that `import ronid` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ronid.version import __version__

if TYPE_CHECKING:
    from ronid.data.readers import load as load_corpus
    from ronid.estimator import IntentDiscovery, RoNID
    from ronid.metrics import score
    from ronid.pipeline import discover
    from ronid.types import Corpus, Discovery, Intent, Scores, Split

_WHERE = {
    "Corpus": "ronid.types",
    "Discovery": "ronid.types",
    "Intent": "ronid.types",
    "IntentDiscovery": "ronid.estimator",
    "RoNID": "ronid.estimator",
    "Scores": "ronid.types",
    "Split": "ronid.types",
    "discover": "ronid.pipeline",
    "load_corpus": "ronid.data.readers",
    "score": "ronid.metrics",
}

__all__ = [
    "Corpus",
    "Discovery",
    "Intent",
    "IntentDiscovery",
    "RoNID",
    "Scores",
    "Split",
    "__version__",
    "discover",
    "load_corpus",
    "score",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    if name not in _WHERE:
        raise AttributeError(f"module 'ronid' has no attribute '{name}'")
    return getattr(import_module(_WHERE[name]), "load" if name == "load_corpus" else name)


def __dir__() -> list[str]:
    return __all__
