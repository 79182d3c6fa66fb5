"""Edits of the topology: collected in a block, checked and made as a whole when it ends.

A single edit is a block of one. Inside a block nothing has changed yet: reads see the old graph,
while later edits start from what earlier ones have asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from reactgrad._errors import BlockError, DTypeError, EditError
from reactgrad.build._reuse import built_anew
from reactgrad.change._change import Change
from reactgrad.change._make_way import making_way
from reactgrad.change._remove import bury, check_unused, settle
from reactgrad.core._arguments import own_slot
from reactgrad.core._core import V
from reactgrad.core._definition import NOTHING_CLOSED, Definition
from reactgrad.core._handles import handle
from reactgrad.core._held import announce, held
from reactgrad.core._notes import Before, note
from reactgrad.nodes._handle import Handle
from reactgrad.nodes._lifted import Lifted
from reactgrad.nodes._op import PRIMITIVES, Attrs, Leaf, Op, Output
from reactgrad.scheduler import Link, Owner, listed

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
        "operands",
        "removed",
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
            if error is None and (self.operands or self.removed):
                if outer is not None:
                    outer.join(self)
                else:
                    with held(graph):
                        making_way(
                            graph, [*self.operands, *self.removed], partial(_commit, graph, self)
                        )
                        announce(graph)
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
    with Change(graph) as change:
        change.define({slot: _definition(graph, *at) for slot, at in edits.operands.items()})
        if edits.removed:
            check_unused(graph, edits.removed)
        change.follow()
        for slot, former in before.items():
            note(graph, "node", slot, former)
        for var in edits.removed.values():
            bury(graph, var, change)


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
        closed = frozenset([i for i, operand in enumerate(operands) if _detached(operand)])
    branches = host.branches.get(slot)
    if branches is None and closed == before and attrs is None:
        return link
    branches = branches and (link.parents[0], *branches[1:])
    attrs = host.attrs[slot] if attrs is None else attrs
    return Definition(link, host.ops[slot], attrs, closed, branches, None)


def _detached(operand: Operand) -> bool:
    return hasattr(type(operand), "base")


def _operand(graph: Core, given: Any, what: str) -> Any:
    """Return the Var of this graph that was given, detached or not.

    Look it up where a name was given.
    """
    slot = own_slot(graph, given, what)
    return handle(graph, slot) if isinstance(given, str) else given


# --- the edits -----------------------------------------------------------------------------------


def replace_parent(var: Any, /, position: int, parent: Any) -> None:
    """Let this node take its operand at `position` from another node.

    Several edits that only fit together are made in a block, ``with g.edit():``. Gradients that
    were built follow; those of other parts keep their nodes and values.

    Parameters
    ----------
    position : int
        Which of ``parents``.
    parent : Var or DetachedVar
        The new operand.

    Raises
    ------
    CycleError
        If `parent` depends on this node; nothing has changed then.
    EditError
        If there is no such operand: what a function reads while it runs is none.
    ShapeError, DTypeError
        If the new operand does not fit this node or what depends on it.
    GradientError
        If a gradient that was built would not exist any more.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> a, b = g.input(1.0), g.input(5.0)
    >>> y = a + 1.0
    >>> y.replace_parent(0, b)
    >>> y.value
    np.float64(6.0)
    """
    graph = var._graph
    parent = _operand(graph, parent, "replace_parent")
    edits = Edits(graph)
    try:
        with edits:
            operands = edits.of(var)
            _check_position(graph, var, position, len(operands), "replace_parent")
            operands[position] = parent
            edits.put(var, operands)
    except BaseException as error:
        edits.abandon(error)
        raise


def rewire(var: Any, /, *operands: Any, **attributes: Any) -> None:
    """Let this node take all its operands from other nodes, in one edit.

    A node that takes any number of operands may get more or fewer: ``rg.concatenate``,
    ``rg.stack``, and functions that were called with Vars only.

    Parameters
    ----------
    *operands : Var or DetachedVar
        All of them, in order.
    **attributes
        Of an op made with ``rg.extend.primitive``: what it takes besides operands, where it changes.

    Raises
    ------
    CycleError, EditError, ShapeError, DTypeError
        As ``replace_parent``; nothing has changed then.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> a, b, c = g.input(1.0), g.input(2.0), g.input(4.0)
    >>> y = a - b
    >>> y.rewire(c, a)
    >>> y.value
    np.float64(3.0)
    >>> total = rg.lift(lambda *values: sum(values))(a, b)
    >>> total.rewire(a, b, c)
    >>> total.value
    7.0
    """
    graph = var._graph
    operands = tuple([_operand(graph, operand, "rewire") for operand in operands])
    edits = Edits(graph)
    try:
        with edits:
            count = len(edits.of(var))
            if len(operands) != count and not (operands and _takes_any_number(graph, var)):
                raise EditError(
                    f"{var.label!r} has {count} operands and was given {len(operands)}. Write all of them "
                    "in order; .replace_parent(position, operand) replaces one."
                )
            attrs = _attributes(graph, var, edits.attrs(var), attributes) if attributes else None
            edits.put(var, list(operands), attrs)
    except BaseException as error:
        edits.abandon(error)
        raise


def _attributes(graph: Core, var: Handle, attrs: Attrs, changed: Mapping[str, Any]) -> Attrs:
    """Return the attributes of a user-defined op with some of them changed."""
    op = graph._host.ops[var._slot]
    primitive = PRIMITIVES.get(op.name) if isinstance(op, Op) else None
    if primitive is not None and primitive.op is op and set(primitive.words) >= changed.keys():
        return primitive.changed(attrs, changed)
    words = [] if primitive is None else primitive.words
    has = f"has the attributes {', '.join(words)}" if words else "has none that can be changed"
    raise EditError(
        f"rewire({', '.join(changed)}=...): the op of {var.label!r} {has}. Attributes are what an op made "
        "with rg.extend.primitive takes besides its operands."
    )


def insert(
    graph: Core[V],
    /,
    parent: V,
    child: V,
    build: Callable[[Any], Any],
    position: int | None = None,
) -> V:
    """Split the edge from one node to another by a new node.

    Costs the new nodes, however large the graph is; a detached edge stays detached.

    Parameters
    ----------
    parent, child : Var
        The ends of the edge.
    build : callable
        Builds what `child` shall take instead of `parent`, from `parent`.
    position : int, optional
        Which operand of `child`; by default all that are `parent`.

    Returns
    -------
    Var
        What `build` returned.

    Raises
    ------
    EditError
        If there is no such edge.
    CycleError, ShapeError, DTypeError
        As ``Var.replace_parent``; nothing has changed then.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x, w = g.input(2.0), g.param(0.0)
    >>> y = x * 3.0
    >>> h = g.insert(x, y, lambda v: rg.tanh(v * w))
    >>> y.parents[0] is h, y.value
    (True, np.float64(0.0))
    """
    parent, child = _operand(graph, parent, "insert"), _operand(graph, child, "insert")
    source = parent._slot
    if not callable(build):
        raise DTypeError(
            f"insert was given {build!r:.60}: it takes a function that builds the new node from the "
            "parent, g.insert(a, y, lambda v: rg.tanh(v * w))."
        )
    edits = Edits(graph)
    try:
        with edits:
            operands = edits.of(child)
            places = [i for i, operand in enumerate(operands) if operand._slot == source]
            if position is not None:
                _check_position(graph, child, position, len(operands), "insert")
                places = [i for i in places if i == position]
            if not places:
                at = "" if position is None else f" at position {position}"
                has = listed(operand.label for operand in operands)
                raise EditError(
                    f"{child.label!r} has no operand {parent.label!r}{at}; its operands are ({has}). Insert "
                    f"on an edge that is there, or use replace_parent.{_of_branches(graph, child)}"
                )
            new = built_anew(build, handle(graph, source))  # not a reused node: it may be the child
            _check_built(graph, new)
            for place in places:
                # A detached edge stays one.
                operands[place] = new.detach() if _detached(operands[place]) else new
            edits.put(child, operands)
            return new
    except BaseException as error:
        edits.abandon(error)
        raise


def remove(graph: Core[V], /, *variables: V) -> None:
    """Take nodes that nobody uses out of the graph.

    Their Vars are of no use afterwards and say so, their names are free, their observers of
    kind ``"removed"`` are called, the others end. Gradients that were built on a removed node
    go on. Nodes that are simply not held any more go by themselves.

    Raises
    ------
    EditError
        If a node that stays is computed from one of them; nothing has changed then.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input(1.0)
    >>> y = x + 1.0
    >>> y.name = "y"
    >>> g.remove(y)
    >>> "y" in g, y
    (False, <Var 'y', removed>)
    """
    slots = [own_slot(graph, var, "remove") for var in variables]
    edits = Edits(graph)
    try:
        with edits:
            edits.removed.update({slot: handle(graph, slot) for slot in slots})
    except BaseException as error:
        edits.abandon(error)
        raise


def _check_position(graph: Core, var: Handle, position: Any, count: int, what: str) -> None:
    """Raise unless a node has an operand at this position."""
    if isinstance(position, bool) or not isinstance(position, int):
        raise DTypeError(f"{what}: the position is an integer, not {position!r}.")
    if not 0 <= position < count:
        raise EditError(
            f"{var.label!r} has {count} operand{'s' * (count != 1)}; there is none at position {position}. "
            "Positions count from 0, as in .parents."
            + (
                " What a function reads while it runs is decided by the function."
                if position < len(graph._scheduler.topology.parents[var._slot])
                else ""
            )
            + _of_branches(graph, var)
        )


def _of_branches(graph: Core, var: Handle) -> str:
    """Return the advice to build another choice, if the node is one; else an empty string."""
    if var._slot not in graph._host.branches:
        return ""
    return f" A choice keeps its branches: build another one in place of {var.label!r}."


def _check_built(graph: Core, new: Any) -> None:
    if not isinstance(new, Handle):
        raise DTypeError(
            f"insert: the function returned {new!r:.60}; it must return the Var that takes the place "
            "of the parent, lambda v: rg.tanh(v * w)."
        )
    own_slot(graph, new, "insert")


def _takes_any_number(graph: Core, var: Handle) -> bool:
    op = graph._host.ops[var._slot]
    if isinstance(op, Op):
        return op.any_count
    return type(op) is Lifted and op.layout is None


def edit(graph: Core, /) -> AbstractContextManager[Any]:
    """Collect the edits of a block and make them together at its end.

    Reads inside see the old graph. What counts is the graph that the edits lead to: an edge may
    be turned round, and shapes may fit each other only in the end. Where that graph would have
    a cycle, or shapes that do not fit, or gradients that exist already would not any more, and
    where an exception ends the block, none of the edits is made.

    Sets, pins and everything else but ``replace_parent``, ``rewire``, ``insert`` and ``remove``
    act at once, and stay if the block fails; put the block into ``g.transaction()`` to have all
    of it undone. Blocks nest: an inner one hands its edits to the outer one, and so does a
    transaction inside a block, unless it fails.

    Raises
    ------
    CycleError
        With the whole cycle in ``.path``.
    EditError
        If a node that is removed is still used.
    ShapeError, DTypeError
        If operands do not fit a node or what depends on it.
    BlockError
        If it ends before a block that was opened inside of it, as two generators may do; or if
        another task has edited the same node at an ``await`` inside. A block belongs to its task:
        edits of others are made at once.
    BusyError
        Inside a node that is being computed.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input(1.0)
    >>> a = x + 1.0
    >>> b = a * 10.0
    >>> with g.edit():  # x -> a -> b becomes x -> b -> a
    ...     a.replace_parent(0, b)
    ...     b.replace_parent(0, x)
    >>> b.value, a.value
    (np.float64(10.0), np.float64(11.0))
    """
    return Edits(graph, stays=True)
