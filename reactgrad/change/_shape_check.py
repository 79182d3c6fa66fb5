"""The shapes and dtypes that follow from a change, found before it is made."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from itertools import chain

from reactgrad._errors import ReactgradError
from reactgrad.backend import Spec
from reactgrad.core._core import Core
from reactgrad.nodes._lifted import Lifted
from reactgrad.nodes._op import Leaf, Op, Output
from reactgrad.nodes._site import site_text
from reactgrad.nodes._switch_op import common
from reactgrad.scheduler import add_note, listed

Specs = dict[int, "Spec | None"]


def check(
    graph: Core,
    sources: Specs,
    relinked: Iterable[int] = (),
    *,
    lenient: bool = False,
    doubtful: dict[int, ReactgradError] | None = None,
) -> Specs:
    """Return the new specs of nodes if `sources` get these specs and `relinked` got other operands.

    The sources come first. Only the children of nodes that change are visited.

    Parameters
    ----------
    lenient
        A node that does not fit gets no spec, and raises when it is read.
    doubtful
        Receives, with their errors, nodes that do not fit now but may once the gradients that they are
        computed from have followed; nodes that fit by now are taken out. They keep their former spec.

    Raises
    ------
    ReactgradError
        The error of the rule of the first node that does not fit, with the node's name.
    """
    host, topology = graph._host, graph._scheduler.topology
    rank, parents, children = topology.rank, topology.parents, topology.children
    edited = set(relinked)
    new = dict(sources)
    queue = [(rank[slot], slot) for slot in edited]
    for source in sources:
        queue += [(rank[child], child) for child in _users(graph, source)]
    heapify(queue)
    last = -1
    while queue:
        _, slot = heappop(queue)
        if slot == last or slot in sources or not parents[slot]:
            continue
        last = slot
        op, function, choice = host.ops[slot], slot, False
        if type(op) is not Op:
            if isinstance(op, Lifted) and op.outputs is not None:
                for child in children[slot]:
                    heappush(queue, (rank[child], child))
                continue
            choice = slot in host.branches
            if isinstance(op, Output):
                function = parents[slot][0]
                if not isinstance(host.ops[function], Lifted) or not parents[function]:
                    continue
            elif not choice:
                continue
        # Gradient nodes are updated by their program.
        if slot in host.owners and slot not in edited:
            continue
        operands = host.branches[slot][1:] if choice else graph._scheduler.operands(function)
        specs = tuple([new[o] if o in new else host.specs[o] for o in operands])
        found = None
        if None not in specs:
            try:
                if choice:
                    found = common(specs)
                elif isinstance(op, Output):
                    found = host.ops[function].promised(op.index, specs)
                else:
                    found = op.result(specs, host.attrs[slot])  # type: ignore[arg-type]
            except ReactgradError as error:
                if not lenient and slot not in host.removed:  # removed nodes refuse nothing
                    add_note(error, _reason(graph, slot, sources, edited))
                    if doubtful is None or not _may_fit_later(graph, slot, operands):
                        raise
                    doubtful[slot] = error.with_traceback(None)
                    continue
        if doubtful:
            doubtful.pop(slot, None)
        # Not compared with the spec before the change: a choice may be visited twice, since its
        # users may be among its branches.
        if found is not (new[slot] if slot in new else host.specs[slot]):
            new[slot] = found
            for child in _users(graph, slot):
                heappush(queue, (rank[child], child))
    return new


def _may_fit_later(graph: Core, slot: int, operands: Iterable[int]) -> bool:
    """Return whether the node, itself not of a gradient, is computed from gradients, which are
    still to follow.
    """
    owners = graph._host.owners
    ancestors = graph._scheduler.topology.ancestors(operands)
    return slot not in owners and not owners.keys().isdisjoint(ancestors)


def _users(graph: Core, slot: int) -> Iterable[int]:
    """Return the children of a node, and the choices that have it as a branch."""
    return chain(graph._scheduler.topology.children[slot], graph._host.branch_users.get(slot, ()))


def _reason(graph: Core, slot: int, sources: Specs, edited: set[int]) -> str:
    """Return the note for an error of a node: the user changed others, and this one does not fit."""
    host = graph._host
    name, site = host.label(slot), site_text(host.sites[slot])
    if slot in edited:
        operands = listed(map(host.label, graph._scheduler.topology.parents[slot]))
        return (
            f"node {name!r} would compute with ({operands}). Nothing was changed.\nbuilt at {site}"
        )
    changed = listed(host.label(one) for one in (*sources, *sorted(edited)))
    note = (
        f"because of the new shape or dtype of {changed}; node {name!r} does not fit it. "
        "Nothing was changed. "
    )
    if any(isinstance(host.ops[one], Leaf) for one in sources):
        note += "To change several leaves together write g.set({x: ..., y: ...})."
    else:
        note += "To change several nodes together write `with g.edit():`."
    return f"{note}\nbuilt at {site}"
