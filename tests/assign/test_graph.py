"""The graphs against plain dense matrices, and their own invariants."""

import dataclasses
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import normalize

from ronid.assign.graph import DiffusionGraph, diffusion_graph, neighbour_graph, smoothed

SEEDS = st.integers(0, 999)


def units(n: int, seed: int, d: int = 4) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return normalize(torch.randn(n, d, generator=generator, dtype=torch.float64), dim=1)


def arcs(*degrees: float) -> Tensor:
    angles = torch.tensor(degrees, dtype=torch.float64).deg2rad()
    return torch.stack([angles.cos(), angles.sin()], dim=1)


def some_targets(n: int, seed: int) -> Tensor:
    return torch.randint(-1, 3, (n,), generator=torch.Generator().manual_seed(seed))


def whole(graph: DiffusionGraph) -> Tensor:
    return graph.rows(torch.arange(len(graph.columns)))


def naive_adjacency(points: Tensor, neighbours: int) -> np.ndarray:
    x = points.numpy()
    cosines = x @ x.T
    directed = np.zeros_like(cosines)
    for i in range(len(x)):
        others = sorted((j for j in range(len(x)) if j != i), key=lambda j: -cosines[i, j])
        for j in others[:neighbours]:
            directed[i, j] = max(cosines[i, j], 0)
    joined = np.maximum(directed, directed.T)
    np.fill_diagonal(joined, 1)
    return joined


def naive_diffusion(
    points: Tensor, neighbours: int, targets: Tensor, hops: int, least_cosine: float, scale: float
) -> np.ndarray:
    x, y = points.numpy(), targets.numpy()
    a = naive_adjacency(points, neighbours)
    w = sum(np.linalg.matrix_power(a, hop) for hop in range(1, hops + 1))
    w = np.where(x @ x.T > least_cosine, w, 0)
    w = scale * w / w.max(axis=1, keepdims=True)
    w += (y[:, None] == y) & (y[:, None] >= 0)
    return np.clip(w, 0, 1)


@given(
    n=st.integers(1, 25),
    neighbours=st.integers(1, 30),
    seed=SEEDS,
    hops=st.integers(1, 4),
    least_cosine=st.sampled_from([-1.0, 0.0, 0.3, 0.8]),
    scale=st.sampled_from([0.5, 1.0, 1.1]),
    block=st.sampled_from([1, 7, 512]),
)
def test_weights_equal_the_dense_formula(
    n: int,
    neighbours: int,
    seed: int,
    hops: int,
    least_cosine: float,
    scale: float,
    block: int,
) -> None:
    points, targets = units(n, seed), some_targets(n, seed)
    choices = {"hops": hops, "least_cosine": least_cosine, "scale": scale}
    graph = diffusion_graph(points, neighbours, targets=targets, block_rows=block, **choices)
    expected = naive_diffusion(points, neighbours, targets, hops, least_cosine, scale)
    np.testing.assert_allclose(whole(graph).numpy(), expected, atol=1e-12)
    assert graph.dropped == pytest.approx(0, abs=1e-12)


def test_golden_weights() -> None:
    # The middle point is joined with both others; these are two hops apart at a cosine of -0.5,
    # which cuts them.
    graph = diffusion_graph(arcs(0, 59, 120), 1, scale=1.0)
    a, b = np.cos(np.deg2rad([59, 61]))
    edges = np.array([[1, a, 0], [a, 1, b], [0, b, 1]])
    powers = edges + edges @ edges + edges @ edges @ edges
    powers[0, 2] = powers[2, 0] = 0
    expected = powers / powers.max(axis=1, keepdims=True)
    np.testing.assert_allclose(whole(graph).numpy(), expected, atol=1e-12)
    assert graph.columns.tolist()[1] == [1, 0, 2]


def test_defaults_are_those_published() -> None:
    points, targets = units(40, 3), some_targets(40, 3)
    graph = diffusion_graph(points, 5, targets=targets)
    expected = naive_diffusion(points, 5, targets, hops=3, least_cosine=0.3, scale=1.1)
    np.testing.assert_allclose(whole(graph).numpy(), expected, atol=1e-12)


@given(n=st.integers(1, 25), neighbours=st.integers(1, 30), seed=SEEDS)
def test_neighbour_graph_is_symmetric_with_loops_and_no_negative_edge(
    n: int, neighbours: int, seed: int
) -> None:
    points = units(n, seed)
    graph = neighbour_graph(points, neighbours)
    dense = graph.to_dense()
    assert torch.equal(dense, dense.T)
    assert (dense.diagonal() == 1).all()
    assert (graph.values() > 0).all()
    assert (graph.values() <= 1).all()
    np.testing.assert_allclose(dense.numpy(), naive_adjacency(points, neighbours), atol=1e-14)


@given(n=st.integers(1, 25), neighbours=st.integers(1, 9), most=st.integers(1, 30), seed=SEEDS)
def test_weights_lie_in_the_unit_interval(n: int, neighbours: int, most: int, seed: int) -> None:
    graph = diffusion_graph(units(n, seed).float(), neighbours, most=most)
    block = whole(graph)
    assert block.dtype == torch.float32
    assert ((block >= 0) & (block <= 1)).all()
    assert (block.amax(dim=1) == 1).all()
    assert 0 <= graph.dropped < 1
    for row in graph.columns.tolist():
        assert len(set(row)) == len(row)


