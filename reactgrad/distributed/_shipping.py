"""A graph that is kept in step with one in another process: shipped once, then only what changed."""

from __future__ import annotations

import pickle
from typing import Any, NamedTuple

from reactgrad._errors import SaveError
from reactgrad.build._computed import add_computed
from reactgrad.core._handles import handle
from reactgrad.distributed._errors import DistributedError
from reactgrad.graph._graph import Graph
from reactgrad.nodes._function_names import UnnamedError, name_of
from reactgrad.nodes._lifted import Lifted
from reactgrad.nodes._op import OPS, Leaf, Op
from reactgrad.values._columns import MISSING

_GRAPH, _CHANGES = "graph", "changes"


class Changes(NamedTuple):
    """The differences from the last shipment; nodes go by their numbers.

    Attributes
    ----------
    leaves : dict
        New values.
    added : list
        Number, definition, operands, detached places and name of each new node, in order of creation.
    rewired : dict
        By node, its operands.
    gone : list
        Nodes that the sender has no more.
    """

    leaves: dict[int, Any]
    added: list[tuple[int, Any, tuple[int, ...], Any, str | None]]
    rewired: dict[int, tuple[int, ...]]
    gone: list[int]


class Shipper:
    """Packs a graph for another process: at first all of it, then the leaves and edits since.

    An edit travels alone where it adds, rewires or removes nodes that compute ops, or functions with a
    name. The whole graph is packed again after any other one, such as an edit that gradients follow.

    Parameters
    ----------
    graph : Graph

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input([1.0, 2.0], name="x")
    >>> y = x.sum()
    >>> y.name = "y"
    >>> shipper, receiver = rg.distributed.Shipper(g), rg.distributed.Receiver()
    >>> receiver.take(shipper.pack())["y"].item()
    3.0
    >>> x.set([5.0, 6.0])
    >>> changes = shipper.pack()
    >>> receiver.take(changes)["y"].item()
    11.0
    >>> shipper.whole
    False
    """

    def __init__(self, graph: Graph) -> None:
        self.graph: Any = graph
        self.whole = True  # whether the last pack was of the whole graph
        self._shape: dict[int, tuple[int, ...]] = {}
        self._versions: dict[int, int] = {}

    def pack(self) -> bytes:
        """Return what the receiver lacks, as bytes.

        Raises
        ------
        SaveError
            If something has no form, such as a lambda.
        """
        graph = self.graph
        with graph._lock:
            shape, versions, slots = self._seen()
            changes = None
            if self._shape:
                changes = self._changes(shape, versions, slots)
            self.whole = changes is None
            packed: Any = graph.to_bytes() if changes is None else changes
            data = pickle.dumps((_GRAPH if changes is None else _CHANGES, packed), protocol=5)
            self._shape, self._versions = shape, versions
            return data

    def _seen(self) -> tuple[dict[int, tuple[int, ...]], dict[int, int], dict[int, int]]:
        """Return operands of all nodes and versions of all leaves, by number; and slots by number."""
        scheduler = self.graph._scheduler
        topology, version = scheduler.topology, scheduler.versions
        version.settle()
        of = topology.number
        owned = self.graph._host.owners
        slots = {of(slot): slot for slot in topology.slots() if slot not in owned}
        shape = {
            number: tuple([of(parent) for parent in scheduler.operands(slot)])
            for number, slot in slots.items()
        }
        leaf = scheduler.leaf
        versions = {number: version.version[slot] for number, slot in slots.items() if leaf[slot]}
        return shape, versions, slots

    def _changes(
        self, shape: dict[int, Any], versions: dict[int, int], slots: dict[int, int]
    ) -> Changes | None:
        """Return what has changed; ``None`` if that cannot travel alone."""
        host = self.graph._host
        leaves = {}
        for number, version in versions.items():
            if self._versions.get(number) != version and number in self._shape:
                value = host.hand_out(slots[number])
                if value is MISSING:
                    return None
                leaves[number] = value
        gone = [number for number in self._shape if number not in shape]
        rewired = {
            number: operands
            for number, operands in shape.items()
            if self._shape.get(number, operands) != operands
        }
        new = [number for number in shape if number not in self._shape]
        if (new or rewired or gone) and host.owners:
            return None  # gradients follow edits by themselves, on both sides and each in its way
        added = []
        for number in new:
            slot = slots[number]
            definition = self._definition(slot)
            if definition is None:
                return None
            closed = host.closed.get(slot, ())
            added.append((number, definition, shape[number], closed, host.name_of.get(slot)))
        return Changes(leaves, added, rewired, gone)

    def _definition(self, slot: int) -> Any:
        """Return what a node computes in a form that travels; ``None`` if there is none."""
        host = self.graph._host
        op = host.ops[slot]
        if isinstance(op, Leaf):
            value = host.hand_out(slot)
            return (
                None
                if value is MISSING or op.name not in ("input", "param", "const")
                else (op.name, value)
            )
        if isinstance(op, Op):
            if OPS.get(op.name) is not op or op.key is not None:
                return None
            return ("op", op.name, host.attrs[slot], host.specs[slot])
        if type(op) is Lifted and op.outputs is None:
            functions = [one for one in (op.function, op.vjp, op.jvp) if one is not None]
            for one in functions:
                try:
                    name_of(one)
                except UnnamedError as error:
                    raise SaveError(
                        f"node {host.label(slot)!r}, function {op.name!r}, cannot be shipped: {error}."
                    ) from None
            return ("function", op.function, op.vjp, op.jvp, op.layout, op.keywords, op.declared)
        return None


