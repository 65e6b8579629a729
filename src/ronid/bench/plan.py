"""What a benchmark config asks for: the list of cells, and the recipe of each."""

import difflib
import hashlib
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields
from pathlib import Path
from typing import Any, get_args

from ronid.bench.variants import VARIANTS
from ronid.config import DEFAULT_ENCODER, to_dict, updated
from ronid.data.benchmark_entries import BENCHMARKS
from ronid.data.pile import PILE_KEYS, Pile
from ronid.data.pile import PUBLISHED as AS_PUBLISHED
from ronid.data.published_splits import check_published
from ronid.data.splits import SplitKind
from ronid.errors import ConfigError, UsageError
from ronid.methods import METHODS, PUBLISHED, presets_of, published, recipe
from ronid.toml import read_toml
from ronid.types import CountRule

FORMAT_VERSION = 1
SCORED_ON = ("test", "dev")
KEEP = ("history", "map")

PILE_LISTS = {
    "shots": "shots", "label_noises": "label_noise", "absent_ratios": "absent_ratio",
    "tails": "tail", "chatter_ratios": "chatter_ratio", "mixed_shots": "mixed_shots",
    "thin_shots": "thin_shots", "dominants": "dominant", "entity_ratios": "entities",
    "small_talk_ratios": "small_talk",
}  # fmt: skip
"""Keys of a config that change the pile, with the coordinate that each lists values of."""

_LISTS = (
    "datasets", "methods", "presets", "encoders", "known_ratios", "labelled_ratios", "k_rules",
    "variants", "keep", *PILE_LISTS,
)  # fmt: skip
_KEYS = (
    *_LISTS, "format_version", "seeds", "scored_on", "settings", "variant", "encoder_paths",
    "split",
)  # fmt: skip


@dataclass(frozen=True)
class BenchCell:
    """One run of the benchmark: what `ronid bench` stores one row for.

    Args:
        dataset: Name of the benchmark.
        method: Name of the method.
        variant: Name of a set of changes; "" is the method as it is.
        encoder: Title of the encoder, never a path.
        preset: Settings that the variant changes.
        known_ratio: Share of intents that are known; 0 for no labels at all.
        labelled_ratio: Share of their utterances that are labelled; 0 where `shots` says how
            many, or for no labels at all.
        k_rule: Where the number of intents comes from.
        seed: Seed of the split and of the run.
        scored_on: `test`, or `dev` for tuning.
        shots: This and all below: how the pile differs from the published protocol, see `Pile`.
        label_noise: Share of wrong labels.
        absent_ratio: Share of known intents that are not in the pile.
        tail: Ratio of the largest to the smallest intent.
        chatter_ratio: Share of the pile that belongs to no intent.
        mixed_shots: Whether 1, 2, 5, 10 or 20 utterances of each known intent are labeled, at
            random.
        thin_shots: Whether 1, 2 or 3 utterances of each small known intent are labeled.
        dominant: Share of the training file that belongs to a single intent.
        entities: Share of utterances that mention a random entity.
        small_talk: Share of the training file that is small talk or a fragment of a sentence.
        split: `drawn` by the seed, or the `own` split of the data set, where the seed is the fold.
        version: `before` if the code of commit 8ba84b5 produced the row, "" for later code. Jobs of
            a config have "".
    """

    dataset: str
    method: str
    variant: str
    encoder: str
    preset: str
    known_ratio: float
    labelled_ratio: float
    k_rule: str
    seed: int
    scored_on: str = "test"
    shots: int = 0
    label_noise: float = 0.0
    absent_ratio: float = 0.0
    tail: float = 1.0
    chatter_ratio: float = 0.0
    mixed_shots: int = 0
    thin_shots: int = 0
    dominant: float = 0.0
    entities: float = 0.0
    small_talk: float = 0.0
    split: SplitKind = "drawn"
    version: str = ""

    @property
    def pile(self) -> Pile:
        """How the pile differs from the published protocol."""
        return Pile(**{name: getattr(self, name) for name in PILE_KEYS})

    @property
    def coordinates(self) -> tuple[Any, ...]:
        """All fields in order: what tells one cell from another."""
        return astuple(self)

    def __str__(self) -> str:
        name = f"{self.method}{self.variant}"
        protocol = f"known {self.known_ratio:g} labelled {self.labelled_ratio:g} K {self.k_rule}"
        protocol += "".join(f" {key} {value:g}" for key, value in self.pile.changes.items())
        where = "" if self.scored_on == "test" else f" on {self.scored_on}"
        where += "" if self.split == "drawn" else f" {self.split} split"
        where += f" ({self.version})" if self.version else ""
        job = f"{self.dataset} {name} {self.preset} {self.encoder} {protocol} seed {self.seed}"
        return job + where


