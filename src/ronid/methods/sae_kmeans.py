"""SAE-KM: k-means on the code of a stacked auto-encoder.

The auto-encoder (500-500-2000-10 units and its mirror image) is that of DEC (Xie et al., 2016),
trained as a whole by reconstruction, without the layer-wise denoising of that paper, as in the code
behind the published figures; from there is also the code that is never below 0, which costs units
(`encoder.head = "linear_code"` is without). Its input is tf-idf by default, counts of words as
published; any encoder with `trainable_layers = 0`, or given embeddings, may stand in its place. So
it is in the benchmark's table: its rows read the vectors of the frozen encoder, since all methods
there start from one encoder. `benchmarks/configs/methods-tfidf.toml` is for counts of words.

The optimiser is the Adam of Keras, with which the published figures were made; docs/comparison.md
says what another costs. Differences from that code: words and weights of tf-idf come from the
training rows alone, not from held-out ones too; on a GPU, products keep ten bits of their factors.
Labels take no part in the clustering: where there are any, they only say which clusters the known
intents are.
"""

from dataclasses import dataclass, field

from ronid.config import TFIDF, EncoderConfig, OptimiserConfig
from ronid.train.infer import gather_by_kmeans
from ronid.train.reconstruct import ReconstructConfig, reconstruct
from ronid.train.state import Training, inputs_of
from ronid.types import Discovery, Split


def code_encoder() -> EncoderConfig:
    """Return the encoder of the methods on codes: tf-idf below a stacked auto-encoder."""
    return EncoderConfig(name=TFIDF, trainable_layers=0, head="code", normalise=False)


def keras_adam() -> OptimiserConfig:
    """Return what makes AdamW the Adam of Keras: no decay, no bound, one rate, a larger epsilon."""
    return OptimiserConfig(
        weight_decay=0.0, warmup_share=0.0, clip_norm=1e6, epsilon=1e-7, schedule="constant"
    )


@dataclass(frozen=True)
class Config:
    """Settings of SAE-KM.

    Args:
        reconstruct: The stage that trains the auto-encoder.
        restarts: Starts of k-means, of which the one of least inertia is kept.
    """

    method: str = "sae_kmeans"
    preset: str = "published"
    encoder: EncoderConfig = field(default_factory=code_encoder)
    optimiser: OptimiserConfig = field(default_factory=keras_adam)
    reconstruct: ReconstructConfig = field(default_factory=ReconstructConfig)
    restarts: int = 10

    holds_out = False


def fit(split: Split, config: Config, training: Training) -> Discovery:
    """Discover the intents of `split`."""
    rows = training.encoder.prepare(inputs_of(split), training.progress)
    reconstruct(training, rows, config.reconstruct)
    return gather_by_kmeans(training, split, rows, n_init=config.restarts)
