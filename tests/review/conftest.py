"""Both stores, for real: SQLite in a folder, PostgreSQL from Debian's package on loopback."""

from pathlib import Path
from uuid import uuid4

import pytest

from tests.helpers.postgres_server import postgres_url

__all__ = ["postgres_url"]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.service)])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where the events of a test are kept."""
    if request.param == "sqlite":
        return str(tmp_path / "review.sqlite")
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def run_name() -> str:
    """A run of its own, as tests share the server."""
    return uuid4().hex