COORDINATES = tuple(item.name for item in fields(BenchCell))
UNSAID: Mapping[str, Any] = {"scored_on": "test", "split": "drawn", "version": "", **AS_PUBLISHED}
"""Values of the coordinates that older rows do not have."""


@dataclass(frozen=True)
class Plan:
    """A read benchmark config.

    Args:
        cells: What to run, cells that share encodings next to each other.
        keep: What rows hold beside scores: `history`, `map`.
        encoder_paths: Folder or hub id of an encoder, by title.
        settings: Changes of the preset in all cells.
        variants: Changes by name of the variant.
    """

    cells: tuple[BenchCell, ...]
    keep: tuple[str, ...] = ()
    encoder_paths: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def config(self, cell: BenchCell) -> Any:
        """Return the recipe of a cell, its encoder named by title."""
        config: Any = recipe(cell.method, cell.preset)
        changes = [self.settings, self.variants.get(cell.variant, {})]
        if cell.preset == PUBLISHED:
            changes.insert(0, published(cell.method, cell.dataset))
        for change in (*changes, {"encoder": {"name": cell.encoder}}):
            config = updated(config, change)
        return config

    def config_hash(self, cell: BenchCell) -> str:
        """Return the first 16 digits of the SHA-256 of the cell's recipe."""
        return config_hash(self.config(cell))

    def encoder_path(self, title: str) -> str:
        """Return the folder, hub id or embedded name behind an encoder's title."""
        return self.encoder_paths.get(title, title)


def read_k_rule(text: str) -> tuple[CountRule, float]:
    """Return the rule and the factor of the true number that it starts from, 0 for nothing.

    `given`, `auto` (from nothing), `auto@2` (from at most twice the truth), `guess@2` (told twice
    the truth), `deep_aligned@2`, `dpn@3`, `usnid@2` (clusters to begin with).

    Raises:
        ConfigError: There is no such rule.
    """
    name, at, number = text.partition("@")
    rules: tuple[CountRule, ...] = get_args(CountRule)
    try:
        factor = float(number) if at else 0.0
    except ValueError:
        factor = -1.0
    plain = name in ("given", "auto")
    if name not in rules or factor < 0 or (at and name == "given") or (not plain and not factor):
        raise ConfigError(
            f"k_rules has {text!r}; give given, auto, or a rule and a factor of the true number, "
            "such as auto@2, guess@2, deep_aligned@2, dpn@2 or usnid@2"
        )
    return rules[rules.index(name)], factor  # type: ignore[arg-type]


