"""Genomes as bytes: how they travel between processes, and lie in files (``_rows.h``)."""

from __future__ import annotations

import pickle
from array import array
from collections.abc import Iterable
from typing import Any

from reactgrad.neat._genome import Genome, packed, unpacked

Pairs = list[tuple[int, Any]]


def to_bytes(pairs: Iterable[tuple[int, Any]]) -> bytes:
    """Return pairs of a key and a genome as bytes: arrays of rows, or pickles of neat-python's genomes."""
    keys, genomes = [], []
    for key, genome in pairs:
        keys.append(key)
        genomes.append(genome)
    if not all(type(one) is Genome for one in genomes):
        return pickle.dumps((keys, genomes, None))
    own = array("q", [one.key for one in genomes])
    return pickle.dumps((keys, (own, *packed([one.genes for one in genomes])), True))


def from_bytes(data: Any) -> Pairs:
    """Return the pairs of a key and a genome that ``to_bytes`` has written. Fitness does not travel."""
    keys, genomes, are_rows = pickle.loads(data)
    if are_rows:
        own, rows, names = genomes
        genomes = [Genome.of(key, one) for key, one in zip(own, unpacked(rows, names), strict=True)]
    return list(zip(keys, genomes, strict=True))
