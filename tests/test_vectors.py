from pathlib import Path

import numpy as np
import pytest

from ronid.errors import DataError
from ronid.run import open_finished
from ronid.vectors import FILE, read_vectors, write_vectors
from tests.helpers.finished_run import make_run


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_vectors_come_back_about_as_they_were(tmp_path: Path, scale: float) -> None:
    vectors = scale * np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)
    write_vectors(tmp_path, vectors)
    found = read_vectors(tmp_path, 50)
    assert found is not None
    np.testing.assert_allclose(found, vectors, rtol=2e-3, atol=2e-3 * scale)
    assert found.dtype == np.float32
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (2, 4)])
def test_empty_and_zero_vectors_are_kept(tmp_path: Path, shape: tuple[int, int]) -> None:
    write_vectors(tmp_path, np.zeros(shape, np.float32))
    found = read_vectors(tmp_path, shape[0])
    assert found is not None
    np.testing.assert_array_equal(found, np.zeros(shape))


def test_a_run_keeps_them_and_an_older_one_has_none(tmp_path: Path) -> None:
    make_run(tmp_path / "run")
    run = open_finished(tmp_path / "run")
    found = read_vectors(run.path, len(run.assignments()))
    assert found is not None
    (run.path / FILE).unlink()
    assert read_vectors(run.path, 3) is None


def test_damage_is_told(tmp_path: Path) -> None:
    write_vectors(tmp_path, np.ones((2, 2), np.float32))
    with pytest.raises(DataError, match="has 2 rows, the run 5"):
        read_vectors(tmp_path, 5)
    (tmp_path / FILE).write_bytes(b"\x00" * 20)
    with pytest.raises(DataError, match="cannot be read"):
        read_vectors(tmp_path, 2)
