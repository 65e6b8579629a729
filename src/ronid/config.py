"""Every setting of a run: frozen dataclasses; an unknown key is an error.

A section is one stage of the method. The defaults are those of the paper where it gives a value,
and the choice for which there is most evidence where it is silent; such fields say so.
"""

from dataclasses import dataclass, field
from typing import Literal, Protocol

from ronid.settings import ALL_LAYERS, differences, to_dict, updated

__all__ = [
    "ALL_LAYERS",
    "DEFAULT_ENCODER",
    "TFIDF",
    "ContrastConfig",
    "EStepConfig",
    "EncoderConfig",
    "MStepConfig",
    "MethodConfig",
    "OptimiserConfig",
    "PretrainConfig",
    "RoNIDConfig",
    "StartConfig",
    "differences",
    "to_dict",
    "updated",
]

DEFAULT_ENCODER = "all-MiniLM-L6-v2"
TFIDF = "tfidf"
"""Name of the encoder that counts words."""


@dataclass(frozen=True)
class EncoderConfig:
    """The text encoder and what of it is trained.

    Args:
        name: The embedded default, a local folder, a hub id, or `tfidf` for counts of words.
        trainable_layers: Last n transformer layers to train; 0 freezes all, ALL_LAYERS none.
        adapter_width: Hidden width of a residual adapter on the pooled vector; 0 for none.
        adapter_dropout: Dropout inside the adapter.
        adapter_reads_words: Let the adapter see, beside the pooled vector, the mean of the word
            vectors below the first layer: which words occur, which the upper layers blur. Only
            with a frozen encoder.
        frozen_dropout: Whether dropout is on in frozen layers too while others train, as in most
            published code. They then run at every step; without it each utterance passes them once.
        max_length_tokens: Longer utterances are cut (with a warning that counts them).
        head: Layers between the pooled vector and the features that are clustered: a dense layer
            with `tanh` or without (`linear`), the same followed by one output per intent
            (`tanh_logits`, `relu_logits`), the `code` of an autoencoder, never below 0, or its
            `linear_code`; or `none`.
        normalise: Whether features are brought to length 1.
    """

    name: str = DEFAULT_ENCODER
    trainable_layers: int = 1
    adapter_width: int = 0
    adapter_dropout: float = 0.1
    adapter_reads_words: bool = False
    frozen_dropout: bool = False
    max_length_tokens: int = 128
    head: Literal["none", "tanh", "linear", "tanh_logits", "relu_logits", "code", "linear_code"] = (
        "none"
    )
    normalise: bool = True


@dataclass(frozen=True)
class OptimiserConfig:
    """AdamW with linear warm-up and linear decay, shared by every stage.

    The paper gives AdamW and the learning rate of the EM loop; the rest is the family's habit.

    Args:
        weight_decay: Decay of weights; biases and norms have none.
        warmup_share: Share of a stage's steps in which the learning rate rises.
        clip_norm: Longest gradient.
        lr_for_size: Layers times width of the encoder that the learning rates are meant for. A
            step of AdamW moves every weight by the learning rate, and so the output in proportion
            to both; an encoder n times as large gets an n-th of the rates, a smaller one no more
            than they are. 0: rates as they are.
        bias_correction: Whether the moments of the first steps are corrected for their start at 0.
            The Adam of early BERT code does not: there the tenth step is six times as long, the
            hundredth three times.
        epsilon: Added to the size of a gradient before a step is divided by it: gradients far below
            it move their weights less. Keras has 1e-7.
        schedule: After its rise the learning rate falls to 0 over the stage (`linear`) or stays
            (`constant`).
    """

    weight_decay: float = 0.01
    warmup_share: float = 0.1
    clip_norm: float = 1.0
    lr_for_size: int = 0
    bias_correction: bool = True
    epsilon: float = 1e-8
    schedule: Literal["linear", "constant"] = "linear"


def early_bert_adam() -> OptimiserConfig:
    """Return the settings of the Adam of early BERT code, which corrects no moments."""
    return OptimiserConfig(bias_correction=False)


