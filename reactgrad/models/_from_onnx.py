"""From an ONNX file to a live graph."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

import reactgrad as rg
from reactgrad.models._call import CONVERTERS, Call, constant
from reactgrad.models._errors import ModelError, UnknownLengthError
from reactgrad.models._model import Model
from reactgrad.models._onnx_file import checked_model, sources, subgraphs
from reactgrad.models._open_lengths import OpenLengths
from reactgrad.models._tensors import Weight, array_of, dtype_of

Values = dict[str, Any]
MAX_INPUT: Final = 1 << 31  # numbers of one
# Ops that arrange and change integers of which a part is known.
KEEPING = frozenset(
    {"Gather", "Slice", "Concat", "Squeeze", "Unsqueeze", "Identity", "Cast", "Add", "Sub", "Mul"}
)


def from_onnx(
    source: Any,
    *,
    constants: Mapping[str, Any] | None = None,
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    graph: rg.Graph | None = None,
) -> Model:
    """Return the model of an ONNX file as a live graph.

    Inputs become inputs without a value, initialisers of floats become params, and what follows from
    constants alone is computed once, while the graph is built.

    Parameters
    ----------
    source : path, bytes or onnx.ModelProto
        Data outside of the file is read from the folder of the path, and from nowhere else.
    constants : mapping of str to array_like, optional
        Inputs that shall be constants: those that decide about the shape of the graph, such as the new
        shape of a Reshape.
    shapes : mapping of str to sequence of int or None, optional
        Shapes of inputs where the file leaves lengths open and the graph hangs on them.
    graph : Graph, optional
        The graph to build in; by default a new one.

    Returns
    -------
    Model

    Raises
    ------
    OpError
        If the model needs ops that have no function here: all of them by name, before anything is built.
    UnknownLengthError
        If the graph hangs on a number that is not known; the message names the inputs to give.
    ModelError
        If the file is damaged, has a cycle, or names data outside of its folder.
    MissingExtraError
        Without the package onnx (extra ``onnx``).

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> m = rg.from_onnx("classifier.onnx")  # doctest: +SKIP
    >>> m(x=np.ones((1, 4), "f4"))["y"].value  # doctest: +SKIP
    array([[0.2, 0.8]], dtype=float32)
    >>> rg.grad(m.outputs["y"].sum(), m.inputs["x"]).value  # doctest: +SKIP
    array([[0., 0., 0., 0.]], dtype=float32)
    """
    model, folder = checked_model(source)
    build = _Build(graph if graph is not None else rg.Graph(), model, folder)
    try:
        inputs, outputs = build.whole(dict(constants or {}), dict(shapes or {}))
    except MemoryError as error:
        raise ModelError(
            f"This model computes constants that are larger than the memory of this machine ({error})."
        ) from error
    return Model(build.graph, inputs, outputs, build.params)


class _Build:
    """A graph while it is built: what the names of the file have become."""

    def __init__(
        self, graph: rg.Graph, model: Any, folder: str | None, arrays: Values | None = None
    ) -> None:
        self.graph = graph
        # The initialisers of the main graph. A trial is given those that are read already, and makes no params of them.
        self.trial = arrays is not None
        self.arrays: Values = arrays or {}
        self.values: Values = {}
        self.model = model
        self.folder = folder
        self.params: dict[str, Any] = {}
        self.steps = 0  # of loops, in all
        # Of integers that follow from open lengths: their node, and what is known of them, NaN for the rest.
        self.partly: dict[int, tuple[Any, np.ndarray[Any, Any]]] = {}
        self.opsets = {
            ("" if o.domain == "ai.onnx" else o.domain): o.version for o in model.opset_import
        }

    def whole(
        self, constants: Values, shapes: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Build the main graph; return its inputs and its outputs."""
        proto = self.model.graph
        aside = functools.partial(_aside, self.model, self.folder, self.arrays, constants)
        self.lengths = OpenLengths(aside)
        given = {t.name for t in proto.initializer}
        names = [v.name for v in proto.input if v.name not in given]
        for name in [*constants, *shapes]:
            if name not in names:
                raise ModelError(f"{name!r} is no input of this model. Its inputs are {names}.")
        values = self.values
        inputs: dict[str, Any] = {}
        for tensor in proto.initializer:
            if tensor.name not in self.arrays:
                self.arrays[tensor.name] = array_of(tensor, self.folder)
        for value in proto.input:
            if value.name in given:
                continue
            if value.name in constants:
                values[value.name] = _as_constant(constants[value.name])
            else:
                inputs[value.name] = values[value.name] = self._input(value, shapes.get(value.name))
        found = self.run(proto, values, self.arrays)
        outputs = {v.name: self._output(f) for v, f in zip(proto.output, found, strict=True)}
        return inputs, outputs

    def run(self, proto: Any, values: Values, arrays: Mapping[str, Any] | None = None) -> list[Any]:
        """Build the nodes of one graph of the file; return what its outputs have become.

        `values` holds what is known by name, and is filled; `arrays` are initialisers that are read already.
        """
        for tensor in proto.initializer:
            read = arrays[tensor.name] if arrays is not None else array_of(tensor, self.folder)
            values[tensor.name] = Weight(tensor.name, read) if read.dtype.kind == "f" else read
        if proto.sparse_initializer:
            raise ModelError(
                "This model has sparse initialisers, which are not read. Export it with dense ones."
            )
        for node in proto.node:
            found = self._node(node, values)
            for name, value in zip(node.output, found, strict=False):
                if name:
                    values[name] = value
            if len(found) < sum(1 for name in node.output if name):
                missing = [n for n in node.output[len(found) :] if n]
                raise ModelError(f"{node.op_type} {node.name!r} has no outputs {missing} here.")
        return [values[v.name] for v in proto.output]

    def operand(self, value: Any) -> Any:
        """Return a param for a weight, and anything else as it is."""
        if isinstance(value, Weight):
            if value.var is None and self.trial:
                value.var = self.graph.input(shape=value.array.shape, dtype=value.array.dtype)
            elif value.var is None:
                # A file that was written here may call it as a node without a name is called, "const_12".
                name = None if value.name in self.graph else value.name
                value.var = self.graph.param(value.array, name=name)
                self.params[value.name] = value.var
            return value.var
        return value

    def inputs_of(self, name: str) -> tuple[str, ...]:
        """Return the inputs of the model that a name follows from."""
        makers = {o: n for n in self.model.graph.node for o in n.output}
        inputs = [v.name for v in self.model.graph.input]
        seen: set[str] = set()
        todo = [name]
        inside = name not in makers and name not in inputs
        if inside:  # a name of an inner graph: all that the nodes with such graphs read
            for node in self.model.graph.node:
                if any(True for _ in subgraphs(node)):
                    todo.extend(sources(node))
        while todo:
            one = todo.pop()
            if one not in seen:
                seen.add(one)
                if one in makers:
                    todo.extend(sources(makers[one]))
        return tuple(n for n in inputs if n in seen)

    def _node(self, node: Any, values: Values) -> Sequence[Any]:
        operands = [values[name] if name else None for name in node.input]
        call = Call(node, operands, self._attributes(node), self, values)
        inner = any(True for _ in subgraphs(node))
        known = all(constant(v) for v in operands) and all(
            constant(values[n]) for n in (sources(node) if inner else ())
        )
        try:
            if not known:
                with self.graph:
                    found = _outputs(CONVERTERS[node.op_type](call))
                self._note_integers(call, found)
                return found
            # What follows from constants alone becomes a constant, in a graph that is thrown away.
            with rg.Graph():
                return [_value(v) for v in _outputs(CONVERTERS[node.op_type](call))]
        except (ModelError, MemoryError, RecursionError):
            raise
        except rg.UnsetError as error:
            raise UnknownLengthError(
                f"{call}: the graph hangs on a value that is not known when it is built ({error}). Give the "
                f"inputs {list(self._needs(node))} as constants={{name: array}} or shapes={{name: shape}}.",
                self._needs(node),
            ) from error
        except Exception as error:
            raise ModelError(f"{call}: this node cannot be built: {error}") from error

    def hint(self, value: Any) -> np.ndarray[Any, Any] | None:
        """Return what is known of integers, with NaN for the rest; ``None`` if nothing is."""
        if isinstance(value, rg.Var):
            found = self.partly.get(id(value))
            return None if found is None else found[1]
        return (
            np.asarray(value, float)
            if isinstance(value, np.ndarray) and value.dtype.kind in "iu"
            else None
        )

    def note(self, var: Any, known: np.ndarray[Any, Any]) -> None:
        """Keep what is known of a node of integers."""
        self.partly[id(var)] = var, known

    def _note_integers(self, call: Call, found: Sequence[Any]) -> None:
        """Do to what is known of shapes what the node does to them."""
        if call.op not in KEEPING or not isinstance(found[0], rg.Var):
            return
        if not any(isinstance(v, rg.Var) and id(v) in self.partly for v in call.values):
            return
        hints = [self.hint(v) for v in call.values]
        if call.op == "Cast":
            if hints[0] is not None and call.dtype_attr("to").kind in "iu":
                self.note(found[0], hints[0])
            return
        if any(h is None for h in hints):
            return
        # Indices, axes and limits stay integers; all that holds lengths becomes floats.
        many = call.op in ("Concat", "Add", "Sub", "Mul")
        values = [
            h if i == 0 or many else v
            for i, (h, v) in enumerate(zip(hints, call.values, strict=True))
        ]
        if any(isinstance(v, rg.Var) for v in values):
            return
        with rg.Graph():
            known = _value(CONVERTERS[call.op](Call(call.node, values, call.attributes, self, {})))
        self.note(found[0], known)

    def _needs(self, node: Any) -> tuple[str, ...]:
        return tuple(dict.fromkeys(n for s in sources(node) for n in self.inputs_of(s)))

    def _attributes(self, node: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for a in node.attribute:
            kind = a.type
            if kind == 1:
                found[a.name] = a.f
            elif kind == 2:
                found[a.name] = a.i
            elif kind == 3:
                found[a.name] = a.s.decode("utf-8", "replace")
            elif kind == 4:
                found[a.name] = array_of(a.t, self.folder)
            elif kind == 5:
                found[a.name] = a.g
            elif kind == 6:
                found[a.name] = list(a.floats)
            elif kind == 7:
                found[a.name] = list(a.ints)
            elif kind == 8:
                found[a.name] = [s.decode("utf-8", "replace") for s in a.strings]
            elif kind == 13:
                found[a.name] = a.tp
            else:
                raise ModelError(
                    f"{node.op_type} {node.name!r}: attribute {a.name!r} is of a kind that is not read."
                )
        return found

    def _input(self, value: Any, shape: Any) -> Any:
        kind = value.type.WhichOneof("value")
        if kind != "tensor_type":
            raise UnknownLengthError(
                f"The input {value.name!r} is a {kind or 'value of no type'}: give it in "
                f"constants={{{value.name!r}: ...}}; inputs of a graph are arrays.",
                (value.name,),
            )
        tensor = value.type.tensor_type
        dtype = dtype_of(tensor.elem_type, f"input {value.name!r}")
        symbols: list[Any] = [None] * len(shape or ())
        if shape is None:
            if not tensor.HasField("shape"):
                raise UnknownLengthError(
                    f"The input {value.name!r} is declared without a shape. Give it as "
                    f"shapes={{{value.name!r}: (...)}}, with None for lengths that may differ.",
                    (value.name,),
                )
            shape = [
                d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else None
                for d in tensor.shape.dim
            ]
            symbols = [d.dim_param for d in tensor.shape.dim]
        size = math.prod([max(n, 1) for n in shape if n is not None])
        if size > MAX_INPUT:
            raise ModelError(
                f"The input {value.name!r} is declared with shape {tuple(shape)}, which is {size} numbers; at most "
                f"{MAX_INPUT} are read. The file is damaged, or shapes={{{value.name!r}: (...)}} says what it is."
            )
        found = self.graph.input(shape=tuple(shape), dtype=dtype, name=value.name)
        told = tuple(
            n if n is not None else symbol or (value.name, axis)
            for axis, (n, symbol) in enumerate(zip(shape, symbols, strict=True))
        )
        self.lengths.note(value.name, found, told)
        return found

    def _output(self, found: Any) -> Any:
        if isinstance(found, list):
            return [self._output(f) for f in found]
        found = self.operand(found)
        return found if isinstance(found, rg.Var) or found is None else self.graph.const(found)


def _aside(
    model: Any, folder: str | None, arrays: Values, constants: Values, shapes: Mapping[str, Any]
) -> Values:
    """Build the file in a graph that is thrown away; return what its names have become."""
    trial = _Build(rg.Graph(), model, folder, arrays)
    trial.whole(constants, shapes)
    return trial.values


def _as_constant(value: Any) -> Any:
    if value is None:
        return None
    return [np.array(v) for v in value] if isinstance(value, list) else np.array(value)


def _outputs(found: Any) -> Sequence[Any]:
    """Return the outputs of a converter: a tuple is one for each, anything else is the only one."""
    return found if isinstance(found, tuple) else (found,)


def _value(found: Any) -> Any:
    if isinstance(found, list):
        return [_value(f) for f in found]
    return (
        np.asarray(found.value if isinstance(found, rg.Var) else found)
        if found is not None
        else None
    )
