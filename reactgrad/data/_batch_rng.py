"""Random numbers that belong to a batch, so that neither threads nor a resumed run change them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


class _Local(threading.local):
    key: tuple[int, ...] | None = None
    rng: np.random.Generator | None = None


_LOCAL = _Local()


@contextmanager
def batch_of(*key: int) -> Iterator[None]:
    """Let ``batch_rng`` return the generator of the batch with this key, in this thread."""
    before = _LOCAL.key, _LOCAL.rng
    _LOCAL.key, _LOCAL.rng = key, None
    try:
        yield
    finally:
        _LOCAL.key, _LOCAL.rng = before


def batch_rng() -> np.random.Generator:
    """Return the generator of the batch that is being loaded.

    It depends on the seed of the loader, the epoch and the number of the batch, and on nothing else: a dataset or
    a transform that draws from it gives the same numbers with any number of threads, and after a resume. Outside of
    a loader it is a new generator without a seed.

    Examples
    --------
    >>> import numpy as np
    >>> import reactgrad as rg
    >>> noisy = rg.data.ArrayDataset(
    ...     np.zeros(4), transform=lambda x: x + rg.data.batch_rng().normal(size=x.shape)
    ... )
    >>> first, again = (next(iter(rg.data.DataLoader(noisy, 4, rng=1)))[0] for _ in range(2))
    >>> bool((first == again).all())
    True
    """
    if _LOCAL.key is None:
        return np.random.default_rng()
    if _LOCAL.rng is None:  # made when it is asked for: few batches need one
        _LOCAL.rng = np.random.default_rng(_LOCAL.key)
    return _LOCAL.rng
