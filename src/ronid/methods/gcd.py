"""GCD (Vaze et al., CVPR 2022): contrast of two views, then semi-supervised k-means.

    training   (1 - w) instance contrast of all rows + w supervised contrast of the labelled ones,
               both between two dropout views and in the space of a projection that is left behind
    inference  semi-supervised k-means on the encoder's features; a new utterance gets the intent
               whose centroid is nearest

The constants are those of the version for text that published its code with this benchmark (w =
0.5; for images it was 0.35). Deviations: features are the masked mean, which does not count
padding, and they are brought to length 1 before k-means, as in the version for images. Half of
every batch is labelled, or all labelled rows where they are fewer; there a weighted sampler makes
it half on average. Held-out labels stop the training and choose its epoch. Centroids that lost all
rows start anew instead of becoming NaN. The moments of Adam are corrected, there not. Dropout is on
in the layers that are trained only, so that the two views differ by the last layer alone; the
published code leaves it on in all. Without held-out rows all epochs are run. Probabilities take the
temperature of the contrast, which is a guess; it changes no prediction.
"""

from dataclasses import dataclass, field

from ronid.assign.start import known_kmeans
from ronid.config import EncoderConfig, OptimiserConfig
from ronid.train.dropout_contrast import DropoutContrastConfig, dropout_contrast
from ronid.train.heads import projection
from ronid.train.infer import gather
from ronid.train.state import Training, generator_of, inputs_of
from ronid.types import Discovery, Split


@dataclass(frozen=True)
class Config:
    """Settings of GCD.

    Args:
        contrast: The training.
        projection_width: Width of the space in which the contrast is made.
        restarts: Starts of semi-supervised k-means, of which that of least inertia is kept.
    """

    method: str = "gcd"
    preset: str = "published"
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    contrast: DropoutContrastConfig = field(default_factory=DropoutContrastConfig)
    projection_width: int = 256
    restarts: int = 100

    holds_out = True


def fit(split: Split, config: Config, training: Training) -> Discovery:
    """Discover the intents of `split`."""
    encoder = training.encoder
    rows = encoder.prepare(inputs_of(split), training.progress)
    head = projection(training, "contrast", config.projection_width)
    dropout_contrast(training, split, rows, config.contrast, head=head)
    generator = generator_of(encoder.device, training.seed, "gather")
    found = known_kmeans(
        encoder.embed_all(rows), split, generator=generator, n_init=config.restarts
    )
    return gather(training, split, rows, found.centroids, temperature=config.contrast.temperature)
