"""Amazon Lex V2: the archive of a bot with one locale."""

from pathlib import Path
from typing import Any

from ronid.errors import UsageError
from ronid.export.archive import read_zip, write_zip
from ronid.export.batch import Batch, Options, Target
from ronid.export.limits import Limits
from ronid.export.names import NameRule, legal_name

ARCHIVE = "bot.zip"
LOCALES = (
    "ar_AE", "ca_ES", "de_DE", "de_AT", "en_US", "en_AU", "en_GB", "en_IN", "en_ZA", "es_ES",
    "es_419", "es_US", "fi_FI", "fr_FR", "fr_CA", "hi_IN", "it_IT", "ja_JP", "ko_KR", "nl_NL",
    "no_NO", "pl_PL", "pt_BR", "pt_PT", "sv_SE", "zh_CN", "zh_HK",
)  # fmt: skip
"""What Lex speaks; a language alone means the first of its locales."""
_LARGE = ("en_AU", "en_GB", "en_US")
"""Locales that may hold more."""
_FALLBACK = "FallbackIntent"
_NAMES = NameRule(
    longest=100, symbols="_-", ascii=True, doubled=False, reserved=frozenset({_FALLBACK.lower()})
)
_LONGEST_DESCRIPTION = 200
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
        UsageError: Lex does not know it.
    """
    wanted = language.replace("-", "_").lower()
    for locale in LOCALES:
        if wanted in (locale.lower(), locale.partition("_")[0]):
            return locale
    raise UsageError(f"Lex has no locale for --language {language}; it has {', '.join(LOCALES)}")


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
