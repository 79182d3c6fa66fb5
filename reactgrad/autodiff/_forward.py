"""Tangents: forward mode, as nodes of the same graph.

The tangent of a node is how its value moves when some nodes move along given directions: the sum
of what each operand's tangent contributes by the op's own forward rule. A forward program is a
program that goes the other way: from the sources to the output, over the same edges, only through
nodes that lie between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from reactgrad._errors import DTypeError, GradientError, GraphError, ShapeError
from reactgrad.autodiff._program import ZERO, MissingRuleError, Program, operand_vars, sources
from reactgrad.ops import LINEAR, Op, Placed, accumulate, apply, astype, known_shape, spread


class Tangents(Program):
    """The tangents of the nodes between sources and an output.

    ``adjoint`` holds tangents here. A source that depends on another one moves along its own
    direction and with what it depends on.
    """

    __slots__ = ()

    def __init__(self, output: Any, xs: Sequence[Any], directions: Sequence[Any]) -> None:
        self._open(output, {x._slot: t for x, t in zip(xs, directions, strict=True)})

    def tangent(self) -> Any:
        """The Var of the output's tangent."""
        return self.adjoint_or_zeros(self._output)

    def _given(self) -> dict[int, Any]:
        return {}  # a source may have more than its own direction

    def _leading_to(self, wanted: Iterable[int]) -> set[int]:
        return super()._leading_to(self.seeds)

    def _sweep(self, leading: set[int]) -> list[Any]:
        """From the sources on, give every node that leads on its tangent; returns what is new."""
        graph = self._graph
        held: list[Any] = []  # nodes built here have no consumer before they are added up
        for slot in graph._scheduler.topology.sort(leading):
            if slot in self.adjoint:
                continue
            parts = [self._direction(slot)] if slot in self.seeds else []
            operands = sources(graph, slot)
            edges = [
                i for i in self._edges[slot] if self.adjoint.get(operands[i], ZERO) is not ZERO
            ]
            if edges:
                parts += self._pushed(slot, edges)
            if parts:
                total = accumulate(parts, self._shape_of(slot, parts))
                held.append(total)
                self.adjoint[slot] = total._slot
            else:
                self.adjoint[slot] = ZERO
        return held

    def _direction(self, slot: int) -> Any:
        """The direction in which a source moves, in its dtype."""
        t, dtype = self.seeds[slot], self._graph._handle(slot).dtype
        return t if t.dtype == dtype else astype(t, dtype)

    def _shape_of(self, slot: int, parts: Sequence[Any]) -> Any:
        var = self._graph._handle(slot)
        shape = known_shape(var)
        if shape is None and any(isinstance(part, Placed) for part in parts):
            # Where parts go depends on the shape of the value, which may change.
            shape = self.observed[slot] = var.shape
        return shape

    def _pushed(self, slot: int, edges: Sequence[int]) -> Iterator[Any]:
        """What the tangents of the operands at these positions contribute to that of this node."""
        graph = self._graph
        op, attrs = graph._host.ops[slot], graph._host.attrs[slot]
        self._refuse_complex(slot, list(edges))
        ans, operands = graph._handle(slot), operand_vars(graph, slot)
        tangents = {i: graph._handle(self.adjoint[sources(graph, slot)[i]]) for i in edges}
        if not isinstance(op, Op):
            part = self._called(slot, op, ans, operands, tangents)
            if part is not None:
                yield self._like_result(slot, part, broadcasts=False)
            return
        for i, t in tangents.items():
            if op.jvps is not None:
                rule = op.jvps[i]
                if rule is LINEAR:
                    part = apply(op, (*operands[:i], t, *operands[i + 1 :]), attrs)
                else:
                    part = None if rule is None else rule(t, ans, *operands, *attrs)  # type: ignore[operator]
            elif op.variadic_jvp is not None:
                part = op.variadic_jvp(i, t, ans, operands, attrs)
            else:
                raise _no_forward_rule(graph, slot)
            if part is not None:
                yield self._like_result(slot, part, broadcasts=op.broadcasts)

    def _called(
        self, slot: int, op: Any, ans: Any, operands: tuple[Any, ...], tangents: dict[int, Any]
    ) -> Any:
        """What the forward rule of a Python function says."""
        if op.jvp is None:
            raise _no_forward_rule(self._graph, slot)
        arguments, places = op.arguments(operands)
        moving: list[Any] = [None] * len(arguments)
        for i, place in enumerate(places):
            moving[place] = tangents.get(i)
        part = op.jvp(tuple(moving), ans, *arguments)
        if part is None:
            return None
        return self._checked_tangent(slot, part)

    def _checked_tangent(self, slot: int, part: Any) -> Any:
        """A tangent from a user's rule, held against the result it belongs to."""
        graph = self._graph
        ans, specs = graph._handle(slot), graph._host.specs
        who = f"the jvp of node {ans.name!r}"
        if not hasattr(part, "_slot"):
            part = graph.const(part)
        if part._graph is not graph:
            raise GraphError(f"{who} returned a Var of another graph.")
        if (specs[part._slot] is None or specs[slot] is None) and not self._may_look(part, ans):
            return part  # shown when it runs
        if part.shape != ans.shape:
            raise ShapeError(
                f"{who} returned a tangent of shape {part.shape}; it must have the result's, "
                f"{ans.shape}. Broadcast, or reshape."
            )
        if part.dtype.kind != "f":
            raise DTypeError(f"{who} returned a tangent of {part.dtype}; tangents are floats.")
        return part

    def _like_result(self, slot: int, part: Any, *, broadcasts: bool) -> Any:
        """A contribution in the shape and dtype of the node that it belongs to."""
        graph = self._graph
        found = graph._host.specs[slot]
        if isinstance(part, Placed):
            if found is not None and part.gradient.dtype != found.dtype:
                part.gradient = astype(part.gradient, found.dtype)
            return part
        # Of several operands one may be smaller than the result.
        if broadcasts and len(sources(graph, slot)) > 1:
            part = spread(part, graph._handle(slot))
        given = graph._host.specs[part._slot]
        if found is None or (given is not None and given.dtype == found.dtype):
            return part
        return astype(part, found.dtype)

    def _check_seed(self) -> None:
        for var, shape, seed in self._misfits():
            raise ShapeError(
                f"{var.name!r} would get the shape {shape}, and tangents exist that were asked for "
                f"with a direction of shape {seed} for it. Drop these tangents first, or set the "
                "direction together with it, g.set({x: ..., t: ...})."
            )


def _no_forward_rule(graph: Any, slot: int) -> GradientError:
    host = graph._host
    return MissingRuleError(
        f"node {host.name(slot)!r} ({host.describe_op(slot)}) has no forward rule, so no tangent "
        "passes it. Give one, rg.lift(fn, jvp=rule), use reverse mode, rg.grad or rg.vjp, or detach "
        "its operands, x.detach(), if none shall pass."
    )
