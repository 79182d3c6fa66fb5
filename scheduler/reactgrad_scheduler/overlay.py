"""Columns of the tables that a graph shares with its forks.

A column of a graph that was never forked is a plain list, at the speed of one. The first fork freezes it: it
is the *ground* from then on, and the graph and its fork each have an ``Overlay`` on it, a dict of the rows
that this one has written. So a fork costs what its origin has written since the ground was laid, however
large the graph is, and it takes the memory of what it writes itself. This is copy-on-write by row, with the
ground as the one version that all others differ from (compare Baker (1991), "Shallow binding makes
functional arrays fast", where versions form chains).

Invariant: nobody sees another one's rows in a ground. Where the others are gone, the one that is left writes
its rows down into it at its next fork, and is empty again; where they are few, as with a fork that is about
to be replaced by the next one, each is given the rows first that it saw there; where it has written a good
part of all rows, it gets a ground of its own. So neither a lineage of forks nor a graph that is forked again
and again piles anything up.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from threading import Lock
from typing import Any, Generic, Protocol, TypeVar, cast

T = TypeVar("T")

# A ground is laid anew where an overlay holds more than one row in so many.
WORN = 4

# So many others are given their rows by one that writes down more than so many.
FEW, SOME = 4, 32


class Column(Protocol[T]):
    """One thing that every node has, by slot: a list, bytes, or an overlay."""

    def __getitem__(self, slot: int, /) -> T: ...
    def __setitem__(self, slot: int, row: T, /) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[T]: ...
    def extend(self, rows: list[T], /) -> None: ...


class Ground(Generic[T]):
    """Rows that overlays share.

    Attributes
    ----------
    overlays
        Some that lie on it, or have lain: all of them, where they are few.
    lock
        Held by who writes it; the graphs of others may be at work in their threads meanwhile.
    """

    __slots__ = ("lock", "overlays", "rows")

    def __init__(self, rows: list[T]) -> None:
        self.rows = rows
        self.overlays: list[weakref.ref[Overlay[T]]] = []
        self.lock = Lock()


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

    __slots__ = ("__missing__", "__weakref__", "_size", "ground")

    # The method of the ground itself: what is not written is found without a line of Python.
    __missing__: Callable[[int], T]

    def __init__(self, ground: Ground[T], size: int) -> None:
        self._size = size
        self._lie_on(ground)

    def _lie_on(self, ground: Ground[T]) -> None:
        if len(ground.overlays) > FEW:
            ground.overlays = [ref for ref in ground.overlays if ref() is not None]
        if len(ground.overlays) <= FEW:
            ground.overlays.append(weakref.ref(self))
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
        with self.ground.lock:
            others = _references(self) - _ALONE
            if others > 0 and self.written * WORN > len(self.ground.rows):
                rows = self.ground.rows.copy()
                self._write_down(rows, Ground(rows))
            elif others <= 0 or (others <= FEW and self.written > SOME):
                known = self._others()
                if len(known) >= others:
                    for other in known:
                        other.keep(self.keys())
                    self._write_down(self.ground.rows)
            twin = Overlay(self.ground, self._size)
            twin.update(super().copy())
        return twin

    def _write_down(self, rows: list[T], ground: Ground[T] | None = None) -> None:
        """Write all rows that lie here into these, which lie in the ground or become another one."""
        rows.extend([self[slot] for slot in range(len(rows), self._size)])
        for slot, row in self.items():
            rows[slot] = row
        if ground is not None:
            self._lie_on(ground)
        self.clear()  # last: an interrupt loses no row

    def _others(self) -> list[Overlay[T]]:
        """Those that lie on the same ground, as far as that knows them."""
        there = [overlay for ref in self.ground.overlays if (overlay := ref()) is not None]
        return [one for one in there if one is not self and one.ground is self.ground]

    def keep(self, slots: Iterable[int]) -> None:
        """Have these rows, which others are about to replace in the ground; those that it has stay."""
        rows = self.ground.rows
        for slot in slots:
            if slot < len(rows):
                row: Any = rows[slot]
                if type(row) is dict:  # written in place by who has it
                    row = cast("dict[Any, Any]", row).copy()
                self.setdefault(slot, row)


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
