"""Jacobians: the derivative of every element of a node by every element of another one.

One pass, forward or reverse, carries the derivatives along all directions in a last axis (see
``_batch``), so the number of nodes does not depend on the sizes.
"""

from __future__ import annotations

from math import prod
from typing import Any, Literal

import numpy as np

from reactgrad.autodiff._batch import batch
from reactgrad.autodiff._forward import Tangents
from reactgrad.autodiff._program import ZERO, Program
from reactgrad.backend import device_of_kind, spec
from reactgrad.ops import astype, known_shape, reshape_to, transpose

Mode = Literal["forward", "reverse"]


class _AllDirections(Program):
    """A program whose seed is every direction of its source at once.

    The derivative for one direction is built as a pattern and let go. ``adjoint`` knows the
    Jacobian only.
    """

    __slots__ = ("_x",)

    _x: int

    def twin(self, graph: Any) -> Program:
        program = super().twin(graph)
        program._x = self._x  # type: ignore[attr-defined]
        return program

    @property
    def _ends(self) -> tuple[Any, Any]:
        return self._graph._handle(self._output), self._graph._handle(self._x)

    def _check_seed(self) -> None:
        """The directions follow the shape of the source."""
        self.seeds = {at: self._graph._zeros_like(self._graph._handle(at)) for at in self.seeds}

    def _zero(self, slot: int) -> Any:
        y, x = self._ends
        return self._graph._zeros(spec((*y.shape, *x.shape), x.dtype, x.device))

    def _all_for(self, target: int, pattern: Any) -> Any:
        """The derivatives of `target`, by a pattern for one direction; ``None`` where it is zero."""
        ((source, seed),) = self.seeds.items()
        one = pattern.get(target, ZERO)
        count = prod(seed.shape)
        if one is ZERO or not count:
            return None
        of = self._graph._handle(source)
        unit = np.eye(count, dtype=of.dtype).reshape(*of.shape, count)
        device = device_of_kind(of.device.partition(":")[0])
        units = self._graph.const(device.asarray(unit, of.dtype))
        return batch(seed, self._graph._handle(one), units)

    def _finish(self, target: int, jacobian: Any) -> list[Any]:
        """Note the Jacobian, in its shape and in the dtype of `x`, as every gradient."""
        if jacobian is None:
            self.adjoint = {target: ZERO}
            return []
        y, x = self._ends
        (source,) = self.seeds
        if len(self._graph._handle(source).shape) != 1:
            jacobian = reshape_to(jacobian, (*y.shape, *x.shape))
        for var in (y, x):
            if known_shape(var) is None:
                self.observed[var._slot] = var.shape  # what is built goes with this shape only
        if known_shape(jacobian) is None or jacobian.dtype != x.dtype:
            jacobian = astype(jacobian, x.dtype)
        self.adjoint = {target: jacobian._slot}
        return [jacobian]


class ForwardJacobian(_AllDirections, Tangents):
    """The tangents of the output along all directions of `x`."""

    __slots__ = ()

    def __init__(self, output: Any, x: Any) -> None:
        self._x = x._slot
        Tangents.__init__(self, output, [x], [x._graph._zeros_like(x)])

    def jacobian(self) -> Any:
        """The Var of the Jacobian."""
        return self.adjoint_or_zeros(self._output)

    def _sweep(self, leading: set[int]) -> list[Any]:
        self.adjoint = {}
        pattern = super()._sweep(leading)
        found = self._all_for(self._output, self.adjoint)
        del pattern
        return self._finish(self._output, found)


class ReverseJacobian(_AllDirections):
    """The adjoints of `x` for all elements of the output."""

    __slots__ = ()

    def __init__(self, output: Any, x: Any) -> None:
        self._x = x._slot
        Program.__init__(self, output, output._graph._zeros_like(output))

    def jacobian(self) -> Any:
        """The Var of the Jacobian."""
        return self.adjoint_or_zeros(self._x)

    def _sweep(self, leading: set[int]) -> list[Any]:
        self.adjoint = self._given()
        pattern = super()._sweep(leading)
        found = self._all_for(self._x, self.adjoint)
        del pattern
        if found is not None and (ndim := len(found.shape)) > 1:
            found = transpose(found, (ndim - 1, *range(ndim - 1)))
        return self._finish(self._x, found)


JACOBIANS: dict[Mode, type[ForwardJacobian] | type[ReverseJacobian]] = {
    "forward": ForwardJacobian,
    "reverse": ReverseJacobian,
}
