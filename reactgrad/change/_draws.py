"""The random numbers of a graph: draws of calls, and where a checkpoint stops and goes on.

A draw is known by the number of its node, so one that is not built yet when a state arrives takes its part of it when
it is built. Draws of calls are counted instead, since a call may use any of several nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from reactgrad._errors import ParameterError
from reactgrad.build._key import CALLS, coming, seed_words
from reactgrad.change._leaf import words_of
from reactgrad.change._set import set_many
from reactgrad.core._core import Core
from reactgrad.core._handles import tidy
from reactgrad.core._notes import OF_SEED
from reactgrad.nodes._op import KEY

_calls: WeakKeyDictionary[Any, int] = WeakKeyDictionary()


def draw_next(graph: Core[Any], keys: Iterable[int]) -> None:
    """Let draws with these keys draw the next numbers of the graph's calls, in this order."""
    sets, number = [], _calls_of(graph)
    for slot in keys:
        first, second = words_of(graph, slot)[:2]
        sets.append((slot, np.array([first, second, CALLS + number, 0], np.uint64)))
        number += 1
    set_many(graph, sets)
    _calls[graph] = number


def _calls_of(graph: Core[Any]) -> int:
    """Return how many draws of calls there were; in a fork or a loaded graph, as its keys have it."""
    known = _calls.get(graph)
    if known is None:
        numbers = [int(words_of(graph, slot)[2]) for slot in _keys(graph)]
        known = max([one - CALLS + 1 for one in numbers if one >= CALLS], default=0)
    return known


def draws_of(graph: Core[Any]) -> dict[str, Any]:
    """Return the seed of a graph, how often each draw was touched by its number, and the count of draws of calls."""
    with graph._lock:
        draws = dict(coming.get(graph, {}))
        for slot in _keys(graph):
            words = words_of(graph, slot)
            if words[2] < CALLS:
                draws[int(words[2])] = int(words[3])
        return {"seed": graph.seed, "draws": draws, "calls": _calls_of(graph)}


def check_draws(state: Any) -> None:
    """Raise unless this is a state of draws."""
    fields = state if isinstance(state, Mapping) else {}
    draws = fields.get("draws")
    numbers = [*draws, *draws.values()] if isinstance(draws, Mapping) else [None]
    numbers.append(fields.get("calls"))
    seed = fields.get("seed")
    if not all(type(one) is int and 0 <= one < CALLS for one in numbers) or not (
        type(seed) is int and seed >= 0
    ):
        raise ParameterError("draws of a graph have a seed, and counts by the numbers of nodes")


def put_draws(graph: Core[Any], state: Mapping[str, Any]) -> None:
    """Let the draws of a graph go on from a state of ``draws_of``."""
    check_draws(state)
    draws = dict(state["draws"])
    seed = seed_words(state["seed"])
    with graph._lock:
        graph._scheduler.check_idle()
        tidy(graph)
        graph._scheduler.notes.note(OF_SEED, graph.seed)
        sets = []
        for slot in _keys(graph):
            words = words_of(graph, slot)
            touched = draws.pop(
                int(words[2]), 0
            )  # a draw of a call has new numbers at the next one
            new = np.array([*seed, words[2], touched], np.uint64)
            if (new != words).any():
                sets.append((slot, new))
        set_many(graph, sets)
        graph._seed = state["seed"]
        coming[graph] = draws
        _calls[graph] = state["calls"]


def _keys(graph: Core[Any]) -> list[int]:
    host = graph._host
    return [slot for slot, op in enumerate(host.ops) if op is KEY and slot not in host.removed]
