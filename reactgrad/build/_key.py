"""Keys: leaves that say where a draw of random numbers begins in the streams of its graph.

A key is four words: two of the graph's seed, the number of the node, and how often it was touched. Draws of a model,
which draws anew at each call, have the number of their call instead, from ``CALLS`` on. Philox, a
generator that computes the numbers at any place of its stream, takes them as key and counter (Salmon and
others, Parallel random numbers: as easy as 1, 2, 3; SC 2011). So a draw is a function of its key alone: it is the same
whenever, wherever and in whatever order nodes run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from reactgrad.build._leaf import new_leaf
from reactgrad.nodes._op import KEY

if TYPE_CHECKING:
    from reactgrad.core._core import Core, V


# Numbers of calls, which no node reaches.
CALLS = 1 << 62
# How often draws that are not built yet were touched in the run that a checkpoint goes on with, by their numbers.
coming: WeakKeyDictionary[Any, dict[int, int]] = WeakKeyDictionary()


def new_key(graph: Core[V]) -> V:
    """Return the key of a new draw."""
    with graph._lock:
        return new_leaf(graph, KEY, _first(graph), None, None, None, None)


def _first(graph: Core[Any]) -> Any:
    number = graph._scheduler.topology.next_serial
    known = coming.get(graph)
    touched = known.pop(number, 0) if known else 0
    return np.array([*seed_words(graph.seed), number, touched], np.uint64)


def seed_words(seed: int) -> Any:
    """Return two words that depend on every bit of a seed."""
    return np.random.SeedSequence(seed).generate_state(2, np.uint64)
