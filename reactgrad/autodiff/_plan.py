"""``Graph.plan``: the nodes that a read, or a backward, would run."""

from __future__ import annotations

from reactgrad.autodiff._edges import wanted_leaves
from reactgrad.autodiff._grad import find_program
from reactgrad.core._arguments import own_slot
from reactgrad.core._core import Core, V
from reactgrad.core._handles import handle
from reactgrad.reading._plan import planned_and_unset
from reactgrad.reading._run import Plan


def plan(graph: Core[V], /, *targets: V | str, gradient: bool = False) -> Plan:
    """Return what a read would run; runs nothing.

    Of a choice whose condition is up to date, the branch that it takes is planned. What else a
    function reads while it runs nobody knows before: the plan takes it to read what it read the
    last time, and is a guess where it does not.

    Parameters
    ----------
    *targets : Var or str
        What would be read; nodes or their names.
    gradient : bool
        Whether to plan ``backward`` of one target instead: its stale adjoints, and the
        values they need.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input(1.0, name="x")
    >>> y = x + 1.0
    >>> len(g.plan(y)), y.is_stale
    (1, True)
    """
    with graph._lock:
        slots = [own_slot(graph, target, "plan") for target in targets]
        if gradient:
            for target in [handle(graph, slot) for slot in slots]:
                leaves = wanted_leaves(graph, target._slot)
                program, held = find_program(target, None)
                slots += [var._slot for var in program.adjoints(leaves, held)]
        stale, unset = planned_and_unset(graph, slots)
        serial, mean = graph._scheduler.topology.serial, graph._measured.mean
        times = [mean(slot, serial[slot]) for slot in stale]
        return Plan(
            [handle(graph, slot) for slot in stale], times, [handle(graph, slot) for slot in unset]
        )
