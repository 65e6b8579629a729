"""Review: people correct what was discovered; every decision is an event, the state is their fold.

    run folder -> Base ; events -> Store ; Base + events -> fold -> State -> export | learn

Nothing here needs torch or a web framework, see `ronid.review.suggest` for the one exception.
"""

from ronid.review.base import Base, read_base
from ronid.review.desk import Desk, open_desk
from ronid.review.outcome import Label, Outcome, outcome
from ronid.review.problems import Conflict, NotApplicable
from ronid.review.state import OUT, ReviewIntent, State

__all__ = [
    "OUT",
    "Base",
    "Conflict",
    "Desk",
    "Label",
    "NotApplicable",
    "Outcome",
    "ReviewIntent",
    "State",
    "open_desk",
    "outcome",
    "read_base",
]
