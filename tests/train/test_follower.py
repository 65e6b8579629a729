"""A network that follows another: its weights are tensors of the state, no gradient moves them."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from ronid.config import ALL_LAYERS, EncoderConfig
from ronid.encode.encoder import build_encoder
from ronid.encode.rows import Rows
from ronid.train.checkpoint import Checkpoint
from ronid.train.follower import Follower
from ronid.train.memory import MomentumMemory
from ronid.train.optim import make_optimiser
from ronid.train.state import StageState, Training
from tests.helpers.toy_corpus import TinyEncoder, Toy

CPU = torch.device("cpu")


def nudge(module: nn.Module) -> None:
    with torch.no_grad():
        for weight in module.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.3)


@pytest.fixture
def stage(tiny: TinyEncoder, few_utterances: Toy) -> tuple[StageState, Rows]:
    config = EncoderConfig(tiny("bert"), trainable_layers=ALL_LAYERS, normalise=False)
    encoder = build_encoder(config, CPU, seed=0)
    torch.manual_seed(0)
    state = StageState(encoder, {"projection": nn.Linear(encoder.dim, 5)})
    return state, encoder.prepare(few_utterances.texts)


def small() -> tuple[StageState, nn.Module]:
    encoder = build_encoder(
        EncoderConfig(trainable_layers=0, adapter_width=4), CPU, seed=0, given_dim=3
    )
    network = nn.Linear(3, 2)
    return StageState(encoder, {"head": network}), network


def test_it_says_what_the_network_says_until_that_moves_on() -> None:
    state, network = small()
    follower = Follower(state, network, 0.8)
    follower.start()
    inputs = torch.randn(4, 3)
    before = network(inputs).detach()
    assert torch.equal(follower(inputs), before)
    nudge(network)
    assert torch.equal(follower(inputs), before)
    assert not torch.equal(network(inputs), before)


def test_a_step_keeps_its_share_of_the_old_weights() -> None:
    state, network = small()
    follower = Follower(state, network, 0.8)
    follower.start()
    old = network.weight.detach().clone()
    nudge(network)
    new = network.weight.detach().clone()
    follower.step()
    follower.step()
    found = state.tensors["follower/weight"]
    torch.testing.assert_close(found, 0.64 * old + 0.36 * new)
    assert torch.equal(network.weight, new)


def test_its_weights_get_no_gradient_and_no_optimiser() -> None:
    state, network = small()
    follower = Follower(state, network, 0.8)
    follower.start()
    assert not follower(torch.randn(4, 3)).requires_grad
    kept = {id(tensor) for tensor in state.tensors.values()}
    optimiser = make_optimiser([state.encoder, network], 1e-3, Training(state.encoder).optimiser)
    assert not kept & {id(p) for group in optimiser.param_groups for p in group["params"]}


def test_steps_change_its_weights_in_place() -> None:
    state, network = small()
    follower = Follower(state, network, 0.5)
    follower.start()
    held = dict(state.tensors)
    nudge(network)
    follower.step()
    follower.start()
    assert all(state.tensors[name] is tensor for name, tensor in held.items())


def test_frozen_weights_are_not_copied(tiny: TinyEncoder) -> None:
    encoder = build_encoder(EncoderConfig(tiny("bert"), trainable_layers=1), CPU, seed=0)
    state = StageState(encoder)
    follower = Follower(state, encoder, 0.8)
    follower.start()
    trained = sum(p.numel() for p in encoder.parameters() if p.requires_grad)
    assert sum(t.numel() for t in state.tensors.values()) == trained


def test_a_checkpoint_brings_it_back(tmp_path: Path) -> None:
    state, network = small()
    follower = Follower(state, network, 0.8)
    follower.start()
    nudge(network)
    follower.step()
    inputs = torch.randn(4, 3)
    expected = follower(inputs)
    optimiser = make_optimiser([network], 1e-3, Training(state.encoder).optimiser)
    path = tmp_path / "kept.safetensors"
    Training(state.encoder, checkpoint=Checkpoint(path)).keep("learn", 1, state, optimiser)

    again, other = small()
    resumed = Follower(again, other, 0.8)
    training = Training(again.encoder, checkpoint=Checkpoint(path))
    training.restore()
    training.begin("learn", again, make_optimiser([other], 1e-3, training.optimiser))
    assert torch.equal(resumed(inputs), expected)
    assert torch.equal(other.weight, network.weight)


def unit_rows(vectors: Tensor) -> bool:
    return bool(torch.allclose(vectors.norm(dim=1), torch.ones(len(vectors))))


def test_memory_starts_with_the_projections_of_all_rows(stage: tuple[StageState, Rows]) -> None:
    state, rows = stage
    memory = MomentumMemory(state, rows, 0.8, 0.25)
    embeddings = state.encoder.embed_all(rows)
    memory.start(embeddings)
    projected = nn.functional.normalize(state.heads["projection"](embeddings), dim=1)
    torch.testing.assert_close(memory.vectors, projected.detach())
    assert memory.vectors.shape == (60, 5)
    assert not memory.vectors.requires_grad


def test_memory_renews_the_rows_of_a_batch_only(stage: tuple[StageState, Rows]) -> None:
    state, rows = stage
    memory = MomentumMemory(state, rows, 0.8, 0.25)
    memory.start(state.encoder.embed_all(rows))
    held, before = memory.vectors, memory.vectors.clone()
    nudge(state.heads["projection"])
    pick = rows.pick(np.array([7, 3, 20]), CPU)
    memory.renew(pick)
    changed = (memory.vectors != before).any(dim=1).nonzero()[:, 0]
    assert changed.tolist() == [3, 7, 20]
    assert memory.vectors is held
    assert unit_rows(memory.vectors)


def test_memory_holds_what_the_follower_says_and_not_the_network(
    stage: tuple[StageState, Rows],
) -> None:
    state, rows = stage
    memory = MomentumMemory(state, rows, 1.0, 0.0)  # weights that never follow, no other tokens
    memory.start(state.encoder.embed_all(rows))
    before = memory.vectors.clone()
    nudge(state.heads["projection"])
    nudge(state.encoder)
    state.encoder.train(False)
    pick = rows.pick(np.arange(10), CPU)
    memory.renew(pick)
    torch.testing.assert_close(memory.vectors, before, rtol=1e-4, atol=1e-5)
    features, queries = memory.queries(pick)
    assert not torch.allclose(queries, before[:10], atol=1e-2)
    assert unit_rows(queries)
    queries.sum().backward()
    assert features.shape == (10, state.encoder.dim)
    assert all(p.grad is not None for p in state.heads["projection"].parameters())
