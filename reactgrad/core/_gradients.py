"""Gradients as ``backward`` has left them in ``.grad``: an array for each param, or one for many of them."""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Any, Final

import numpy as np

from reactgrad.backend import holder, on
from reactgrad.nodes._references import holders, references


class GradientBlock:
    """Params whose gradients ``backward`` writes side by side into one array.

    Their ``.grad`` is copied out of that array when it is asked for. A sum is made in a second array, so that it
    is never half written, and then moves into the first: see ``Gradients.at_home``.

    Attributes
    ----------
    slots : tuple of int
        The params.
    places : dict
        Their numbers in the block.
    bounds : list of int
        The places at which their gradients begin, and the end of the last.
    """

    __slots__ = ("__weakref__", "_arrays", "_shapes", "bounds", "places", "slots")

    def __init__(self, slots: Sequence[int], shapes: Sequence[Any], dtype: Any) -> None:
        self.slots = tuple(slots)
        self.places = {slot: i for i, slot in enumerate(slots)}
        self._shapes = list(shapes)
        self.bounds = [0, *accumulate(math.prod(shape) for shape in shapes)]
        self._arrays = [np.empty(self.bounds[-1], dtype), None]

    def free(self, present: Any) -> Any:
        """Return the array that does not hold the present gradients; the first, if there are none."""
        first, second = self._arrays
        if present is not first:
            return first
        if second is None:
            second = self._arrays[1] = np.empty_like(first)
        return second

    def added(self, present: Any, parts: Sequence[Any]) -> Any:
        """Return the array with these gradients, one for each param, added to the present ones."""
        array = self.free(present)
        np.concatenate(parts, axis=None, out=array)
        return array if present is None else np.add(present, array, array)

    def filled(self, parts: Sequence[Any]) -> Any:
        """Return the first array with these gradients, zeros for ``None``."""
        array = self._arrays[0]
        array[...] = 0
        for (start, end), part in zip(pairwise(self.bounds), parts, strict=True):
            if part is not None:
                array[start:end] = np.ravel(part)
        return array

    def at_home(self, array: Any) -> Any:
        """Return the first array with the gradients that the second one may hold."""
        first, second = self._arrays
        if array is second:
            np.copyto(first, array)
        return first

    def part(self, array: Any, i: int) -> Any:
        """Return the gradient of one param as callers get it."""
        part = array[self.bounds[i] : self.bounds[i + 1]].reshape(self._shapes[i]).copy()
        if not part.ndim:
            return part[()]
        part.flags.writeable = False
        return part.view()


# Of a graph that has none, as nearly all forks: never written, since each change makes another dict.
NO_BLOCKS: Final[dict[GradientBlock, Any]] = {}


