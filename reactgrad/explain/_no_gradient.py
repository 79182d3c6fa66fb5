"""The reasons why a node has no gradient, and the edges where gradients stop."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass
from typing import Literal

from reactgrad.autodiff._edges import open_edges, sources
from reactgrad.autodiff._program import Program
from reactgrad.core._core import Core
from reactgrad.nodes._op import CONST, INPUT, PARAM
from reactgrad.nodes._reached import reached
from reactgrad.nodes._site import site_text
from reactgrad.ops import DETACH

Reason = Literal[
    "const", "input", "frozen", "not_float", "unused", "unreached", "never_backwarded", "no_param"
]

# The number of places that are named; the rest is counted.
MOST_BLOCKS = 8


@dataclass(frozen=True, slots=True)
class Block:
    """An edge that gradients do not pass.

    Attributes
    ----------
    kind : str
        ``"detached"``, ``"no_grad"``, ``"not_float"`` or ``"pinned"``.
    parent, node : str
        Names of the ends of the edge, along the data.
    line : str
        The user's line that built `node`.
    """

    kind: Literal["detached", "no_grad", "not_float", "pinned"]
    parent: str
    node: str
    line: str

    def __str__(self) -> str:
        how = {
            "detached": f"{self.node} takes {self.parent} detached",
            "no_grad": f"{self.node} was built from {self.parent} under no_grad",
            "not_float": f"from {self.parent} to {self.node} the values are no floats",
            "pinned": f"{self.node}, computed from {self.parent}, is pinned",
        }[self.kind]
        return f"{how} ({self.line})"


@dataclass(frozen=True, slots=True)
class NoGradient:
    """The reason why ``.grad`` of a leaf is ``None``, or why nothing computed is differentiable.

    Attributes
    ----------
    reason : str
        ``"const"``, ``"input"``, ``"not_float"``: the kind of node. ``"frozen"``. ``"unused"``:
        nothing is computed from it. ``"unreached"``: no gradient that was asked for passes it.
        ``"never_backwarded"``: one would, but no backward of what depends on it has run since the
        last ``zero_grad``.
        ``"no_param"``: a computed node that depends on no unfrozen param over open edges.
    blocks : tuple of Block
        The places where gradients stop that would reach the node otherwise.
    more : int
        The number of such places that are left out.
    """

    reason: Reason
    blocks: tuple[Block, ...] = ()
    more: int = 0

    def __str__(self) -> str:
        text = {
            "const": "a constant has none",
            "input": "backward fills .grad of params; this is an input (rg.grad(y, x) works)",
            "frozen": "it is frozen; unfreeze() it",
            "not_float": "only floats have gradients",
            "unused": "nothing is computed from it",
            "unreached": "no backward or rg.grad that was asked for reaches it",
            "never_backwarded": "no backward of what depends on it since it was made or since zero_grad()",
            "no_param": "no unfrozen param is reachable from here over edges that gradients pass",
        }[self.reason]
        lines = [f"no gradient: {text}", *[f"  {block}" for block in self.blocks]]
        if self.more:
            lines.append(f"  ... and {self.more} more such places")
        return "\n".join(lines)


def no_gradient(graph: Core, slot: int) -> NoGradient | None:
    """Return the reason why a node has no gradient.

    Return ``None`` if it has one, or would get one by ``backward``.
    """
    host = graph._host
    kind, found = host.ops[slot], host.specs[slot]
    if kind is CONST:
        return NoGradient("const")
    if found is not None and not found.differentiable:
        return NoGradient("not_float")
    if host.gradients.of(slot) is not None:
        return None
    if kind is PARAM:
        return _of_param(graph, slot)
    if kind is INPUT:
        return NoGradient("input")
    return _of_computed(graph, slot)


def _of_param(graph: Core, slot: int) -> NoGradient | None:
    """Find out why an unfrozen param has no ``.grad``."""
    host, topology = graph._host, graph._scheduler.topology
    if slot in host.frozen:
        return NoGradient("frozen")
    reached, blocks = _downstream(graph, slot)
    if len(reached) == 1 and not blocks:
        return NoGradient("unused")
    programs = [one for one in graph._programs.in_order() if type(one) is Program]
    outputs = [one._output for one in programs if topology.serial[one._output]]
    if any(output in reached for output in outputs):
        return NoGradient("never_backwarded")
    if outputs:
        # Only edges on the way from an output that was differentiated.
        before = _upstream(graph, outputs)
        blocks = [block for block in blocks if block[2] in before]
    elif len(reached) > 1 and not (host.grads and blocks):
        return NoGradient("never_backwarded", *_shown(graph, blocks))
    return NoGradient("unreached", *_shown(graph, blocks))


def _of_computed(graph: Core, slot: int) -> NoGradient | None:
    """Walk back over open edges. Note closed ones behind which there are unfrozen params."""
    host, topology = graph._host, graph._scheduler.topology
    found, blocks = {slot}, []
    stack = [slot]
    while stack:
        at = stack.pop()
        if host.ops[at] is PARAM and at not in host.frozen:
            return None
        if at in host.pins:
            blocks += [("pinned", parent._slot, at) for parent in host.pins[at].parents]
        passing = {i for i, _ in open_edges(graph, at)}
        for i, parent in enumerate(sources(graph, at)):
            if i not in passing:
                blocks.append((_kind(graph, at, i), parent, at))
            elif parent not in found:
                found.add(parent)
                stack.append(parent)
    params = [p for p in topology.slots() if host.ops[p] is PARAM and p not in host.frozen]
    trained = topology.descendants(params)
    blocks = [block for block in blocks if block[1] in trained]
    return NoGradient("no_param", *_shown(graph, blocks))


_Edge = tuple[str, int, int]  # kind of block, parent, child


def _downstream(graph: Core, slot: int) -> tuple[set[int], list[_Edge]]:
    """Return the nodes from which gradients come back to `slot`, and the edges on the way that they
    do not pass.
    """
    host, topology = graph._host, graph._scheduler.topology
    pinned: dict[int, list[int]] = {}
    for child, pin in host.pins.items():
        for parent in pin.parents:
            pinned.setdefault(parent._slot, []).append(child)
    reached, blocks = {slot}, []
    stack = [slot]
    while stack:
        at = stack.pop()
        blocks += [("pinned", at, child) for child in pinned.get(at, ())]
        for child in dict.fromkeys((*topology.children[at], *host.branch_users.get(at, ()))):
            if child in host.owners:  # gradient nodes use the node, too
                continue
            passing = {i for i, _ in open_edges(graph, child)}
            positions = [i for i, parent in enumerate(sources(graph, child)) if parent == at]
            if any(i in passing for i in positions):
                if child not in reached:
                    reached.add(child)
                    stack.append(child)
            else:
                blocks += [(_kind(graph, child, i), at, child) for i in positions[:1]]
    return reached, blocks


def _upstream(graph: Core, outputs: Iterable[int]) -> Set[int]:
    """Return all nodes that these are computed from, also over edges that gradients do not pass."""
    pins = graph._host.pins

    def parents(at: int) -> Iterable[int]:
        return [one._slot for one in pins[at].parents] if at in pins else sources(graph, at)

    return reached(outputs, parents).keys()


def _kind(graph: Core, child: int, position: int) -> str:
    """Return the reason why gradients do not pass this edge."""
    closed = graph._host.closed.get(child, frozenset())
    if closed is None:
        return "detached" if graph._host.ops[child] is DETACH else "no_grad"
    return "detached" if position in closed else "not_float"


def _shown(graph: Core, edges: list[_Edge]) -> tuple[tuple[Block, ...], int]:
    """Return the first blocks with names and lines, and the number of the others."""
    host = graph._host
    edges = list(dict.fromkeys(edges))
    blocks = tuple(
        Block(kind, host.label(parent), host.label(child), site_text(host.sites[child]))  # type: ignore[arg-type]
        for kind, parent, child in edges[:MOST_BLOCKS]
    )
    return blocks, max(0, len(edges) - MOST_BLOCKS)
