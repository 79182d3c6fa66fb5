"""Edits of the topology: atomic, and checked before anything changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reactgrad import _respec
from reactgrad._errors import DTypeError, EditError
from reactgrad._store import Leaf
from reactgrad._var import DetachedVar, Var
from reactgrad.ops import Op, Output

if TYPE_CHECKING:
    from reactgrad._graph import Graph


def replace_parent(graph: Graph, var: Var, position: int, parent: Any) -> None:
    """Let `var` take its operand at `position` from `parent`; see ``Var.replace_parent``."""
    host, scheduler = graph._host, graph._scheduler
    source = graph._own(parent, "replace_parent")
    with graph._lock:
        scheduler.check_idle()
        slot = var._slot
        former = scheduler.topology.parents[slot]
        if isinstance(host.ops[slot], Leaf):
            raise EditError(f"{var.name!r} is a leaf: it has no operands to replace.")
        if isinstance(host.ops[slot], Output):
            raise EditError(
                f"{var.name!r} is one output of a function and of nothing else. Replace an operand of "
                "the function's node: y.parents[0].replace_parent(position, new)."
            )
        if isinstance(position, bool) or not isinstance(position, int):
            raise DTypeError(f"replace_parent: the position is an integer, not {position!r}.")
        if not 0 <= position < len(former):
            raise EditError(
                f"{var.name!r} has {len(former)} operands; there is none at position {position}. "
                "Positions count from 0, as in .parents."
            )
        parents = (*former[:position], source, *former[position + 1 :])
        closed = host.closed.get(slot, frozenset())
        if closed is not None:
            closed = closed - {position} | ({position} if type(parent) is DetachedVar else set())
        relink(graph, slot, parents, closed)


def relink(
    graph: Graph, slot: int, parents: tuple[int, ...], closed: frozenset[int] | None
) -> None:
    """Give a computed node other parents, if shapes and order allow; nothing changes if not."""
    host, scheduler = graph._host, graph._scheduler
    former, former_closed = scheduler.topology.parents[slot], host.closed.get(slot, frozenset())
    op, specs = host.ops[slot], [host.specs[parent] for parent in parents]
    found = host.specs[slot]
    if isinstance(op, Op):
        found = None if None in specs else op.result(tuple(specs), host.attrs[slot])  # type: ignore[arg-type]
    respec = {slot: found} if found is not host.specs[slot] else {}
    changes = _respec.check(graph, respec) if respec else {}
    # The former parents stay alive while an undo may need them.
    held = [graph._handle(parent) for parent in former]
    scheduler.reparent(slot, parents)
    _set_closed(graph, slot, closed)
    host.moved(slot)

    def undo() -> None:
        relink(graph, slot, tuple(var._slot for var in held), former_closed)

    try:
        if respec:
            _respec.commit(graph, respec, changes)
        _respec.rebuild_programs(graph, {slot})
    except BaseException:
        scheduler.reparent(slot, former)
        _set_closed(graph, slot, former_closed)
        host.moved(slot)
        _respec.rebuild_programs(graph, {slot})
        raise
    scheduler.undo.note(undo)


def _set_closed(graph: Graph, slot: int, closed: frozenset[int] | None) -> None:
    if closed is None or closed:
        graph._host.closed[slot] = closed
    else:
        graph._host.closed.pop(slot, None)