@dataclass(frozen=True)
class PretrainConfig:
    """Cross-entropy on labelled rows plus masked language model on all rows (Eq. 2).

    The paper gives the two losses only. An epoch is one pass over the labelled rows, with one
    masked-language batch beside every labelled batch; without labelled rows, or with
    `cross_entropy` off, it is one pass over all rows.

    Args:
        epochs: Upper bound; 0 skips the stage.
        patience: Epochs without better known-intent accuracy on held-out rows before stopping.
        epochs_without_dev: Epochs to run when no held-out rows exist.
        lr: Learning rate.
        labelled_batch: Rows per cross-entropy batch.
        language_batch: Rows per masked-language batch.
        language_weight: Weight of the masked-language loss; 0 leaves it out.
        mask_probability: Share of ordinary tokens that are masked.
        trainable_layers: Layers trained in this stage; the paper trains the last one throughout.
        head_dropout: Dropout before the M-way linear head.
        cross_entropy: False leaves out the classification of labelled rows.
        epoch_rows: An epoch is one pass over the `labelled` rows, or over `all`.
        contrast_weight: Weight of a contrast between two dropout views of labelled and raw rows,
            positives being the same known intent, or the other view; 0 leaves it out.
        contrast_temperature: Its temperature.
    """

    epochs: int = 100
    patience: int = 20
    epochs_without_dev: int = 30
    lr: float = 5e-5
    labelled_batch: int = 64
    language_batch: int = 128
    language_weight: float = 1.0
    mask_probability: float = 0.15
    trainable_layers: int = 1
    head_dropout: float = 0.1
    cross_entropy: bool = True
    epoch_rows: Literal["labelled", "all"] = "labelled"
    contrast_weight: float = 0.0
    contrast_temperature: float = 0.07

    @property
    def holds_out(self) -> bool:
        """Whether held-out labels stop it; only the classification needs any."""
        return self.epochs > 0 and self.cross_entropy


@dataclass(frozen=True)
class ContrastConfig:
    """Neighbour contrast before the EM loop; not in the paper, off in its preset.

    Every utterance is pulled to its nearest neighbours and to rows of the same given intent.

    Args:
        epochs: Passes over all rows; 0 skips the stage.
        few_labels: Labelled utterances per known intent, on average, that are few: up to so many,
            or without any, neighbours must show what labels do not, and are learnt from for longer.
        few_labels_epochs: Least passes then.
        neighbours: Most neighbours in a list; 0 for no limit.
        neighbour_share: Length of a neighbour list, as a share of the mean intent size.
        refresh_epochs: Neighbour lists are made anew every so many epochs.
        discount: Let the first lists discount what varies within known intents, and weigh the words
            themselves as the labels advise, or where these are few, as the lists bear; else they
            follow the cosine of features.
        temperature: Temperature of the contrast.
        batch: Anchors per step; each brings one of its neighbours.
        labelled_batch: Labelled rows beside them for the supervised part.
        lr: Learning rate.
        supervised_weight: Weight of the contrast among labelled rows.
        token_replacement: Chance of a token to become a random one.
    """

    epochs: int = 0
    few_labels: float = 5.0
    few_labels_epochs: int = 10
    neighbours: int = 0
    neighbour_share: float = 0.4
    refresh_epochs: int = 5
    discount: bool = False
    temperature: float = 0.07
    batch: int = 256
    labelled_batch: int = 256
    lr: float = 1e-3
    supervised_weight: float = 1.0
    token_replacement: float = 0.0


@dataclass(frozen=True)
class StartConfig:
    """Where prototypes start; the paper is silent.

    Args:
        prototypes: `kmeans` on all rows, matched to the labeled class means by the Hungarian
            method; `semisup_kmeans` whose known centroids are the labeled class means; or
            `density`: the density of labels around an utterance decides whether it is new, and the
            new ones are clustered.
        restarts: k-means restarts.
        breaths: Maximum number of centroid swaps that k-means tries for `density`.
    """

    prototypes: Literal["kmeans", "semisup_kmeans", "density"] = "kmeans"
    restarts: int = 20
    breaths: int = 60


