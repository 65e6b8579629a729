"""Train on from where a run stands: its encoder, its intents, and what people said."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from ronid.assign.kmeans import class_means
from ronid.config import RoNIDConfig
from ronid.methods.ronid import alternate, tempered
from ronid.train.contrast import contrast
from ronid.train.infer import gather
from ronid.train.state import Training, inputs_of
from ronid.types import Discovery, Split


def train_on(
    split: Split,
    config: RoNIDConfig,
    training: Training,
    first: Callable[[Tensor], Tensor],
) -> Discovery:
    encoder = training.encoder
    rows = encoder.prepare(inputs_of(split), training.progress)
    if config.contrast.epochs:
        contrast(training, split, rows, config.contrast)
    config = tempered(config, split.n_intents)
    state = alternate(training, split, rows, config, first)
    return gather(
        training,
        split,
        rows,
        state.tensors["prototypes"],
        prior=state.tensors["prior"],
        temperature=config.m_step.temperature,
        rule="cosine",
    )
