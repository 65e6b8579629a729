"""One optimiser step: what it does to the weights, and what it says about the losses."""

from collections.abc import Mapping

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from ronid.config import OptimiserConfig
from ronid.encode.rows import TokenRows, VectorRows
from ronid.train.optim import make_optimiser, set_rate
from ronid.train.step import Picks, Stepper, own_stream
from ronid.types import IntArray

CPU = torch.device("cpu")
ROWS = VectorRows(torch.randn(20, 3, generator=torch.Generator().manual_seed(0)))
BATCHES = [(np.array([0, 3, 5]),), (np.array([7, 7]),), (np.array([1, 2, 19]),)]


def linear() -> nn.Linear:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Linear(3, 2)


def losses_of(model: nn.Linear, index: Tensor, scale: float = 1.0) -> dict[str, Tensor]:
    loss = scale * model(ROWS.vectors[index]).square().sum(-1).mean()
    return {"loss": loss, "loss_third": loss / 3}


def stepper(model: nn.Linear, lr: float = 0.1, clip: float = 1e9, scale: float = 1.0) -> Stepper:
    def step(picks: Picks) -> Mapping[str, Tensor]:
        return losses_of(model, picks[0].index, scale)

    optimiser = make_optimiser([model], lr, OptimiserConfig())
    return Stepper(step, optimiser, clip, ROWS, CPU)


def by_hand(
    model: nn.Linear, batches: list[tuple[IntArray]], lr: float, clip: float, scale: float
) -> list[float]:
    """Train `model` by AdamW written out, weight decay on the matrix only; return the losses."""
    config, seen = OptimiserConfig(), []
    moments = {p: (torch.zeros_like(p), torch.zeros_like(p)) for p in model.parameters()}
    for count, (index,) in enumerate(batches, start=1):
        loss = losses_of(model, torch.from_numpy(index), scale)["loss"]
        seen.append(loss.item())
        gradients = torch.autograd.grad(loss, list(moments))
        norm = torch.sqrt(sum((g**2).sum() for g in gradients))  # type: ignore[arg-type]
        factor = min(1.0, clip / (float(norm) + 1e-6))
        for (weight, (first, second)), gradient in zip(moments.items(), gradients, strict=True):
            clipped = gradient * factor
            first.lerp_(clipped, 0.1)
            second.lerp_(clipped**2, 0.001)
            mean = first / (1 - 0.9**count)
            spread = (second / (1 - 0.999**count)).sqrt() + 1e-8
            with torch.no_grad():
                if weight.ndim > 1:
                    weight.mul_(1 - lr * config.weight_decay)
                weight.sub_(lr * mean / spread)
    return seen


