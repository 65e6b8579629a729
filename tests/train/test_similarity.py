"""The similarity network: pairs in a batch, one at a time and all at once."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score
from torch import Tensor, nn

from ronid.config import EncoderConfig
from ronid.encode.encoder import build_encoder
from ronid.train.similarity import (
    PairHead,
    average_precision,
    pair_loss,
    pair_precision,
    similarity_network,
)
from ronid.train.state import Training
from tests.helpers.toy_corpus import TinyEncoder, Toy

CPU = torch.device("cpu")


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def head(dim: int = 4, width: int = 6) -> PairHead:
    made = PairHead(dim, width)
    with torch.no_grad():
        for place, weight in enumerate(made.parameters()):
            weight.copy_(torch.randn(weight.shape, generator=seeded(place)))
    return made


def by_batch_norm(made: PairHead, vectors: Tensor) -> Tensor:
    """Return the same as the head by torch's own batch normalisation of joined pairs."""
    b = len(vectors)
    pairs = torch.stack([torch.cat([vectors[i], vectors[j]]) for i in range(b) for j in range(b)])
    norm = nn.BatchNorm1d(len(made.scale), eps=made.eps)
    norm.weight, norm.bias = made.scale, made.shift
    return made.outer(norm(made.joined(pairs)).relu()).view(b, b, 2)


class TestPairHead:
    def test_it_is_batch_normalisation_over_all_joined_pairs(self) -> None:
        made, vectors = head(), torch.randn(7, 4, generator=seeded(9))
        torch.testing.assert_close(made(vectors), by_batch_norm(made, vectors))

    def test_gradient_is_the_same_too(self) -> None:
        made, vectors = head(), torch.randn(5, 4, generator=seeded(9))
        weights = torch.randn(5, 5, 2, generator=seeded(8))
        found = []
        for compute in (made, lambda x: by_batch_norm(made, x)):
            leaf = vectors.clone().requires_grad_(True)
            (compute(leaf) * weights).sum().backward()
            found.append([leaf.grad, made.joined.weight.grad.clone(), made.scale.grad.clone()])
            made.zero_grad()
        for one, two in zip(*found, strict=True):
            torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-5)

    def test_inference_is_by_the_batch_as_well(self) -> None:
        made, vectors = head(), torch.randn(7, 4, generator=seeded(9))
        assert torch.equal(made.train(True)(vectors), made.train(False)(vectors))
        assert not list(made.buffers())  # nothing that a checkpoint of weights would miss

    @given(shift=st.floats(-3, 3), factor=st.floats(0.5, 4), seed=st.integers(0, 99))
    def test_shift_and_scale_of_all_vectors_change_nothing(
        self, shift: float, factor: float, seed: int
    ) -> None:
        made, vectors = head().double(), torch.randn(6, 4, generator=seeded(seed)).double()
        made.eps = 1e-12
        torch.testing.assert_close(made(vectors * factor + shift), made(vectors))

    def test_one_row_is_one_finite_pair(self) -> None:
        made, vectors = head(), torch.randn(1, 4, requires_grad=True)
        logits = made(vectors)
        logits.sum().backward()
        assert logits.shape == (1, 1, 2)
        assert torch.isfinite(logits).all()
        assert torch.isfinite(vectors.grad).all()


class TestPairLoss:
    def test_it_is_a_mean_over_pairs_of_two_rows(self) -> None:
        logits = torch.randn(4, 4, 2, generator=seeded(), dtype=torch.float64)
        targets, index = [1, 0, 1, 1], [5, 2, 8, 5]  # the first comes twice
        losses = []
        for i in range(4):
            for j in range(4):
                if index[i] != index[j]:
                    different, alike = map(float, logits[i, j])
                    said = alike if targets[i] == targets[j] else different
                    losses.append(math.log(math.exp(different) + math.exp(alike)) - said)
        found = pair_loss(logits, torch.tensor(targets), torch.tensor(index))
        assert len(losses) == 10
        assert float(found) == pytest.approx(sum(losses) / len(losses))

    def test_golden_loss(self) -> None:
        logits = torch.zeros(3, 3, 2)
        loss = pair_loss(logits, torch.tensor([0, 0, 1]), torch.arange(3))
        assert float(loss) == pytest.approx(math.log(2))

    def test_no_pair_costs_nothing(self) -> None:
        logits = torch.randn(1, 1, 2, requires_grad=True)
        loss = pair_loss(logits, torch.tensor([0]), torch.tensor([3]))
        loss.backward()
        assert loss.item() == 0
        assert not logits.grad.any()

    @given(seed=st.integers(0, 99))
    def test_names_of_intents_do_not_matter(self, seed: int) -> None:
        generator = seeded(seed)
        logits = torch.randn(6, 6, 2, generator=generator)
        targets = torch.randint(3, (6,), generator=generator)
        other = torch.tensor([7, 0, 4])[targets]
        index = torch.arange(6)
        assert torch.equal(pair_loss(logits, targets, index), pair_loss(logits, other, index))


