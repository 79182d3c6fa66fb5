"""Values that are to be the same on all ranks: first values of params, buffers, seeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from reactgrad.distributed._errors import DistributedError
from reactgrad.distributed._group import Group


def by_dtype(named: Mapping[str, Any]) -> Iterator[list[Any]]:
    """Yield the nodes of each dtype, in their order."""
    found: dict[str, list[Any]] = {}
    for var in named.values():
        found.setdefault(var.dtype.name, []).append(var)
    yield from found.values()


def check_same_model(group: Group, named: Mapping[str, Any]) -> None:
    """Raise on all ranks unless all have nodes of the same names, shapes and dtypes."""
    mine = {name: f"{var.dtype.name} {tuple(var.shape)}" for name, var in named.items()}
    every = group.all_gather_object(mine)
    for rank, other in enumerate(every):
        for name in [*every[0], *other]:
            first, second = every[0].get(name, "none"), other.get(name, "none")
            if first != second:
                raise DistributedError(
                    f"DataParallel: {name!r} is {first} on rank 0 and {second} on rank {rank}. Build the "
                    "same model on all ranks."
                )
        if [*every[0]] != [*other]:
            raise DistributedError(
                f"DataParallel: rank {rank} has its params in another order than rank 0. Build the same "
                "model on all ranks."
            )


def take_values(group: Group, variables: Sequence[Any], root: int = 0) -> None:
    """Set nodes of one dtype to the values of one rank; those that are equal stay as they are."""
    if not variables:
        return
    values = [np.asarray(var.value) for var in variables]
    given = np.concatenate([one.reshape(-1) for one in values])
    taken = group.move("broadcast", given, root=root)
    spread(variables, values, taken)


def spread(variables: Sequence[Any], values: Sequence[np.ndarray], taken: np.ndarray) -> None:
    """Set each node to its part of a flat array, if that differs from its value."""
    at, sets = 0, {}
    for var, value in zip(variables, values, strict=True):
        part = taken[at : at + value.size].reshape(value.shape)
        at += value.size
        if not np.array_equal(part, value, equal_nan=value.dtype.kind in "fc"):
            sets[var] = part.copy()
    if sets:
        variables[0].graph.set(sets)
