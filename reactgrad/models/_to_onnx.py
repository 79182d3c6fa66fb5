"""From a live graph to an ONNX file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import reactgrad as rg
from reactgrad.models._errors import ModelError
from reactgrad.models._onnx_file import onnx_package
from reactgrad.models.export import (
    IR_VERSIONS,
    MOST_BYTES,
    Lengths,
    check,
    drafted,
    network_in_mode,
    open_slots,
    proto_of,
    write,
)


def to_onnx(
    outputs: Mapping[str, Any] | Any,
    path: str | os.PathLike[str] | None = None,
    *,
    inputs: Mapping[str, Any] | Iterable[Any] | None = None,
    opset: int = 18,
    external_data: bool | None = None,
) -> Any:
    """Write what outputs are computed by as an ONNX file; return the ``onnx.ModelProto``.

    Inputs of the graph become inputs of the model, by name; params and constants become initialisers.
    Lengths that are not fixed (``None``) become symbolic. Dtypes stay as they are. Gradients are nodes,
    and can be outputs, too.

    Parameters
    ----------
    outputs : mapping of str to Var, or Var
        The outputs by their names in the file; a single Var is called by its own name.
    path : path, optional
        Where the file appears, whole or not at all; without it nothing is written.
    inputs : mapping of str to Var, or iterable of Var, optional
        The inputs of the model, which may be any nodes. Other input leaves keep their value, as
        initialisers. By default all input leaves that the outputs need, but for the buffers of modules,
        such as running statistics.
    opset : int
        The version of the standard's ops, from 18 on.
    external_data : bool, optional
        Whether large arrays go to a file ``<path>.data`` beside it; by default if they have more than 2 GiB.

    Returns
    -------
    onnx.ModelProto

    Raises
    ------
    OpError
        If ops have no form in ONNX, or none that runtimes compute in this dtype: all of them by name, before
        anything is written.
    ModelError
        For names that do not fit, or a model that ONNX's checker refuses.
    MissingExtraError
        Without the package onnx (extra ``onnx``).

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input(shape=(None, 3), dtype="f4", name="x")
    >>> w = g.param(np.ones((3, 2), "f4"), name="w")
    >>> model = rg.to_onnx({"y": rg.relu(x @ w)})  # doctest: +SKIP
    >>> [node.op_type for node in model.graph.node]  # doctest: +SKIP
    ['MatMul', 'Relu']
    """
    onnx_package("rg.to_onnx writes")
    if opset not in IR_VERSIONS:
        raise ModelError(
            f"rg.to_onnx(opset={opset!r:.20}): the ops that are written are those of {min(IR_VERSIONS)} to "
            f"{max(IR_VERSIONS)}. Leave it out for {min(IR_VERSIONS)}."
        )
    named = _named(outputs, "outputs")
    graph = _graph_of(named)
    network = network_in_mode(graph)
    labels = {name: var.name for name, var in named.items()}
    if inputs is None:
        held = _of_modules(graph)
        given = {
            label: graph[label] for label in _leaves(network, labels.values()) if label not in held
        }
    else:
        given = _named(inputs, "inputs")
    _refuse_clashes(given, named)
    slots = open_slots(network, _leaves(network, [var.name for var in given.values()]))
    if slots:
        draft, shapes = Lengths(graph, network, slots, given, named).draft()
    else:
        draft = drafted(network, {var.name: name for name, var in given.items()}, labels)
        shapes = {name: _shape(network, var.name) for name, var in {**given, **named}.items()}
    draft.tidy(set(named))
    size = sum(one.nbytes for one in draft.weights.values())
    if external_data is None:
        external_data = size > MOST_BYTES
    outside = None
    if external_data:
        if path is None:
            raise ModelError(
                f"rg.to_onnx: {size} bytes of arrays shall lie in a file beside the model, and the model has no path. "
                "Give one: rg.to_onnx(outputs, 'm.onnx')."
            )
        outside = f"{os.path.basename(os.fspath(path))}.data"
    model, arrays = proto_of(draft, shapes, list(named), opset, outside)
    check(model)
    if path is not None:
        write(path, model, arrays, outside)
    return model


def _shape(network: Any, label: str) -> list[int] | None:
    spec = network.nodes[label]["spec"]
    return None if spec is None else list(spec.shape)


def _refuse_clashes(inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
    both = [name for name in inputs if name in outputs]
    if both:
        raise ModelError(
            f"rg.to_onnx: {both} are names of inputs and of outputs, and a file has each name once. Name the "
            "outputs otherwise: {'name': node}."
        )


def _named(values: Any, word: str) -> dict[str, Any]:
    if isinstance(values, rg.Var):
        values = [values]
    if isinstance(values, rg.nn.Module):
        raise ModelError(
            f"rg.to_onnx was given a {type(values).__name__}, and writes nodes: call it with an input, "
            "x = g.input(batch, name='x', shape=(None, ...)), and write rg.to_onnx({'y': net(x)}, path)."
        )
    if not isinstance(values, Mapping | Iterable):
        raise ModelError(
            f"rg.to_onnx({word}=...) was given a {type(values).__name__}, and {word} are nodes. Write "
            "{'name': node}."
        )
    named = (
        dict(values)
        if isinstance(values, Mapping)
        else {getattr(v, "name", repr(v)): v for v in values}
    )
    for name, var in named.items():
        if not isinstance(var, rg.Var):
            raise ModelError(
                f"rg.to_onnx({word}=...): {name!r} is a {type(var).__name__}, and {word} are nodes. Write "
                "{'name': node}."
            )
    return named


def _graph_of(named: dict[str, Any]) -> rg.Graph:
    graphs = {id(var.graph): var.graph for var in named.values()}
    if len(graphs) != 1:
        raise ModelError(
            f"rg.to_onnx: the outputs {list(named)} lie in {len(graphs)} graphs, and a file holds one. Give the "
            "nodes of one graph, at least one."
        )
    return next(iter(graphs.values()))


def _of_modules(graph: rg.Graph) -> set[str]:
    """Return the names of the inputs that modules hold, among those that have been called in a graph."""
    if "reactgrad.nn" not in sys.modules:
        return set()
    from reactgrad.nn._building import inputs_of_modules

    return {var.name for var in inputs_of_modules(graph)}


def _leaves(network: Any, labels: Iterable[str]) -> list[str]:
    """Return the input leaves that nodes hang on, in order of creation."""
    import networkx as nx

    found: set[str] = set()
    for label in labels:
        found |= nx.ancestors(network, label) | {label}
    leaves = [label for label in found if network.nodes[label]["op"] == "input"]
    return sorted(leaves, key=lambda label: network.nodes[label]["serial"])