class Receiver:
    """The other side of a ``Shipper``: ``take`` what it has packed, in turn.

    Packs are pickles: take them from your own processes only.

    Attributes
    ----------
    graph : Graph or None
    """

    def __init__(self) -> None:
        self.graph: Any = None
        self._vars: dict[int, Any] = {}

    def take(self, data: bytes) -> Graph:
        """Bring the graph up to date. Return it: the same one, unless the whole graph has come again."""
        kind, packed = pickle.loads(data)
        if kind == _GRAPH:
            self.graph = _trusting(packed)
            topology = self.graph._scheduler.topology
            self._vars = {
                topology.number(slot): handle(self.graph, slot) for slot in topology.slots()
            }
            return self.graph
        if self.graph is None:
            raise DistributedError(
                "Receiver.take: these are changes, and the graph has not come yet. Take what "
                "Shipper.pack() returned first, before these."
            )
        self._apply(Changes(*packed))
        return self.graph

    def node(self, number: int) -> Any:
        """Return the node that the sender knows by this number."""
        try:
            return self._vars[number]
        except KeyError:
            raise DistributedError(
                f"the graph has no node number {number}. Name nodes of the graph that was shipped."
            ) from None

    def _apply(self, changes: Changes) -> None:
        graph, known = self.graph, self._vars
        for number, definition, operands, closed, name in changes.added:
            known[number] = self._added(definition, [known[one] for one in operands], closed)
            if name is not None:
                known[number].name = name
        for number, operands in changes.rewired.items():
            known[number].rewire(*[known[one] for one in operands])
        if changes.leaves:
            graph.set({known[number]: value for number, value in changes.leaves.items()})
        for number in changes.gone:
            known.pop(number, None)

    def _added(self, definition: Any, operands: list[Any], closed: Any) -> Any:
        graph, (kind, *rest) = self.graph, definition
        if kind in ("input", "param", "const"):
            return getattr(graph, kind)(rest[0])
        slots = tuple([one._slot for one in operands])
        detached = () if closed is None else tuple(closed)
        with graph._lock:
            if kind == "op":
                name, attrs, found = rest
                return add_computed(graph, OPS[name], attrs, found, slots, detached)
            function, vjp, jvp, layout, keywords, declared = rest
            op = Lifted(function, declared, vjp, layout, keywords, jvp)
            return add_computed(graph, op, (), declared, slots, detached)


def _trusting(data: bytes) -> Graph:
    """Return a graph whose functions may be any: the pack is a pickle anyway."""
    from reactgrad.io._bytes import unpickled

    return unpickled(data, Graph)
