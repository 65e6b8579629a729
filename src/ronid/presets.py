"""RoNID's recipes by name, and which of them suits the machine."""

from ronid.config import (
    ALL_LAYERS,
    ContrastConfig,
    EncoderConfig,
    EStepConfig,
    MStepConfig,
    OptimiserConfig,
    PretrainConfig,
    RoNIDConfig,
    StartConfig,
)
from ronid.errors import ConfigError

AUTO = "auto"
"""`default` where there is a GPU, else `fast`."""

WITHOUT_GPU = (
    "no GPU here, so preset 'fast': a small adapter learns on a frozen encoder; on the public "
    "benchmarks its accuracy is 1 to 4 points below that of 'default'"
)
"""What `auto` says where it chooses `fast` for want of a GPU."""

PRESETS: dict[str, RoNIDConfig] = {
    # Every constant the paper gives; the last layer of the encoder is trained.
    "paper": RoNIDConfig(preset="paper"),
    # What a GPU is for: all layers learn, from raw text, from neighbours, from pseudo-labels.
    "default": RoNIDConfig(
        preset="default",
        encoder=EncoderConfig(trainable_layers=ALL_LAYERS),
        optimiser=OptimiserConfig(lr_for_size=6 * 384),  # the embedded encoder's
        pretrain=PretrainConfig(epochs=2, cross_entropy=False),
        contrast=ContrastConfig(
            epochs=20,
            neighbours=40,
            neighbour_share=0.5,
            discount=True,
            lr=5e-5,
            labelled_batch=128,
            token_replacement=0.25,
        ),
        start=StartConfig(prototypes="density", restarts=3),
        e_step=EStepConfig(prior="shrunk"),
        m_step=MStepConfig(
            epochs=20,
            lr=4e-5,
            batch=256,
            labelled_batch=128,
            certainty=0.99,
            token_replacement=0.1,
        ),
    ),
    # For laptops: the encoder stays as it is and every utterance is embedded once; a small
    # adapter learns on those vectors.
    "fast": RoNIDConfig(
        preset="fast",
        encoder=EncoderConfig(trainable_layers=0, adapter_width=512, adapter_reads_words=True),
        pretrain=PretrainConfig(epochs=0),
        contrast=ContrastConfig(epochs=4, neighbours=100, discount=True, labelled_batch=128),
        start=StartConfig(prototypes="density", restarts=1, breaths=8),
        e_step=EStepConfig(prior="shrunk"),
        m_step=MStepConfig(epochs=5, lr=1e-3, batch=256, labelled_batch=64, temperature=0.15),
    ),
}


def preset(name: str, *, gpu: bool = False, vectors: bool = False) -> RoNIDConfig:
    """Return the preset called `name`.

    Args:
        name: A key of `PRESETS`, or `auto`.
        gpu: Whether training happens on a GPU; only `auto` asks.
        vectors: Whether embeddings are given instead of texts; only `auto` asks.

    Raises:
        ConfigError: No such preset.
    """
    if name == AUTO:
        name = "default" if gpu and not vectors else "fast"
    if name not in PRESETS:
        choices = ", ".join([AUTO, *PRESETS])
        raise ConfigError(f"no preset '{name}'; choose one of: {choices}")
    return PRESETS[name]
