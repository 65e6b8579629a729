"""The two steps of RoNID, one at a time."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import log_softmax, normalize

import ronid.methods.pseudo_labels as steps_module
from ronid.assign.prior import update_prior
from ronid.config import EncoderConfig, EStepConfig, MStepConfig, RoNIDConfig, StartConfig
from ronid.encode.encoder import build_encoder
from ronid.encode.rows import Rows
from ronid.errors import ConfigError
from ronid.losses.prototype import temperature_of
from ronid.methods.pseudo_labels import CANDIDATES, _proposals, e_step, exchange, settle
from ronid.methods.ronid import alternate, m_step, tempered
from ronid.train.infer import predict
from ronid.train.state import StageState, Training
from ronid.types import Assignment, IntArray, Split

CPU = torch.device("cpu")


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def on_arc(n: int) -> Tensor:
    """Return n unit vectors from the first axis to the second, none halfway."""
    angles = torch.linspace(0.01, math.pi / 2 - 0.01, n, dtype=torch.float64)
    return torch.stack([angles.cos(), angles.sin()], dim=1).float()


def problem(targets: list[int], n_intents: int, known: int) -> Split:
    names = tuple(f"intent_{i}" for i in range(known))
    return Split([""] * len(targets), np.array(targets), names, n_intents)


def holding(prior: list[float], prototypes: Tensor) -> StageState:
    config = EncoderConfig(trainable_layers=0, adapter_width=4)
    encoder = build_encoder(config, CPU, seed=0, given_dim=prototypes.shape[1])
    prior_tensor = torch.tensor(prior, dtype=torch.float64)
    return StageState(encoder, tensors={"prototypes": prototypes, "prior": prior_tensor})


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


class TestSettle:
    points = blobs(torch.eye(6)[:3], 8, spread=0.3)
    split = problem([1, 2, *([-1] * 22)], 3, 3)  # the labels contradict the blobs
    first = normalize(torch.eye(6)[:3] + 0.4 * torch.eye(6)[3], dim=1)

    def run(self, split: Split, iterations: int) -> StageState:
        state = holding([0.2, 0.3, 0.5], self.first.clone())
        settle(self.points, state, split, EStepConfig(), iterations)
        return state

    @pytest.mark.parametrize("iterations", [0, 1, 2])
    def test_prototypes_become_means_and_given_rows_keep_their_class(self, iterations: int) -> None:
        by_hand = holding([0.2, 0.3, 0.5], self.first.clone())
        for _ in range(iterations):
            found = e_step(self.points, by_hand, self.split, EStepConfig(), generator())
            assert found.labels[:2].tolist() == [1, 2]
            for c in range(3):
                mean = self.points[torch.from_numpy(found.labels == c)].mean(dim=0)
                by_hand.tensors["prototypes"][c] = mean / mean.norm()
        state = self.run(self.split, iterations)
        for name in ("prototypes", "prior"):
            torch.testing.assert_close(state.tensors[name], by_hand.tensors[name])

    def test_it_stops_when_no_label_changes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        found: list[Assignment] = []

        def noted(*arguments: object) -> Assignment:
            found.append(e_step(*arguments))  # type: ignore[arg-type]
            return found[-1]

        monkeypatch.setattr(steps_module, "e_step", noted)
        self.run(self.split, 50)
        changed = [int((a.labels != b.labels).sum()) for a, b in itertools.pairwise(found)]
        assert changed[-1] == 0
        assert 0 not in changed[:-1]

    def test_with_kmeans_labels_it_is_lloyds_iterations(self) -> None:
        state = holding([0.8, 0.1, 0.1], self.first.clone())  # no prior is asked for
        settle(self.points, state, self.split, EStepConfig(pseudo_labels="kmeans"), 1)
        labels = (self.points @ self.first.T).argmax(dim=1)
        labels[0], labels[1] = 1, 2
        for c in range(3):
            mean = normalize(self.points[labels == c].mean(dim=0), dim=0)
            torch.testing.assert_close(state.tensors["prototypes"][c], mean)

    def test_prior_is_estimated_only_where_asked(self) -> None:
        config = EStepConfig(prior="shrunk")
        for estimate in (False, True):
            state = holding([0.2, 0.3, 0.5], self.first.clone())
            settle(self.points, state, self.split, config, 2, estimate=estimate)
            kept = state.tensors["prior"].tolist() == [0.2, 0.3, 0.5]
            assert kept is not estimate

    def test_class_without_rows_keeps_its_prototype(self) -> None:
        split = problem([i % 2 for i in range(24)], 3, 2)  # all labelled, none of them 2
        state = self.run(split, 3)
        assert state.tensors["prototypes"][2].equal(self.first[2])
        assert not state.tensors["prototypes"][0].equal(self.first[0])


class TestExchange:
    centres = torch.eye(8)[:5]
    points = blobs(centres, 10)
    split = problem([0, 1, *([-1] * 48)], 5, 2)
    config = RoNIDConfig(start=StartConfig(settle_iterations=5, exchanges=20))

    def test_first_bet_halves_the_crowded_cluster_and_drops_the_idle_one(self) -> None:
        middle = self.centres[3:].sum(dim=0)  # one prototype for the last two blobs
        idle = self.points[2] + 0.1 * torch.eye(8)[7]  # and two for the third
        trap = normalize(torch.stack([*self.centres[:3], middle, idle]), dim=1)
        state = holding([0.2] * 5, trap)
        bets = list(_proposals(self.points, state, self.split, generator()))
        assert 1 < len(bets) <= CANDIDATES**2
        nearest = (self.centres @ bets[0].T).argmax(dim=1)
        assert nearest[:3].tolist() == [0, 1, 2]
        assert sorted(nearest[3:].tolist()) == [3, 4]
        for bet in bets:
            torch.testing.assert_close(bet.norm(dim=1), torch.ones(5))
        assert state.tensors["prototypes"].equal(trap)

    def test_known_intents_keep_their_half(self) -> None:
        spread = torch.cat([self.points[0::5], self.points[1::5] + self.points[0::5], torch.eye(8)])
        points = normalize(spread, dim=1)
        first = normalize(torch.stack([points[:20].mean(dim=0), *torch.eye(8)[5:]]), dim=1)
        split = problem([0] * 5 + [-1] * 23, 4, 1)  # labelled ones lie in the first half
        state = holding([0.25] * 4, first)
        bet = next(_proposals(points, state, split, generator()))
        labelled = points[:5].mean(dim=0)
        gone = next(c for c in range(1, 4) if not bet[c].equal(first[c]))
        assert labelled @ bet[0] > labelled @ bet[gone] + 0.1

    @pytest.mark.parametrize("seed", range(4))
    def test_what_is_kept_is_at_least_as_tight_under_the_prior(self, seed: int) -> None:
        points = normalize(torch.randn(60, 3, generator=generator(seed)), dim=1)
        first = normalize(torch.randn(8, 3, generator=generator(seed + 9)), dim=1)
        split = problem([0, 1, *([-1] * 58)], 8, 2)
        values = []
        for trials in (0, 30):
            start = StartConfig(settle_iterations=30, exchanges=trials)
            config, state = RoNIDConfig(start=start), holding([1 / 8] * 8, first.clone())
            settle(points, state, split, config.e_step, 30)
            exchange(points, state, split, config, generator())
            values.append(settle(points, state, split, config.e_step, 30))
        assert values[1] >= values[0] - 1e-3

    def test_new_prototypes_find_the_blobs(self) -> None:
        middle = self.centres[3:].sum(dim=0)
        trap = torch.stack([*self.centres[:2], self.points[2], self.points[7], middle])
        state = holding([0.2] * 5, normalize(trap, dim=1))
        exchange(self.points, state, self.split, self.config, generator())
        nearest = (self.centres @ state.tensors["prototypes"].T).argmax(dim=1)
        assert nearest[:2].tolist() == [0, 1]
        assert len(nearest.unique()) == 5

    def test_rows_that_are_all_alike_are_not_halved(self) -> None:
        points = torch.cat([self.centres[:1].repeat(30, 1), self.points])
        state = holding([0.2] * 5, self.centres.clone())
        bets = list(_proposals(points, state, problem([-1] * 80, 5, 0), generator()))
        assert bets
        for bet in bets:
            torch.testing.assert_close(bet.norm(dim=1), torch.ones(5))

    def test_without_new_intents_or_trials_nothing_moves(self) -> None:
        none = replace(self.config, start=replace(self.config.start, exchanges=0))
        known = problem([0, 1, 2, 3, 4, *([-1] * 45)], 5, 5)
        for config, split in ((self.config, known), (none, self.split)):
            state = holding([0.2] * 5, self.centres.clone())
            exchange(self.points, state, split, config, generator())
            assert state.tensors["prototypes"].equal(self.centres)


class TestAlternate:
    centres = torch.eye(8)[:5]

    def run(self, points: Tensor, config: RoNIDConfig) -> tuple[StageState, Training]:
        training = Training(holding([0.2] * 5, self.centres).encoder)
        split, rows = problem([0, 1, *([-1] * 48)], 5, 2), training.encoder.prepare(points.numpy())
        return alternate(training, split, rows, config), training

    @pytest.mark.parametrize("iterations", [0, 3])
    @pytest.mark.parametrize(("sizes", "equal"), [([10] * 5, True), ([4, 30, 8, 2, 6], False)])
    def test_shrunk_prior_is_that_of_the_start(
        self, sizes: list[int], equal: bool, iterations: int
    ) -> None:
        owners = torch.arange(5).repeat_interleave(torch.tensor(sizes))
        points = blobs(self.centres, 30)
        points = torch.cat([points[c::5][:n] for c, n in enumerate(sizes)])
        points = torch.cat([self.centres[:2], points])[:50]  # labelled ones first
        config = RoNIDConfig(
            start=StartConfig("breathing", 3, settle_iterations=iterations),
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

    def test_prior_moves_from_the_sizes_that_the_density_start_finds(self) -> None:
        sizes = [40, 20, 60, 20, 20]
        points = torch.cat([blobs(c[None], n) for c, n in zip(self.centres, sizes, strict=True)])
        labeled = np.isin(np.arange(160) % 5, 0)
        owners = np.repeat(np.arange(5), sizes)
        targets = np.where(labeled & (owners < 2), owners, -1)
        config = RoNIDConfig(
            start=StartConfig("density", 3),
            e_step=EStepConfig(prior="moving", prior_momentum=0.7),
            m_step=MStepConfig(epochs=2, lr=0.0),
        )
        training = Training(holding([0.2] * 5, self.centres).encoder)
        split = problem(targets.tolist(), 5, 2)
        state = alternate(training, split, training.encoder.prepare(points.numpy()), config)
        found = state.tensors["prior"]
        torch.testing.assert_close(
            found[:2], torch.tensor([0.25, 0.125]).double(), atol=0.02, rtol=0
        )
        assert float(found[2:].max()) == pytest.approx(0.375, abs=0.02)
        labels = state.tensors["labels"].numpy()
        assert (labels[owners < 2] == owners[owners < 2]).all()
        assert (labels[owners >= 2] >= 2).all()


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


class TestPredict:
    def test_probabilities_equal_a_softmax_and_labels_their_largest(self) -> None:
        points, prototypes = on_arc(6), torch.eye(2)
        found = predict(points, prototypes, 0.1)
        raw = np.exp(points.double().numpy() @ np.eye(2) / 0.1)
        np.testing.assert_allclose(found.probabilities, raw / raw.sum(1, keepdims=True))
        assert found.labels.tolist() == [0, 0, 0, 1, 1, 1]

    def test_golden_probability(self) -> None:
        found = predict(torch.tensor([[1.0, 0.0]]), torch.eye(2), 1.0)
        assert found.probabilities[0, 0] == pytest.approx(1 / (1 + math.exp(-1)))

    def test_blocks_and_no_rows(self) -> None:
        points = normalize(torch.randn(9000, 3, generator=generator()), dim=1)
        prototypes = normalize(torch.randn(4, 3, generator=generator(1)), dim=1)
        whole = predict(points, prototypes, 0.07)
        part = predict(points[8190:8200], prototypes, 0.07)
        assert np.array_equal(whole.labels[8190:8200], part.labels)
        np.testing.assert_allclose(whole.probabilities.sum(1), 1.0)
        empty = predict(points[:0], prototypes, 0.07)
        assert empty.probabilities.shape == (0, 4)
        assert empty.labels.shape == (0,)
