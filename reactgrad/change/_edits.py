"""Edits of the topology: collected in a block, checked and made as a whole when it ends.

A single edit is a block of one. Inside a block nothing has changed yet: reads see the old graph,
while later edits start from what earlier ones have asked for. Sets that give a leaf another shape
belong to the edits of a block, since often neither fits without the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from reactgrad._errors import BlockError, EditError, ShapeError
from reactgrad.backend import own_copy
from reactgrad.change._change import Change
from reactgrad.change._make_way import making_way
from reactgrad.change._remove import bury, check_unused, settle
from reactgrad.change._set import Ready, write_new
from reactgrad.core._definition import NOTHING_CLOSED, Definition
from reactgrad.core._handles import handle
from reactgrad.core._held import announce, held
from reactgrad.core._notes import Before, former_leaves, note
from reactgrad.nodes._handle import Handle
from reactgrad.nodes._op import Attrs, Leaf, Output
from reactgrad.scheduler import Link, Owner

if TYPE_CHECKING:
    from reactgrad.core._core import Core

    Operand = Handle


class Edits:
    """A block of edits with what it has collected so far.

    A block inside another one sees what the outer one has collected.

    Of two open blocks of a task the one opened last has to end first, or else neither is made. Blocks
    of several tasks know nothing of each other until they end.

    Parameters
    ----------
    stays
        True if other tasks may go on before the block ends.
    """

    __slots__ = (
        "_graph",
        "_outer",
        "_owner",
        "_stays",
        "_void",
        "before",
        "carried",
        "operands",
        "removed",
        "values",
    )

    def __init__(self, graph: Core, stays: bool = False) -> None:
        self._graph = graph
        self._stays = stays
        self._owner: Owner | None = None  # the task of a block that stays
        self._outer: Edits | None = None
        self._void = False  # True once a block around this one has ended first
        # By slot: the operands that a node had when the block first edited it.
        self.before: dict[int, tuple[int, ...]] = {}
        # By slot: the node, its new operands, and the new attributes of its op or ``None``.
        self.operands: dict[int, tuple[Handle, list[Operand], Attrs | None]] = {}
        self.removed: dict[int, Handle] = {}
        # By slot: leaves that get another shape, with spec and value.
        self.values: dict[int, tuple[Handle, Ready]] = {}
        # By slot: params whose elements get other places, with the former place of each element.
        self.carried: dict[int, tuple[Handle, list[int | None]]] = {}

    def __enter__(self) -> Edits:
        graph = self._graph
        graph._lock.__enter__()
        try:
            if graph._edits:
                self._outer = innermost(graph)
            graph._scheduler.check_idle()
            graph._edits.append(self)
            if self._stays:
                self._owner = graph._lock.hold()
            return self
        except BaseException:
            self._leave()
            graph._lock.__exit__(None, None, None)
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            graph, outer = self._graph, self._outer
            last = graph._edits[-1] is self
            if not last:
                last = all(block._outer is not self for block in graph._edits)
                void_inside(graph, self)
            if last and self._owner is None:
                graph._edits.remove(self)
            else:
                self._leave()
            if error is None and (self._void or not last):
                raise BlockError.of("a block of edits")
            if error is None and (self.operands or self.removed or self.values or self.carried):
                if outer is not None:
                    outer.join(self)
                else:
                    slots = [*self.operands, *self.removed, *self.values]
                    with held(graph):
                        making_way(graph, slots, partial(_commit, graph, self))
                        announce(graph, [*self.values])
                        settle(graph)
        finally:  # also where an interrupt came before the lines above were done
            if self in self._graph._edits:
                self._leave()
            self._graph._lock.__exit__(kind, error, trace)

    def abandon(self, error: BaseException) -> None:
        """End a block that is still open, since an error came just as it was about to end."""
        if self in self._graph._edits:
            self.__exit__(type(error), error, None)

    def _leave(self) -> None:
        """Take the block from the open ones."""
        if self in self._graph._edits:
            self._graph._edits.remove(self)
        if self._owner is not None:
            self._graph._lock.drop(self._owner)
            self._owner = None

    def is_here(self) -> bool:
        """Return whether the running code belongs to the block."""
        return self._owner is None or self._owner.is_here()

    def of(self, var: Handle) -> list[Operand]:
        """Return the operands of a node as the block has them so far, as a new list."""
        block: Edits | None = self
        while block is not None:
            if var._slot in block.operands:
                return block.operands[var._slot][1].copy()
            block = block._outer
        return _operands(self._graph, var)

    def value(self, leaf: Any) -> Any:
        """Return the value of a leaf as the block has it so far."""
        ready = self._waiting(leaf._slot)
        return leaf.value if ready is None else ready[1]

    def attrs(self, var: Handle) -> Attrs:
        """Return the attributes of a node's op as the block has them so far."""
        block: Edits | None = self
        while block is not None:
            if var._slot in block.operands and (attrs := block.operands[var._slot][2]) is not None:
                return attrs
            block = block._outer
        return self._graph._host.attrs[var._slot]

    def put(self, var: Handle, operands: list[Operand], attrs: Attrs | None = None) -> None:
        """Give a node these operands, and its op these attributes if there are any."""
        if attrs is None and var._slot in self.operands:
            attrs = self.operands[var._slot][2]
        if self._stays:
            self.before.setdefault(var._slot, self._graph._scheduler.operands(var._slot))
        self.operands[var._slot] = var, operands, attrs

    def join(self, inner: Edits) -> None:
        """Take over what a block inside this one has collected."""
        for edited in inner.operands.values():
            self.put(*edited)
        self.removed.update(inner.removed)
        self.values.update(inner.values)
        for var, places in inner.carried.values():
            self.carry(var, places)

    def wait(self, ready: list[tuple[int, Any, Any]]) -> bool:
        """Take sets that shall be made with the edits, if one gives a leaf another shape.

        Return ``False``, with nothing taken, if none does.
        """
        specs = self._graph._host.specs
        if not any(
            found is not specs[slot] or self._waiting(slot) is not None for slot, found, _ in ready
        ):
            return False
        for slot, found, new in ready:
            if found is not None and found.weak is None:
                new = own_copy(found, new)
            self.values[slot] = handle(self._graph, slot), (found, new)
        return True

    def _waiting(self, slot: int) -> Ready | None:
        """Return what the block, or one around it, has collected for a leaf."""
        block: Edits | None = self
        while block is not None:
            if slot in block.values:
                return block.values[slot][1]
            block = block._outer
        return None

    def carry(self, var: Handle, places: list[int | None]) -> None:
        """Let the elements of a param come from these places when the block ends."""
        if var._slot in self.carried:
            _, former = self.carried[var._slot]
            places = [None if place is None else former[place] for place in places]

        self.carried[var._slot] = var, places


