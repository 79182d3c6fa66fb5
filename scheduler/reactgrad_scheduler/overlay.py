"""Columns of the tables that a graph shares with its forks.

A column of a graph that was never forked is a plain list, as fast as one. The first fork freezes it: from
then on it is the *ground*, and the graph and its fork each have an ``Overlay`` on it, a dict of the rows
that this side has written. So a fork costs only the rows that its origin has written since the ground was
laid, however large the graph is, and it takes the memory of the rows that it writes itself. This is
copy-on-write by row, with the ground as the one version that all others differ from (compare Baker
(1991), "Shallow binding makes functional arrays fast", where versions form chains).

Invariant: no overlay sees rows of another one in the ground. If all other overlays are gone, the last one
writes its rows into the ground at its next fork, and is empty again. If there are few others, as with a
fork that is about to be replaced by the next one, each of them first gets copies of the rows that it saw
there. If an overlay has written a large part of all rows, it gets a ground of its own. So neither a
lineage of forks nor a graph that is forked again and again accumulates rows.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator
from threading import RLock
from typing import Any, Generic, Protocol, TypeVar, cast

T = TypeVar("T")

# A ground is laid anew if an overlay holds more than one row in so many.
WORN = 4

# Up to ``FEW`` others get copies of rows, if the overlay that writes into the ground has more than ``SOME``.
FEW, SOME = 4, 32


class Column(Protocol[T]):
    """One property of all nodes, by slot: a list, bytes, or an overlay."""

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
        Overlays that lie on it, or have lain on it: all of them while they are few, else some.
    lock
        Held by the thread that writes it: threads of other graphs on it may be working meanwhile. An ``RLock``: an
        error where a ``with`` is left may leave it to its thread, which must not wait for itself then.
    """

    __slots__ = ("lock", "overlays", "rows")

    def __init__(self, rows: list[T]) -> None:
        self.rows = rows
        self.overlays: list[weakref.ref[Overlay[T]]] = []
        self.lock = RLock()


def _references(holder: Overlay[T]) -> int:
    return sys.getrefcount(holder.ground)


class Overlay(dict[int, T]):
    """A column of which this dict holds the rows that one graph has written; others lie in a ground.

    It works like the list of all rows, except ``in``, which tests whether a row was written here.

    Parameters
    ----------
    ground
        The holder of the other rows.
    size
        The number of rows; those beyond the ground are all written here.
    """

    __slots__ = ("__missing__", "__weakref__", "_size", "ground")

    # The bound method of the ground's list: a row that was not written is found without Python code.
    __missing__: Callable[[int], T]

    def __init__(self, ground: Ground[T], size: int) -> None:
        self._size = size
        self._lie_on(ground)

    def _lie_on(self, ground: Ground[T]) -> None:
        if len(ground.overlays) > FEW:
            ground.overlays = [ref for ref in ground.overlays if ref() is not None]
        if len(ground.overlays) <= FEW:
            ground.overlays.append(weakref.ref(self))
        # In one assignment, so that no interrupt leaves it between two grounds.
        self.ground, self.__missing__ = ground, ground.rows.__getitem__

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[T]:  # type: ignore[override]
        return (self[slot] for slot in range(self._size))

    def extend(self, rows: list[T]) -> None:
        """Add rows at the end."""
        size = self._size + len(rows)
        self.update(zip(range(self._size, size), rows, strict=True))
        self._size = size  # last: an interrupt leaves rows that are not counted, and no gap

    def rows_of(self, slots: Collection[int]) -> Iterable[T]:
        """Return many rows: faster than one by one, if none of them was written here."""
        if not self.written or self.keys().isdisjoint(slots):
            return map(self.__missing__, slots)
        return map(self.__getitem__, slots)

    @property
    def written(self) -> int:
        """The number of rows that lie here and not in the ground."""
        return super().__len__()

    def fork(self) -> Overlay[T]:
        """Return another overlay with the same rows."""
        with self.ground.lock:
            others, written = _references(self) - _ALONE, self.written
            if others > 0 and written * WORN > len(self.ground.rows):
                rows = self.ground.rows.copy()
                self._write_down(rows, Ground(rows))
            elif written and (others <= 0 or (others <= FEW and written > SOME)):
                known = self._others()
                if len(known) >= others:
                    for other in known:
                        other.keep(self.keys())
                    self._write_down(self.ground.rows)
            twin = Overlay(self.ground, self._size)
            if written:
                twin.update(super().copy())
        return twin

    def _write_down(self, rows: list[T], ground: Ground[T] | None = None) -> None:
        """Write all rows that lie here into ``rows``: those of the ground, or of a new ``ground``."""
        rows.extend([self[slot] for slot in range(len(rows), self._size)])
        for slot, row in self.items():
            if slot < self._size:
                rows[slot] = row
        if ground is not None:
            self._lie_on(ground)
        self.clear()  # last: an interrupt loses no row

    def _others(self) -> list[Overlay[T]]:
        """Return the other overlays on the same ground, as far as the ground knows them."""
        there = [overlay for ref in self.ground.overlays if (overlay := ref()) is not None]
        return [one for one in there if one is not self and one.ground is self.ground]

    def keep(self, slots: Iterable[int]) -> None:
        """Copy these rows of the ground, which are about to change there; rows written here stay."""
        rows = self.ground.rows
        for slot in slots:
            if slot < len(rows):
                row: Any = rows[slot]
                if type(row) is dict:  # its owner writes it in place
                    row = cast("dict[Any, Any]", row).copy()
                self.setdefault(slot, row)


_NOTHING = Ground[Any]([])  # the ground of all columns that need none


class Blank(Overlay[T]):
    """A column of rows that are all the same until they are written."""

    __slots__ = ()

    def __init__(self, size: int, row: T) -> None:
        self._size, self.ground = size, _NOTHING
        self.__missing__ = lambda slot: row

    def extend(self, rows: list[T]) -> None:
        self._size += len(rows)


def share(column: Column[T]) -> tuple[Overlay[T], Overlay[T]]:
    """Return the two columns that a column becomes at a fork: the graph's, and the fork's.

    Parameters
    ----------
    column
        A list, bytes, or a column that this function has returned.
    """
    if not isinstance(column, Overlay):
        column = Overlay(Ground(cast("list[T]", column)), len(column))
    return column, column.fork()


# The reference count of a ground with one overlay. Measured, since it differs between versions of Python.
_ALONE = _references(Overlay(Ground(list[int]()), 0))
