"""The two steps of RoNID, one at a time."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import log_softmax, normalize

from ronid.assign.prior import shrunk_prior, uniform_prior, update_prior
from ronid.assign.sinkhorn import sinkhorn
from ronid.config import EncoderConfig, EStepConfig, MStepConfig, RoNIDConfig, StartConfig
from ronid.encode.encoder import build_encoder
from ronid.encode.rows import Rows
from ronid.errors import ConfigError
from ronid.losses.prototype import temperature_of
from ronid.methods.pseudo_labels import e_step, estimate_prior
from ronid.methods.ronid import alternate, m_step, tempered
from ronid.train.state import StageState, Training
from ronid.types import Assignment, IntArray, Split

CPU = torch.device("cpu")
MAX_ROWS = 50
"""At least as many rows as a problem in this file has."""


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def on_arc(n: int) -> Tensor:
    """Return n unit vectors from the first axis to the second, none halfway."""
    angles = torch.linspace(0.01, math.pi / 2 - 0.01, n, dtype=torch.float64)
    return torch.stack([angles.cos(), angles.sin()], dim=1).float()


def problem(targets: list[int], n_intents: int, known: int) -> Split:
    names = tuple(f"intent_{i}" for i in range(known))
    return Split([""] * len(targets), np.array(targets), names, n_intents)


def holding(prior: list[float], prototypes: Tensor, new_odds: Tensor | None = None) -> StageState:
    """Return a state; without `new_odds`, it says nothing about which rows are new."""
    config = EncoderConfig(trainable_layers=0, adapter_width=4)
    encoder = build_encoder(config, CPU, seed=0, given_dim=prototypes.shape[1])
    prior_tensor = torch.tensor(prior, dtype=torch.float64)
    odds = torch.zeros(MAX_ROWS) if new_odds is None else new_odds
    tensors = {"prototypes": prototypes, "prior": prior_tensor, "new_odds": odds}
    return StageState(encoder, tensors=tensors)


def blobs(centres: Tensor, per_blob: int, spread: float = 0.05) -> Tensor:
    """Return rows 0, k, 2k, ... around the first of k centres, and so on."""
    noise = torch.randn(per_blob * len(centres), centres.shape[1], generator=generator(1))
    return normalize(centres.repeat(per_blob, 1) + spread * noise, dim=1)


class TestEStep:
    hard = EStepConfig(eta=0.01, tolerance=1e-6, max_iterations=20_000)

    def shares(self, found: Assignment, rows: IntArray | slice = slice(None)) -> list[int]:
        return np.bincount(found.labels[rows], minlength=2).tolist()

    @pytest.mark.parametrize(("prior", "counts"), [([0.5, 0.5], [20, 20]), ([0.2, 0.8], [8, 32])])
    def test_labels_spread_as_the_prior_asks(self, prior: list[float], counts: list[int]) -> None:
        state = holding(prior, torch.eye(2))
        found = e_step(on_arc(40), state, problem([-1] * 40, 2, 0), self.hard, generator())
        assert self.shares(found) == counts
        assert (np.diff(found.labels) >= 0).all()  # and the nearest rows go first
        assert found.converged
        assert found.residual < 1e-6
        assert found.iterations > 0

    def test_labelled_rows_keep_their_intent_and_use_up_its_share(self) -> None:
        targets = [-1] * 30 + [0] * 10  # the labelled ones lie at the other prototype
        state = holding([0.5, 0.5], torch.eye(2))
        found = e_step(on_arc(40), state, problem(targets, 2, 1), self.hard, generator())
        assert (found.labels[30:] == 0).all()
        assert self.shares(found, slice(30)) == [10, 20]

    def test_rows_all_ignores_labels_until_the_end(self) -> None:
        targets = [-1] * 30 + [0] * 10
        state = holding([0.5, 0.5], torch.eye(2))
        config = replace(self.hard, rows="all")
        found = e_step(on_arc(40), state, problem(targets, 2, 1), config, generator())
        assert (found.labels[30:] == 0).all()
        assert self.shares(found, slice(30)) == [20, 10]

    def test_all_rows_labelled_need_no_transport(self) -> None:
        state = holding([0.5, 0.5], torch.eye(2))
        found = e_step(on_arc(4), state, problem([1, 0, 1, 0], 2, 2), self.hard, generator())
        assert found.labels.tolist() == [1, 0, 1, 0]
        assert found.iterations == 0

    @pytest.mark.parametrize("pseudo_labels", ["transport", "kmeans"])
    def test_prior_moves_towards_the_predicted_shares(self, pseudo_labels: str) -> None:
        points = on_arc(40)[:25]  # 20 nearer to the first axis, 5 to the second
        state = holding([0.3, 0.7], torch.eye(2))
        config = replace(self.hard, pseudo_labels=pseudo_labels, prior_momentum=0.9)
        found = e_step(points, state, problem([-1] * 25, 2, 0), config, generator())
        np.testing.assert_allclose(found.prior, [0.9 * 0.3 + 0.1 * 0.8, 0.9 * 0.7 + 0.1 * 0.2])
        predicted = torch.tensor([0] * 20 + [1] * 5)
        expected = update_prior(state.tensors["prior"], predicted, 0.9, config.prior_floor)
        np.testing.assert_allclose(found.prior, expected.numpy())

    def test_shrunk_prior_is_kept(self) -> None:
        state = holding([0.2, 0.8], torch.eye(2))
        config = replace(self.hard, prior="shrunk")
        found = e_step(on_arc(40), state, problem([-1] * 40, 2, 0), config, generator())
        np.testing.assert_array_equal(found.prior, [0.2, 0.8])
        assert self.shares(found) == [8, 32]

    def test_temperature_and_eta_count_by_their_product(self) -> None:
        state, split = holding([0.3, 0.7], torch.eye(2)), problem([-1] * 40, 2, 0)
        one = replace(self.hard, eta=0.05, score_temperature=1.0)
        two = replace(self.hard, eta=0.5, score_temperature=0.1)
        a, b = (e_step(on_arc(40), state, split, c, generator()) for c in (one, two))
        assert np.array_equal(a.labels, b.labels)

    def test_kmeans_ablation_finds_the_blobs_and_numbers_them_like_the_prototypes(self) -> None:
        prototypes = torch.eye(4)[:3]
        points = blobs(prototypes, 8)
        state = holding([0.8, 0.1, 0.1], prototypes)
        config = EStepConfig(pseudo_labels="kmeans")
        split = problem([2, *([-1] * 23)], 3, 3)
        found = e_step(points, state, split, config, generator())
        assert found.labels.tolist() == [2, *[i % 3 for i in range(1, 24)]]


class TestNewOdds:
    """Log odds that a row is of no known intent, added to the scores of new intents."""

    hard = EStepConfig(eta=0.01, tolerance=1e-6, max_iterations=20_000)

    @pytest.mark.parametrize("eta", [0.01, 0.1])
    @pytest.mark.parametrize("odds", [0.5, 3.0])
    def test_row_between_two_prototypes_goes_where_its_odds_say(
        self, odds: float, eta: float
    ) -> None:
        middle = torch.full((2, 2), 0.5**0.5)  # equal cosine to the known and the new prototype
        points = torch.cat([on_arc(40), middle])
        new_odds = torch.cat([torch.zeros(40), torch.tensor([odds, -odds])])
        state = holding([0.5, 0.5], torch.eye(2), new_odds)
        config = replace(self.hard, eta=eta)
        found = e_step(points, state, problem([-1] * 42, 2, 1), config, generator())
        assert found.labels[40:].tolist() == [1, 0]
        assert found.labels[:40].tolist() == [0] * 20 + [1] * 20

    @pytest.mark.parametrize("rows", ["unlabelled", "all"])
    def test_odds_multiply_the_kernel_of_new_intents(self, rows: str) -> None:
        prototypes = normalize(torch.randn(5, 8, generator=generator(1)), dim=1)
        points = normalize(torch.randn(40, 8, generator=generator(2)), dim=1)
        new_odds = 2 * torch.randn(40, generator=generator(3))
        targets = [0, 1, *([-1] * 36), 1, 0]
        state = holding([0.1, 0.3, 0.2, 0.2, 0.2], prototypes, new_odds)
        config = EStepConfig(rows=rows, tolerance=1e-9, max_iterations=20_000)  # type: ignore[arg-type]
        found = e_step(points, state, problem(targets, 5, 2), config, generator())

        # textbook scaling of exp(cosine / eta), times the odds for new intents
        kernel = (points @ prototypes.T / config.eta).double().exp().numpy()
        kernel[:, 2:] *= new_odds.double().exp().numpy()[:, None]
        shares = 40 * state.tensors["prior"].numpy()
        labeled = np.array(targets) >= 0
        free = ~labeled if rows == "unlabelled" else np.full(40, True)
        if rows == "unlabelled":
            shares = shares - [2, 2, 0, 0, 0]
        kernel = kernel[free]
        for _ in range(2000):
            kernel *= shares / kernel.sum(axis=0)
            kernel /= kernel.sum(axis=1, keepdims=True)
        expected = np.array(targets)
        expected[~labeled] = kernel.argmax(axis=1)[~labeled[free]]
        assert found.labels.tolist() == expected.tolist()

    def test_odds_of_zero_change_nothing(self) -> None:
        prototypes = normalize(torch.randn(5, 8, generator=generator(1)), dim=1)
        points = normalize(torch.randn(40, 8, generator=generator(2)), dim=1)
        state = holding([0.1, 0.3, 0.2, 0.2, 0.2], prototypes, torch.zeros(40))
        config = EStepConfig()
        found = e_step(points, state, problem([-1] * 40, 5, 2), config, generator())
        prior = state.tensors["prior"]
        plain = sinkhorn(points @ prototypes.T, prior, eta=config.eta, tolerance=config.tolerance)
        assert found.labels.tolist() == plain.labels().tolist()
        assert (found.iterations, found.residual) == (plain.iterations, plain.residual)

    @pytest.mark.parametrize(("n_intents", "known"), [(3, 3), (3, 0)])
    def test_odds_change_nothing_if_all_intents_are_known_or_all_are_new(
        self, n_intents: int, known: int
    ) -> None:
        prototypes = torch.eye(8)[:n_intents]
        points = blobs(prototypes, 10, spread=0.6)
        split = problem([-1] * 30, n_intents, known)
        plain = e_step(points, holding([0.2, 0.3, 0.5], prototypes), split, self.hard, generator())
        odds = 3 * torch.randn(30, generator=generator(4))
        state = holding([0.2, 0.3, 0.5], prototypes, odds)
        found = e_step(points, state, split, self.hard, generator())
        assert found.labels.tolist() == plain.labels.tolist()


class TestEstimatePrior:
    points = blobs(torch.eye(6)[:3], 8, spread=0.3)
    split = problem([1, 2, *([-1] * 22)], 3, 3)
    prototypes = normalize(torch.eye(6)[:3] + 0.4 * torch.eye(6)[3], dim=1)

    def estimate(self, split: Split, prior: str) -> list[float]:
        state = holding([0.2, 0.3, 0.5], self.prototypes)
        estimate_prior(self.points, state, split, EStepConfig(prior=prior))  # type: ignore[arg-type]
        found: list[float] = state.tensors["prior"].tolist()
        return found

    @pytest.mark.parametrize("prior", ["moving", "uniform"])
    def test_other_priors_stay_as_they_are(self, prior: str) -> None:
        assert self.estimate(self.split, prior) == [0.2, 0.3, 0.5]

    def test_shrunk_prior_follows_the_nearest_prototypes(self) -> None:
        nearest = (self.points @ self.prototypes.T).argmax(dim=1)
        assert self.estimate(self.split, "shrunk") == shrunk_prior(nearest, 3, 3).tolist()

    @pytest.mark.parametrize("prior", ["moving", "shrunk"])
    def test_share_given_by_the_user_replaces_the_estimate(self, prior: str) -> None:
        split = replace(self.split, shares=np.array([np.nan, 0.6, np.nan]))
        assert self.estimate(split, prior)[1] == pytest.approx(0.6)


class TestAlternate:
    centres = torch.eye(8)[:5]

    def run(
        self, points: Tensor, config: RoNIDConfig, targets: list[int] | None = None
    ) -> tuple[StageState, Training]:
        training = Training(holding([0.2] * 5, self.centres).encoder)
        split = problem(targets or [0, 1, *([-1] * 48)], 5, 2)
        rows = training.encoder.prepare(points.numpy())
        return alternate(training, split, rows, config), training

    @pytest.mark.parametrize("kind", ["kmeans", "semisup_kmeans"])
    @pytest.mark.parametrize(("sizes", "equal"), [([10] * 5, True), ([4, 30, 8, 2, 6], False)])
    def test_shrunk_prior_is_that_of_the_start(
        self, sizes: list[int], equal: bool, kind: str
    ) -> None:
        owners = torch.arange(5).repeat_interleave(torch.tensor(sizes))
        points = blobs(self.centres, 30)
        points = torch.cat([points[c::5][:n] for c, n in enumerate(sizes)])
        points = torch.cat([self.centres[:2], points])[:50]  # labelled ones first
        config = RoNIDConfig(
            start=StartConfig(kind),  # type: ignore[arg-type]
            e_step=EStepConfig(prior="shrunk"),
            m_step=MStepConfig(epochs=2, lr=0.0),
        )
        state, training = self.run(points, config)
        entropies = [row["prior_entropy"] for row in training.history]
        assert entropies[0] == entropies[1]
        assert (entropies[0] > 1 - 1e-9) == equal
        counts = torch.bincount(torch.cat([torch.arange(2), owners])[:50], minlength=5) / 50
        if not equal:
            found = state.tensors["prior"].sort().values
            torch.testing.assert_close(found, counts.double().sort().values, atol=0.03, rtol=0)
        assert not state.tensors["new_odds"].any()

    def imbalanced(self) -> tuple[Tensor, IntArray, IntArray]:
        """Return rows of five intents, their intents, and labels for a fifth of two intents."""
        sizes = [40, 20, 60, 20, 20]
        points = torch.cat([blobs(c[None], n) for c, n in zip(self.centres, sizes, strict=True)])
        owners = np.repeat(np.arange(5), sizes)
        labeled = (np.arange(len(owners)) % 5 == 0) & (owners < 2)
        return points, owners, np.where(labeled, owners, -1)

    def test_density_start_finds_new_rows_and_the_sizes_of_intents(self) -> None:
        points, owners, targets = self.imbalanced()
        config = RoNIDConfig(
            start=StartConfig("density", 3),
            e_step=EStepConfig(prior="shrunk"),
            m_step=MStepConfig(epochs=2, lr=0.0),
        )
        state, _ = self.run(points, config, targets.tolist())
        odds = state.tensors["new_odds"].numpy()
        assert (odds[owners >= 2] > 0).all()
        assert (odds[owners < 2] < 0).all()
        prior = state.tensors["prior"].tolist()
        assert prior[:2] == pytest.approx([0.25, 0.125], abs=0.02)
        assert sorted(prior[2:]) == pytest.approx([0.125, 0.125, 0.375], abs=0.02)
        labels = state.tensors["labels"].numpy()
        assert (labels[owners < 2] == owners[owners < 2]).all()
        assert (labels[owners >= 2] >= 2).all()

    def test_first_prototypes_given_by_the_caller_come_without_odds(self) -> None:
        points, owners, targets = self.imbalanced()
        config = RoNIDConfig(
            start=StartConfig("density", 3),
            e_step=EStepConfig(prior="uniform"),
            m_step=MStepConfig(epochs=0),
        )
        training = Training(holding([0.2] * 5, self.centres).encoder)
        rows = training.encoder.prepare(points.numpy())
        split = problem(targets.tolist(), 5, 2)
        state = alternate(training, split, rows, config, lambda _: self.centres.clone())
        assert state.tensors["new_odds"].tolist() == [0.0] * len(owners)
        assert state.tensors["prior"].equal(uniform_prior(5))
        assert state.tensors["prototypes"].equal(self.centres)


def first_prototypes() -> Tensor:
    """Return the prototypes with which the M-steps begin."""
    return normalize(torch.randn(4, 5, generator=generator(2)), dim=1)


class TestMStep:
    config = MStepConfig(temperature=0.3, prototype_momentum=0.8, alpha=0.6)
    any_rows, labelled = np.array([4, 0, 7, 2, 9, 5]), np.array([1, 3])

    @pytest.fixture
    def parts(self) -> tuple[StageState, Split, Rows]:
        state = holding([0.25] * 4, first_prototypes())
        encoder = state.encoder.train(False)  # no dropout: the same vectors every time
        assert encoder.adapter is not None
        with torch.no_grad():
            encoder.adapter.outer.weight.normal_(generator=generator(3))
        split = problem([-1, 0, -1, 1, -1, -1, -1, -1, -1, -1], 4, 2)
        state.tensors["labels"] = torch.tensor([3, 0, 2, 1, 2, 0, 1, 3, 3, 2])
        rows = encoder.prepare(np.random.default_rng(0).normal(size=(10, 5)))
        return state, split, rows

    def by_hand(self, parts: tuple[StageState, Split, Rows]) -> dict[str, float]:
        """Return the terms of Eq. 6 to 10, one utterance and one prototype at a time."""
        state, split, rows = parts
        with torch.no_grad():
            s = state.encoder(rows, np.arange(10))
        mu, tau = state.tensors["prototypes"].clone(), self.config.temperature
        labels = state.tensors["labels"]
        for c in range(4):
            members = [s[i] for i in self.any_rows if labels[i] == c]
            if members:
                w = self.config.prototype_momentum ** len(members)
                mu[c] = normalize(w * mu[c] + (1 - w) * torch.stack(members).mean(0), dim=0)
        intra = [-log_softmax(mu @ s[i] / tau, 0)[labels[i]] for i in self.any_rows]
        cross = [-log_softmax(mu @ s[i] / tau, 0)[int(split.targets[i])] for i in self.labelled]
        inter = []
        for i in range(4):
            others = [math.exp(float(mu[i] @ mu[j]) / tau) for j in range(4) if j != i]
            inter.append(math.log(sum(others) / 3))
        terms = {"intra": intra, "inter": inter, "ce": cross}
        return {name: sum(map(float, term)) / len(term) for name, term in terms.items()}

    def run(
        self,
        parts: tuple[StageState, Split, Rows],
        config: MStepConfig,
        labelled: IntArray | None = None,
        any_rows: IntArray | None = None,
    ) -> dict[str, Tensor]:
        """Make one M-step of the labelled rows, none of them without cross-entropy."""
        state, split, rows = parts
        labelled = self.labelled if labelled is None else labelled
        any_rows = self.any_rows if any_rows is None else any_rows
        known = len(labelled) if config.cross_entropy else 0
        pick = rows.pick(np.concatenate([labelled[:known], any_rows]), CPU)
        return m_step(pick, known, state, torch.from_numpy(split.targets), rows, config)

    @pytest.mark.parametrize("off", [None, "intra", "inter", "cross_entropy"])
    def test_loss_is_eq_10_and_each_switch_takes_out_its_term(
        self, parts: tuple[StageState, Split, Rows], off: str | None
    ) -> None:
        expected = self.by_hand(parts)
        config = self.config if off is None else replace(self.config, **{off: False})
        losses = self.run(parts, config)
        if off is not None:
            expected["ce" if off == "cross_entropy" else off] = 0.0
        losses = {name: loss.detach() for name, loss in losses.items()}
        for name, value in expected.items():
            assert float(losses[f"loss_{name}"]) == pytest.approx(value, abs=1e-5)
        total = 0.6 * expected["intra"] + 0.4 * expected["inter"] + expected["ce"]
        assert float(losses["loss"]) == pytest.approx(total, abs=1e-5)

    def test_without_labelled_rows_there_is_no_cross_entropy(
        self, parts: tuple[StageState, Split, Rows]
    ) -> None:
        losses = self.run(parts, self.config, labelled=np.empty(0, np.int64))
        assert losses["loss_ce"].item() == 0.0
        assert losses["loss"].item() != 0.0

    @pytest.mark.parametrize("only", ["intra", "inter", "cross_entropy"])
    def test_gradient_of_every_term_reaches_the_encoder(
        self, parts: tuple[StageState, Split, Rows], only: str
    ) -> None:
        state = parts[0]
        switches = {name: name == only for name in ("intra", "inter", "cross_entropy")}
        config = replace(self.config, **switches)
        self.run(parts, config)["loss"].backward()
        assert all(
            weight.grad is not None and weight.grad.any()
            for weight in state.encoder.trained_state().values()
        )

    def test_prototypes_move_once_and_carry_no_graph(
        self, parts: tuple[StageState, Split, Rows]
    ) -> None:
        kept = parts[0].tensors["prototypes"]
        before = kept.clone()
        self.run(parts, self.config, any_rows=self.any_rows[:1])
        after = parts[0].tensors["prototypes"]
        assert after.data_ptr() == kept.data_ptr()  # in place: a recorded step reads it again
        assert not after.requires_grad
        moved = (after != before).any(dim=1).tolist()
        assert moved == [False, False, True, False]  # row 4 has pseudo-label 2
        torch.testing.assert_close(after.norm(dim=1), torch.ones(4))

    def test_update_per_batch_moves_less_than_per_item(
        self, parts: tuple[StageState, Split, Rows]
    ) -> None:
        state = parts[0]
        before = state.tensors["prototypes"].clone()
        moves = []
        for update in ("item", "batch"):
            state.tensors["prototypes"] = before.clone()
            config = replace(self.config, prototype_update=update)
            self.run(parts, config)
            moves.append(float((state.tensors["prototypes"][2] - before[2]).norm()))
        assert 0 < moves[1] < moves[0]

    @pytest.mark.parametrize("on", [True, False])
    def test_switch_of_the_cross_entropy_keeps_labelled_rows_out_of_the_batches(
        self, parts: tuple[StageState, Split, Rows], on: bool
    ) -> None:
        state, split, rows = parts
        learn = replace(self.config, epochs=2, batch=4, cross_entropy=on)
        training = Training(state.encoder)
        alternate(training, split, rows, RoNIDConfig(m_step=learn))
        assert [row["loss_ce"] > 0 for row in training.history] == [on, on]
        assert all(row["loss_intra"] > 0 for row in training.history)


def test_certainty_sets_the_temperature_by_the_number_of_intents() -> None:
    config = RoNIDConfig(m_step=MStepConfig(certainty=0.9))
    assert tempered(config, 20).m_step.temperature == temperature_of(20, 0.9)
    assert tempered(RoNIDConfig(), 20) == RoNIDConfig()
    assert tempered(config, 1) == config
    with pytest.raises(ConfigError, match="between 0.5 and 1"):
        tempered(RoNIDConfig(m_step=MStepConfig(certainty=0.4)), 2)
