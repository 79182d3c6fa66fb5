"""An ONNX file, checked before anything is built: what it declares, and which ops it needs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from reactgrad import MissingExtraError
from reactgrad.models._call import CONVERTERS
from reactgrad.models._errors import ModelError, OpError

# Names of the standard ops' domain; ops of all others have no converter.
STANDARD: Final = ("", "ai.onnx")
MAX_NODES: Final = 1_000_000
MAX_DEPTH: Final = 32
# What stands for a name that is no text: protobuf gives the bytes as they are.
_NAMED: Final = ("op_type", "domain", "name")


def onnx_package(does: str = "rg.from_onnx parses") -> Any:
    """Import the package that parses files."""
    try:
        import onnx
    except ImportError as error:
        raise MissingExtraError(
            f"{does} files by the package onnx, which is not installed. Install the extra: "
            'pip install "reactgrad[onnx]".'
        ) from error
    return onnx


def read(source: Any) -> tuple[Any, str | None]:
    """Return the ModelProto of a path, of bytes, or of a ModelProto, and the folder of its external data."""
    onnx = onnx_package()
    folder = None
    if isinstance(source, onnx.ModelProto):
        model = onnx.ModelProto()
        model.CopyFrom(source)  # since nodes may be brought into another order
        return model, None
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        folder = os.path.dirname(os.path.abspath(path))
        with open(path, "rb") as file:
            data = file.read()
    elif isinstance(source, bytes | bytearray | memoryview):
        data = bytes(source)
    else:
        raise ModelError(
            f"rg.from_onnx({type(source).__name__}): it reads the path of a file, its bytes, or an "
            "onnx.ModelProto."
        )
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except Exception as error:
        raise ModelError(
            f"rg.from_onnx: this is no ONNX file, or a damaged one ({error})."
        ) from error
    return model, folder


def checked_model(source: Any) -> tuple[Any, str | None]:
    """Return a model all of whose ops have converters, and its folder.

    Functions of the file, and ops without a converter that the standard defines by other ops, are
    replaced by their bodies.

    Raises
    ------
    OpError
        If ops are left without a converter: all of them, with counts.
    ModelError
        If the file is damaged, or its nodes do not form a graph.
    """
    model, folder = read(source)
    if not model.HasField("graph"):
        raise ModelError(
            "rg.from_onnx: the file holds no graph. It is no ONNX model, or a damaged one."
        )
    check_graph(model.graph, frozenset(), 0)
    if model.functions:
        _refuse_recursion(model)
        model = _inlined(model, [(f.domain, f.name) for f in model.functions], schema=False)
    absent = unconverted(model)
    for _ in range(MAX_DEPTH):  # bodies may need ops with bodies
        wanted = [op for op in absent if _has_body(op)]
        if not wanted:
            break
        model = _inlined(model, wanted, schema=True)
        absent = unconverted(model)
    if absent:
        told = ", ".join(
            f"{f'{domain}.' if domain else ''}{name} ({count}x)"
            for (domain, name), count in sorted(absent.items(), key=lambda e: (-e[1], e[0]))
        )
        raise OpError(
            f"This model needs ops that have no function in reactgrad: {told}. Nothing was built. Export the "
            "model without them."
        )
    check_graph(model.graph, frozenset(), 0)
    return model, folder


def subgraphs(node: Any) -> Iterator[Any]:
    """Yield the graphs among the attributes of a node."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def unconverted(model: Any) -> Counter[tuple[str, str]]:
    """Count the ops without a converter, in all graphs of the model."""
    found: Counter[tuple[str, str]] = Counter()
    graphs = [model.graph]
    while graphs:
        for node in graphs.pop().node:
            graphs.extend(subgraphs(node))
            domain = "" if node.domain in STANDARD else node.domain
            if domain or node.op_type not in CONVERTERS:
                found[domain, node.op_type] += 1
    return found


def sources(node: Any) -> set[str]:
    """Return the names that a node reads, those that its graphs read from outside included."""
    names = {name for name in node.input if name}
    for graph in subgraphs(node):
        inner = {v.name for v in graph.input} | {t.name for t in graph.initializer}
        for one in graph.node:
            inner.update(one.output)
        read = {v.name for v in graph.output}
        for one in graph.node:
            read |= sources(one)
        names |= read - inner
    return names