def innermost(graph: Core) -> Edits | None:
    """Return the innermost open block of edits of this task, ``None`` if none is open."""
    return next((block for block in reversed(graph._edits) if block.is_here()), None)


def void_inside(graph: Core, ending: Edits | None) -> None:
    """Mark the blocks inside `ending`, which ends too early, so that they raise when they end.

    ``None`` stands for a block around all of this task.
    """
    around = [] if ending is None else [ending]
    for block in graph._edits:  # outer ones first
        if block._outer in around or (ending is None and block.is_here()):
            block._void = True
            if block._outer is ending and ending is not None:
                block._outer = ending._outer
            around.append(block)


def _check_unchanged(graph: Core, edits: Edits) -> None:
    """Raise if another task has edited a node since a block edited it first."""
    for slot, operands in edits.before.items():
        gone = edits.operands[slot][0]._graph is not graph
        if gone or (slot not in graph._host.pins and graph._scheduler.operands(slot) != operands):
            raise BlockError(
                "another task edited or removed a node, at an `await` inside this block of edits, which "
                "edits it too: none of the edits of this block is made, and the other task's stay. Await "
                "before the block or after it."
            )


def _commit(graph: Core, edits: Edits) -> None:
    """Make everything that a block has collected in one change."""
    if edits.before:
        _check_unchanged(graph, edits)
    before = {slot: Before.of(graph, slot) for slot in edits.operands} if graph._noted else {}
    sets = _Sets.of(graph, edits) if edits.values else None
    with Change(graph) as change:
        definitions = {slot: _definition(graph, *at) for slot, at in edits.operands.items()}
        change.define(definitions, {} if sets is None else sets.reshaped)
        if edits.removed:
            check_unused(graph, edits.removed)
        change.follow()
        if edits.carried:
            check_lengths(graph, edits.carried)
        for slot, former in before.items():
            note(graph, "node", slot, former)
        if sets is not None:
            write_new(graph, sets.ready, sets.beside, sets.leaves, False, (), change.back_by)
        for var in edits.removed.values():
            bury(graph, var, change)
    if edits.carried:
        from reactgrad.core._moved import resized  # imported late: few edits carry anything

        resized(graph, dict(edits.carried.values()))


