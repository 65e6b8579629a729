"""Bounded memory: no method holds what grows by the square of the rows, but where it says so."""

import inspect
import os
import subprocess
import sys
import tracemalloc
import warnings
from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import pytest
import torch

import ronid.assign
from ronid.config import TFIDF, MethodConfig, updated
from ronid.encode.autoencoder import CodeHead
from ronid.encode.encoder import build_encoder
from ronid.errors import RonidWarning
from ronid.methods import fit
from ronid.train import likeness
from ronid.train.state import Training
from tests.helpers import ROOT
from tests.helpers.memory_probe import LargestTensor
from tests.helpers.method_configs import CASES, published_short
from tests.helpers.toy_corpus import Recipe, TinyEncoder, Toy, make_toy

ROWS, BLOCK = 1_000, 64
MOST_ELEMENTS, MOST_BYTES = ROWS**2 // 2, 2 * ROWS**2
"""Of the largest tensor, and of all that Python and numpy hold: half a matrix of all pairs."""

PRETRAIN = {"epochs": 1, "labelled_batch": 128, "language_batch": 128}
CODE = {"reconstruct": {"epochs": 1}}

ONE_EPOCH: dict[str, dict[str, Any]] = {
    "kmeans": {},
    "agglomerative": {"most_rows": 200},
    "sae_kmeans": CODE,
    "dec": {**CODE, "self_train": {"epochs": 1, "epoch_steps": 2}},
    "dcn": {**CODE, "cluster": {"epochs": 1}},
    "dac": {"pairs": {"epochs": 1}},
    "deepcluster": {"discover": {"epochs": 1}},
    "kcl": {"epochs": 1, "batch": 32},  # pairs of a batch, each with a hidden layer
    "cdac_plus": {"pairs": {"epochs": 1}, "refine": {"epochs": 1}},
    "gcd": {"contrast": {"epochs": 1}, "restarts": 2},
    "deep_aligned": {"pretrain": PRETRAIN, "discover": {"epochs": 1, "restarts": 2}},
    "dsscc": {"supervised": {"epochs": 1}, "joint": {"epochs": 1}, "restarts": 2},
    "dpn": {"pretrain": PRETRAIN, "discovery": {"epochs": 1, "restarts": 2}},
    "clnn": {"pretrain": PRETRAIN, "contrast": {"epochs": 1}, "restarts": 2},
    "latent_em": {"pretrain": PRETRAIN, "em": {"epochs": 1, "batch": 128, "restarts": 2}},
    "usnid": {"pretrain": PRETRAIN, "epochs": 1, "restarts": 2},
    "dwgf": {"pretrain": PRETRAIN, "discovery": {"epochs": 1, "restarts": 2, "graph_width": 64}},
}
"""Published batches, blocks and tables are small beside 18,000 rows, these beside a thousand."""

Bounded = Callable[..., MethodConfig]