class _Known(nn.Module):
    """Says of every pair what a table says."""

    def __init__(self, certainty: np.ndarray) -> None:
        super().__init__()
        self.certainty = torch.from_numpy(certainty)

    def forward(self, _: object, index: np.ndarray) -> Tensor:
        alike = self.certainty[index][:, index]
        return torch.stack([-alike, alike], dim=-1)


class TestPairPrecision:
    targets = np.array([0, 1, 0, 1, 2, 2])
    same = targets[:, None] == targets

    def test_perfect_order_is_a_hundred_whatever_the_threshold(self) -> None:
        network = _Known(self.same - 5.0)  # never calls a pair alike
        found = pair_precision(network, [0] * 6, self.targets, 6)
        assert found == {"dev_precision": pytest.approx(100)}

    def test_golden_value_of_the_worst_order(self) -> None:
        found = pair_precision(_Known(-self.same.astype(float)), [0] * 6, self.targets, 6)
        assert found["dev_precision"] == pytest.approx(100 * 6 / 30)  # 6 of 30 pairs are alike

    def test_without_a_pair_that_is_alike_there_is_no_figure(self) -> None:
        network = _Known(np.zeros((3, 3)))
        assert pair_precision(network, [0] * 3, np.arange(3), 6) == {}
        assert pair_precision(network, [0] * 3, np.zeros(3, int), 1) == {}


@given(pairs=st.lists(st.tuples(st.booleans(), st.integers(0, 9)), min_size=1, max_size=40))
def test_average_precision_is_that_of_scikit_learn(pairs: list[tuple[bool, int]]) -> None:
    hits = np.array([True, *(hit for hit, _ in pairs)])
    scores = np.array([5, *(score for _, score in pairs)])
    found = average_precision(torch.from_numpy(hits), torch.from_numpy(scores).float())
    assert found == pytest.approx(average_precision_score(hits, scores))


class TestNetwork:
    def make(self, folder: str, layers: int = 1) -> tuple[Training, EncoderConfig]:
        config = EncoderConfig(folder, layers, head="relu_logits")
        return Training(build_encoder(config, CPU, seed=0, n_intents=6)), config

    def test_it_reads_the_rows_of_the_other_encoder_with_weights_of_its_own(
        self, tiny: TinyEncoder, few_utterances: Toy
    ) -> None:
        training, config = self.make(tiny("bert"))
        network = similarity_network(training, config)
        rows, index = training.encoder.prepare(few_utterances.texts), np.arange(5)
        own = network.encoder.prepare(few_utterances.texts)
        assert torch.equal(network(rows, index), network(own, index))
        theirs = {id(weight) for weight in training.encoder.parameters()}
        assert not theirs & {id(weight) for weight in network.parameters()}

    @pytest.mark.parametrize("layers", [0, 1, 2])
    def test_what_is_trained_can_be_put_back(
        self, tiny: TinyEncoder, few_utterances: Toy, layers: int
    ) -> None:
        training, config = self.make(tiny("bert"), layers)
        rows, index = training.encoder.prepare(few_utterances.texts), np.arange(5)
        one, two = (similarity_network(training, config) for _ in range(2))
        assert torch.equal(one(rows, index), two(rows, index))  # the seed decides
        with torch.no_grad():
            for weight in one.trained().values():
                weight.add_(torch.randn(weight.shape, generator=seeded()), alpha=0.1)
        assert not torch.allclose(one(rows, index), two(rows, index))
        two.load(one.trained())
        assert torch.equal(one(rows, index), two(rows, index))
        names = {name.partition(".")[0] for name in one.trained()}
        assert names == ({"encoder", "head"} if layers else {"head"})
