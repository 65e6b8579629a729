"""Every method on a GPU: its steps can be recorded, and what comes out is a discovery."""

import logging
from typing import Any

import numpy as np
import pytest
import torch

from ronid.encode.encoder import build_encoder
from ronid.methods import METHODS, fit
from ronid.train.state import Training
from tests.helpers.method_configs import QUICK, published_short
from tests.helpers.toy_corpus import TinyEncoder, Toy

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


@pytest.mark.parametrize("name", [name for name in METHODS if name != "ronid"])
def test_steps_are_recorded_and_losses_finite(
    name: str, tiny: TinyEncoder, utterances: Toy, caplog: pytest.LogCaptureFixture
) -> None:
    split = utterances.split(dev=30)
    config: Any = published_short(name, tiny, QUICK[name])
    device = torch.device("cuda")
    encoder = build_encoder(config.encoder, device, seed=0, n_intents=split.n_intents)
    with caplog.at_level(logging.WARNING, logger="ronid"):
        found = fit(split, config, Training(encoder, 0, config.optimiser))
    assert "cannot be recorded" not in caplog.text
    assert np.isfinite(found.embeddings).all()
    assert ((found.labels >= 0) & (found.labels < split.n_intents)).all()
    for row in found.history:
        assert all(np.isfinite(value) for key, value in row.items() if key.startswith("loss"))