@pytest.fixture(scope="module")
def thousand() -> Toy:
    """Return 1,000 utterances of 8 intents."""
    return make_toy(ROWS, 8)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make everything small whose size does not depend on the rows."""
    for module in iter_modules(ronid.assign.__path__):
        for made in vars(import_module(f"ronid.assign.{module.name}")).values():
            defaults = getattr(inspect.unwrap(made), "__kwdefaults__", None) or {}
            if "block_rows" in defaults:
                monkeypatch.setitem(defaults, "block_rows", BLOCK)
    monkeypatch.setattr(likeness, "ROWS", 200)
    monkeypatch.setattr(CodeHead.__init__, "__defaults__", ((50, 50, 200, 10),))


@pytest.fixture
def bounded(tiny: TinyEncoder, recipe: Recipe) -> Bounded:
    """Return a function from method and preset to a recipe of one epoch a stage."""

    def make(name: str, preset: str) -> MethodConfig:
        if name == "ronid":
            return recipe(preset, {"contrast": {"epochs": 1}, "m_step": {"epochs": 1}})
        config: Any = published_short(name, tiny, ONE_EPOCH[name])
        if config.encoder.name == TFIDF:  # its vectors are wider than there are rows here
            config = updated(config, {"encoder": {"name": tiny("bert")}})
        changed: MethodConfig = config
        return changed

    return make


def held(toy: Toy, config: MethodConfig) -> tuple[LargestTensor, int]:
    """Return the largest tensor of a fit, and the most bytes that Python and numpy held."""
    fit_once(make_toy(40, 8), config)  # libraries are loaded at their first use
    tracemalloc.start()
    try:
        with LargestTensor() as largest:
            fit_once(toy, config)
        return largest, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def fit_once(toy: Toy, config: MethodConfig) -> None:
    encoder = build_encoder(config.encoder, torch.device("cpu"), seed=0, n_intents=8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RonidWarning)
        fit(toy.split(dev=20), config, Training(encoder, 0, config.optimiser))


@pytest.mark.slow
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(("name", "preset"), CASES)
def test_no_method_holds_all_pairs_of_rows(
    name: str, preset: str, bounded: Bounded, thousand: Toy
) -> None:
    largest, peak = held(thousand, bounded(name, preset))
    assert largest.elements < MOST_ELEMENTS, largest.made_by
    assert peak < MOST_BYTES


def test_agglomerative_clustering_holds_them_up_to_its_bound(
    bounded: Bounded, thousand: Toy
) -> None:
    free: Any = updated(bounded("agglomerative", "published"), {"most_rows": ROWS})
    assert held(thousand, free)[1] > MOST_BYTES  # so that the test above can fail


class TestLargestTensor:
    def test_sees_what_is_made_on_the_way(self) -> None:
        points = torch.randn(50, 3)
        with LargestTensor() as largest:
            (points @ points.T).sum()
        assert largest.elements == 2500
        assert "mm" in largest.made_by

    def test_sees_gradients(self) -> None:
        weight = torch.zeros(3, 1, requires_grad=True)
        loss = (torch.ones(40, 1, 3) @ weight).expand(40, 40, 1).sum()
        with LargestTensor() as largest:
            loss.backward()
        assert largest.elements == 120

    def test_a_view_is_as_large_as_its_memory(self) -> None:
        with LargestTensor() as largest:
            torch.zeros(1, 40).expand(40, 40)
        assert largest.elements == 40

    def test_a_sparse_matrix_is_as_large_as_its_parts(self) -> None:
        places = torch.arange(30).repeat(2, 1)
        with LargestTensor() as largest:
            torch.sparse_coo_tensor(
                places, torch.ones(30), (30, 30), check_invariants=False
            ).to_sparse_csr()
        assert largest.elements <= 60


SCALE_PROBE = """
import torch
from tests.helpers.memory_probe import LargestTensor, memory
from ronid.assign.neighbours import nearest_neighbours
from ronid.config import EncoderConfig
from ronid.encode.encoder import build_encoder
from ronid.train.contrast import neighbour_loss
from ronid.train.kept_graph import KeptGraph
from ronid.train.state import StageState

ROWS = 18_000
config = EncoderConfig(trainable_layers=0, adapter_width=4)
state = StageState(build_encoder(config, torch.device("cpu"), seed=0, given_dim=8))
torch.manual_seed(0)
points = torch.nn.functional.normalize(torch.randn(ROWS, 8), dim=1)
before = memory("VmRSS")
with LargestTensor() as largest:
{work}
print(largest.elements / ROWS**2, (memory("VmHWM") - before) / (4 * ROWS**2))
"""

CLNN_LISTS = """
    listed = nearest_neighbours(points, 500)
    index = torch.arange(256)
    neighbour_loss(points[:256], index, listed, torch.full((ROWS,), -1), 0.07)
"""

DWGF_GRAPH = """
    graph = KeptGraph(state, torch.arange(ROWS) % 90 - 1, 50, 4096)
    graph.renew(points)
    graph.rows(torch.arange(128))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
@pytest.mark.parametrize(
    ("work", "largest", "peak"),
    [
        # A block of 2,048 rows, made twice, and the lists; the graph's tables and a few blocks.
        pytest.param(CLNN_LISTS, 0.12, 0.4, id="clnn"),
        pytest.param(DWGF_GRAPH, 0.24, 0.7, id="dwgf"),
    ],
)
def test_at_the_scale_of_stackoverflow_no_matrix_of_all_pairs_is_made(
    work: str, largest: float, peak: float
) -> None:
    # A fixed threshold makes malloc give blocks back at once, so that the peak counts live ones.
    environment = {
        **os.environ,
        "MALLOC_MMAP_THRESHOLD_": "1000000",
        "PYTHONPATH": str(ROOT),
    }
    probe = [sys.executable, "-c", SCALE_PROBE.replace("{work}", work)]
    done = subprocess.run(probe, env=environment, capture_output=True, text=True, check=True)
    elements, bytes_ = map(float, done.stdout.split())
    assert elements < largest
    assert bytes_ < peak
