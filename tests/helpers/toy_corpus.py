"""What tests share: a corpus whose intents differ in words, and tiny encoders of every family."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ronid.config import RoNIDConfig
from ronid.types import IntArray, Split

FAMILIES = ("bert", "mpnet", "roberta", "distilbert", "modernbert")

TinyEncoder = Callable[..., str]
"""`(family, masked_lm=False, seed=0) -> folder`."""

Recipe = Callable[..., RoNIDConfig]
"""`(preset, changes={}) -> config` on the tiny BERT, short enough for a test."""

TOPICS = {
    "battery": "battery charge plug drain power cable",
    "cancel": "cancel stop end quit leave terminate",
    "delivery": "delivery parcel courier shipped package door",
    "invoice": "invoice bill receipt tax statement charged",
    "login": "login password account code locked username",
    "refund": "refund money back return reimburse paid",
    "store": "store shop opening hours address nearest",
    "weather": "weather rain sunny forecast storm snow",
}
FILLERS = ["please", "can", "you", "tell", "me", "about", "my", "the", "now", "today", "i", "need"]


@dataclass(frozen=True)
class Toy:
    """Utterances with their true intents."""

    texts: list[str]
    truth: list[str]

    @property
    def names(self) -> list[str]:
        """The intents, sorted."""
        return sorted(set(self.truth))

    @property
    def classes(self) -> IntArray:
        """(n,) position of every true intent among `names`."""
        return np.array([self.names.index(name) for name in self.truth])

    def labels(self, known: int = 4, every: int = 3) -> list[str | None]:
        """Labels of one in `every` rows of the first `known` intents, None elsewhere."""
        seen = dict.fromkeys(self.names, 0)
        labels: list[str | None] = []
        for name in self.truth:
            shown = name in self.names[:known] and seen[name] % every == 0
            labels.append(name if shown else None)
            seen[name] += 1
        return labels

    def split(self, known: int = 4, every: int = 3, dev: int = 0) -> Split:
        """The problem; the first `dev` rows of known intents serve as held-out ones."""
        labels = self.labels(known, every)
        held = np.flatnonzero(self.classes < known)[:dev]
        return Split(
            texts=self.texts,
            targets=np.array([-1 if name is None else self.names.index(name) for name in labels]),
            known=tuple(self.names[:known]),
            n_intents=len(self.names),
            dev_texts=[self.texts[i] for i in held],
            dev_targets=self.classes[held],
        )


def make_toy(rows: int, intents: int, seed: int = 0) -> Toy:
    """Draw utterances: four words of the intent among one to three of no meaning."""
    rng = np.random.default_rng(seed)
    names = list(TOPICS)[:intents]
    texts, truth = [], []
    for i in range(rows):
        name = names[i % intents]
        words = [*rng.choice(TOPICS[name].split(), 4, replace=False)]
        words += [*rng.choice(FILLERS, int(rng.integers(1, 4)))]
        texts.append(" ".join(rng.permutation(words)))
        truth.append(name)
    return Toy(texts, truth)


def save_tiny_encoder(path: Path, family: str, masked_lm: bool, seed: int) -> None:
    """Write a random encoder of hidden size 32, with or without its masked-language head."""
    import torch
    import transformers

    transformers.logging.disable_progress_bar()
    tokenizer = _tokenizer(bpe=family in ("roberta", "modernbert"))
    config = transformers.AutoConfig.for_model(family, **_sizes(family, tokenizer))
    kind = transformers.AutoModelForMaskedLM if masked_lm else transformers.AutoModel
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = kind.from_config(config)
        with torch.no_grad():
            for parameter in model.parameters():  # nothing is left at 0 or 1
                parameter.add_(torch.randn_like(parameter), alpha=0.05)
            words = model.get_input_embeddings().weight
            words.copy_(torch.randn_like(words) / 2)  # words count for more than their places
    model.save_pretrained(path)
    tokenizer.save_pretrained(path)


def _sizes(family: str, tokenizer: Any) -> dict[str, int]:
    """Return the settings of a family in its own words."""
    sizes = {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "intermediate_size": 48,
        "max_position_embeddings": 40,
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.cls_token_id,
        "eos_token_id": tokenizer.sep_token_id,
    }
    if family == "distilbert":
        sizes["dim"] = sizes.pop("hidden_size")
        sizes["n_layers"] = sizes.pop("num_hidden_layers")
        sizes["n_heads"] = sizes.pop("num_attention_heads")
        sizes["hidden_dim"] = sizes.pop("intermediate_size")
    if family == "modernbert":  # short windows, so that both kinds of attention are met
        sizes |= {"global_attn_every_n_layers": 2, "local_attention": 4, "num_hidden_layers": 4}
        sizes |= {"cls_token_id": tokenizer.cls_token_id, "sep_token_id": tokenizer.sep_token_id}
    if family == "electra":  # its word vectors are narrower than its states
        sizes |= {"embedding_size": 16}
    return sizes


def _tokenizer(bpe: bool) -> Any:
    """Return a tokenizer that knows the words of the toy corpus, and letters."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    # RoBERTa and MPNet count positions from the padding id, which is 1 in their vocabularies.
    special = ["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"]
    words = sorted({*FILLERS, *" ".join(TOPICS.values()).split()})
    letters = "abcdefghijklmnopqrstuvwxyz"
    if bpe:
        tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
        trainer = trainers.BpeTrainer(
            vocab_size=250,
            special_tokens=special,
            initial_alphabet=list(letters),
            show_progress=False,
        )
        tokenizer.train_from_iterator(words * 3, trainer)
    else:
        pieces = [*special, *letters, *(f"##{c}" for c in letters), *words]
        vocabulary = {piece: i for i, piece in enumerate(dict.fromkeys(pieces))}
        tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 0), ("[SEP]", 2)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        cls_token="[CLS]",
        pad_token="[PAD]",
        sep_token="[SEP]",
        unk_token="[UNK]",
        mask_token="[MASK]",
    )
