"""An update in words, for the report and the command line."""

from collections.abc import Mapping, Sequence
from typing import Any

from ronid.plural import counted
from ronid.review.base import base_id

SHOWN = 10
"""Intents that changed most, of those that a training changed."""


def update_lines(update: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return a heading and what an update did, a line each.

    Args:
        update: One of the updates that `run.json` remembers.
    """
    if update.get("kind") == "learn":
        return learn_lines(update)
    day = str(update["when"])[:10]
    heading = f"Version {update['version']}, {day}: {counted(update['rows'], 'utterance')}"
    heading += f" from {update['source']}"
    lines = [_placed(update)]
    if update.get("elsewhere") is not None:  # updates of older versions did not count it
        were = "was" if update["old"] == 1 else "were"
        lines.append(
            f"{update['elsewhere']:,} of {counted(update['old'], 'utterance')} that {were} there "
            "would go to another intent by the model as it is now; all keep theirs"
        )
    for new in update["new"]:
        kind = "named by your labels" if new["known"] else "found"
        lines.append(f"new intent {new['name']}: {counted(new['size'], 'utterance')}, {kind}")
    lines += [drift_line(drift) for drift in update["drift"]]
    return heading, lines


def _placed(update: Mapping[str, Any]) -> str:
    """Say what became of the utterances that came, and of those that waited."""
    fitted, waited, collected = update["fitted"], update.get("waited", 0), update["collected"]
    parts = [f"{fitted:,} of {update['rows']:,} {_fit(fitted)} intents that were there"]
    if waited:
        parts.append(f"{waited:,} collected earlier {_fit(waited)} now")
    are, aside = "is" if collected == 1 else "are", update.get("aside")
    if aside is None or aside == collected:
        parts.append(f"{collected:,} {_fit(collected)} nowhere so far and {are} collected")
    else:
        whole = f"{collected:,} {are} collected in all"
        parts.append(f"{aside:,} {_fit(aside)} nowhere so far, {whole}")
    return "; ".join(parts)


def _fit(number: int) -> str:
    return "fits" if number == 1 else "fit"


def title_of(facts: Mapping[str, Any]) -> str:
    """Return what to call what a run found: by its file, and by what came to it since.

    Args:
        facts: What `run.json` says.
    """
    came = [each for each in facts.get("updates", ()) if each.get("kind") != "learn"]
    title = f"Intents found in {facts['source']}"
    if not came:
        return title
    return f"{title} and {came[0]['source'] if len(came) == 1 else f'{len(came):,} updates'}"


def added_by(facts: Mapping[str, Any], present: Sequence[str]) -> dict[int, int]:
    """Return which version added an intent, by its place; those of the fit are not in it.

    Intents are numbered as they are found, and training on keeps that number in their ids though
    it may change their places.

    Args:
        facts: What `run.json` says.
        present: Ids of the intents now, in their order, see `found_first`.
    """
    updates, review = facts.get("updates", ()), facts.get("review")
    learnt = [i for i, each in enumerate(updates) if each.get("kind") == "learn"]
    made = [
        (i, each["version"])
        for i, each in enumerate(updates)
        if each.get("kind") != "learn"
        for _ in each["new"]
    ]
    first = len(present) - len(made)
    if review is not None:  # it lists all that were found before training on
        first = len(review["intents"]) - sum(i < learnt[-1] for i, _ in made)
    version = {base_id(first + at): number for at, (_, number) in enumerate(made)}
    return {place: version[id] for place, id in enumerate(present) if id in version}


def learn_lines(update: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return a heading and what training on from decisions did, a line each.

    Args:
        update: One of the updates that `run.json` remembers, or all that a training tells.
    """
    heading = f"Version {update['version']}, {str(update['when'])[:10]}: trained on from "
    heading += str(update["source"])
    total = f"{update['utterances']:,}"
    lines = [
        f"{update['moved']:,} of {total} utterances went elsewhere; {update['labels']:,} were "
        "labels",
        f"{counted(update['held'], 'decision')} held, {update['not_held']:,} did not",
    ]
    lines += [
        f"new intent {new['name']}: {counted(new['size'], 'utterance')}" for new in update["new"]
    ]
    if update["gone"]:
        lines.append(f"gone: {', '.join(update['gone'])}")
    for each in update.get("verdicts", ()):
        if each["status"] == "not held":
            lines.append(f"not held: #{each['seq']}, {each['who']} {each['says']}: {each['why']}")
    for each in update.get("changes", ())[:SHOWN]:
        counts = f"{each['before']:,} to {each['after']:,} utterances"
        lines.append(f"{each['name']}: {counts} ({each['came']:,} came, {each['went']:,} went)")
    return heading, lines


def drift_line(drift: Mapping[str, Any]) -> str:
    """Say how an old intent changed, and by which utterances that shows."""
    parts = []
    if drift["moved"]:
        parts.append(f"moved by {drift['angle']:.0f}\N{DEGREE SIGN}")
    before, now = (100 * drift[key] for key in ("share_before", "share_now"))
    parts.append(f"share {before:.1f}% before, {now:.1f}% of what came to old intents")
    line = f"{drift['name']} drifted: {', '.join(parts)}"
    if drift["moved"] and drift["shows"]:
        line += "; such as " + ", ".join(f"\u201c{text}\u201d" for text in drift["shows"])
    return line