class _Sets(NamedTuple):
    """The sets of a block: leaves with their new specs and values, and what has to be known to undo them."""

    ready: list[tuple[int, Any, Any]]
    reshaped: dict[int, Any]
    beside: dict[int, Any]
    leaves: Mapping[int, Any]

    @classmethod
    def of(cls, graph: Core, edits: Edits) -> _Sets | None:
        """Return the sets of leaves that are still there; ``None`` if there are none."""
        ready = [(slot, *told) for slot, (var, told) in edits.values.items() if var._graph is graph]
        if not ready:
            return None
        host = graph._host
        reshaped = {slot: found for slot, found, _ in ready if found is not host.specs[slot]}
        beside = {slot: host.found(slot) for slot, _, _ in ready if slot not in reshaped}
        graph._scheduler.attend()  # so that marks say which values rules may read
        return cls(ready, reshaped, beside, former_leaves(graph, [slot for slot, _, _ in ready]))


def check_lengths(graph: Core, carried: Mapping[int, tuple[Handle, list[int | None]]]) -> None:
    """Raise if there is not one place for each element of a param."""
    for slot, (var, places) in carried.items():
        found = graph._host.specs[slot]
        if found is None or found.shape != (len(places),):
            raise ShapeError(
                f"carry({var.label}, ...) was given {len(places)} places, and the param is {found!r}. Give one "
                "for each element that it has after the change."
            )


def _operands(graph: Core, var: Handle) -> list[Operand]:
    """Return the operands of a node as they were written, detached ones detached."""
    host, slot = graph._host, var._slot
    op = host.ops[slot]
    if isinstance(op, Leaf):
        raise EditError(f"{var.label!r} is a leaf: it has no operands to replace.")
    if isinstance(op, Output):
        raise EditError(
            f"{var.label!r} is one output of a function and of nothing else. Replace an operand of "
            "the function's node: y.parents[0].replace_parent(position, new)."
        )
    if slot in host.owners:
        raise EditError(
            f"{var.label!r} is part of a gradient, which follows every edit of the nodes that it is the "
            "gradient of. Edit these, and leave out what is part of a gradient where you go over "
            ".children; y.register_hook changes a gradient."
        )
    _check_computed(graph, var)
    operands: list[Any] = list(map(partial(handle, graph), graph._scheduler.operands(slot)))
    for i in host.closed.get(slot) or ():
        operands[i] = operands[i].detach()
    return operands


def _check_computed(graph: Core, var: Handle) -> None:
    if var._slot in graph._host.pins:
        raise EditError(
            f"{var.label!r} is pinned, so it is computed from nothing now. Unpin it first, "
            f"{var.label}.unpin()."
        )


def _definition(
    graph: Core, var: Handle, operands: list[Operand], attrs: Attrs | None
) -> Definition | Link:
    """Return the definition of a node with these operands; only a link where nothing else changes."""
    _check_computed(graph, var)  # it may have been pinned since the edit was written
    slot, host = var._slot, graph._host
    link = graph._scheduler.rewired(slot, tuple([operand._slot for operand in operands]))
    closed = before = host.closed.get(slot, NOTHING_CLOSED)
    if closed is not None:  # ``None``: built where no gradient passes, which stays so
        closed = frozenset([i for i, operand in enumerate(operands) if is_detached(operand)])
    branches = host.branches.get(slot)
    if branches is None and closed == before and attrs is None:
        return link
    branches = branches and (link.parents[0], *branches[1:])
    attrs = host.attrs[slot] if attrs is None else attrs
    return Definition(link, host.ops[slot], attrs, closed, branches, None)


def is_detached(operand: Operand) -> bool:
    return hasattr(type(operand), "base")