def config_hash(config: Any) -> str:
    """Return a hash of what a config changes of its class's defaults.

    A switch that is added later, off by default, leaves the hashes of stored rows as they are.
    """
    changed = _changed(to_dict(config), to_dict(type(config)()))
    canonical = json.dumps(changed, sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def _changed(values: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """Return the values that differ from the defaults, section by section."""
    return {
        key: _changed(value, defaults[key]) if isinstance(value, dict) else value
        for key, value in values.items()
        if value != defaults[key]
    }


def read_plan(path: Path, encoders: Mapping[str, str] | None = None) -> Plan:
    """Read and check a benchmark config.

    Args:
        path: TOML file.
        encoders: Folders by title of encoder, over those of the file.

    Raises:
        ConfigError: An unknown key or name, or a value that does not fit.
    """
    try:
        return make_plan(read_toml(path), encoders)
    except ConfigError as error:
        text = str(error)
        raise ConfigError(text if str(path) in text else f"{path}: {text}") from None


def make_plan(values: Mapping[str, Any], encoders: Mapping[str, str] | None = None) -> Plan:
    """Check the values of a benchmark config and list its cells; see `read_plan`."""
    for key in values:
        _choose(key, _KEYS, "key")
    version = values.get("format_version", FORMAT_VERSION)
    if version != FORMAT_VERSION:
        raise ConfigError(f"format_version is {version!r}, this release reads {FORMAT_VERSION}")
    lists = {key: _list(values, key) for key in _LISTS if key in values}
    for key in ("datasets", "presets", "seeds"):
        if key not in values:
            raise ConfigError(f"'{key}' is missing; write for example: {_EXAMPLES[key]}")
    variants = VARIANTS | _sections(values, "variant")
    names: dict[str, Iterable[str]] = {
        "datasets": BENCHMARKS, "methods": METHODS, "presets": _all_presets(), "keep": KEEP,
        "variants": ("", *variants),
    }  # fmt: skip
    for key, known in names.items():
        for name in lists.get(key, ()):
            _choose(name, tuple(known), key)
    for rule in lists.get("k_rules", ()):
        read_k_rule(rule)
    for key in ("known_ratios", "labelled_ratios"):
        lists[key] = [_ratio(value, key) for value in lists.get(key, _DEFAULTS[key])]
    _check_piles(lists)
    scored_on = values.get("scored_on", "test")
    _choose(scored_on, SCORED_ON, "scored_on")
    split = values.get("split", "drawn")
    _choose(split, get_args(SplitKind), "split")
    lists = _DEFAULTS | lists
    _check_titles(lists["encoders"])
    paths = _sections(values, "encoder_paths") | dict(encoders or {})
    for title in encoders or ():
        _choose(title, tuple(lists["encoders"]), "--encoder")
    for name in lists["methods"]:
        if not set(lists["presets"]) & set(presets_of(name)):
            raise ConfigError(
                f"method '{name}' has none of the presets asked for; "
                f"it has: {', '.join(presets_of(name))}"
            )
    cells = tuple(_cells(lists, read_seeds(values["seeds"]), scored_on, split))
    _check_own_splits(cells)
    plan = Plan(
        cells=cells,
        keep=tuple(lists["keep"]),
        encoder_paths=paths,
        settings=_sections(values, "settings"),
        variants=variants,
    )
    _check_recipes(plan)
    return plan


def read_seeds(value: Any) -> list[int]:
    """Return the seeds of `[0, 1, 2]` or of `"0-2,7"`.

    Raises:
        ConfigError: It is neither.
    """
    wrong = ConfigError(f'seeds is {value!r}; write [0, 1, 2] or "0-9"')
    if isinstance(value, str):
        seeds: list[int] = []
        for part in value.split(","):
            first, dash, last = part.strip().partition("-")
            if not first.isdecimal() or (dash and not last.isdecimal()):
                raise wrong
            seeds += range(int(first), int(last if dash else first) + 1)
    elif isinstance(value, list) and all(type(seed) is int and seed >= 0 for seed in value):
        seeds = value
    else:
        raise wrong
    if not seeds or len(set(seeds)) < len(seeds):
        raise wrong
    return seeds


_DEFAULTS: dict[str, list[Any]] = {
    "methods": ["ronid"],
    "encoders": [DEFAULT_ENCODER],
    "known_ratios": [0.75],
    "labelled_ratios": [0.1],
    "k_rules": ["given"],
    "variants": [""],
    "keep": [],
    **{key: [AS_PUBLISHED[name]] for key, name in PILE_LISTS.items()},
}
_EXAMPLES = {
    "datasets": 'datasets = ["clinc", "banking"]',
    "presets": 'presets = ["fast"]',
    "seeds": 'seeds = "0-9"',
}


def _cells(
    lists: Mapping[str, Sequence[Any]], seeds: Sequence[int], scored_on: str, split: SplitKind
) -> Iterable[BenchCell]:
    """Yield the cells; those of one dataset and encoder, then of one split, are neighbours.

    A method is run with those of the presets that it has.
    """
    axes = ("datasets", "encoders", "known_ratios", "labelled_ratios", *PILE_LISTS)
    outer = itertools.product(*(lists[axis] for axis in axes), seeds)
    inner = ("k_rules", "presets", "methods", "variants")
    seen: set[BenchCell] = set()
    for dataset, encoder, known, ratio, *pile, seed in outer:
        changes = dict(zip(PILE_LISTS.values(), pile, strict=True))
        labelled = 0.0 if changes["shots"] or changes["mixed_shots"] else ratio
        for k_rule, name, method, variant in itertools.product(*(lists[axis] for axis in inner)):
            if name not in presets_of(method):
                continue
            cell = BenchCell(
                dataset, method, variant, encoder, name, known, labelled, k_rule, seed, scored_on,
                **changes, split=split,
            )  # fmt: skip
            if cell not in seen:  # with shots, all ratios are the same cell
                seen.add(cell)
                yield cell


def _all_presets() -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for method in METHODS for name in presets_of(method)))


