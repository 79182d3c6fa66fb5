"""Random numbers drawn anew: one draw by ``touch``, all of a graph by ``reseed``."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._errors import DTypeError
from reactgrad.build._key import seed_words
from reactgrad.change._set import set_many
from reactgrad.core._core import Core
from reactgrad.core._handles import tidy
from reactgrad.core._notes import OF_SEED
from reactgrad.nodes._op import KEY
from reactgrad.scheduler import told


def redraw(key: Any) -> None:
    """Let the draw with this key draw other numbers: the next ones of its node."""
    graph, slot = key._graph, key._slot
    words = np.array(graph._host.data[slot])
    words[3] += np.uint64(1)
    set_many(graph, [(slot, words)])


def reseed(graph: Core, /, seed: int) -> None:
    """Give the graph another seed: all random nodes draw anew at their next read.

    They draw what they would have drawn in a graph with this seed from the start, so that the same seed
    gives the same numbers again. In a transaction that fails nothing has changed.

    Parameters
    ----------
    seed : int
        At least 0.

    Raises
    ------
    DTypeError
        If it is no such integer.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph(rng=7)
    >>> with g:
    ...     x = rg.random.normal((2,))
    >>> first = x.value
    >>> g.reseed(8)
    >>> other = x.value
    >>> g.reseed(7)
    >>> (x.value == first).all(), (other == first).any()
    (np.True_, np.False_)
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise DTypeError(f"g.reseed({told(seed):.40}): the seed is an integer of at least 0.")
    with graph._lock:
        graph._scheduler.check_idle()
        tidy(graph)
        host = graph._host
        words = seed_words(int(seed))
        keys = [slot for slot, op in enumerate(host.ops) if op is KEY and slot not in host.removed]
        graph._scheduler.notes.note(OF_SEED, graph.seed)
        set_many(
            graph, [(slot, np.array([*words, host.data[slot][2], 0], np.uint64)) for slot in keys]
        )
        graph.seed = int(seed)
