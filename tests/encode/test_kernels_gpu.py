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
    tokens = sum(LENGTHS)
    q = torch.zeros(tokens, HEADS, WIDTH, device="cuda").bfloat16()
    v = torch.ones_like(q).requires_grad_(True)
    out = Attention.apply(q, q, v, None, bounds(), BOXES, 0.25, 1.0)
    last = out.detach()[-100:, :, 0].float()  # means of 100 weights that are 0 or 4/3
    assert abs(float(last.mean()) - 1) < 0.02
    assert 0.02 < float(last.std()) < 0.12
    (given,) = torch.autograd.grad(out, v, torch.ones_like(out))
    # What all rows together took of the values is what flows back to them.
    assert float(given[-100:].float().sum()) == pytest.approx(
        float(out[-100:].float().sum()), rel=0.01
    )


def test_another_draw_every_time_and_the_same_for_the_same_seed() -> None:
    q, k, v = (made(sum(LENGTHS), HEADS, WIDTH, seed=seed) for seed in range(3))

    def run() -> Tensor:
        return Attention.apply(q, k, v, None, bounds(), BOXES, 0.5, 0.2)

    torch.manual_seed(3)
    first, second = run(), run()
    torch.manual_seed(3)
    assert torch.equal(run(), first)
    assert not torch.equal(first, second)