def _check_own_splits(cells: Iterable[BenchCell]) -> None:
    """Refuse a published split that does not exist before the first job runs."""
    for cell in cells:
        if cell.split == "own":
            try:
                check_published(cell.dataset, cell.known_ratio, cell.labelled_ratio, cell.seed)
            except UsageError as error:
                raise ConfigError(f"split: {error}") from None
            if cell.pile.changes:
                changed = ", ".join(cell.pile.changes)
                raise ConfigError(f"split = 'own' does not allow {changed}; use split = 'drawn'")


def _check_recipes(plan: Plan) -> None:
    """Refuse a setting that does not exist before the first cell runs."""
    if "name" in plan.settings.get("encoder", {}) or "preset" in plan.settings:
        raise ConfigError("settings name an encoder or a preset; write encoders and presets")
    for cell in {(c.method, c.preset, c.variant): c for c in plan.cells}.values():
        plan.config(cell)


def _check_titles(titles: Sequence[Any]) -> None:
    for title in titles:
        if not isinstance(title, str) or not title or title.startswith(("/", ".", "~")):
            raise ConfigError(
                f"encoders has {title!r}; give a title there, and its folder with "
                "--encoder TITLE=FOLDER"
            )


def _list(values: Mapping[str, Any], key: str) -> list[Any]:
    value = values[key]
    if not isinstance(value, list) or (not value and key != "keep"):
        raise ConfigError(f"{key} is {value!r}; give a list of one or more")
    if len({repr(item) for item in value}) < len(value):
        raise ConfigError(f"{key} names something twice: {value!r}")
    return value


def _sections(values: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = values.get(key, {})
    if not isinstance(value, dict):
        raise ConfigError(f"'{key}' is a section; write [{key}] and its keys")
    return value


def _ratio(value: Any, key: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ConfigError(f"{key} has {value!r}; give numbers from 0 to 1")
    return float(value)


def _check_piles(lists: Mapping[str, Sequence[Any]]) -> None:
    for key, name in PILE_LISTS.items():
        for value in lists.get(key, ()):
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ConfigError(f"{key} has {value!r}; give numbers")
            try:
                Pile(**{name: value})  # type: ignore[arg-type]
            except UsageError as error:
                raise ConfigError(f"{key}: {error}") from None


def _choose(name: Any, known: Sequence[str], what: str) -> None:
    if name in known:
        return
    near = difflib.get_close_matches(str(name), known, n=1)
    listed = ", ".join(each or '""' for each in known)
    hint = f"did you mean '{near[0]}'?" if near else f"known: {listed}"
    raise ConfigError(
        f"unknown {what} {name!r}; {hint}"
        if what == "key"
        else (f"{what} names {name!r}, which there is not; {hint}")
    )


def read_encoders(pairs: Iterable[str]) -> dict[str, str]:
    """Return encoder folders by title from `TITLE=FOLDER` words.

    Raises:
        UsageError: A word has no `=`.
    """
    found = {}
    for pair in pairs:
        title, equals, folder = pair.partition("=")
        if not (title and equals and folder):
            raise UsageError(f"--encoder {pair} is not TITLE=FOLDER")
        found[title] = folder
    return found
