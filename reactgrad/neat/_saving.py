"""A population as bytes, to go on exactly elsewhere: with its counters, and with Python's random numbers."""

from __future__ import annotations

import copy
import io
import pickle
import random
import threading
from itertools import count
from typing import Any

# Python's random numbers are one stream for all threads.
stream = threading.RLock()


def without_counters(config: Any) -> Any:
    """Return a copy of a config whose counters begin anew: to pickle or to copy them would advance them."""
    found = copy.copy(config)
    functions = found.genome_config = object.__new__(type(config.genome_config))
    functions.__dict__.update(config.genome_config.__dict__)
    functions.node_indexer = functions.innovation_tracker = None
    return found


def dumps(population: Any) -> bytes:
    """Return what a population of neat-python's is at present, less its config and its reporters."""
    functions, reproduction = population.config.genome_config, population.reproduction
    state = {
        "population": population.population,
        "species": population.species,
        "generation": population.generation,
        "best": population.best_genome,
        "next node": _peek(functions, "node_indexer"),
        "next genome": _peek(reproduction, "genome_indexer"),
        "tracker": getattr(reproduction, "innovation_tracker", None),
        "random": random.getstate(),
    }
    out = io.BytesIO()
    _Pickler(out, population).dump(state)
    return out.getvalue()


def loads(population: Any, data: bytes) -> None:
    """Make a population of the same config what another one was; Python's random numbers go on as there."""
    state = _Unpickler(io.BytesIO(data), population).load()
    functions, reproduction = population.config.genome_config, population.reproduction
    population.population, population.species = state["population"], state["species"]
    population.generation, population.best_genome = state["generation"], state["best"]
    count_from(functions, "node_indexer", state["next node"])
    count_from(reproduction, "genome_indexer", state["next genome"])
    if state["tracker"] is not None:
        functions.innovation_tracker = reproduction.innovation_tracker = state["tracker"]
    random.setstate(state["random"])


def _peek(owner: Any, name: str) -> int | None:
    """Return the next number of a counter, which stays as it is."""
    counter = getattr(owner, name, None)
    if counter is None:
        return None
    first = next(counter)
    setattr(owner, name, count(first))
    return first


def count_from(owner: Any, name: str, first: int | None) -> None:
    """Let a counter begin at a number; without one it begins where neat-python says."""
    setattr(owner, name, None if first is None else count(first))


def _shared(population: Any) -> dict[str, Any]:
    """Return what a population shares with its parts, and what stays where it is."""
    return {"reporters": population.reporters, "species": population.config.species_set_config}


class _Pickler(pickle.Pickler):
    def __init__(self, out: io.BytesIO, population: Any) -> None:
        super().__init__(out, protocol=5)
        self._names = {id(one): name for name, one in _shared(population).items()}

    def persistent_id(self, obj: Any) -> str | None:
        return self._names.get(id(obj))


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: io.BytesIO, population: Any) -> None:
        super().__init__(data)
        self._shared = _shared(population)

    def persistent_load(self, pid: str) -> Any:
        return self._shared[pid]
