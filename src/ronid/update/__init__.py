"""Data that keeps coming: new utterances for a finished run; read `flow` first."""

from ronid.update.flow import update_run
from ronid.update.record import NewIntent, Update

__all__ = ["NewIntent", "Update", "update_run"]
