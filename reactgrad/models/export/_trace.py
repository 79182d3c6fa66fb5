"""From the nodes of a graph to a draft of a file, or to the list of what has no form in one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from reactgrad.models._errors import ModelError, OpError
from reactgrad.models._tensors import DTYPES
from reactgrad.models.export._draft import Draft, Step
from reactgrad.models.export._node import WRITERS, Node, RefusedError, Value

LEAVES: Final = frozenset({"input", "param", "const", "seed", "mode"})
KINDS: Final = frozenset(d for n, d in DTYPES.items() if d.kind != "c")


def drafted(network: Any, inputs: Mapping[str, str], outputs: Mapping[str, str]) -> Draft:
    """Return the draft of the part of a graph between inputs and outputs.

    Parameters
    ----------
    network : networkx.MultiDiGraph
        The graph, as ``rg.to_networkx`` gives it.
    inputs : mapping of str to str
        The name in the file of nodes that are inputs.
    outputs : mapping of str to str
        The node of each output.

    Raises
    ------
    OpError
        If ops have no form in a file: all of them with counts.
    """
    draft = Draft()
    draft.dtypes.update(dict.fromkeys(outputs, np.dtype(bool)))  # no other value has such a name
    values: dict[str, Value] = {}
    refused: Counter[str] = Counter()
    for label, name in inputs.items():
        spec = network.nodes[label]["spec"]
        if spec is None or spec.dtype not in KINDS:
            refused[f"input {name!r} of {'any kind' if spec is None else spec.dtype.name}"] += 1
            continue
        values[label] = Value(draft.input(name, spec.shape, spec.dtype), spec)
    for label in _order(network, inputs, outputs.values()):
        if label not in values:
            _write(network, label, draft, values, refused)
    if refused:
        told = ", ".join(
            f"{what} ({count}x)"
            for what, count in sorted(refused.items(), key=lambda e: (-e[1], e[0]))
        )
        raise OpError(
            f"rg.to_onnx: what this graph computes has no form in ONNX: {told}. Nothing was written. "
            f"{_instead(refused)}"
        )
    _name_outputs(draft, {name: values[label] for name, label in outputs.items()})
    return draft


def _instead(refused: Iterable[str]) -> str:
    """Return what to write in place of a graph with nodes that are refused."""
    refused = list(refused)
    if "feed" in refused:
        return (
            "A feed holds an array that a module was called with. Call it with an input of the graph: "
            "x = g.input(rows), rg.to_onnx({'y': net(x)})."
        )
    if all(what.endswith(" in float64") for what in refused):
        return "Runtimes compute these in float32: write net.to('float32'), and inputs of float32."
    return "Replace these nodes, or export the nodes in front of them."


def _order(network: Any, inputs: Mapping[str, str], outputs: Iterable[str]) -> list[str]:
    """Return the nodes that outputs need and that are no inputs, each after its operands.

    The order follows from the operands alone, so that graphs of one form give one order.
    """
    done = set(inputs)
    order: list[str] = []
    todo = [(label, False) for label in reversed(list(outputs))]
    while todo:
        label, ready = todo.pop()
        if label in done:
            continue
        if ready:
            done.add(label)
            order.append(label)
        else:
            todo.append((label, True))
            todo.extend((one, False) for one in reversed(_operands(network, label)))
    return order


def _operands(network: Any, label: str) -> list[str]:
    """Return the operands of a node, in order; none where a given value stands in its place."""
    if "pinned" in network.nodes[label]:
        return []
    edges = sorted(network.in_edges(label, data="position"), key=lambda edge: edge[2])
    return [parent for parent, _, _ in edges]


def _write(
    network: Any, label: str, draft: Draft, values: dict[str, Value], refused: Counter[str]
) -> None:
    row = network.nodes[label]
    spec = row["spec"]
    if row["op"] in LEAVES or "pinned" in row:
        values[label] = _leaf(label, row, draft, refused)
        return
    operands = [values[parent] for parent in _operands(network, label)]
    values[label] = Value(None, spec)
    if row["op"] not in WRITERS:
        refused[row["op"]] += 1
        return
    kinds = [v.spec.dtype for v in (*operands, values[label]) if v.spec is not None]
    strange = next((k for k in kinds if k not in KINDS), None)
    if strange is not None:
        refused[f"{row['op']} in {strange.name}"] += 1
        return
    if any(v.written is None and v.number is None for v in operands):
        return  # what it is computed from is refused already
    node = Node(draft, label, row["op"], row["attrs"], spec, operands)
    try:
        values[label] = Value(WRITERS[row["op"]](node), spec)
    except RefusedError as error:
        refused[error.what] += 1


def _leaf(label: str, row: dict[str, Any], draft: Draft, refused: Counter[str]) -> Value:
    spec, value = row["spec"], row.get("value")
    if value is None:
        raise ModelError(
            f"rg.to_onnx: {label!r} has no value, and would be a constant of the file. Set it, or name it in "
            "inputs=."
        )
    if isinstance(value, bool | int | float) and not isinstance(value, np.generic):
        return Value(None, spec, value)
    on_device = getattr(value, "get", None)
    array = np.asarray(value if on_device is None else on_device())
    if array.dtype not in KINDS:
        refused[f"{row['op']} in {array.dtype.name}"] += 1
        return Value(None, spec)
    return Value(draft.weight(label, array), spec)


def _name_outputs(draft: Draft, outputs: dict[str, Value]) -> None:
    """Give the values of outputs the names of these."""
    made = {name: step for step in draft.steps for name in step.outputs}
    renamed: dict[str, str] = {}
    for name, value in outputs.items():
        written = value.written
        if written is None:
            written = draft.constant(value.number, value.spec.dtype)
        draft.dtypes[name] = draft.dtypes[written]
        if written in made and written not in renamed:
            renamed[written] = name
        else:
            source = renamed.get(written, written)
            draft.steps.append(Step("Identity", (source,), (name,), {}))
    for step in draft.steps:
        step.inputs = tuple(renamed.get(one, one) for one in step.inputs)
        step.outputs = tuple(renamed.get(one, one) for one in step.outputs)
