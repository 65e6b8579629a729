"""Device, optimiser and learning-rate schedule: the same for every stage of every method."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from ronid.config import OptimiserConfig
from ronid.errors import UsageError

BETAS = (0.9, 0.999)


def choose_device(name: str = "auto") -> torch.device:
    """Return the device called `name`; `auto` takes a GPU if there is one.

    Raises:
        UsageError: No such device here.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UsageError(f"no device '{name}'; give cpu, cuda, cuda:1 or auto") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UsageError(f"device '{name}' was asked for, but no GPU is usable here; use cpu")
    return device


@contextmanager
def tensor_cores(device: torch.device) -> Iterator[None]:
    """Let products of float32 matrices on a GPU keep ten bits of their factors; nothing on CPU.

    For networks of wide layers that train for long: many times as fast.
    """
    if device.type != "cuda":
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def device_title(device: torch.device) -> str:
    """Return a device in words, for benchmark rows: a GPU by its name, a CPU by its threads."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"cpu, {torch.get_num_threads()} threads"


def make_optimiser(
    modules: Iterable[nn.Module],
    lr: float,
    config: OptimiserConfig,
    rates: Sequence[float] = (),
) -> torch.optim.AdamW:
    """Return AdamW over the trainable weights, biases and norms without decay.

    Args:
        modules: Whose weights; one that several of them share is the first one's. A module that
            says `decays = False` has none either.
        lr: Learning rate.
        config: Settings.
        rates: For every module the factor of its learning rate; 1 for all when empty.
    """
    modules = list(modules)
    parts: dict[float, tuple[list[nn.Parameter], list[nn.Parameter]]] = {}
    seen: set[int] = set()
    for module, rate in zip(modules, rates or [1.0] * len(modules), strict=True):
        decayed, plain = parts.setdefault(rate, ([], []))
        decays = getattr(module, "decays", True)
        for parameter in module.parameters():
            if parameter.requires_grad and id(parameter) not in seen:
                seen.add(id(parameter))
                (decayed if decays and parameter.ndim > 1 else plain).append(parameter)
    device = _device_of(parts)
    gpu = device.type == "cuda"
    groups: list[dict[str, Any]] = []
    for rate, (decayed, plain) in parts.items():
        # A tensor, so that a recorded step reads the rate of the day.
        own = {"rate": rate, "lr": torch.tensor(lr * rate, device=device) if gpu else lr * rate}
        groups.append({"params": decayed, "weight_decay": config.weight_decay, **own})
        groups.append({"params": plain, "weight_decay": 0.0, **own})
    return torch.optim.AdamW(groups, betas=BETAS, eps=config.epsilon, fused=gpu, capturable=gpu)


def set_rate(optimiser: torch.optim.Optimizer, lr: float) -> None:
    """Set the learning rate of every group to `lr`, times the group's own `rate` if it has one."""
    for group in optimiser.param_groups:
        own = lr * group.get("rate", 1.0)
        if isinstance(group["lr"], torch.Tensor):
            group["lr"].fill_(own)
        else:
            group["lr"] = own


@torch.no_grad()
def forget(optimiser: torch.optim.Optimizer, modules: Iterable[nn.Module]) -> None:
    """Begin anew with the moments of some modules, in place: a recorded step goes on using them."""
    for module in modules:
        for parameter in module.parameters():
            for moment in optimiser.state.get(parameter, {}).values():
                moment.zero_()


def _device_of(parts: Mapping[float, Iterable[Iterable[nn.Parameter]]]) -> torch.device:
    """Where the weights are: the GPU if any of them is on one."""
    places = [p.device for part in parts.values() for group in part for p in group]
    return next((place for place in places if place.type == "cuda"), torch.device("cpu"))


def peak_rate(lr: float, size: int, config: OptimiserConfig) -> float:
    """Return the learning rate `lr` as it suits an encoder of `size`, layers times width."""
    if not config.lr_for_size or not size:
        return lr
    return lr * min(1.0, config.lr_for_size / size)


def uncorrected_factor(step: int) -> float:
    """Return how much longer step `step` of Adam, from 0, is when its moments are not corrected.

    That is (1 - b1^t) / sqrt(1 - b2^t) for the t-th step, with the usual b1 = 0.9 and b2 = 0.999.
    """
    return float((1 - BETAS[0] ** (step + 1)) / math.sqrt(1 - BETAS[1] ** (step + 1)))


def warmup_epochs(epochs: int, config: OptimiserConfig) -> float:
    """Return in how many epochs of a stage the learning rate is still rising."""
    return config.warmup_share * epochs


def rate_factor(step: int, total: int, config: OptimiserConfig) -> float:
    """Return the factor of the learning rate at `step` of `total`, as the schedule has it."""
    factor = linear_factor(step, total, config.warmup_share)
    if config.schedule == "constant" and step >= _warmup_steps(total, config.warmup_share):
        factor = 1.0
    return factor if config.bias_correction else factor * uncorrected_factor(step)


def linear_factor(step: int, total: int, warmup_share: float) -> float:
    """Return the factor of the learning rate at `step`: up over the warm-up, then down to 0."""
    warmup = _warmup_steps(total, warmup_share)
    if step < warmup:
        return (step + 1) / warmup
    return max(0.0, (total - step) / max(1, total - warmup))


def _warmup_steps(total: int, warmup_share: float) -> int:
    return max(1, round(total * warmup_share))
