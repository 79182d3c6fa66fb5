"""Gradients of all ranks added up, bucket by bucket, as the adjoints become clean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from reactgrad.distributed._group import Group
from reactgrad.distributed._pair import pair, shape_of

# The programs whose buckets are kept: losses that a loop differentiates in turn.
KEPT = 16


class Reduced(NamedTuple):
    """The buckets of one program.

    Attributes
    ----------
    results : dict of int to Var
        By param, the gradient of all ranks.
    held : list
        What the nodes are built on.
    buckets : list of list of int
        The params of each bucket, in the order in which they start.
    """

    results: dict[int, Any]
    held: list[Any]
    buckets: list[list[int]]


class Buckets:
    """Builds, for adjoints of params, nodes that have the sum of all ranks.

    Parameters
    ----------
    group : Group
    params : mapping of str to Var
    first_bytes, bytes : int
        The size of the first bucket, and of the others. The first is small, so that it starts early.
    """

    def __init__(
        self, group: Group, params: Mapping[str, Any], first_bytes: int, bytes: int
    ) -> None:
        self.group, self.params = group, dict(params)
        self.names = {var._slot: name for name, var in params.items()}
        self._sizes = first_bytes, bytes
        self._agreed: dict[tuple[str, ...], list[str]] = {}
        self._made: dict[Any, Reduced] = {}
        self.latest: Reduced | None = None

    def agree(self, reached: Iterable[str], always: bool) -> list[str]:
        """Return the params that any rank has a gradient for, in the order of the first rank."""
        key = tuple(reached)
        if always or key not in self._agreed:
            order: dict[str, None] = {}
            for names in self.group.all_gather_object(key):
                order |= dict.fromkeys(names)
            self._agreed[key] = list(order)
        return self._agreed[key]

    def reduced(
        self, adjoints: Mapping[int, Any], factor: Any, kept: Mapping[int, Any], always: bool
    ) -> Reduced:
        """Return nodes with the sums of all ranks.

        Parameters
        ----------
        adjoints : mapping of int to Var
            By param.
        factor : Var
            What this rank's gradients count.
        kept : mapping of int to Var
            By param, what this rank has already and has not given to the others: it counts as it is.
        always : bool
            Whether the ranks ask each other anew which params they reach.
        """
        graph = factor._graph
        topology = graph._scheduler.topology
        rank, serial = topology.rank, topology.serial
        # In the order of a run: adjoints of the last layers are clean first.
        slots = sorted(adjoints, key=lambda slot: rank[adjoints[slot]._slot])
        # What is kept without a new adjoint comes first: it is there already.
        slots = [slot for slot in kept if slot not in adjoints] + slots
        names = self.agree([self.names[slot] for slot in slots], always)
        key = (
            tuple([(slot, serial[adjoints[slot]._slot]) for slot in adjoints]),
            serial[factor._slot],
            tuple(kept),
            tuple(names),
        )
        found = self._made.pop(key, None)
        if found is None:
            found = self._build(adjoints, factor, kept, names)
            while len(self._made) >= KEPT:
                del self._made[next(iter(self._made))]
        self._made[key] = self.latest = found
        return found

    def _build(
        self,
        adjoints: Mapping[int, Any],
        factor: Any,
        kept: Mapping[int, Any],
        names: list[str],
    ) -> Reduced:
        graph = factor._graph
        given: dict[int, Any] = {}
        for name in names:
            var = self.params[name]
            slot = var._slot
            if slot in adjoints:
                given[slot] = adjoints[slot]
            else:  # another rank reaches it
                given[slot] = graph.const(np.zeros(var.shape, var.dtype))
            if slot in kept:
                # Counted as it is: the factor is for the new part only.
                given[slot] = given[slot] * factor.astype(var.dtype) + kept[slot]
        plain = None if kept else factor
        if kept:
            for slot in given:
                if slot not in kept:
                    given[slot] = given[slot] * factor.astype(given[slot].dtype)
        buckets = self._divided(given)
        results: dict[int, Any] = {}
        for bucket in buckets:
            operands = [given[slot] for slot in bucket]
            shapes = [shape_of(one) for one in operands]
            sums = pair(
                self.group,
                "all_reduce",
                operands,
                shapes,
                None,
                None,
                plain,
                reduction="sum",
            )
            results |= dict(zip(bucket, sums, strict=True))
        return Reduced(results, [factor, *given.values(), *adjoints.values()], buckets)

    def _divided(self, given: Mapping[int, Any]) -> list[list[int]]:
        """Return the params of each bucket; one holds one dtype."""
        buckets: list[list[int]] = []
        filling: dict[Any, tuple[list[int], int]] = {}
        for slot, one in given.items():
            size = int(np.prod(one.shape)) * one.dtype.itemsize
            bucket, filled = filling.get(one.dtype, ([], 0))
            if not bucket:
                buckets.append(bucket)
            bucket.append(slot)
            full = self._sizes[0] if bucket is buckets[0] else self._sizes[1]
            filling[one.dtype] = ([], 0) if filled + size >= full else (bucket, filled + size)
        return buckets