def check_graph(graph: Any, outer: frozenset[str], depth: int) -> None:
    """Refuse names that are missing or computed twice, and cycles; and bring the nodes into an order.

    The order of the file stays where it is one. Nothing is allocated but the names.
    """
    place = f"graph {graph.name!r}" if graph.name else "the graph"
    _check_names(graph, place)
    if depth > MAX_DEPTH:
        raise ModelError(f"{place} is nested more than {MAX_DEPTH} deep: no model needs that.")
    if len(graph.node) > MAX_NODES:
        raise ModelError(f"{place} has {len(graph.node)} nodes; at most {MAX_NODES} are read.")
    known = {v.name for v in graph.input} | {t.name for t in graph.initializer} | outer
    known |= {t.values.name for t in graph.sparse_initializer}
    made: dict[str, int] = {}
    for i, node in enumerate(graph.node):
        for name in node.output:
            if name and (name in made or name in known - outer):
                raise ModelError(
                    f"{place} computes {name!r} twice. The file is damaged: export it again."
                )
            if name:
                made[name] = i
    waiting: list[set[int]] = []
    consumers: dict[int, list[int]] = {}
    for i, node in enumerate(graph.node):
        needs: set[int] = set()
        for name in sources(node):
            if name in made:
                needs.add(made[name])
            elif name not in known:
                raise ModelError(
                    f"{place}: {node.op_type} {node.name!r} reads {name!r}, which is no input, no initialiser "
                    "and no output of a node. The file is damaged: export it again."
                )
        for source in needs:
            consumers.setdefault(source, []).append(i)
        waiting.append(needs)
    order = _order(waiting, consumers)
    if len(order) < len(graph.node):
        left = next(n for i, n in enumerate(graph.node) if i not in set(order))
        raise ModelError(
            f"{place} has a cycle: {left.op_type} {left.name!r} hangs on its own result. Values that a model "
            "carries from step to step belong into a Loop or a Scan."
        )
    if order != list(range(len(order))):
        nodes = [type(n).FromString(n.SerializeToString()) for n in (graph.node[i] for i in order)]
        del graph.node[:]
        graph.node.extend(nodes)
    for value in graph.output:
        if value.name not in made and value.name not in known:
            raise ModelError(f"{place} has the output {value.name!r}, which nothing computes.")
    for node in graph.node:
        for inner in subgraphs(node):
            check_graph(inner, frozenset(known | made.keys()), depth + 1)


def _check_names(graph: Any, place: str) -> None:
    """Refuse names that are no text."""
    names = [one.name for part in (graph.input, graph.output, graph.initializer) for one in part]
    for node in graph.node:
        names += [getattr(node, field) for field in _NAMED]
        names += [*node.input, *node.output, *[one.name for one in node.attribute]]
    wrong = next((one for one in names if not isinstance(one, str)), None)
    if wrong is not None:
        raise ModelError(
            f"{place} has the name {wrong!r:.60}, which is no text. The file is damaged: export it again."
        )


def _order(waiting: list[set[int]], consumers: dict[int, list[int]]) -> list[int]:
    """Return the nodes behind their sources (Kahn, 1962), in the file's order where that is possible."""
    import heapq

    counts = [len(needs) for needs in waiting]
    ready = [i for i, count in enumerate(counts) if not count]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        i = heapq.heappop(ready)
        order.append(i)
        for j in consumers.get(i, ()):
            counts[j] -= 1
            if not counts[j]:
                heapq.heappush(ready, j)
    return order


def _refuse_recursion(model: Any) -> None:
    """Refuse functions that call themselves, or whose bodies together are absurdly many nodes."""
    calls = {
        (f.domain, f.name): [(n.domain, n.op_type) for n in _all_nodes(f.node)]
        for f in model.functions
    }
    sizes: dict[tuple[str, str], int] = {}
    while len(sizes) < len(calls):
        ready = [
            k
            for k, v in calls.items()
            if k not in sizes and all(c in sizes for c in v if c in calls)
        ]
        if not ready:
            names = sorted(k[1] for k in calls.keys() - sizes.keys())
            raise ModelError(
                f"The functions {names} of this model call themselves: a graph has no end then."
            )
        for key in ready:
            sizes[key] = sum(sizes.get(c, 1) for c in calls[key])
    total = sum(sizes.get((n.domain, n.op_type), 1) for n in _all_nodes(model.graph.node))
    if total > MAX_NODES:
        raise ModelError(
            f"The functions of this model stand for {total} nodes; at most {MAX_NODES} are built. No model needs that."
        )


def _all_nodes(nodes: Any) -> Iterator[Any]:
    """Yield nodes, and those of the graphs inside of them."""
    for node in nodes:
        yield node
        for graph in subgraphs(node):
            yield from _all_nodes(graph.node)


def _has_body(op: tuple[str, str]) -> bool:
    """Return whether the standard defines an op by other ops."""
    onnx = onnx_package()
    domain, name = op
    if not onnx.defs.has(name, domain):
        return False
    schema = onnx.defs.get_schema(name, domain)
    return schema.has_function or schema.has_context_dependent_function


def _with_defaults(graph: Any, ops: set[tuple[str, str]], versions: dict[str, int]) -> None:
    """Write down the attributes that nodes leave to their default: the package's inliner forgets them."""
    onnx = onnx_package()
    for node in graph.node:
        for inner in subgraphs(node):
            _with_defaults(inner, ops, versions)
        if (node.domain, node.op_type) in ops:
            version = versions.get(node.domain, versions.get("ai.onnx", 1))
            present = {a.name for a in node.attribute}
            for name, one in onnx.defs.get_schema(
                node.op_type, version, node.domain
            ).attributes.items():
                if name not in present and one.default_value.name:
                    node.attribute.append(one.default_value)


def _inlined(model: Any, ops: list[tuple[str, str]], schema: bool) -> Any:
    """Return the model with the bodies of these ops in their place."""
    from onnx import inliner

    if schema:
        _with_defaults(model.graph, set(ops), {o.domain: o.version for o in model.opset_import})
    try:
        return inliner.inline_selected_functions(
            model, ops, exclude=False, inline_schema_functions=schema
        )
    except Exception as error:
        raise ModelError(
            f"The functions of this model cannot be replaced by their bodies: {error}"
        ) from error