@given(n=st.integers(2, 25), neighbours=st.integers(1, 9), seed=SEEDS)
def test_order_of_the_points_does_not_matter(n: int, neighbours: int, seed: int) -> None:
    points, targets = units(n, seed), some_targets(n, seed)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    plain = whole(diffusion_graph(points, neighbours, targets=targets))
    moved = whole(diffusion_graph(points[order], neighbours, targets=targets[order]))
    torch.testing.assert_close(moved, plain[order][:, order], atol=1e-12, rtol=0)


@given(n=st.integers(1, 25), most=st.integers(1, 25), seed=SEEDS)
def test_the_heaviest_weights_are_kept_and_the_rest_is_told(n: int, most: int, seed: int) -> None:
    points = units(n, seed)
    full = whole(diffusion_graph(points, 5, most=n))
    graph = diffusion_graph(points, 5, most=most)
    assert graph.columns.shape[1] <= most
    kept = whole(graph)
    assert ((kept == 0) | (kept == full)).all()
    heaviest = full.topk(min(most, n)).values
    torch.testing.assert_close(kept.sum(dim=1), heaviest.sum(dim=1))
    assert graph.dropped == pytest.approx(float(1 - heaviest.sum() / full.sum()), abs=1e-12)


def test_tables_are_as_narrow_as_the_fullest_row() -> None:
    graph = diffusion_graph(arcs(0, 1, 2, 90, 91, 180), 1)
    assert graph.columns.shape == graph.weights.shape == (6, 3)
    assert graph.columns.dtype == torch.int32
    assert graph.dropped == 0


@given(n=st.integers(1, 25), neighbours=st.integers(1, 9), most=st.integers(1, 30), seed=SEEDS)
def test_tables_of_one_width_hold_the_same_weights(
    n: int, neighbours: int, most: int, seed: int
) -> None:
    points, targets = units(n, seed), some_targets(n, seed)
    narrow, wide = (
        diffusion_graph(points, neighbours, targets=targets, most=most, narrow=narrow)
        for narrow in (True, False)
    )
    assert wide.columns.shape == wide.weights.shape == (n, min(most, n))
    assert all(len(set(row)) == len(row) for row in wide.columns.tolist())
    assert torch.equal(whole(wide), whole(narrow))
    assert wide.dropped == narrow.dropped


def test_rows_of_a_batch_are_those_of_the_whole_also_when_asked_twice() -> None:
    graph = diffusion_graph(units(30, 1), 4, targets=some_targets(30, 1))
    index = torch.tensor([7, 0, 7, 29])
    assert torch.equal(graph.rows(index), whole(graph)[index])


def test_same_known_label_weighs_one_however_far_and_unknown_ones_do_not() -> None:
    points = arcs(0, 1, 90, 91, 180, 181)
    graph = diffusion_graph(points, 1, targets=torch.tensor([4, -1, -1, 4, 2, -1]), most=2)
    block = whole(graph)
    assert block[0, 3] == block[3, 0] == 1
    assert block[1, 2] == block[0, 4] == block[1, 5] == 0


def test_tables_do_not_depend_on_the_labels() -> None:
    plain = diffusion_graph(units(20, 5), 4)
    known = diffusion_graph(units(20, 5), 4, targets=some_targets(20, 5))
    assert torch.equal(plain.columns, known.columns)
    assert torch.equal(plain.weights, known.weights)
    assert (plain.targets == -1).all()


def test_opposite_points_are_never_joined_and_keep_themselves() -> None:
    graph = diffusion_graph(arcs(0, 180), 1, least_cosine=-1.0)
    assert torch.equal(whole(graph), torch.eye(2, dtype=torch.float64))
    assert graph.columns.shape == (2, 1)


def test_equal_points_are_full_neighbours() -> None:
    assert (whole(diffusion_graph(arcs(10, 10, 10), 2)) == 1).all()


def test_a_vector_of_zeros_keeps_itself() -> None:
    points = torch.cat([units(4, 0), torch.zeros(1, 4, dtype=torch.float64)])
    block = whole(diffusion_graph(points, 2))
    assert block[4].tolist() == [0, 0, 0, 0, 1]


def test_graph_is_frozen_and_quiet() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph = diffusion_graph(units(9, 0), 2)
        smoothed(units(9, 0), 2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        graph.dropped = 1.0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"neighbours": 0}, "at least 1"),
        ({"hops": 0}, "at least 1"),
        ({"most": 0}, "at least 1"),
        ({"block_rows": 0}, "at least 1"),
        ({"least_cosine": 1.0}, "least_cosine is 1.0"),
        ({"scale": 0.0}, "scale 0.0"),
        ({"targets": torch.zeros(3)}, "3 targets for 5 points"),
        ({"points": torch.zeros(0, 4)}, "no points"),
        ({"points": torch.full((5, 4), torch.nan)}, "NaN"),
    ],
)
def test_impossible_graphs_are_refused_in_one_line(change: dict[str, object], words: str) -> None:
    arguments = {"points": units(5, 0), "neighbours": 2, **change}
    with pytest.raises(ValueError, match=words):
        diffusion_graph(**arguments)  # type: ignore[arg-type]


