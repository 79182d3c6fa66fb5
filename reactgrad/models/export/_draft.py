"""A file while it is drawn up: nodes, weights and names, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from reactgrad.models.export._kernels import DType

Array = np.ndarray[Any, Any]
# Constants of at most so many bytes are kept once for all nodes that need them.
SMALL: Final = 4096


@dataclass(eq=False)
class Step:
    """One node of the file."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]


@dataclass(eq=False)
class Draft:
    """The contents of a file to be.

    Attributes
    ----------
    inputs
        The shape and the dtype of each input.
    weights
        Arrays that are in the file.
    dtypes
        Of each name so far.
    steps
        In order: each after what it reads.
    constants
        The weights that are no nodes of the graph.
    """

    inputs: dict[str, tuple[tuple[int | None, ...], DType]] = field(default_factory=dict)
    weights: dict[str, Array] = field(default_factory=dict)
    dtypes: dict[str, DType] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    constants: set[str] = field(default_factory=set)

    def fresh(self, name: str) -> str:
        """Return a name that is free, as near to this one as it goes."""
        found, number = name, 0
        while found in self.dtypes:
            number += 1
            found = f"{name}.{number}"
        return found

    def input(self, name: str, shape: tuple[int | None, ...], dtype: DType) -> str:
        """Declare an input."""
        self.inputs[name] = shape, dtype
        self.dtypes[name] = dtype
        return name

    def weight(self, name: str, array: Array) -> str:
        """Put in an array under a name of its own."""
        name = self.fresh(name)
        self.weights[name] = array
        self.dtypes[name] = array.dtype
        return name

    def constant(self, value: Any, dtype: Any = None) -> str:
        """Return the name of a constant."""
        name = self.weight("c", np.asarray(value, dtype))
        self.constants.add(name)
        return name

    def cast(self, name: str, dtype: DType) -> str:
        """Return a value converted to a dtype."""
        if self.dtypes[name] == dtype:
            return name
        return self.step("Cast", (name,), (dtype,), f"{name}.{dtype.name}", {"to": dtype})[0]

    def step(
        self,
        op: str,
        inputs: tuple[str, ...],
        dtypes: tuple[DType, ...],
        name: str,
        attributes: dict[str, Any],
    ) -> tuple[str, ...]:
        """Put in a node with outputs of these dtypes; return their names."""
        outputs: list[str] = []
        for dtype in dtypes:
            outputs.append(self.fresh(name))
            self.dtypes[outputs[-1]] = dtype
        self.steps.append(Step(op, inputs, tuple(outputs), attributes))
        return tuple(outputs)

    def tidy(self, outputs: set[str]) -> None:
        """Compute what is the same once, and take out what no output needs."""
        self._merge(outputs)
        wanted = set(outputs)
        steps: list[Step] = []
        for step in reversed(self.steps):
            if wanted.intersection(step.outputs):
                steps.append(step)
                wanted.update(step.inputs)
        self.steps = steps[::-1]
        self.weights = {name: one for name, one in self.weights.items() if name in wanted}

    def _merge(self, outputs: set[str]) -> None:
        known: dict[Any, tuple[str, ...]] = {}
        same: dict[str, str] = {}
        for name, array in self.weights.items():
            if name in self.constants and array.nbytes <= SMALL:
                key = array.dtype, array.shape, array.tobytes()
                same[name] = known.setdefault(key, (name,))[0]
        steps: list[Step] = []
        for step in self.steps:
            step.inputs = tuple(same.get(one, one) for one in step.inputs)
            if outputs.isdisjoint(step.outputs):
                if step.op == "Identity":
                    same[step.outputs[0]] = step.inputs[0]
                    continue
                key = step.op, step.inputs, repr(sorted(step.attributes.items()))
                found = known.setdefault(key, step.outputs)
                if found is not step.outputs and len(found) == len(step.outputs):
                    same.update(zip(step.outputs, found, strict=True))
                    continue
            steps.append(step)
        self.steps = steps
