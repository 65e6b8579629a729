"""What can stand in the way of an action, said to the person who wanted it."""

from dataclasses import dataclass

from ronid.errors import UsageError


class NotApplicable(UsageError):  # noqa: N818 - it is an answer, not a fault
    """The action makes no sense in the state as it is; nothing was changed."""


@dataclass(frozen=True)
class Since:
    """Something that another person did since the version that was looked at."""

    seq: int
    who: str
    at: str
    says: str


class Conflict(NotApplicable):
    """Others acted on the same intents since; nothing was changed, nothing is lost.

    Args:
        since: What they did, oldest first.
        version: Version of now; whoever has read `since` may try again from there.
    """

    def __init__(self, since: tuple[Since, ...], version: int) -> None:
        self.since, self.version = since, version
        told = "; ".join(f"{each.who} {each.says}" for each in since)
        super().__init__(f"meanwhile {told}. Nothing of yours was applied: look, then try again")
