"""Columns of the tables that a graph shares with its forks.

A column of a graph that was never forked is a plain list, at the speed of one. The first fork freezes it: it
is the *ground* from then on, and the graph and its fork each have an ``Overlay`` on it, a dict of the rows
that this one has written. So a fork costs what its origin has written since the ground was laid, however
large the graph is, and it takes the memory of what it writes itself. This is copy-on-write by row, with the
ground as the one version that all others differ from (compare Baker (1991), "Shallow binding makes
functional arrays fast", where versions form chains).

Invariant: nobody writes a ground on which more than one overlay lies. Where the others are gone, the one that
is left writes its rows down into it at its next fork, and is empty again; where it has written a good part of
all rows, it gets a ground of its own. So neither a lineage of forks nor a graph that is forked again and
again piles anything up.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar, cast

T = TypeVar("T")

# A ground is laid anew where an overlay holds more than one row in so many.
WORN = 4


class Column(Protocol[T]):
    """One thing that every node has, by slot: a list, bytes, or an overlay."""

    def __getitem__(self, slot: int, /) -> T: ...
    def __setitem__(self, slot: int, row: T, /) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[T]: ...
    def extend(self, rows: list[T], /) -> None: ...


class Ground(Generic[T]):
    """Rows that overlays share."""

    __slots__ = ("rows",)

    def __init__(self, rows: list[T]) -> None:
        self.rows = rows


def _references(holder: Overlay[T]) -> int:
    return sys.getrefcount(holder.ground)


class Overlay(dict[int, T]):
    """A column of which this is what one graph has written; the rest lies in a ground.

    To be used as the list of all rows, but for ``in``, which asks what was written.

    Parameters
    ----------
    ground
        What holds the other rows.
    size
        How many rows there are; those behind the ground are all written.
    """

    __slots__ = ("__missing__", "_size", "ground")

    # The method of the ground itself: what is not written is found without a line of Python.
    __missing__: Callable[[int], T]

    def __init__(self, ground: Ground[T], size: int) -> None:
        self._size = size
        self._lie_on(ground)

    def _lie_on(self, ground: Ground[T]) -> None:
        # At once, so that no interrupt leaves it on two grounds.
        self.ground, self.__missing__ = ground, ground.rows.__getitem__

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[T]:  # type: ignore[override]
        return (self[slot] for slot in range(self._size))

    def extend(self, rows: list[T]) -> None:
        """Add rows."""
        size, self._size = self._size, self._size + len(rows)
        self.update(zip(range(size, self._size), rows, strict=True))

    @property
    def written(self) -> int:
        """How many rows lie here and not in the ground."""
        return super().__len__()

    def fork(self) -> Overlay[T]:
        """Another one with the same rows."""
        rows = self.ground.rows
        alone = _references(self) <= _ALONE
        if alone or self.written * WORN > len(rows):
            if not alone:
                rows = rows.copy()
            rows.extend([self[slot] for slot in range(len(rows), self._size)])
            for slot, row in self.items():
                rows[slot] = row
            if not alone:
                self._lie_on(Ground(rows))
            self.clear()  # last: an interrupt loses no row
        twin = Overlay(self.ground, self._size)
        twin.update(super().copy())
        return twin


class Blank(Overlay[T]):
    """So many rows, all the same until they are written."""

    __slots__ = ()

    def __init__(self, size: int, row: T) -> None:
        super().__init__(Ground([]), size)
        self.__missing__ = lambda slot: row

    def extend(self, rows: list[T]) -> None:
        self._size += len(rows)


def share(column: Column[T]) -> tuple[Overlay[T], Overlay[T]]:
    """What a column becomes when its graph is forked: that of the graph and that of its fork.

    Parameters
    ----------
    column
        A list, bytes, or what this function has returned.
    """
    if not isinstance(column, Overlay):
        column = Overlay(Ground(cast("list[T]", column)), len(column))
    return column, column.fork()


# Of a ground on which one overlay lies. Measured, since it differs between versions of Python.
_ALONE = _references(Overlay(Ground(list[int]()), 0))