def naive_filter(points: Tensor, neighbours: int) -> np.ndarray:
    a = (naive_adjacency(normalize(points, dim=1), neighbours) > 0).astype(float)
    degree = a.sum(axis=1)
    laplacian = np.eye(len(a)) - a / np.sqrt(np.outer(degree, degree))
    return np.eye(len(a)) - laplacian / 2


@given(
    n=st.integers(1, 25),
    neighbours=st.integers(1, 30),
    rounds=st.integers(0, 4),
    block=st.sampled_from([1, 7, 512]),
    seed=SEEDS,
)
def test_smoothing_equals_the_dense_filter(
    n: int, neighbours: int, rounds: int, block: int, seed: int
) -> None:
    points = units(n, seed) * torch.linspace(0.5, 3, n, dtype=torch.float64)[:, None]
    found = smoothed(points, neighbours, rounds=rounds, block_rows=block)
    step = naive_filter(points, neighbours)
    np.testing.assert_allclose(
        found.numpy(), np.linalg.matrix_power(step, rounds) @ points.numpy(), atol=1e-12
    )


@given(n=st.integers(1, 20), neighbours=st.integers(1, 30), rounds=st.integers(1, 5), seed=SEEDS)
def test_equal_points_stay_on_their_line(n: int, neighbours: int, rounds: int, seed: int) -> None:
    points = units(1, seed).repeat(n, 1)
    found = smoothed(points, neighbours, rounds=rounds)
    torch.testing.assert_close(normalize(found, dim=1), points)
    if neighbours >= n - 1:  # all joined with all: the filter leaves what is constant alone
        torch.testing.assert_close(found, points)


def test_golden_smoothing() -> None:
    # Two pairs, each the other's neighbour: a round leaves 3/4 of a point and 1/4 of its partner.
    points = arcs(0, 10, 90, 100)
    expected = 0.75 * points + 0.25 * points[[1, 0, 3, 2]]
    torch.testing.assert_close(smoothed(points, 1, rounds=1), expected)
    torch.testing.assert_close(smoothed(points, 1), 0.75 * expected + 0.25 * expected[[1, 0, 3, 2]])


def test_smoothing_tightens_noisy_clusters_and_leaves_its_input() -> None:
    generator = torch.Generator().manual_seed(0)
    owner = torch.arange(200) % 4
    centres = torch.eye(4, 16)
    points = normalize(centres[owner] + 0.15 * torch.randn(200, 16, generator=generator), dim=1)
    before = points.clone()
    found = normalize(smoothed(points, 10), dim=1)
    assert torch.equal(points, before)
    gaps = [(x - centres[owner]).norm(dim=1).mean() for x in (points, found)]
    assert gaps[1] < 0.7 * gaps[0]


def test_negative_rounds_are_refused() -> None:
    with pytest.raises(ValueError, match="rounds"):
        smoothed(units(5, 0), 2, rounds=-1)


MEMORY_PROBE = """
import torch
from ronid.assign.graph import diffusion_graph, smoothed

def peak_after(n):
    torch.manual_seed(0)
    points = torch.nn.functional.normalize(torch.randn(n, 16), dim=1)
    diffusion_graph(points, 20, most=64, block_rows=64, least_cosine=-1.0)
    smoothed(points, 20, block_rows=64)
    # Not by getrusage: there a process begins with the peak of the one that started it.
    status = open("/proc/self/status").read().splitlines()
    return 1024 * next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

print(-peak_after(256) + peak_after(4000))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_memory_is_that_of_a_few_blocks_and_the_tables() -> None:
    # A fixed threshold makes malloc give blocks back at once, so that the peak counts live ones.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "1000000"}
    probe = [sys.executable, "-c", MEMORY_PROBE]
    done = subprocess.run(probe, env=environment, capture_output=True, text=True, check=True)
    # Tables 2 MB, a block 1 MB, edges under 3 MB each of a few times; the matrix is 64 MB.
    assert int(done.stdout) < 24e6


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_gpu_gives_the_weights_of_the_cpu_and_records_rows() -> None:
    points, targets = units(600, 0, d=16).float(), some_targets(600, 0)
    expected = whole(diffusion_graph(points, 10, targets=targets))
    graph = diffusion_graph(points.cuda(), 10, targets=targets.cuda())
    index = torch.arange(64, device="cuda")
    torch.testing.assert_close(graph.rows(index).cpu(), expected[:64], atol=1e-4, rtol=1e-4)
    record = torch.cuda.CUDAGraph()
    with torch.cuda.graph(record):
        block = graph.rows(index)
    index += 100
    record.replay()
    torch.testing.assert_close(block.cpu(), expected[100:164], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(
        smoothed(points.cuda(), 10).cpu(), smoothed(points, 10), atol=1e-4, rtol=1e-4
    )
