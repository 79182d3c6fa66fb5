"""Params that are replaced by others: by a module that moves to another dtype or device, for those who hold them."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Holder(Protocol):
    """Something that holds params over a long time, such as an optimiser."""

    def follow(self, moved: Mapping[int, Any]) -> None:
        """Take other params in place of those that it holds, by the slot of each that was replaced."""
        ...

    def resize(self, places: Mapping[Any, Sequence[int | None]]) -> None:
        """Keep what it remembers of the elements of params that have another length now."""
        ...


_holders: weakref.WeakKeyDictionary[Any, weakref.WeakSet[Any]] = weakref.WeakKeyDictionary()


def hold(graph: Any, holder: Holder) -> None:
    """Let an object hear of params of a graph that are replaced."""
    _holders.setdefault(graph, weakref.WeakSet()).add(holder)


def replaced(graph: Any, moved: Mapping[int, Any]) -> None:
    """Tell all who hold params of a graph."""
    for holder in list(_holders.get(graph, ())):
        holder.follow(moved)


def resized(graph: Any, places: Mapping[Any, Sequence[int | None]]) -> None:
    """Tell all who hold params of a graph which element each one of some params was before."""
    for holder in list(_holders.get(graph, ())):
        holder.resize(places)
