"""Amazon Lex V2: the archive of a bot with one locale."""

from pathlib import Path
from typing import Any

from ronid.errors import UsageError
from ronid.export.archive import read_zip, write_zip
from ronid.export.batch import Batch, Options, Target
from ronid.export.limits import Limits
from ronid.export.names import NameRule, legal_name

ARCHIVE = "bot.zip"
DEFAULTS = {
    "ar": "AE", "ca": "ES", "de": "DE", "en": "US", "es": "ES", "fi": "FI", "fr": "FR", "hi": "IN",
    "it": "IT", "ja": "JP", "ko": "KR", "nl": "NL", "no": "NO", "pl": "PL", "pt": "BR", "sv": "SE",
    "zh": "CN",
}  # fmt: skip
"""The region meant by a language alone; Lex knows locales only, and gets more of them."""
_LARGE = ("en_AU", "en_GB", "en_US")
"""Locales that may hold more."""
_FALLBACK = "FallbackIntent"
_NAMES = NameRule(
    longest=100, symbols="_-", ascii=True, doubled=False, reserved=frozenset({_FALLBACK.lower()})
)
_LONGEST_DESCRIPTION = 2_000
_BRACES = str.maketrans("{}", "()")


def target(options: Options) -> Target:
    """Return what Lex takes in one locale; braces would be slots there."""
    large = locale_of(options.language) in _LARGE
    limits = Limits(
        longest=500,
        most=1_500,
        intents=(1_000 if large else 250) - 1,  # the fallback is one of them
        letters=2_000_000 if large else 200_000,
        once="export",
    )
    return Target(_NAMES, limits, fit=lambda text: text.translate(_BRACES))


def locale_of(language: str) -> str:
    """Return the locale of a language.

    Raises:
        UsageError: It is a language alone, and no region is known for it.
    """
    code, _, region = language.partition("-")
    region = region or DEFAULTS.get(code.lower(), "")
    if not region:
        raise UsageError(f"Lex wants a region too: --language {language}-XX, such as en-GB")
    return f"{code.lower()}_{region.upper()}"


def write(batch: Batch, folder: Path, options: Options) -> None:
    """Write `bot.zip`."""
    bot, locale = legal_name(options.name, _NAMES, "bot"), locale_of(options.language)
    place = f"{bot}/BotLocales/{locale}"
    files: dict[str, Any] = {
        "manifest.json": {
            "metadata": {"schemaVersion": "1.0", "fileFormat": "LexJson", "resourceType": "Bot"}
        },
        f"{bot}/Bot.json": {
            "name": bot,
            "version": "DRAFT",
            "description": None,
            "dataPrivacy": {"childDirected": False},
            "idleSessionTTLInSeconds": 300,
        },
        f"{place}/BotLocale.json": {
            "name": locale,
            "identifier": locale,
            "description": None,
            "nluConfidenceThreshold": 0.4,
        },
        f"{place}/Intents/{_FALLBACK}/Intent.json": {
            **_intent(_FALLBACK, "Where no other intent matches", None),
            "parentIntentSignature": "AMAZON.FallbackIntent",
        },
    }
    for intent, name, lines in batch.by_intent():
        said = [{"utterance": line.text} for line in lines]
        described = intent.description[:_LONGEST_DESCRIPTION] or None
        files[f"{place}/Intents/{name}/Intent.json"] = _intent(name, described, said)
    write_zip(folder / ARCHIVE, files)


def _intent(
    name: str, description: str | None, said: list[dict[str, str]] | None
) -> dict[str, Any]:
    return {
        "name": name,
        "description": description,
        "parentIntentSignature": None,
        "sampleUtterances": said,
        "dialogCodeHook": {"enabled": False},
        "fulfillmentCodeHook": {"enabled": False},
        "slotPriorities": [],
    }


def read(folder: Path) -> list[tuple[str, str]]:
    """Return utterances and intents of `bot.zip`."""
    files = read_zip(folder / ARCHIVE)
    intents = [content for path, content in files.items() if path.endswith("/Intent.json")]
    return [
        (each["utterance"], intent["name"])
        for intent in intents
        for each in intent["sampleUtterances"] or ()
    ]