@pytest.mark.parametrize(
    ("clip", "scale"), [(1e9, 1.0), (0.5, 1.0), (0.5, 1000.0)], ids=["free", "clipped", "steep"]
)
def test_steps_are_those_written_by_hand(clip: float, scale: float) -> None:
    model, reference = linear(), linear()
    train = stepper(model, 0.05, clip, scale)
    for batch in BATCHES:
        train(batch)
    losses = by_hand(reference, BATCHES, 0.05, clip, scale)
    torch.testing.assert_close(model.weight, reference.weight, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(model.bias, reference.bias, atol=1e-6, rtol=1e-5)
    assert not torch.equal(model.weight, linear().weight)
    assert train.means()["loss"] == pytest.approx(np.mean(losses), rel=1e-5)


@pytest.mark.parametrize(("clip", "clipped"), [(0.25, True), (1e6, False)])
def test_only_gradients_that_are_too_long_are_clipped(clip: float, clipped: bool) -> None:
    model = linear()
    stepper(model, clip=clip, scale=100.0)(BATCHES[0])
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    norm = float(torch.cat([g.flatten() for g in gradients]).norm())
    reference = linear()
    loss = losses_of(reference, torch.from_numpy(BATCHES[0][0]), 100.0)["loss"]
    plain = torch.cat(
        [g.flatten() for g in torch.autograd.grad(loss, list(reference.parameters()))]
    )
    assert float(plain.norm()) > 0.25
    assert norm == pytest.approx(0.25 if clipped else float(plain.norm()), rel=1e-4)


@given(epochs=st.lists(st.lists(st.floats(-5, 5), min_size=1, max_size=6), min_size=1, max_size=4))
def test_means_are_those_of_the_steps_since_the_last_call(epochs: list[list[float]]) -> None:
    model, values = linear(), iter([x for epoch in epochs for x in epoch])

    def step(_: Picks) -> Mapping[str, Tensor]:
        loss = model.bias.sum() * 0 + next(values)
        return {"loss": loss, "loss_double": 2 * loss}

    train = Stepper(step, make_optimiser([model], 0.0, OptimiserConfig()), 1.0, ROWS, CPU)
    for epoch in epochs:
        for _ in epoch:
            train(BATCHES[0])
        means = train.means()
        assert set(means) == {"loss", "loss_double"}
        assert means["loss"] == pytest.approx(np.mean(epoch), abs=1e-5)
        assert means["loss_double"] == pytest.approx(2 * np.mean(epoch), abs=1e-5)


def test_no_steps_have_no_losses_and_an_empty_epoch_no_remains() -> None:
    train = stepper(linear())
    assert train.means() == {}
    train(BATCHES[0])
    assert train.means()["loss"] > 0
    assert train.means() == {"loss": 0.0, "loss_third": 0.0}


def test_means_keep_no_graph_alive() -> None:
    train = stepper(linear())
    train(BATCHES[0])
    assert not any(part.requires_grad for parts in train._sums.values() for part in parts)


def test_step_is_shown_what_the_rows_picked() -> None:
    model, seen = linear(), []
    starts = np.array([0, 3, 5, 9])
    rows = TokenRows(torch.arange(9, dtype=torch.int32), starts, 0)

    def step(picks: Picks) -> Mapping[str, Tensor]:
        seen.extend([(pick.index.tolist(), pick.tokens, pick.width) for pick in picks])
        return {"loss": model.weight.sum()}

    train = Stepper(step, make_optimiser([model], 0.1, OptimiserConfig()), 1.0, rows, CPU)
    train((np.array([2, 0, 2]), np.array([1])))
    assert seen == [([2, 0, 2], 11, 4), ([1], 2, 2)]


def test_gradients_of_one_step_do_not_leak_into_the_next() -> None:
    model = linear()
    train = stepper(model, lr=0.0)
    gradients = []
    for _ in range(2):
        train(BATCHES[0])
        assert model.weight.grad is not None
        gradients.append(model.weight.grad.clone())
    assert torch.equal(*gradients)


def test_rate_set_between_steps_counts_at_once() -> None:
    model = linear()
    train = stepper(model, lr=0.1)
    set_rate(train.optimiser, 0.0)
    train(BATCHES[0])
    assert torch.equal(model.weight, linear().weight)
    set_rate(train.optimiser, 0.1)
    train(BATCHES[0])
    assert not torch.equal(model.weight, linear().weight)


def test_rate_is_set_in_every_group_and_in_place_where_it_is_a_tensor() -> None:
    model = linear()
    rate = torch.tensor(0.5)
    groups = [{"params": [model.weight], "lr": rate}, {"params": [model.bias], "lr": 0.5}]
    optimiser = torch.optim.AdamW(groups, capturable=False, foreach=False)
    set_rate(optimiser, 0.25)
    assert optimiser.param_groups[0]["lr"] is rate
    assert float(rate) == 0.25
    assert optimiser.param_groups[1]["lr"] == 0.25


def test_error_in_a_step_is_not_swallowed() -> None:
    model = linear()

    def step(_: Picks) -> Mapping[str, Tensor]:
        raise RuntimeError("broken step")

    train = Stepper(step, make_optimiser([model], 0.1, OptimiserConfig()), 1.0, ROWS, CPU)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="broken step"):
            train(BATCHES[0])


def test_own_stream_does_nothing_on_cpu() -> None:
    with own_stream(CPU):
        assert torch.ones(2).sum() == 2


def test_losses_of_steps_of_one_kind_are_averaged_over_these_alone() -> None:
    model = linear()

    def step(picks: Picks) -> Mapping[str, Tensor]:
        loss = model.weight.sum() * 0 + float(len(picks[0]))
        return {"loss": loss, "loss_pair" if len(picks[0]) == 2 else "loss_three": loss}

    taken = Stepper(step, make_optimiser([model], 0.1, OptimiserConfig()), 1e9, ROWS, CPU)
    for batch in BATCHES:  # of three rows, two and three
        taken(batch)
    assert taken.means() == pytest.approx({"loss": 8 / 3, "loss_pair": 2, "loss_three": 3})
    taken(BATCHES[0])
    assert taken.means() == pytest.approx({"loss": 3, "loss_pair": 0, "loss_three": 3})
