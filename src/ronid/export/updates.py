"""An update in words, for the report and the command line."""

from collections.abc import Mapping
from typing import Any

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
    heading = f"Version {update['version']}, {day}: {_count(update['rows'], 'utterance')}"
    heading += f" from {update['source']}"
    lines = [
        f"{update['fitted']:,} of {update['rows']:,} fit intents that were there; "
        f"{update['collected']:,} fit nowhere so far and are collected"
    ]
    for new in update["new"]:
        kind = "named by your labels" if new["known"] else "found"
        lines.append(f"new intent {new['name']}: {_count(new['size'], 'utterance')}, {kind}")
    lines += [drift_line(drift) for drift in update["drift"]]
    return heading, lines


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
        f"{_count(update['held'], 'decision')} held, {update['not_held']:,} did not",
    ]
    lines += [
        f"new intent {new['name']}: {_count(new['size'], 'utterance')}" for new in update["new"]
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
    parts.append(f"share {before:.1f}% before, {now:.1f}% now")
    line = f"{drift['name']} drifted: {', '.join(parts)}"
    if drift["moved"] and drift["shows"]:
        line += "; such as " + ", ".join(f"\u201c{text}\u201d" for text in drift["shows"])
    return line


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
