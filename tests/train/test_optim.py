"""Learning-rate schedule, weight decay and devices."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from ronid.config import OptimiserConfig
from ronid.errors import UsageError
from ronid.train.heads import Centres
from ronid.train.optim import (
    choose_device,
    device_title,
    linear_factor,
    make_optimiser,
    peak_rate,
    rate_factor,
    set_rate,
    tensor_cores,
    uncorrected_factor,
    warmup_epochs,
)


def test_golden_schedule() -> None:
    factors = [linear_factor(step, 10, 0.2) for step in range(11)]
    assert factors == [0.5, 1.0, 1.0, 0.875, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125, 0.0]


@given(total=st.integers(1, 500), share=st.floats(0, 1))
def test_factor_rises_to_one_and_falls_without_reaching_zero(total: int, share: float) -> None:
    factors = [linear_factor(step, total, share) for step in range(total)]
    assert max(factors) == 1.0
    assert min(factors) > 0
    peak = factors.index(1.0)
    assert factors[: peak + 1] == sorted(factors[: peak + 1])
    assert factors[peak:] == sorted(factors[peak:], reverse=True)
    assert linear_factor(total + 5, total, share) == 0.0


def test_a_longer_step_is_that_of_adam_without_correction() -> None:
    torch.manual_seed(0)
    weight = nn.Linear(4, 3, bias=False)
    plain = weight.weight.detach().clone()
    config = OptimiserConfig(weight_decay=0.0)
    optimiser = make_optimiser([weight], 1e-2, config)
    first, second = torch.zeros_like(plain), torch.zeros_like(plain)
    for step in range(30):
        gradient = torch.randn(3, 4)
        weight.weight.grad = gradient.clone()
        set_rate(optimiser, 1e-2 * uncorrected_factor(step))
        optimiser.step()
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        plain = plain - 1e-2 * first / (second.sqrt() + 1e-8)
    torch.testing.assert_close(weight.weight.detach(), plain, rtol=1e-4, atol=1e-5)


def test_golden_length_of_uncorrected_steps() -> None:
    found = [uncorrected_factor(step) for step in (0, 9, 99, 10_000)]
    assert found == pytest.approx([3.1623, 6.5277, 3.2405, 1.0], rel=1e-3)


@given(epochs=st.integers(0, 40), steps=st.integers(1, 9), share=st.sampled_from([0.0, 0.1, 0.5]))
def test_the_rate_rises_in_the_epochs_of_the_warm_up(epochs: int, steps: int, share: float) -> None:
    rising = warmup_epochs(epochs, OptimiserConfig(warmup_share=share))
    factors = [linear_factor(step, epochs * steps, share) for step in range(epochs * steps)]
    risen = [number for number, factor in enumerate(factors) if factor == 1.0]
    # The schedule rounds the warm-up to a whole step; half a step may miss by the last digit.
    assert not factors or abs(risen[0] + 1 - max(1, rising * steps)) <= 0.5 + 1e-9


def test_without_warm_up_the_first_step_is_full() -> None:
    assert [linear_factor(step, 4, 0.0) for step in range(4)] == [
        1.0,
        1.0,
        pytest.approx(2 / 3),
        pytest.approx(1 / 3),
    ]


def test_a_constant_rate_rises_and_stays() -> None:
    config = OptimiserConfig(warmup_share=0.2, schedule="constant")
    assert [rate_factor(step, 10, config) for step in range(10)] == [0.5, *[1.0] * 9]
    falling = OptimiserConfig(warmup_share=0.2)
    assert [rate_factor(step, 10, falling) for step in range(10)] == [
        linear_factor(step, 10, 0.2) for step in range(10)
    ]


def test_gradients_below_epsilon_move_weights_less() -> None:
    moved = []
    for epsilon in (1e-8, 1e-7):
        layer = nn.Linear(1, 1, bias=False)
        optimiser = make_optimiser([layer], 1e-3, OptimiserConfig(0.0, epsilon=epsilon))
        before = float(layer.weight.detach())
        layer.weight.grad = torch.full_like(layer.weight, 1e-8)
        optimiser.step()
        moved.append(before - float(layer.weight.detach()))
    # |g| / (|g| + epsilon) of the learning rate
    assert moved == pytest.approx([1e-3 / 2, 1e-3 / 11], rel=1e-2)


def test_matrices_decay_and_biases_do_not() -> None:
    shared = nn.Linear(2, 2)
    frozen = nn.Linear(2, 2).requires_grad_(False)
    model = nn.Sequential(shared, nn.LayerNorm(2), frozen)
    optimiser = make_optimiser([model, shared], 0.5, OptimiserConfig(weight_decay=0.1))
    decayed, plain = optimiser.param_groups
    assert [p.ndim for p in decayed["params"]] == [2]
    assert [p.ndim for p in plain["params"]] == [1, 1, 1]
    assert (decayed["weight_decay"], plain["weight_decay"]) == (0.1, 0.0)
    assert decayed["lr"] == 0.5


def test_centres_do_not_decay() -> None:
    modules = [nn.Linear(2, 2), Centres(torch.eye(3))]
    optimiser = make_optimiser(modules, 0.5, OptimiserConfig(weight_decay=0.1))
    decays = {id(p): g["weight_decay"] for g in optimiser.param_groups for p in g["params"]}
    assert decays[id(modules[1].weight)] == 0
    assert decays[id(modules[0].weight)] == 0.1


def test_devices_that_are_not_there_are_refused() -> None:
    assert choose_device("cpu") == torch.device("cpu")
    assert choose_device().type in {"cpu", "cuda"}
    with pytest.raises(UsageError, match="no device 'warp'"):
        choose_device("warp")


def test_devices_are_told_by_name_or_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    assert device_title(torch.device("cpu")) == f"cpu, {torch.get_num_threads()} threads"
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"card {device.index}")
    assert device_title(torch.device("cuda", 1)) == "card 1"


def test_shorter_products_are_for_a_gpu_and_for_a_while() -> None:
    before = torch.get_float32_matmul_precision()
    with tensor_cores(torch.device("cpu")):
        assert torch.get_float32_matmul_precision() == before
    with tensor_cores(torch.device("cuda")):
        assert torch.get_float32_matmul_precision() == "high"
    assert torch.get_float32_matmul_precision() == before


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_gpu_without_a_gpu_is_refused() -> None:
    with pytest.raises(UsageError, match="no GPU is usable here; use cpu"):
        choose_device("cuda")


class TestPeakRate:
    def test_twice_the_layers_and_twice_the_width_give_a_quarter(self) -> None:
        config = OptimiserConfig(lr_for_size=6 * 384)
        assert peak_rate(4e-5, 12 * 768, config) == pytest.approx(1e-5)
        assert peak_rate(4e-5, 6 * 384, config) == 4e-5

    def test_a_small_encoder_gets_no_more_than_is_written(self) -> None:
        assert peak_rate(4e-5, 2 * 128, OptimiserConfig(lr_for_size=6 * 384)) == 4e-5

    @pytest.mark.parametrize(("meant", "size"), [(0, 9216), (2304, 0)])
    def test_rates_stay_where_no_size_is_named_or_none_there(self, meant: int, size: int) -> None:
        assert peak_rate(1e-3, size, OptimiserConfig(lr_for_size=meant)) == 1e-3


class TestRates:
    def test_modules_learn_at_their_own_multiples(self) -> None:
        modules = [nn.Linear(2, 2), nn.Linear(2, 3)]
        optimiser = make_optimiser(modules, 0.5, OptimiserConfig(), [1.0, 10.0])
        set_rate(optimiser, 0.25)
        rates = {id(p): g["lr"] for g in optimiser.param_groups for p in g["params"]}
        assert {rates[id(p)] for p in modules[0].parameters()} == {0.25}
        assert {rates[id(p)] for p in modules[1].parameters()} == {2.5}

    def test_a_shared_weight_is_the_first_module_s_and_there_once(self) -> None:
        encoder, head = nn.Linear(2, 2), nn.Linear(2, 2)
        head.weight = encoder.weight
        optimiser = make_optimiser([encoder, head], 1.0, OptimiserConfig(), [1.0, 3.0])
        own = [g["lr"] for g in optimiser.param_groups for p in g["params"] if p is encoder.weight]
        assert own == [1.0]

    def test_biases_of_a_faster_module_do_not_decay_either(self) -> None:
        modules = [nn.Linear(2, 2), nn.Linear(2, 2)]
        optimiser = make_optimiser(modules, 1.0, OptimiserConfig(weight_decay=0.1), [1.0, 3.0])
        decays = {(p.ndim, g["weight_decay"]) for g in optimiser.param_groups for p in g["params"]}
        assert decays == {(2, 0.1), (1, 0.0)}
