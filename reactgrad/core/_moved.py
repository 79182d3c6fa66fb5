"""Params that are replaced by others: by a module that moves to another dtype or device, for those who hold them."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any, Protocol


class Holder(Protocol):
    """Something that holds params over a long time, such as an optimiser."""

    def follow(self, moved: Mapping[int, Any]) -> None:
        """Take other params in place of those that it holds, by the slot of each that was replaced."""
        ...


_holders: weakref.WeakKeyDictionary[Any, weakref.WeakSet[Any]] = weakref.WeakKeyDictionary()


def hold(graph: Any, holder: Holder) -> None:
    """Let an object hear of params of a graph that are replaced."""
    _holders.setdefault(graph, weakref.WeakSet()).add(holder)


def replaced(graph: Any, moved: Mapping[int, Any]) -> None:
    """Tell all who hold params of a graph."""
    for holder in list(_holders.get(graph, ())):
        holder.follow(moved)
