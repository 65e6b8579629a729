"""The vectors of a run's utterances, kept beside them in half precision.

`embeddings.safetensors` lets people look at neighbours, borders and parts of intents on a machine
that could not run the encoder. A run written before this file existed has none.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ronid.errors import DataError
from ronid.files import whole
from ronid.types import FloatArray

FILE = "embeddings.safetensors"


def write_vectors(folder: Path, vectors: NDArray[np.floating]) -> None:
    """Write (n, d) vectors over their largest number; the file is there whole or not at all."""
    from safetensors.numpy import save_file

    largest = float(np.abs(vectors).max()) if vectors.size else 1.0
    scale = largest if np.isfinite(largest) and largest > 0 else 1.0
    tensors: dict[str, NDArray[Any]] = {
        "embeddings": (np.asarray(vectors, np.float32) / scale).astype(np.float16),
        "scale": np.array([scale], np.float64),
    }
    with whole(folder / FILE) as partial:
        save_file(tensors, partial, metadata={"format_version": "1"})


def read_vectors(folder: Path, rows: int) -> FloatArray | None:
    """Return the (n, d) vectors of a run folder, None where it keeps none.

    Args:
        folder: Folder of a run, or of one of its versions.
        rows: Utterances of the run.

    Raises:
        DataError: The file is damaged, or has another number of rows.
    """
    from safetensors import SafetensorError, safe_open

    path = folder / FILE
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="numpy") as tensors:
            halves = tensors.get_tensor("embeddings")
            scale = float(tensors.get_tensor("scale")[0])
    except (OSError, SafetensorError) as error:
        raise DataError(f"'{path}' cannot be read ({error}); delete it, it is made anew") from None
    if len(halves) != rows:
        raise DataError(f"'{path}' has {len(halves)} rows, the run {rows}; delete it")
    vectors: FloatArray = halves.astype(np.float32)
    vectors *= np.float32(scale)
    return vectors
