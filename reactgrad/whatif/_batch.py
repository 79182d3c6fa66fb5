"""All points as one more axis of every array: the nodes on the way are built once more, for blocks of points.

Preconditions: each op on the way works element by element, reduces axes, or arranges them; inputs are floats of one
shape. Then element `i` of a block is what the graph gives for point `i`, to rounding: NumPy's loops over arrays
differ from those over one number in the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad.core._handles import handle
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Op
from reactgrad.whatif._errors import ScenarioError
from reactgrad.whatif._points import BASE
from reactgrad.whatif._sweep import Sweep

ELEMENTS = 1 << 16  # of the largest node in a block
FEW = 24  # points below which a batch is not built by default
REDUCTIONS = frozenset({"sum", "mean", "max", "min", "prod", "std", "var"})


class NotBatched(Exception):
    """Why points cannot be one more axis."""


class Batch:
    """The outputs of a sweep for blocks of points."""

    def __init__(self, sweep: Sweep) -> None:
        self._sweep = sweep
        points = sweep.points
        self._columns = [
            _numbers(x, c, b)
            for x, c, b in zip(sweep.leaves, points.columns, sweep.base, strict=True)
        ]
        way, size = _way(sweep)
        if (block := min(points.n, ELEMENTS // max(size, 1))) < min(FEW, points.n):
            raise NotBatched(
                f"a node on the way has {size:,} elements, so few points fit into a block"
            )
        self._block = block
        graph = self._graph = sweep.fork.fork()
        moved = [*sweep.leaves, *(x for x in sweep.wanted if not any(x is y for y in sweep.leaves))]
        found: dict[int, rg.Var] = {}
        with graph:
            for x in moved:
                base = np.zeros(x.shape) if x.state == "unset" else np.asarray(x.value)
                start = np.broadcast_to(base, (block, *x.shape)).astype(x.dtype)
                found[x._slot] = graph.input(start)
            self._inputs = [found[x._slot] for x in sweep.leaves]
            for node in way:
                if node._slot not in found:
                    found[node._slot] = _batched(graph, node, found, block)
        self._outputs: list[tuple[rg.Var, list[Any], bool]] = []
        for y, row in zip(sweep.outputs_in_fork, sweep.rows, strict=False):
            twin = found.get(y._slot)
            if twin is not None and (twin.shape != (block, *y.shape) or twin.dtype != y.dtype):
                raise NotBatched(f"{y.label!r} would get another dtype or shape")
            self._outputs.append((graph[y] if twin is None else twin, row, twin is not None))
        self._add_gradients(found)

    def _add_gradients(self, found: dict[int, rg.Var]) -> None:
        sweep = self._sweep
        live = {id(row) for row in sweep.rows}
        for label, y in zip(sweep.outputs, sweep.outputs_in_fork, strict=True):
            twin = found.get(y._slot)
            if twin is None or not sweep.wanted:
                continue
            xs = [found[x._slot] for x in sweep.wanted]
            slopes = rg.grad(twin, xs, gradient=np.ones(twin.shape, twin.dtype), allow_unused=True)
            for x, slope in zip(sweep.wanted, slopes, strict=True):
                row = sweep.gradients[label, x.label]
                if slope is not None and id(row) in live:
                    self._outputs.append((slope, row, True))

    def blocks(self, left: Sequence[int]) -> Sequence[Callable[[], None]]:
        """Return a call for each block of these points."""
        size = self._block
        return [lambda k=k: self._run(left[k : k + size]) for k in range(0, len(left), size)]

    def _run(self, chosen: Sequence[int]) -> None:
        n = len(chosen)
        # The last block is filled up, so that all have one shape.
        at = np.resize(np.asarray(chosen, np.intp), self._block)
        values = {x: column[at] for x, column in zip(self._inputs, self._columns, strict=True)}
        self._graph.set(values)
        self._graph.forward(*[y for y, _, _ in self._outputs])
        for y, row, batched in self._outputs:
            value = y.value
            for k in range(n):
                row[chosen[k]] = value[k] if batched else value
        for i in chosen:
            del self._sweep.left[i]


def batch_of(sweep: Sweep, wish: bool | None) -> Batch | None:
    """Return the batched twin of a sweep, or ``None`` if it cannot be, or is not wished.

    Raises
    ------
    ScenarioError
        If it is wished and cannot be.
    """
    n = sweep.points.n
    if wish is False or not n or (wish is None and (n < FEW or sweep.workers > 1)):
        return None
    try:
        return Batch(sweep)
    except NotBatched as reason:
        if wish is None:
            return None
        raise ScenarioError(
            f"batch=True: these scenarios cannot be one more axis: {reason}. Leave out batch=True."
        ) from None


def _numbers(x: rg.Var, column: Sequence[Any], base: Any) -> np.ndarray[Any, Any]:
    """Return the values of one input as an array with one more axis."""
    if x.dtype.kind != "f":
        raise NotBatched(f"{x.label!r} is no float")
    try:
        values = [base if value is BASE else value for value in column]
        found = np.array(values, dtype=x.dtype)
    except (TypeError, ValueError):
        raise NotBatched(f"the values of {x.label!r} have several shapes or kinds") from None
    if found.shape[1:] != x.shape:
        raise NotBatched(f"the values of {x.label!r} have another shape")
    return found


def _way(sweep: Sweep) -> tuple[list[rg.Var], int]:
    """Return the nodes between inputs and outputs, parents first, and the size of the largest."""
    graph: Any = sweep.fork
    topology, host = graph._scheduler.topology, graph._host
    moved = {x._slot for x in [*sweep.leaves, *sweep.wanted]}
    reached: dict[int, bool] = {}
    way: list[rg.Var] = []
    size = 1
    with graph._lock:
        pending = [(y._slot, False) for y in sweep.outputs_in_fork]
        while pending:
            slot, ready = pending.pop()
            if slot in reached:
                continue
            parents = topology.parents[slot]
            if not ready:
                pending.append((slot, True))
                pending += [(one, False) for one in parents if one not in reached]
                continue
            reached[slot] = slot in moved or any(reached[one] for one in parents)
            if reached[slot] and slot not in moved:
                way.append(handle(graph, slot))
    for node in way:
        slot = node._slot
        if not isinstance(host.ops[slot], Op):
            raise NotBatched(f"{node.label!r} is a Python function")
        if slot in host.cutoffs:
            raise NotBatched(f"{node.label!r} has a cutoff")
        if sweep.wanted and slot in host.closed:
            raise NotBatched(f"{node.label!r} has detached operands")
        size = max(size, node.size)
    if sweep.wanted and host.hooks:
        raise NotBatched("gradients have hooks")
    return way, size


def _batched(graph: rg.Graph, node: rg.Var, found: dict[int, rg.Var], block: int) -> rg.Var:
    """Return the node that computes one node of the way for a block of points."""
    host: Any = graph._host  # type: ignore[attr-defined]
    op, attrs = host.ops[node._slot], host.attrs[node._slot]
    parents = [(parent, found.get(parent._slot)) for parent in node.parents]
    for parent, _ in parents:
        if parent.shape is None:
            raise NotBatched(f"{parent.label!r} has a shape that follows from values")
    if op.elementwise:
        ndim = max(len(parent.shape) for parent, _ in parents)
        operands = [
            graph[parent] if twin is None else _stretched(twin, block, parent.shape, ndim)
            for parent, twin in parents
        ]
        return apply(op, operands, attrs)
    if len(parents) == 1:
        (parent, twin), name = parents[0], op.name
        assert twin is not None
        ndim = len(parent.shape)
        if name in REDUCTIONS:
            axis = attrs[0]
            axes = range(ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
            if not ndim:
                axes = ()
            shifted = tuple(1 + one % ndim for one in axes)
            return apply(op, [twin], (shifted, *attrs[1:]))
        if name == "reshape":
            return twin.reshape(block, *node.shape)
        if name == "transpose" and attrs == (None,):
            return twin.transpose(0, *range(ndim, 0, -1))
    if op.name in ("stack", "concatenate"):
        whole = [
            rg.broadcast_to(graph[parent], (block, *parent.shape)) if twin is None else twin
            for parent, twin in parents
        ]
        ndim = len(node.shape)
        return (rg.stack if op.name == "stack" else rg.concatenate)(whole, axis=1 + attrs[0] % ndim)
    raise NotBatched(f"{node.label!r} computes {op.name}, which has no batched form here")


def _stretched(twin: rg.Var, block: int, shape: tuple[int, ...], ndim: int) -> rg.Var:
    """Return a batched operand with axes of length 1 put in, so that its own axes stay the last ones."""
    if len(shape) == ndim:
        return twin
    return twin.reshape(block, *(1,) * (ndim - len(shape)), *shape)
