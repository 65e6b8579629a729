"""A studio over a small run, and somebody who came in."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.helpers.finished_run import SHOP, make_run

if TYPE_CHECKING:  # the studio's packages may be missing; its tests say so themselves
    from fastapi.testclient import TestClient

    from ronid.studio.hall import Hall


@pytest.fixture
def hall(tmp_path: Path) -> "Iterator[Hall]":
    from ronid.studio.hall import open_hall

    make_run(tmp_path / "run", SHOP, known=1)
    made = open_hall(tmp_path / "run")
    yield made
    made.close()


@pytest.fixture
def client(hall: "Hall") -> "TestClient":
    from fastapi.testclient import TestClient

    from ronid.studio.app import make_app
    from ronid.studio.guard import Guard
    from ronid.studio.session import Door

    door = Door("a" * 24)
    app: Any = Guard(make_app(hall, door), door, local=True)  # type: ignore[arg-type]
    made = TestClient(app, base_url="http://localhost:8712")
    made.post("/enter", data={"name": "Ada", "next": "/"}, follow_redirects=False)
    return made
