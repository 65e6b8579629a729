"""Steps that a GPU records and replays do what plain steps do."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from ronid.config import ALL_LAYERS, EncoderConfig, MStepConfig, OptimiserConfig
from ronid.encode.encoder import build_encoder
from ronid.encode.rows import Rows, TokenRows
from ronid.methods.ronid import m_step
from ronid.train.optim import make_optimiser, set_rate
from ronid.train.state import StageState
from ronid.train.step import Picks, Step, Stepper, own_stream
from ronid.train.views import view
from ronid.types import IntArray
from tests.helpers.toy_corpus import FAMILIES, TinyEncoder, Toy

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")

CUDA = torch.device("cuda")
KNOWN, SIZE, STEPS = 4, 24, 8


@dataclass(frozen=True)
class Run:
    """What is trained, and by which steps."""

    state: StageState
    rows: Rows
    stepper: Stepper


Make = Callable[..., Run]


def batches(rows: Rows, seed: int = 0) -> list[tuple[IntArray]]:
    """Return batches of one size, and one of another among them."""
    rng = np.random.default_rng(seed)
    sizes = [SIZE] * STEPS
    sizes[3] = SIZE // 2
    return [(rng.integers(len(rows), size=size),) for size in sizes]


def recorded(stepper: Stepper) -> int:
    return sum(graph is not None for graph in stepper._graphs.values())


@pytest.fixture
def make(tiny: TinyEncoder, few_utterances: Toy) -> Make:
    def build(family: str = "bert", layers: int = 1, adapter: int = 0, lr: float = 1e-3) -> Run:
        """Return M-steps with an encoder without dropout, so that nothing is left to chance."""
        config = EncoderConfig(tiny(family), layers, adapter)
        encoder = build_encoder(config, CUDA, seed=0).train(False)
        rows = encoder.prepare(few_utterances.texts)
        generator = torch.Generator().manual_seed(0)
        state = StageState(encoder)
        prototypes = normalize(torch.randn(6, encoder.dim, generator=generator), dim=1)
        state.put("prototypes", prototypes)
        state.put("labels", torch.from_numpy(few_utterances.classes))
        targets = torch.from_numpy(few_utterances.split().targets).to(CUDA)
        targets = torch.where(targets < 0, 0, targets)
        learn = MStepConfig(temperature=0.3, prototype_momentum=0.9)

        def step(picks: Picks) -> Mapping[str, Tensor]:
            return m_step(picks[0], KNOWN, state, targets, rows, learn)

        return Run(state, rows, stepper_of(state, rows, step, lr))

    return build


def stepper_of(state: StageState, rows: Rows, step: Step, lr: float = 1e-3) -> Stepper:
    settings = OptimiserConfig()
    optimiser = make_optimiser([state.encoder], lr, settings)
    return Stepper(step, optimiser, settings.clip_norm, rows, CUDA)


def train(run: Run, groups: list[tuple[IntArray]]) -> list[dict[str, float]]:
    """Make one step per batch; return the losses of each."""
    losses = []
    with own_stream(CUDA):
        for count, batch in enumerate(groups):
            set_rate(run.stepper.optimiser, 1e-3 * (1 - count / (2 * len(groups))))
            run.stepper(batch)
            losses.append(run.stepper.means())
    return losses


def assert_moved_alike(one: Run, two: Run, start: Run) -> None:
    """Assert that two runs differ by far less than each moved."""
    first = start.state.weights() | {"prototypes": start.state.tensors["prototypes"]}
    ends = [
        run.state.weights() | {"prototypes": run.state.tensors["prototypes"]} for run in (one, two)
    ]
    for name, weight in first.items():
        if "k_lin.bias" in name or "key.bias" in name or ".k.bias" in name:
            continue  # softmax does not see it: its gradient is rounding error, blown up by Adam
        a, b = (end[name].detach() for end in ends)
        assert torch.isfinite(a).all()
        moved = float((a - weight.detach()).norm())
        assert float((a - b).norm()) <= 0.05 * moved + 1e-5, name
    total = sum(float((ends[0][n] - w).detach().norm()) for n, w in first.items())
    assert total > 1e-3


@pytest.mark.parametrize(
    ("family", "layers", "adapter"),
    [
        *((family, 1, 0) for family in FAMILIES),
        ("bert", ALL_LAYERS, 0),
        ("mpnet", ALL_LAYERS, 0),
        ("bert", 0, 16),
    ],
)
def test_replayed_steps_train_like_plain_ones(
    make: Make, monkeypatch: pytest.MonkeyPatch, family: str, layers: int, adapter: int
) -> None:
    run = make(family, layers, adapter)
    groups = batches(run.rows)
    losses = train(run, groups)
    assert recorded(run.stepper) >= 1
    monkeypatch.setattr(Stepper, "_record", lambda *_: None)
    plain = make(family, layers, adapter)
    expected = train(plain, groups)
    assert recorded(plain.stepper) == 0
    assert [set(row) for row in losses] == [set(row) for row in expected]
    for row, other in zip(losses, expected, strict=True):
        assert row == pytest.approx(other, rel=2e-2, abs=2e-3)
    assert_moved_alike(run, plain, make(family, layers, adapter))


def test_replay_reads_what_was_put_since_the_recording(make: Make) -> None:
    run = make(adapter=16, layers=0, lr=0.0)
    labels = run.state.tensors["labels"].clone()
    prototypes = run.state.tensors["prototypes"].clone()
    batch = batches(run.rows)[0]

    def loss() -> float:
        run.state.put("prototypes", prototypes)
        run.stepper(batch)
        return run.stepper.means()["loss_intra"]

    with own_stream(CUDA):
        set_rate(run.stepper.optimiser, 0.0)
        first = [loss() for _ in range(4)]
        assert recorded(run.stepper) == 1
        run.state.put("labels", (labels + 1) % 6)
        other = loss()
        run.state.put("labels", labels)
        again = loss()
    assert first == pytest.approx([first[0]] * 4, rel=1e-3)
    assert abs(other - first[0]) > 1e-3
    assert again == pytest.approx(first[0], rel=1e-3)


def test_replay_obeys_the_rate_of_the_day(make: Make) -> None:
    run = make()
    batch = batches(run.rows)[0]
    with own_stream(CUDA):
        for _ in range(3):
            run.stepper(batch)
        assert recorded(run.stepper) == 1
        weights = {n: w.detach().clone() for n, w in run.state.weights().items()}
        set_rate(run.stepper.optimiser, 0.0)
        run.stepper(batch)
        assert all(torch.equal(w, weights[n]) for n, w in run.state.weights().items())
        set_rate(run.stepper.optimiser, 1e-3)
        run.stepper(batch)
        assert not all(torch.equal(w, weights[n]) for n, w in run.state.weights().items())


def test_replays_draw_other_tokens_every_time(make: Make) -> None:
    run = make()
    assert isinstance(run.rows, TokenRows)
    factors = torch.randn(SIZE, run.state.encoder.dim, device=CUDA)

    def step(picks: Picks) -> Mapping[str, Tensor]:
        return {"loss": (view(run.state.encoder, run.rows, picks[0], 0.5) * factors).sum()}

    stepper = stepper_of(run.state, run.rows, step, lr=0.0)
    batch = batches(run.rows)[0]
    losses = []
    with own_stream(CUDA):
        for _ in range(6):
            stepper(batch)
            losses.append(stepper.means()["loss"])
    assert recorded(stepper) == 1
    assert len(set(losses)) == 6


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_step_that_cannot_be_recorded_still_trains(
    make: Make, caplog: pytest.LogCaptureFixture, dropout: float
) -> None:
    run = make(adapter=16, layers=0)

    def step(picks: Picks) -> Mapping[str, Tensor]:
        vectors = run.state.encoder(run.rows, picks[0])
        vectors = torch.nn.functional.dropout(vectors, dropout)
        if float(vectors.detach().sum()) == 0.123:  # a question to the GPU
            raise AssertionError
        return {"loss": vectors[:, 0].mean()}

    stepper = stepper_of(run.state, run.rows, step)
    batch = batches(run.rows)[0]
    losses = []
    with own_stream(CUDA):
        for _ in range(6):
            stepper(batch)
            losses.append(stepper.means()["loss"])
    assert recorded(stepper) == 0
    assert sum("cannot be recorded" in r.getMessage() for r in caplog.records) == 1
    assert np.isfinite(losses).all()
    if not dropout:
        assert losses == sorted(losses, reverse=True)
    torch.rand(3, device=CUDA)  # and the GPU's generator is usable


def test_few_shapes_serve_many_batches(make: Make) -> None:
    run = make()
    rng = np.random.default_rng(1)
    for size in (SIZE, 80):
        picks = [run.rows.pick(rng.integers(len(run.rows), size=size), CUDA) for _ in range(50)]
        assert len({pick.shape for pick in picks}) <= 3
        for pick in picks:
            index = pick.index.cpu().numpy()
            assert pick.tokens >= run.rows.lengths[index].sum()
            assert pick.width >= run.rows.lengths[index].max()
            assert sum(number for number, _ in pick.boxes) == size


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("layers", [1, ALL_LAYERS])
def test_vectors_of_batches_are_those_of_the_cpu(
    tiny: TinyEncoder, few_utterances: Toy, family: str, layers: int
) -> None:
    index = np.random.default_rng(0).integers(60, size=90)
    texts = [*few_utterances.texts, "please " * 25]
    vectors = []
    for device in (CUDA, torch.device("cpu")):
        config = EncoderConfig(tiny(family), layers, 0)
        encoder = build_encoder(config, device, seed=0).train(False)
        rows = encoder.prepare(texts)
        with torch.no_grad():
            few, many = encoder(rows, np.array([60, 3])), encoder(rows, np.append(index, 60))
        vectors.append(torch.cat([few, many]).float().cpu())
    cosines = (vectors[0] * vectors[1]).sum(-1)
    assert float(cosines.min()) > 0.995  # bfloat16 against float32
