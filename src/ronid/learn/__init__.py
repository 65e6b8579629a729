"""Learning from reviews: decisions become labels and constraints; read `flow` first."""

from ronid.learn.job import Job
from ronid.learn.standing import Standing

__all__ = ["Job", "Standing"]