@dataclass(frozen=True)
class EStepConfig:
    """Pseudo-labels by optimal transport with a moving class prior (Eq. 4 and 5).

    Args:
        pseudo_labels: `transport`, or `kmeans` for the paper's ablation -OT.
        eta: Entropy weight (paper: 0.05). The entropy enters with the sign that makes the problem
            convex; as printed it is concave and Sinkhorn does not solve it.
        score_temperature: Temperature inside P. The paper does not say; only its product with
            `eta` matters, and 1 gives the kernel exp(cosine / eta).
        prior: `moving` average that starts uniform (paper); `shrunk`: shares predicted at the start
            and then kept, drawn towards uniform unless the sizes of known intents differ more than
            errors explain; or `uniform` throughout.
        slack: How far the shares of the intents may leave the prior: the entropy weight over that
            of their divergence (unbalanced transport with relaxed marginals); 0 for not at all.
        prior_momentum: lambda_1 (paper: 0.95) of the moving prior.
        prior_floor: No class falls below this share.
        rows: Transport over `unlabelled` rows (given labels are kept and their mass taken off the
            prior), or over `all` rows with given labels written over the result.
        tolerance: L1 error of the class marginal at which Sinkhorn stops.
        max_iterations: Sinkhorn gives up (with a warning) after so many.
    """

    pseudo_labels: Literal["transport", "kmeans"] = "transport"
    eta: float = 0.05
    score_temperature: float = 1.0
    prior: Literal["moving", "shrunk", "uniform"] = "moving"
    slack: float = 0.0
    prior_momentum: float = 0.95
    prior_floor: float = 1e-4
    rows: Literal["unlabelled", "all"] = "unlabelled"
    tolerance: float = 1e-3
    max_iterations: int = 1000


@dataclass(frozen=True)
class MStepConfig:
    """Intra-cluster, inter-cluster and cross-entropy losses (Eq. 6 to 10).

    Args:
        epochs: Upper bound on EM iterations; the paper is silent.
        stop_change: Stop when fewer pseudo-labels than this share change ...
        stop_patience: ... for so many epochs in a row.
        lr: Learning rate (paper: 1e-5).
        batch: Rows per step, of all training rows.
        labelled_batch: Labelled rows beside them for the cross-entropy.
        temperature: tau (paper: 0.07).
        certainty: Sets tau by the number of intents instead: so that an utterance as near to its
            prototype and as far from all others as can be gets this probability; 0 for not.
        prototype_momentum: lambda_2 (paper: 0.99).
        prototype_update: The moving average advances once per `item`, or once per `batch`.
        alpha: Weight of the intra-cluster loss, 1 - alpha that of the inter-cluster one (0.7).
        intra: False gives the paper's ablation -Intra.
        inter: False gives the paper's ablation -Inter.
        cross_entropy: False leaves out the labelled cross-entropy.
        token_replacement: Chance of a token to become a random one; the paper names no noise but
            dropout.
    """

    epochs: int = 100
    stop_change: float = 1e-3
    stop_patience: int = 3
    lr: float = 1e-5
    batch: int = 128
    labelled_batch: int = 64
    temperature: float = 0.07
    certainty: float = 0.0
    prototype_momentum: float = 0.99
    prototype_update: Literal["item", "batch"] = "item"
    alpha: float = 0.7
    intra: bool = True
    inter: bool = True
    cross_entropy: bool = True
    token_replacement: float = 0.0


@dataclass(frozen=True)
class RoNIDConfig:
    """The whole recipe; `ronid.presets` holds the named ones."""

    method: str = "ronid"
    preset: str = "paper"
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    pretrain: PretrainConfig = field(default_factory=PretrainConfig)
    contrast: ContrastConfig = field(default_factory=ContrastConfig)
    start: StartConfig = field(default_factory=StartConfig)
    e_step: EStepConfig = field(default_factory=EStepConfig)
    m_step: MStepConfig = field(default_factory=MStepConfig)

    @property
    def holds_out(self) -> bool:
        """Only the classification of pre-training stops early, so only it needs held-out labels."""
        return self.pretrain.holds_out


class MethodConfig(Protocol):
    """What the recipes of all methods have in common: frozen dataclasses of sections."""

    @property
    def method(self) -> str:
        """Name in `ronid.methods.METHODS`."""

    @property
    def preset(self) -> str:
        """Name of the settings that this recipe began as."""

    @property
    def encoder(self) -> EncoderConfig:
        """Section of the encoder."""

    @property
    def optimiser(self) -> OptimiserConfig:
        """Section of the optimiser."""

    @property
    def holds_out(self) -> bool:
        """Whether some labelled utterances are held out, to stop training in time."""
