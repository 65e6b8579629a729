"""Two desks over one store: what two servers, or two people, see of each other."""

from pathlib import Path

import numpy as np
import pytest

from ronid.errors import DataError
from ronid.review import Conflict, Desk, open_desk
from ronid.review.events import Accept, Merge, Move, Rename, Undo
from ronid.review.state import same
from ronid.review.store import store_for
from ronid.run import RunFolder
from tests.helpers.finished_run import make_run
from tests.helpers.review_base import make_base


def desk(where: str, run: str) -> Desk:
    return Desk(make_base(), store_for(where, run))


def test_two_desks_see_each_other(where: str, run_name: str) -> None:
    one, other = desk(where, run_name), desk(where, run_name)
    one.act(Rename("i1", "from one"), "Ann", 0)
    assert other.refresh()
    assert other.view().state.intents["i1"].name == "from one"
    other.act(Accept("i1"), "Bob", 1)
    one.act(Accept("i2"), "Ann", 1)  # takes in Bob's on the way
    assert one.version == 3
    other.refresh()
    assert same(one.view().state, other.view().state)
    assert not other.refresh()


def test_a_conflict_across_desks_changes_nothing(where: str, run_name: str) -> None:
    one, other = desk(where, run_name), desk(where, run_name)
    one.act(Merge(("i1", "i2"), "i2"), "Ann", 0)
    with pytest.raises(Conflict, match="Ann merged “intent 1” into “intent 2”"):
        other.act(Move((1,), "i3"), "Bob", 0)
    assert other.version == one.version == 1
    other.act(Move((1,), "i3"), "Bob", 1)


def test_a_retry_through_another_desk_changes_nothing_more(where: str, run_name: str) -> None:
    one, other = desk(where, run_name), desk(where, run_name)
    first = one.act(Accept("i1"), "Ann", 0, "a-key-of-mine")
    assert one.act(Accept("i1"), "Ann", 0, "a-key-of-mine") == first
    assert other.act(Accept("i1"), "Ann", 0, "a-key-of-mine").seq == first.seq
    assert other.version == 1


def test_earlier_versions_can_be_looked_at(where: str, run_name: str) -> None:
    one = desk(where, run_name)
    one.act(Rename("i1", "a"), "Ann", 0)
    one.act(Rename("i1", "b"), "Ann", 1)
    one.act(Undo(2), "Ann", 2)
    names = [one.view(version).state.intents["i1"].name for version in range(4)]
    assert names == ["intent 1", "a", "b", "a"]
    assert [one.counts(seq) for seq in (1, 2)] == [True, False]


def test_a_review_is_there_when_the_run_is_opened_again(tmp_path: Path) -> None:
    make_run(tmp_path / "run")
    one = open_desk(tmp_path / "run")
    one.act(Rename("i1", "lost or stolen"), "Ann", 0)
    one.close()
    again = open_desk(tmp_path / "run")
    assert again.view().state.intents["i1"].name == "lost or stolen"
    assert again.base.unit is not None
    np.testing.assert_allclose(np.linalg.norm(again.base.unit, axis=1), 1, atol=1e-5)


def test_events_that_do_not_fit_another_version_are_left_out_and_told(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    one = open_desk(tmp_path / "run")
    one.act(Move((len(one.base) - 1,), "i0"), "Ann", 0)
    one.act(Accept("i1"), "Ann", 1)
    one.close()
    _drop_last_row(run)
    told: list[str] = []
    again = open_desk(tmp_path / "run", said=told.append)
    assert len(told) == 1
    assert "#1, Ann moved" in told[0]
    assert again.view().state.intents["i1"].status == "accepted"


def _drop_last_row(run: RunFolder) -> None:
    """Make the run what it was before an update brought its last utterance."""
    import pyarrow.parquet as pq

    table = run.assignments()
    pq.write_table(table.slice(0, len(table) - 1), run.path / "assignments.parquet")
    (run.path / "embeddings.safetensors").unlink()


def test_vectors_of_another_run_are_refused(tmp_path: Path) -> None:
    from ronid.vectors import write_vectors

    run = make_run(tmp_path / "run")
    write_vectors(run.path, np.ones((3, 2), np.float32))
    with pytest.raises(DataError, match="has 3 rows"):
        open_desk(tmp_path / "run")
    (run.path / "embeddings.safetensors").write_bytes(b"nothing")
    with pytest.raises(DataError, match="cannot be read"):
        open_desk(tmp_path / "run")
