"""The GPU kernel of attention does what the formula says, utterance by utterance."""

import pytest
import torch
from torch import Tensor

if not torch.cuda.is_available():
    pytest.skip("no GPU", allow_module_level=True)
pytest.importorskip("triton")

from ronid.encode.kernels import Attention

LENGTHS = [1, 3, 5, 9, 16, 20, 33, 100]
BOXES = ((5, 16), (3, 104))
HEADS, WIDTH, FILLING = 3, 32, 7


def bounds() -> Tensor:
    ends = torch.tensor(LENGTHS).cumsum(0)
    return torch.cat([ends.new_zeros(1), ends]).int().cuda()


def made(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator("cuda").manual_seed(seed)
    values = torch.randn(shape, generator=generator, device="cuda").bfloat16()
    return values.requires_grad_(True)


def formula(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, scale: float) -> Tensor:
    """Attention in float32 by a plain loop."""
    out, start = torch.zeros(q.shape, device="cuda"), 0
    for length in LENGTHS:
        part = slice(start, start + length)
        scores = torch.einsum("ihd,jhd->hij", q[part].float(), k[part].float()) * scale
        if bias is not None:
            scores = scores + bias[:, :length, :length].float()
        out[part] = torch.einsum("hij,jhd->ihd", scores.softmax(-1), v[part].float())
        start += length
    return out


@pytest.mark.parametrize("width", [16, 32, 64])
@pytest.mark.parametrize("biased", [False, True])
def test_outcome_and_gradients_are_those_of_the_formula(biased: bool, width: int) -> None:
    tokens = sum(LENGTHS) + FILLING
    inputs = [made(tokens, HEADS, width, seed=seed) for seed in range(3)]
    bias = made(HEADS, 104, 104, seed=4) if biased else None
    leaves = [*inputs, bias] if bias is not None else inputs
    asked = torch.randn(tokens, HEADS, width, device="cuda")

    out = Attention.apply(*inputs, bias, bounds(), BOXES, 0.0, 0.2)
    found = torch.autograd.grad(out, leaves, asked.to(out.dtype))
    expected = formula(*inputs, bias, 0.2)
    wanted = torch.autograd.grad(expected, leaves, asked)

    torch.testing.assert_close(out.float(), expected, atol=2e-2, rtol=2e-2)
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours.float(), theirs.float(), atol=6e-2, rtol=3e-2)
    assert out[sum(LENGTHS) :].abs().max() == 0
    assert all(gradient[sum(LENGTHS) :].abs().max() == 0 for gradient in found[:3])


def test_dropout_drops_its_share_and_the_gradient_knows_which() -> None:
    length, width = LENGTHS[-1], 128
    q, k = (made(sum(LENGTHS), HEADS, width, seed=seed) for seed in range(2))
    v = torch.zeros(sum(LENGTHS), HEADS, width, device="cuda").bfloat16()
    v[-length:] = torch.eye(length, width, device="cuda").bfloat16()[:, None]
    v.requires_grad_(True)
    out = Attention.apply(q, k, v, None, bounds(), BOXES, 0.25, 0.05)
    dropped = out.detach()[-length:, :, :length].float()  # with such values: the weights themselves
    gone = float((dropped == 0).float().mean())
    assert 0.23 < gone < 0.27

    asked = torch.randn(out.shape, device="cuda").bfloat16()
    found = torch.autograd.grad(out, [q, k, v], asked)
    part = slice(-length, None)
    expected = torch.einsum("ihj,ihd->jhd", dropped, asked[part].float())
    torch.testing.assert_close(found[2][part].float(), expected, atol=3e-2, rtol=3e-2)
    leaves = [x.detach()[part].float().requires_grad_(True) for x in (q, k)]
    weights = (torch.einsum("ihd,jhd->hij", *leaves) * 0.05).softmax(-1).permute(1, 0, 2)
    kept = (dropped != 0) / 0.75
    wanted = torch.autograd.grad(weights * kept, leaves, asked[part, :, :length].float())
    for ours, theirs in zip(found[:2], wanted, strict=True):
        torch.testing.assert_close(ours[part].float(), theirs, atol=2e-2, rtol=5e-2)


def test_another_draw_every_time_and_the_same_for_the_same_seed() -> None:
    q, k, v = (made(sum(LENGTHS), HEADS, WIDTH, seed=seed) for seed in range(3))

    def run() -> Tensor:
        return Attention.apply(q, k, v, None, bounds(), BOXES, 0.5, 0.2)

    torch.manual_seed(3)
    first, second = run(), run()
    torch.manual_seed(3)
    assert torch.equal(run(), first)
    assert not torch.equal(first, second)
