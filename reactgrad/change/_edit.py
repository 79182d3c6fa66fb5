"""The edits of the topology: ``replace_parent``, ``rewire``, ``insert``, ``remove``, and blocks of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from reactgrad._errors import DTypeError, EditError, ParameterError
from reactgrad.build._reuse import built_anew
from reactgrad.change._edits import Edits, check_lengths, innermost, is_detached
from reactgrad.core._arguments import own_slot
from reactgrad.core._core import V
from reactgrad.core._handles import handle
from reactgrad.nodes._handle import Handle
from reactgrad.nodes._lifted import Lifted
from reactgrad.nodes._op import PRIMITIVES, Attrs, Op
from reactgrad.scheduler import listed

if TYPE_CHECKING:
    from reactgrad.core._core import Core


def _operand(graph: Core, given: Any, what: str) -> Any:
    """Return the Var of this graph that was given, detached or not.

    Look it up where a name was given.
    """
    slot = own_slot(graph, given, what)
    return handle(graph, slot) if isinstance(given, str) else given


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
                operands[place] = new.detach() if is_detached(operands[place]) else new
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

    A set that gives a leaf another shape is one of the edits: it is made with them, and is not seen
    before. Other sets, pins and everything else but ``replace_parent``, ``rewire``, ``insert`` and
    ``remove`` act at once, and stay if the block fails; put the block into ``g.transaction()`` to
    have all of it undone. Blocks nest: an inner one hands its edits to the outer one, and so does a
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
    >>> w = g.param([2.0])
    >>> inputs = rg.stack([a])
    >>> y = rg.matmul(w, inputs)
    >>> with g.edit():  # an edge and its weight
    ...     inputs.rewire(a, b)
    ...     w.set([2.0, 3.0])
    >>> y.value
    np.float64(52.0)
    """
    return Edits(graph, stays=True)


def carry(var: Any, places: Sequence[int | None]) -> None:
    """Say which element of a param each of its elements was, before it got another length.

    Optimisers then keep what they remember of each element, their moments. In a block of edits this
    counts when the block ends; else at once.

    Parameters
    ----------
    var : Var
        A param with one axis.
    places : sequence of int or None
        For each element its former place, ``None`` for a new one.

    Examples
    --------
    >>> import numpy as np
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> a, b, w = g.input(1.0), g.input(2.0), g.param([3.0], name="w")
    >>> inputs = rg.stack([a])
    >>> loss = rg.sum(w * inputs)
    >>> opt = rg.optim.SGD([w], lr=0.1, momentum=0.9)
    >>> run = loss.backward()
    >>> opt.step()
    >>> with g.edit():
    ...     inputs.rewire(b, a)
    ...     w.set([0.0, w.value[0]])
    ...     rg.extend.carry(w, [None, 0])
    >>> opt.state_dict()["state"]["w"]["momentum_buffer"]
    array([0., 1.])
    """
    from reactgrad.core._moved import resized  # imported late: few edits carry anything

    graph = var._graph
    own_slot(graph, var, "carry")
    wanted = list(places)
    if not all(one is None or (type(one) is int and one >= 0) for one in wanted):
        raise ParameterError(
            f"carry({var.label}, {wanted!r:.60}): a place is an index from 0, or None for a new element."
        )
    with graph._lock:
        block = innermost(graph) if graph._edits else None
        if block is not None:
            block.carry(var, wanted)
        else:
            check_lengths(graph, {var._slot: (var, wanted)})
            resized(graph, {var: wanted})
