"""Forbidden pairs and closed intents: in the scores, in the E-step and in the answer."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import normalize

from ronid.assign.forbid import NEVER, nearest_allowed, without
from ronid.assign.prior import vouched_prior
from ronid.assign.sinkhorn import Blocks, cosine_blocks
from ronid.config import EStepConfig
from ronid.methods.pseudo_labels import e_step
from ronid.train.state import StageState
from ronid.types import Split

N, K, D = 30, 5, 8


def unit(rows: int, seed: int) -> torch.Tensor:
    return normalize(torch.randn(rows, D, generator=torch.Generator().manual_seed(seed)), dim=1)


def problem(seed: int, closed: tuple[int, ...] = ()) -> Split:
    """Return random labels and bans; no row is banned from everything."""
    rng = np.random.default_rng(seed)
    targets = np.where(rng.random(N) < 0.3, rng.integers(0, K, N), -1)
    pairs = {(int(rng.integers(N)), int(rng.integers(1, K))) for _ in range(12)}
    forbidden = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    return Split(["x"] * N, targets, ("a",), K, forbidden=forbidden, closed=closed)


@given(st.integers(0, 10_000), st.integers(1, 7))
def test_scores_without_pairs_agree_with_a_loop(seed: int, block: int) -> None:
    points, prototypes, split = unit(N, seed), unit(K, seed + 1), problem(seed)
    rows = torch.from_numpy(split.unlabelled)
    found = without(cosine_blocks(points, prototypes, rows=rows), split.forbidden, rows)
    wanted = points[rows] @ prototypes.T
    for row, intent in split.forbidden:
        for at in torch.nonzero(rows == row):
            wanted[at, intent] = NEVER
    whole = torch.cat([found[a : a + block] for a in range(0, len(rows), block)])
    assert torch.allclose(whole, wanted, atol=1e-5)


def test_scores_where_nothing_is_banned_are_the_same_object() -> None:
    scores = Blocks((2, 2), lambda a, b: torch.zeros(b - a, 2))
    assert without(scores, np.empty((0, 2), np.int64), torch.arange(2)) is scores


@pytest.mark.parametrize("rule", ["transport", "kmeans"])
@given(seed=st.integers(0, 10_000))
def test_no_step_gives_a_row_what_it_must_not_get(rule: str, seed: int) -> None:
    split = problem(seed, closed=(4,))
    points, prototypes = unit(N, seed), unit(K, seed + 1)
    state = StageState(torch.nn.Linear(1, 1))  # type: ignore[arg-type]
    state.encoder.device = torch.device("cpu")  # type: ignore[misc]
    state.tensors |= {"prototypes": prototypes, "prior": torch.full((K,), 1 / K).double()}
    config = EStepConfig(pseudo_labels=rule, prior="shrunk")  # type: ignore[arg-type]
    strong_odds = 4 * torch.randn(N, generator=torch.Generator().manual_seed(seed))
    for new_odds in (torch.zeros(N), strong_odds):
        state.tensors["new_odds"] = new_odds
        labels = e_step(points, state, split, config, torch.Generator().manual_seed(0)).labels
        given_rows = split.targets >= 0
        assert (labels[given_rows] == split.targets[given_rows]).all()
        assert 4 not in labels[~given_rows]
        for row, intent in split.forbidden:
            assert given_rows[row] or labels[row] != intent


@given(st.integers(0, 10_000))
def test_nearest_allowed_agrees_with_a_loop(seed: int) -> None:
    split = problem(seed, closed=(2,))
    points, prototypes = unit(N, seed), unit(K, seed + 1)
    found = nearest_allowed(points, prototypes, split)
    banned = {(int(r), int(i)) for r, i in split.forbidden}
    for row in range(N):
        allowed = [k for k in range(K) if k != 2 and (row, k) not in banned]
        best = max(allowed, key=lambda k: float(points[row] @ prototypes[k]))
        assert int(found[row]) == best


@given(st.lists(st.one_of(st.none(), st.floats(0, 0.15)), min_size=6, max_size=6))
def test_vouched_shares_are_believed_and_the_rest_keeps_its_proportions(
    shares: list[float | None],
) -> None:
    prior = torch.tensor([0.1, 0.2, 0.3, 0.1, 0.1, 0.2])
    asked = torch.tensor([float("nan") if s is None else s for s in shares])
    found = vouched_prior(prior, asked, floor=1e-9)
    assert float(found.sum()) == pytest.approx(1)
    others = [i for i, s in enumerate(shares) if s is None]
    if others:
        for i, share in enumerate(shares):
            if share is not None:
                assert float(found[i]) == pytest.approx(share, abs=1e-6)
        ratios = found[others] / prior[others]
        assert torch.allclose(ratios, ratios[:1].expand_as(ratios), rtol=1e-4)
