"""Sub-seeds derived from where in a run they are used, so that any step can be repeated alone."""

import zlib

import numpy as np

from ronid.errors import UsageError


def derive(seed: int, *coordinates: str | int) -> int:
    """Return a 63-bit seed for one place of a run.

    Args:
        seed: The run's seed.
        coordinates: What names the place, such as a stage and an epoch.

    Raises:
        UsageError: The seed is negative.

    Example:
        >>> derive(0, "em", 3) == derive(0, "em", 3) != derive(0, "em", 4)
        True
    """
    if seed < 0:
        raise UsageError(f"the seed is {seed}; give 0 or a larger number")
    words = [c if isinstance(c, int) else zlib.crc32(c.encode()) for c in coordinates]
    state = np.random.SeedSequence([seed, *words]).generate_state(1, np.uint64)[0]
    return int(state >> 1)