class Gradients:
    """The gradients of one graph's nodes at one time.

    Attributes
    ----------
    alone : dict
        By slot, those that have an array of their own.
    blocks : dict
        By block, the arrays of those that lie side by side.
    between : bool
        True if some belong to nodes that are no leaves.
    replaced : frozenset of int
        The nodes whose gradient the next ``backward`` replaces.
    """

    __slots__ = ("_shown", "alone", "between", "blocks", "replaced")

    def __init__(
        self,
        alone: dict[int, Any],
        blocks: dict[GradientBlock, Any],
        between: bool = False,
        replaced: frozenset[int] = frozenset(),
    ) -> None:
        self.alone, self.blocks, self.between, self.replaced = alone, blocks, between, replaced
        self._shown: dict[int, Any] | None = {} if blocks else None  # of those in blocks

    def of(self, slot: int) -> Any:
        """Return the gradient of one node: the same object until it changes. ``None``: it has none."""
        found = self.alone.get(slot)
        shown = self._shown
        if found is None and shown is not None:
            found = shown.get(slot)
            if found is None:
                for block, array in self.blocks.items():
                    if slot in block.places:
                        return shown.setdefault(slot, block.part(array, block.places[slot]))
        return found

    def holds(self, slot: int) -> bool:
        """Return whether the gradient of this node lies in a block."""
        return bool(self.blocks) and any(slot in block.places for block in self.blocks)

    def apart(self) -> Gradients:
        """Return the same gradients, each with an array of its own."""
        alone = dict(self.alone)
        for block in self.blocks:
            alone.update({slot: self.of(slot) for slot in block.slots})
        return Gradients(alone, {}, self.between, self.replaced)

    def gathered(self, block: GradientBlock, parts: Sequence[Any]) -> Gradients:
        """Return the same gradients, where those of a block, which have arrays of their own, lie side by side."""
        alone = {slot: one for slot, one in self.alone.items() if slot not in block.places}
        blocks = {**self.blocks, block: block.added(None, parts)}
        found = Gradients(alone, blocks, self.between, self.replaced)
        # Each is the same object as before.
        found._shown = {**(self._shown or {}), **dict(zip(block.slots, parts, strict=True))}
        return found

    def at_home(self, former: Gradients) -> Gradients:
        """Return the same gradients, the sums of former ones in the arrays in which these lay.

        So the memory of a gradient stays where it is from step to step. An array that a caller still sees stays
        as it is.

        Parameters
        ----------
        former : Gradients
            Those before. Nobody else holds them any more, so that no thread can take an array out of them.
        """
        moved = {
            slot: into(former.alone, slot, now)
            for slot in former.alone
            if (now := self.alone.get(slot)) is not None and now is not former.alone[slot]
        }
        blocks = {block: block.at_home(array) for block, array in self.blocks.items()}
        return Gradients(self.alone | moved, blocks, self.between, self.replaced)

    def without(self, slots: Iterable[int], blocks: Iterable[GradientBlock]) -> Gradients:
        """Return them without those of these params, of which `blocks` are all blocks."""
        gone = frozenset(blocks)
        left = {block: array for block, array in self.blocks.items() if block not in gone}
        alone = self.alone
        if alone:
            alone = dict(alone)
            for slot in slots:
                alone.pop(slot, None)
        return Gradients(alone, left, self.between, self.replaced)


class GradientBlocks:
    """The blocks of one graph, none of which has a param of another one.

    Attributes
    ----------
    known : object
        Another object after each change.
    """

    __slots__ = ("_blocks", "known")

    def __init__(self) -> None:
        # None before the first one: most graphs, and nearly all forks, have no block.
        self._blocks: weakref.WeakSet[GradientBlock] | None = None
        self.known: object = None

    def all(self) -> list[GradientBlock]:
        """Return the blocks."""
        return [] if self._blocks is None else list(self._blocks)

    def __contains__(self, block: GradientBlock) -> bool:
        """Return whether ``backward`` writes gradients into this block."""
        return self._blocks is not None and block in self._blocks

    def add(self, block: GradientBlock) -> None:
        """Add a block, in place of those that share a param with it."""
        apart = [one for one in self.all() if block.places.keys().isdisjoint(one.places)]
        self._blocks = weakref.WeakSet([*apart, block])
        self.known = object()


def into(former: dict[int, Any], slot: int, now: Any) -> Any:
    """Return a gradient in the array of the former one of its param; as it is, where a caller sees that one.

    Parameters
    ----------
    former : dict
        The former gradients by slot, read-only views.
    now : array or number
        The gradient; an array of another device stays as it is.
    """
    if (
        references(former, slot)
        or type(former[slot]) is not np.ndarray
        or type(now) is not np.ndarray
    ):
        return now
    memory: Any = former[slot].base
    if type(memory) is np.ndarray and memory.flags.owndata:
        fits = memory.shape == now.shape and memory.dtype == now.dtype
        if not fits or holders(memory) != 1:  # besides the view
            return now
        memory.flags.writeable = True
    else:  # the value of an adjoint, to which the memory is left
        memory = np.empty(now.shape, now.dtype)
    np.copyto(memory, now)
    memory.flags.writeable = False
    return memory.view()


def added(old: Any, new: Any) -> Any:
    """Return the sum of a former ``.grad`` and a new gradient, as a read-only array."""
    if old is None:
        return new
    holds = holder(old)
    with on("cpu" if holds is None else holds.name_of(old)):
        total = old + new
    if isinstance(total, np.ndarray):
        total.flags.writeable = False
        return total.view()
    return total
