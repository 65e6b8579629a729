"""DAC (Chang et al., 2017): deep adaptive clustering, a classifier learnt from pairs alone.

Two utterances whose logits have a cosine above one threshold are taken to share an intent, below
another not to; the thresholds close in from epoch to epoch, so that ever harder pairs take part.
The intent of an utterance is its greatest logit.

This is the version for text behind the published figures (CDAC without labels, Lin et al., 2020):
raw logits in place of a softmax, two moving thresholds in place of one. Beside it

- features are the masked mean in place of the mean over padding too, and a logit is divided by the
  length of its vector, which leaves the greatest the greatest;
- the constant u - l of the published loss, which has no gradient, is left out;
- weights of the two new layers start as torch starts them, not from N(0, 0.02) without bias;
- batches are drawn anew in every epoch, with warm-up and decay over all 46 epochs;
- the moments of Adam are corrected (`optimiser.bias_correction`), there not;
- dropout is on in the layers that are trained only; `encoder.frozen_dropout` has it in all.

Labels take no part in the training: where there are any, they say which columns are the known
intents. A column is found for every known intent, even one that the network puts nowhere: labelled
utterances keep the intent given to them in any case, but a new one is then never assigned to it.
Nothing keeps all utterances from becoming similar; that is what happens where they start
out so, and the published figure on StackOverflow is of that kind.
"""

from dataclasses import dataclass, field

from ronid.config import EncoderConfig, OptimiserConfig
from ronid.train.infer import check_outputs, gather_by_output
from ronid.train.pairs import PairsConfig, learn_pairs
from ronid.train.state import Training, inputs_of
from ronid.types import Discovery, Split


@dataclass(frozen=True)
class Config:
    """Settings of DAC.

    Args:
        pairs: How pairs are told apart and learnt from.
    """

    method: str = "dac"
    preset: str = "published"
    encoder: EncoderConfig = field(
        default_factory=lambda: EncoderConfig(trainable_layers=1, head="tanh_logits")
    )
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    pairs: PairsConfig = field(default_factory=PairsConfig)

    holds_out = False


def fit(split: Split, config: Config, training: Training) -> Discovery:
    """Discover the intents of `split`."""
    check_outputs(training.encoder, split)
    rows = training.encoder.prepare(inputs_of(split), training.progress)
    learn_pairs(training, split, rows, config.pairs)
    return gather_by_output(training, split, rows)
