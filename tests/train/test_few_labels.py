"""What is done more where few utterances or none are labelled."""

from dataclasses import replace

import numpy as np
import pytest

from ronid.config import ContrastConfig
from ronid.methods.ronid import lengthened
from ronid.presets import PRESETS
from ronid.types import UNLABELLED, Split

CONFIG = ContrastConfig(epochs=2, few_labels=3, few_labels_epochs=7)


def problem(labelled: int, known: int = 2) -> Split:
    """Of 40 utterances, so many of every known intent are labelled."""
    targets = np.full(40, UNLABELLED, np.int64)
    for intent in range(known):
        targets[intent * labelled : (intent + 1) * labelled] = intent
    return Split(("hello",) * 40, targets, tuple("abcd"[:known]), 4)


@pytest.mark.parametrize(("labelled", "known"), [(0, 0), (0, 2), (1, 2), (3, 2)])
def test_few_labels_lengthen_the_contrast(labelled: int, known: int) -> None:
    assert lengthened(CONFIG, problem(labelled, known)) == replace(CONFIG, epochs=7)


def test_enough_labels_leave_it_alone() -> None:
    assert lengthened(CONFIG, problem(4)) is CONFIG


def test_a_long_contrast_stays_long_and_none_stays_none() -> None:
    assert lengthened(replace(CONFIG, epochs=9), problem(0)).epochs == 9
    assert lengthened(replace(CONFIG, epochs=0), problem(0)).epochs == 0


def test_presets_leave_the_rule_as_it_is() -> None:
    for preset in PRESETS.values():  # or the stored rows would not be theirs
        assert preset.contrast.few_labels == ContrastConfig().few_labels
        assert preset.contrast.few_labels_epochs == ContrastConfig().few_labels_epochs
