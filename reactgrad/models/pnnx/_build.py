"""From the operators of a PNNX file to nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

import reactgrad as rg
from reactgrad.models._errors import ModelError, OpError, UnknownLengthError
from reactgrad.models._model import Model
from reactgrad.models.pnnx._call import CONVERTERS, MAX_ELEMENTS, Call
from reactgrad.models.pnnx._text import Operator, Program, Typed
from reactgrad.models.pnnx._weights import Weights

# Statistics that training moves without a gradient: buffers of PyTorch, and constants here.
BUFFERS: Final = ("running_mean", "running_var")
FRAME: Final = frozenset({"pnnx.Input", "pnnx.Output", "pnnx.Attribute"})


def refuse_missing(program: Program) -> None:
    """Refuse operators without a converter: all of them, with counts."""
    missing = Counter(
        one.type
        for one in program.operators
        if one.type not in FRAME and one.type not in CONVERTERS
    )
    if missing:
        told = ", ".join(
            f"{name} ({count}x)"
            for name, count in sorted(missing.items(), key=lambda e: (-e[1], e[0]))
        )
        raise OpError(
            f"This model needs operators that have no function in reactgrad: {told}. Nothing was built. Export the "
            "model without them."
        )


def built(
    program: Program,
    weights: Weights,
    shapes: Mapping[str, Sequence[int | None]],
    graph: rg.Graph,
) -> Model:
    """Return the model of a program in a graph."""
    refuse_missing(program)
    build = _Build(program, weights, shapes, graph)
    build.run()
    return Model(graph, build.inputs, build.outputs, build.params)


class _Build:
    def __init__(
        self, program: Program, weights: Weights, shapes: Mapping[str, Any], graph: rg.Graph
    ) -> None:
        self.program = program
        self.weights = weights
        self.shapes = shapes
        self.graph = graph
        self.values: dict[str, Any] = {}
        self.inputs: dict[str, Any] = {}
        self.outputs: dict[str, Any] = {}
        self.params: dict[str, Any] = {}

    def run(self) -> None:
        count = sum(one.type == "pnnx.Input" for one in self.program.operators)
        names = [f"in{i}" for i in range(count)]
        for name in self.shapes:
            if name not in names:
                raise ModelError(f"{name!r} is no input of this model. Its inputs are {names}.")
        # Sizes of all weights first: nothing is built of a file that is not whole.
        arrays = {
            f"{one.name}.{key}": self.weights.array(f"{one.name}.{key}", kind)
            for one in self.program.operators
            for key, kind in one.attributes.items()
        }
        for one in self.program.operators:
            if one.type == "pnnx.Input":
                if len(one.outputs) != 1:
                    raise ModelError(f"rg.from_pnnx: {one} is not one input. The file is damaged.")
                self._input(one)
            elif one.type == "pnnx.Output":
                for name in one.inputs:
                    self._output(self.values[name])
            elif one.type == "pnnx.Attribute":
                if len(one.attributes) != 1 or len(one.outputs) != 1:
                    raise ModelError(
                        f"rg.from_pnnx: {one} holds no single array. The file is damaged."
                    )
                (key,) = one.attributes
                self.values[one.outputs[0]] = self._weight(one.name, arrays[f"{one.name}.{key}"])
            else:
                self._operator(one, arrays)

    def _input(self, one: Operator) -> None:
        name = f"in{len(self.inputs)}"
        kind = self.program.operands.get(one.outputs[0])
        shape = self.shapes.get(name, kind and kind.shape)
        if kind is None or shape is None:
            raise UnknownLengthError(
                f"The input {name!r} is declared without a shape. Export the model with inputshape=.",
                (name,),
            )
        var = self.graph.input(shape=tuple(shape), dtype=kind.dtype, name=name)
        self.inputs[name] = self.values[one.outputs[0]] = var

    def _output(self, value: Any) -> None:
        if isinstance(value, list | tuple):
            for one in value:
                self._output(one)
            return
        var = value if isinstance(value, rg.Var) else self.graph.const(value)
        self.outputs[f"out{len(self.outputs)}"] = var

    def _weight(self, name: str, array: np.ndarray[Any, Any]) -> Any:
        if array.dtype.kind != "f" or name.rpartition(".")[2] in BUFFERS:
            return self.graph.const(array)
        self.params[name] = self.graph.param(array, name=name)
        return self.params[name]

    def _operator(self, one: Operator, arrays: dict[str, Any]) -> None:
        weights = {
            key: self._weight(f"{one.name}.{key}", arrays[f"{one.name}.{key}"])
            for key in one.attributes
        }
        call = Call(one, [self.values[name] for name in one.inputs], weights)
        try:
            with self.graph:
                found = CONVERTERS[one.type](call)
                many = found if isinstance(found, tuple) and len(one.outputs) != 1 else (found,)
                if len(many) < len(one.outputs):
                    raise call.refuse(f"a result in {len(one.outputs)} parts")
                for name, value in zip(one.outputs, many, strict=False):
                    self.values[name] = self._as_declared(
                        call, value, self.program.operands.get(name)
                    )
        except (ModelError, MemoryError, RecursionError):
            raise
        except rg.UnsetError as error:
            raise UnknownLengthError(
                f"{call}: the graph hangs on a value that is not known when it is built ({error}). Give the shapes "
                "of inputs as shapes={'in0': (1, 3, 8, 8)}.",
                tuple(self.inputs),
            ) from error
        except Exception as error:
            raise ModelError(f"{call}: this operator cannot be built: {error}") from error

    def _as_declared(self, call: Call, value: Any, declared: Typed | None) -> Any:
        """Return a result in the dtype of the file: integers divided are float32 in PyTorch."""
        if not isinstance(value, rg.Var):
            return value
        shape = value.shape
        size = 1
        for n in shape or ():
            size *= n or 1
        if size > MAX_ELEMENTS:
            raise ModelError(
                f"{call} makes an array of shape {shape}: at most {MAX_ELEMENTS} elements are made of a few numbers."
            )
        if declared is None or value.dtype == declared.dtype:
            return value
        return rg.astype(value, declared.dtype)
