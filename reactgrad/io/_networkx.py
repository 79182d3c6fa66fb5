"""Graphs as networkx graphs, and back: by the same state as files, with the same checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from reactgrad._errors import CycleError, GraphError
from reactgrad.backend import read_value, spec
from reactgrad.functions._primitive import Primitive
from reactgrad.io._capture import capture
from reactgrad.io._restore import restore as graph_of
from reactgrad.io._state import LEAVES, Absent, Computation, State, column
from reactgrad.nodes._lifted import Lifted
from reactgrad.nodes._op import PARAM, Leaf
from reactgrad.nodes._scope import made_name
from reactgrad.ops._families import op_named
from reactgrad.scheduler import RANK_GAP, listed

if TYPE_CHECKING:
    import networkx as nx

    from reactgrad.core._core import C, Core

# Properties of some nodes: entries of the state that are sets of nodes, and those that are tables.
_FLAGS: Final = ("kept", "forced", "frozen", "retained", "numbers", "former_cutoffs")
_TABLES: Final = {
    "names": "name",
    "scopes": "scope",
    "cutoffs": "cutoff",
    "patterns": "pattern",
    "dtypes": "declared",
}


def to_networkx(graph: Core) -> nx.MultiDiGraph:
    """Return a graph as a networkx graph, with everything that a saved graph has.

    Parameters
    ----------
    graph : Graph

    Returns
    -------
    networkx.MultiDiGraph
        A node has the name of its Var. Its attributes: ``op`` and ``attrs``, its computation in words
        and as the object ``definition``; ``spec``, ``value``, ``version``; ``serial`` and ``rank``, its place
        in orders of creation and of running; and those of some nodes: ``name``, ``cutoff``, ``frozen``, ...
        An edge leads from an operand to the node computed from it, at ``position``, with the parent's
        version that was ``seen`` when it was last computed, and ``detached`` where no gradient passes.
        ``gradients`` of the whole says which nodes are gradients of which, so that these follow edits.

    Raises
    ------
    SaveError
        Inside a transaction, or for gradients with hooks that are held, as ``Graph.save``.

    Examples
    --------
    >>> import networkx as nx
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input(2.0, name="x")
    >>> y = x * 3.0
    >>> y.name = "y"
    >>> n = rg.to_networkx(g)
    >>> sorted(nx.ancestors(n, "y")), n.nodes["y"]["op"], n["x"]["y"][0]["position"]
    (['const_2', 'x'], 'multiply', 0)
    """
    import networkx as nx

    state = capture(graph)
    names, scopes = dict(state.names), dict(state.scopes)
    labels: list[str] = []
    made = nx.MultiDiGraph(
        seed=state.seed,
        next_serial=state.next_serial,
        max_bytes=state.max_bytes,
    )
    if state.device != "cpu":
        made.graph["device"] = state.device
    at = {what: dict.fromkeys(getattr(state, what), True) for what in _FLAGS}
    at |= {word: dict(getattr(state, what)) for what, word in _TABLES.items()}
    closed, dynamic = dict(state.closed), dict(state.dynamic)
    parents, records = iter(state.parents.tolist()), iter(state.records.tolist())
    edges: list[tuple[int, int, dict[str, Any]]] = []
    for node in range(len(state)):
        definition: Any = state.definitions[state.definition[node]]
        op, computes = definition, {"definition": definition, "attrs": ()}
        if isinstance(definition, Computation):
            op, computes = definition.op, {"definition": definition.op, "attrs": definition.attrs}
        label = names.get(node) or made_name(op, int(state.serial[node]), scopes.get(node, ""))
        labels.append(label)
        row: dict[str, Any] = {"op": op.name, **computes, "spec": state.specs[state.spec[node]]}
        row |= {word: int(getattr(state, word)[node]) for word in ("serial", "rank", "version")}
        value = state.values[node]
        if value is Absent.VIEW:
            row["view"] = True
        elif value is not Absent.MISSING:
            row["value"] = value
        row |= {word: table[node] for word, table in at.items() if node in table}
        if node in dynamic:
            row["arguments"] = dynamic[node]
        if node in closed and closed[node] is None:
            row["closed"] = True
        made.add_node(label, **row)
        count = int(state.record_count[node])
        record = None if count < 0 else [next(records) for _ in range(count)]
        own = [next(parents) for _ in range(state.parent_count[node])]
        if record == []:
            made.nodes[label]["computed"] = True
        for position, parent in enumerate(own):
            edge: dict[str, Any] = {"position": position}
            if record is not None:
                edge["seen"] = record[position]
            if position in (closed.get(node) or ()):
                edge["detached"] = True
            edges.append((parent, node, edge))
    for parent, node, edge in edges:
        made.add_edge(labels[parent], labels[node], **edge)
    for node, before, fixed in state.pins:
        made.nodes[labels[node]]["pinned"] = tuple([labels[one] for one in before]), fixed
    for node, chosen in state.choices:
        made.nodes[labels[node]]["choice"] = tuple([labels[one] for one in chosen])
    if state.gradients:
        made.graph["gradients"] = tuple(
            [one.numbered(dict(enumerate(labels))) for one in state.gradients]
        )
    # Detached positions without edges: of pinned nodes, and branches of choices.
    for node, positions in state.closed:
        beyond = [p for p in positions or () if p >= state.parent_count[node]]
        if beyond:
            made.nodes[labels[node]]["detached"] = tuple(beyond)
    return made


def read_network(network: nx.DiGraph, ops: Mapping[str, Any] | None, make: Callable[[int], C]) -> C:
    """Return a graph made of a networkx graph; see ``from_networkx`` of ``graph``."""
    return graph_of(_Reading(network, dict(ops or {})).state(), make)


class _Reading:
    """One networkx graph on its way to a state."""

    def __init__(self, network: Any, ops: dict[str, Any]) -> None:
        import networkx as nx

        self.network, self.ops = network, ops
        try:
            order = list(nx.topological_sort(network))
        except nx.NetworkXUnfeasible:
            edges = nx.find_cycle(network)
            path = [str(edge[0]) for edge in edges]
            path.append(path[0])
            raise CycleError(
                f"the networkx graph has a cycle, {listed(path, ' -> ')}, which no node has a value on. "
                "Remove one of its edges.",
                lambda: tuple(path),
            ) from None
        rows = network.nodes
        numbered = all("serial" in rows[one] and "rank" in rows[one] for one in order)
        if numbered:
            order.sort(key=lambda one: rows[one]["serial"])
        self.order: list[Any] = order
        self.number = {one: i for i, one in enumerate(order)}
        self.rows: list[dict[str, Any]] = [dict(rows[one]) for one in order]
        self.edges = [self.operands(one) for one in order]
        if not numbered:
            for i, row in enumerate(self.rows):
                row["serial"], row["rank"] = i + 1, (i + 1) * RANK_GAP
        for one, row in zip(order, self.rows, strict=True):
            row["definition"] = self.definition(one, row)
            if "serial" not in rows[one] and isinstance(one, str):
                row.setdefault("name", one)
        for i in sorted(range(len(order)), key=lambda i: self.rows[i]["rank"]):
            self.complete(i)

    def operands(self, one: Any) -> list[tuple[int, dict[str, Any]]]:
        """Return the operands of a node with their edges, in order."""
        found = [
            (self.number[a], dict(edge)) for a, _, edge in self.network.in_edges(one, data=True)
        ]
        if len(found) == 1:
            found[0][1].setdefault("position", 0)
        positions = sorted(edge.get("position", -1) for _, edge in found)
        if positions != list(range(len(found))):
            raise GraphError(
                f"the operands of node {one!r} are at the positions {positions}. Give each of its edges "
                f"one from 0 to {len(found) - 1}: network.add_edge(a, b, position=0). A DiGraph has one "
                "edge between two nodes; use a MultiDiGraph where an operand stands twice."
            )
        return sorted(found, key=lambda pair: pair[1]["position"])

    def definition(self, one: Any, row: dict[str, Any]) -> Any:
        """Return the definition of a node."""
        name = row.get("op")
        found = row.get("definition")
        if found is None:
            found = self.ops.get(name, LEAVES.get(name)) or op_named(name)  # type: ignore[arg-type]
        if isinstance(found, Primitive):
            found = found.op
        if found is None:
            raise GraphError(
                f"node {one!r} has the op {name!r}, which is unknown here. Write op='input', 'param' or "
                "'const', the name of one of reactgrad's ops, or give it in ops={'name': function}."
            )
        if hasattr(found, "infer"):
            return Computation(found, tuple(row.get("attrs", ())))
        if callable(found) and not hasattr(found, "name"):
            return Lifted(found, None, None, None, ())
        return found

    def complete(self, i: int) -> None:
        """Fill in what a state has of every node, where the attributes do not say it."""
        row = self.rows[i]
        definition = row["definition"]
        if "spec" not in row:
            if isinstance(definition, Leaf):
                if "value" not in row:
                    raise GraphError(f"node {self.order[i]!r} is a leaf: give it a value=.")
                found, row["value"] = read_value(row["value"], f"node {self.order[i]!r}")
                if found is not None and found.weak is float and definition is PARAM:
                    found = spec(found.shape, found.dtype)  # params are arrays, never weak numbers
                row["spec"] = found
                if found is not None and found.weak is None:
                    row["value"] = np.asarray(row["value"], found.dtype)
            elif isinstance(definition, Computation):
                specs = tuple([self.rows[parent]["spec"] for parent, _ in self.edges[i]])
                known = None not in specs
                row["spec"] = definition.op.result(specs, definition.attrs) if known else None
            else:
                row["spec"] = getattr(definition, "declared", None)
        row.setdefault("version", int("value" in row))

    def state(self) -> State:
        """Return the state."""
        rows, graph = self.rows, self.network.graph
        records: list[int] = []
        record_count: list[int] = []
        for row, edges in zip(rows, self.edges, strict=True):
            seen = [edge["seen"] for _, edge in edges if "seen" in edge]
            whole = len(seen) == len(edges) and (bool(edges) or "computed" in row)
            record_count.append(len(seen) if whole else -1)
            records += seen if whole else []
        some: dict[str, Any] = {  # checked by `restore`, as those of files
            what: tuple([(i, row[word]) for i, row in enumerate(rows) if word in row])
            for what, word in _TABLES.items()
        }
        for what in _FLAGS:
            some[what] = tuple([i for i, row in enumerate(rows) if row.get(what)])
        for word in ("serial", "rank", "version"):
            some[word] = column([row[word] for row in rows])
        parents = [parent for edges in self.edges for parent, _ in edges]
        most = max([row["serial"] for row in rows], default=0)
        return State(
            seed=graph.get("seed", 0),
            next_serial=graph.get("next_serial", most + 1),
            max_bytes=graph.get("max_bytes"),
            device=graph.get("device", "cpu"),
            definitions=tuple([row["definition"] for row in rows]),
            specs=tuple([row["spec"] for row in rows]),
            definition=column(range(len(rows))),
            spec=column(range(len(rows))),
            parents=column(parents),
            parent_count=column([len(edges) for edges in self.edges]),
            records=column(records),
            record_count=column(record_count),
            values=tuple([self.value(row) for row in rows]),
            closed=tuple(
                [(i, at) for i, row in enumerate(rows) if (at := self.closed(i, row)) != ()]
            ),
            pins=tuple(
                [
                    (i, tuple([self.number[one] for one in row["pinned"][0]]), row["pinned"][1])
                    for i, row in enumerate(rows)
                    if "pinned" in row
                ]
            ),
            choices=tuple(
                [
                    (i, tuple([self.number[one] for one in row["choice"]]))
                    for i, row in enumerate(rows)
                    if "choice" in row
                ]
            ),
            dynamic=tuple(
                [(i, row["arguments"]) for i, row in enumerate(rows) if "arguments" in row]
            ),
            # Where a node has been taken out, the others of its gradient are plain nodes.
            gradients=tuple(
                [
                    one.numbered(self.number)
                    for one in graph.get("gradients", ())
                    if one.needs() <= self.number.keys()
                ]
            ),
            **some,
        )

    @staticmethod
    def value(row: dict[str, Any]) -> Any:
        return row.get("value", Absent.VIEW if row.get("view") else Absent.MISSING)

    def closed(self, i: int, row: dict[str, Any]) -> tuple[int, ...] | None:
        """Return the positions of detached operands; ``None`` stands for all."""
        if row.get("closed"):
            return None
        edges = [
            position for position, (_, edge) in enumerate(self.edges[i]) if edge.get("detached")
        ]
        return (*edges, *row.get("detached", ()))
