"""Jacobians: the derivative of every element of a node by every element of another one.

One pass, forward or reverse, carries the derivatives along all directions in a last axis (see
``_batch``), so the number of nodes does not depend on the sizes.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any, Literal

import numpy as np

from reactgrad.autodiff._batch import batch
from reactgrad.autodiff._forward import Tangents
from reactgrad.autodiff._program import Program
from reactgrad.autodiff._sweep import Redefine
from reactgrad.autodiff._tables import ZERO
from reactgrad.backend import device_of, spec
from reactgrad.build._constants import zeros, zeros_like
from reactgrad.core._handles import handle
from reactgrad.ops import astype, known_shape, reshape_to, transpose

Mode = Literal["forward", "reverse"]


class Jacobian(Program):
    """The derivative of `output` by `x`, along every direction at once.

    A program of its own builds the derivative for one direction, as a pattern, and is released.
    ``adjoint`` holds only the Jacobian. A change of the nodes that the pattern was built for builds
    it again.
    """

    __slots__ = ("_mode", "_x")

    def __init__(self, output: Any, x: Any, mode: Mode) -> None:
        self._x: int = x._slot
        self._mode: Mode = mode
        self._open(output, self._direction(output, x))
        self._anchors.append(output._graph._host.anchor(x._slot))

    def come_back(self, graph: Any, record: Any) -> None:
        """Begin as the hollow program of a record; see ``_record``."""
        (self._x,) = record.about
        ((source, _),) = record.seeds
        self._mode = "forward" if source == self._x else "reverse"
        super().come_back(graph, record)
        self._anchors.append(graph._host.anchor(self._x))

    def about(self) -> tuple[int, ...]:
        """Return the node that the Jacobian is for."""
        return (self._x,)

    def _direction(self, output: Any, x: Any) -> dict[int, Any]:
        """Return the source of the derivatives with one direction: what the pattern is built for."""
        source = x if self._mode == "forward" else output
        return {source._slot: zeros_like(source._graph, source)}

    def twin(self, graph: Any) -> Program:
        """Return the same program in a fork of the graph."""
        program: Any = super().twin(graph)
        program._x, program._mode = self._x, self._mode
        program._anchors.append(graph._host.anchor(self._x))
        return program

    def jacobian(self) -> Any:
        """Return the Var of the Jacobian."""
        return self.adjoints_or_zeros([self._target])[0]

    @property
    def _target(self) -> int:
        return self._output if self._mode == "forward" else self._x

    @property
    def _ends(self) -> tuple[Any, Any]:
        return handle(self._graph, self._output), handle(self._graph, self._x)

    def _is_last(self, slot: int) -> bool:
        return True

    def _leading_to(self, wanted: Iterable[int]) -> set[int]:
        return set(wanted)

    def _check_seed(self) -> None:
        """Check nothing: the direction is made for the shape of the source."""

    def _follow(self, changed: set[int], respecced: set[int], redefine: Redefine) -> None:
        """Build the Jacobian again if anything has changed that it depends on."""
        # Changes of its own nodes, which the output may use detached, and of nodes that x is
        # computed from do not matter. Hooks that the gradient of x passes do.
        owners = self._graph._host.owners
        changed = {slot for slot in changed if owners.get(slot) != self.number}
        if not (changed or respecced):
            return
        if respecced or changed != {self._x} or self._hooks or self._graph._host.hooks:
            self._restart(redefine)

    def _restart(self, redefine: Redefine) -> None:
        self._note(self, "seeds", self.seeds)
        self.seeds = self._direction(*self._ends)
        super()._restart(redefine)

    def _zero(self, slot: int) -> Any:
        y, x = self._ends
        return zeros(self._graph, spec((*y.shape, *x.shape), x.dtype, x.device))

    def _sweep(
        self, totals: set[int], anew: set[int], redefine: Redefine | None
    ) -> dict[int, None]:
        """Build the pattern and, from it, the Jacobian."""
        y, x = self._ends
        (seed,) = self.seeds.values()
        pattern = Tangents(y, [x], [seed]) if self._mode == "forward" else Program(y, seed)
        one = pattern.adjoints([self._target])[0]
        zero = one is None or pattern.adjoint.get(self._target) is ZERO
        for name in ("observed", "seen", "_hooks"):
            self._note(self, name, getattr(self, name))
            setattr(self, name, getattr(pattern, name))
        self.reads |= pattern.reads
        found = None if zero else self._all(seed, one)
        # The pattern is built again with the Jacobian, so it must not follow changes itself.
        pattern.dismiss()
        if found is None:
            self._enter(self._target, ZERO, False, False, False, None)
        else:
            self._held.append(found)
            self._enter(self._target, found._slot, True, False, False, None)
        return {self._target: None}

    def _all(self, seed: Any, one: Any) -> Any:
        """Return the Jacobian, by the pattern for one direction; ``None`` where it has no elements."""
        (source,) = self.seeds
        of = handle(self._graph, source)
        count = prod(seed.shape)
        if not count:
            return None
        unit = np.eye(count, dtype=of.dtype).reshape(*of.shape, count)
        device = device_of(of.device)
        found = batch(seed, one, self._graph.const(device.asarray(unit, of.dtype)))
        if self._mode == "reverse" and (ndim := len(found.shape)) > 1:
            found = transpose(found, (ndim - 1, *range(ndim - 1)))
        return self._fitting(found, len(of.shape) != 1)

    def _fitting(self, jacobian: Any, folded: bool) -> Any:
        """Return the Jacobian in its final shape and in the dtype of `x`."""
        y, x = self._ends
        if folded:
            jacobian = reshape_to(jacobian, (*y.shape, *x.shape))
        for var in (y, x):
            if known_shape(var) is None:
                self.observe(var._slot, var.shape)  # it is built for this shape only
        if known_shape(jacobian) is None or jacobian.dtype != x.dtype:
            jacobian = astype(jacobian, x.dtype)
        return jacobian
