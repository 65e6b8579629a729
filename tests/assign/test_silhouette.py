"""The silhouette against scikit-learn."""

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import silhouette_score
from torch import Tensor

from ronid.assign.silhouette import silhouette

SEEDS = st.integers(0, 999)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def problem(n: int, k: int, seed: int, spread: float = 1.0) -> tuple[Tensor, Tensor]:
    """Points around k centres, and labels of which some are wrong."""
    generator = seeded(seed)
    owner = torch.randint(k, (n,), generator=generator)
    centres = 3 * torch.randn(k, 5, generator=generator, dtype=torch.float64)
    noise = spread * torch.randn(n, 5, generator=generator, dtype=torch.float64)
    wrong = torch.rand(n, generator=generator) < 0.2
    labels = torch.where(wrong, torch.randint(k, (n,), generator=generator), owner)
    return centres[owner] + noise, labels


@given(n=st.integers(3, 60), k=st.integers(2, 12), seed=SEEDS, block=st.sampled_from([1, 7, 1024]))
def test_silhouette_is_that_of_scikit_learn(n: int, k: int, seed: int, block: int) -> None:
    points, labels = problem(n, k, seed)
    assume(2 <= len(labels.unique()) < n)
    found = silhouette(points, labels, generator=seeded(), block_rows=block)
    assert found == pytest.approx(silhouette_score(points.numpy(), labels.numpy()), abs=1e-9)


@given(n=st.integers(3, 40), seed=SEEDS, shift=st.floats(-50, 50))
def test_names_and_order_and_place_do_not_matter(n: int, seed: int, shift: float) -> None:
    points, labels = problem(n, 4, seed)
    order = torch.randperm(n, generator=seeded(seed))
    plain = silhouette(points, labels, generator=seeded())
    moved = silhouette(points[order] + shift, 7 - 3 * labels[order], generator=seeded())
    assert moved == pytest.approx(plain, abs=1e-9)
    assert -1 <= plain <= 1


def test_golden_value_with_a_point_alone_in_its_cluster() -> None:
    # 0 and 1 together, 3 alone: (3 - 1) / 3, (2 - 1) / 2, and 0 for the lonely one.
    points = torch.tensor([[0.0], [1.0], [3.0]])
    found = silhouette(points, torch.tensor([0, 0, 1]), generator=seeded())
    assert found == pytest.approx((2 / 3 + 1 / 2 + 0) / 3)


def test_tight_far_clusters_are_near_one_and_mixed_ones_below_nought() -> None:
    points, _ = problem(200, 2, 0, spread=0.01)
    near = (points - points[0]).norm(dim=1) < 1
    assert silhouette(points, near.long(), generator=seeded()) > 0.98
    assert silhouette(points, torch.arange(200) // 100, generator=seeded()) < 0.1


@pytest.mark.parametrize("labels", [[5, 5, 5], [0, 1, 2]])
def test_one_cluster_or_only_lonely_points_count_nothing(labels: list[int]) -> None:
    points = torch.tensor([[0.0], [1.0], [3.0]])
    assert silhouette(points, torch.tensor(labels), generator=seeded()) == 0.0


@pytest.mark.parametrize("n", [0, 1])
def test_too_few_points_for_two_clusters_count_nothing(n: int) -> None:
    assert silhouette(torch.zeros(n, 3), torch.zeros(n).long(), generator=seeded()) == 0.0


def test_equal_points_count_nothing_in_spite_of_rounding() -> None:
    points = torch.tensor([[0.1, 0.7, 1e3]]).repeat(6, 1)
    assert silhouette(points, torch.arange(6) % 2, generator=seeded()) == 0.0
    doubled = torch.cat([points, points + torch.tensor([0.0, 0.3, 0.0])])
    assert silhouette(doubled, torch.arange(12) // 6, generator=seeded()) == 1.0


def test_a_sample_is_taken_by_the_generator_and_scored_like_any_points() -> None:
    points, labels = problem(500, 4, 1)
    found = silhouette(points, labels, most=50, generator=seeded(3))
    drawn = torch.randperm(500, generator=seeded(3))[:50].numpy()
    expected = silhouette_score(points.numpy()[drawn], labels.numpy()[drawn])
    assert found == pytest.approx(expected, abs=1e-9)
    assert found == silhouette(points, labels, most=50, generator=seeded(3))
    assert found != silhouette(points, labels, most=50, generator=seeded(4))


def test_a_sample_is_near_the_whole() -> None:
    points, labels = problem(3000, 4, 2)
    whole = silhouette(points, labels, generator=seeded())
    parts = [silhouette(points, labels, most=1000, generator=seeded(seed)) for seed in range(5)]
    assert np.mean(parts) == pytest.approx(whole, abs=0.02)


def test_generator_stays_where_it_is_when_all_points_are_taken() -> None:
    generator = seeded(5)
    before = generator.get_state()
    silhouette(*problem(30, 3, 0), most=30, generator=generator)
    assert torch.equal(generator.get_state(), before)


def test_float32_points_lose_no_digits_far_from_the_origin() -> None:
    points, labels = problem(100, 3, 0)
    points = (points + 1000).float()
    expected = silhouette_score(points.double().numpy(), labels.numpy())
    assert silhouette(points, labels, generator=seeded()) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("points", "labels", "choices", "words"),
    [
        (torch.zeros(4, 2), torch.zeros(3), {}, "3 labels for 4 points"),
        (torch.zeros(4, 2), torch.zeros(4), {"most": 0}, "at least 1"),
        (torch.zeros(4, 2), torch.zeros(4), {"block_rows": 0}, "at least 1"),
        (torch.full((4, 2), torch.nan), torch.zeros(4), {}, "NaN"),
    ],
)
def test_impossible_scores_are_refused_in_one_line(
    points: Tensor, labels: Tensor, choices: dict[str, int], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        silhouette(points, labels, generator=seeded(), **choices)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("place", ["cpu", "cuda"])
def test_gpu_gives_the_score_of_the_cpu(place: str) -> None:
    points, labels = problem(300, 4, 0)
    expected = silhouette(points, labels, generator=seeded())
    generator = torch.Generator(place).manual_seed(0)
    found = silhouette(points.cuda(), labels.cuda(), generator=generator)
    assert found == pytest.approx(expected, abs=1e-9)
    assert -1 <= silhouette(points.cuda(), labels.cuda(), most=100, generator=generator) <= 1
