"""A leaf gets another shape: check all that depends on it first, then change all or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactgrad._errors import ReactgradError
from reactgrad._site import site_text
from reactgrad.backend import Spec
from reactgrad.ops import Op

if TYPE_CHECKING:
    from reactgrad._graph import Graph

Specs = dict[int, "Spec | None"]


def check(graph: Graph, sources: Specs, *, lenient: bool = False) -> Specs:
    """The new specs of the nodes downstream, if these nodes get these specs.

    `lenient`: a node that does not fit gets no spec, and shows its error when it is read.

    Raises
    ------
    ReactgradError
        What the rule of the first node that does not fit says, with the node's name.
    """
    host, topology = graph._host, graph._scheduler.topology
    new = dict(sources)
    for slot in topology.sort(topology.descendants(sources)):
        op = host.ops[slot]
        # Nodes of gradient programs are built anew for the new shapes, see ``commit``.
        if slot in sources or slot in host.owners or not isinstance(op, Op):
            continue
        parents = topology.parents[slot]
        if not any(parent in new for parent in parents):
            continue
        specs = [new.get(parent, host.specs[parent]) for parent in parents]
        found = None
        if None not in specs:
            try:
                found = op.result(tuple(specs), host.attrs[slot])  # type: ignore[arg-type]
            except ReactgradError as error:
                if lenient:
                    if host.specs[slot] is not None:
                        new[slot] = None
                    continue
                leaves = ", ".join(host.name(source) for source in sources)
                error.add_note(
                    f"because of the new shape or dtype of {leaves}; node {host.name(slot)!r} "
                    f"does not fit it. Nothing was changed. To change several leaves together write "
                    f"g.set({{x: ..., y: ...}}).\nbuilt at {site_text(host.sites[slot])}"
                )
                raise
        if found is not host.specs[slot]:
            new[slot] = found
    return {slot: found for slot, found in new.items() if slot not in sources}


def commit(graph: Graph, sources: Specs, changes: Specs) -> None:
    """Give all these nodes their new specs and build the gradients through them anew."""
    specs = graph._host.specs
    before: Specs = {slot: specs[slot] for slot in (*sources, *changes)}
    try:
        _assign(graph, {**sources, **changes})
    except BaseException:
        _assign(graph, before)
        raise


def _assign(graph: Graph, new: Specs) -> None:
    graph._scheduler.attend()
    for slot in new:
        graph._host.grads.pop(slot, None)  # of the former shape
    _put(graph, new)
    rebuild_programs(graph, set(new))


def rebuild_programs(graph: Graph, changed: set[int]) -> None:
    """Build the gradients anew that were built for another shape or topology of these nodes."""
    for program in graph._programs.in_order():
        if program.reads & changed:
            redirected: Specs = program.rebuild()
            if redirected:
                following = check(graph, redirected)
                _put(graph, following)
                changed |= {*redirected, *following}


def _put(graph: Graph, new: Specs) -> None:
    """Give nodes these specs; values of computed ones do not fit any more."""
    host, scheduler = graph._host, graph._scheduler
    computed = [slot for slot in new if not scheduler.leaf[slot]]
    for slot, found in new.items():
        host.specs[slot] = found
    for slot in computed:
        host.discard(slot)
    for slot in new:
        host.moved(slot)
    if computed:
        scheduler.drop(computed)
        scheduler.plans.clear()
