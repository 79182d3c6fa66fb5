"""Tangents: forward mode, as nodes of the same graph.

The tangent of a node says how its value moves when some nodes move along given directions. It is
the sum of what each operand's tangent contributes by the op's forward rule. A forward program runs
from the sources to the output, over the same edges as adjoints do, and only through nodes that lie
between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

from reactgrad._errors import ShapeError
from reactgrad.autodiff._custom import MissingRuleError, check_outputs, custom_tangents
from reactgrad.autodiff._edges import operand_vars
from reactgrad.autodiff._paths import Wide
from reactgrad.autodiff._program import Program
from reactgrad.autodiff._sweep import Redefine
from reactgrad.autodiff._tables import ZERO
from reactgrad.core._handles import handle
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import LINEAR, Op, Output, RuleOfAll
from reactgrad.ops import Placed, Share, accumulate, astype, share_of, spread


class Tangents(Program):
    """The tangents of the nodes between sources and an output.

    ``adjoint`` holds tangents here. A source that depends on another one moves along its own
    direction and with what it depends on. Unlike adjoints, tangents of nodes before the output stay
    while the program lives, even where nothing uses them: an edit learns from them which nodes
    move.
    """

    __slots__ = ()

    def __init__(self, output: Any, xs: Sequence[Any], directions: Sequence[Any]) -> None:
        self._open(output, {x._slot: t for x, t in zip(xs, directions, strict=True)})

    def tangent(self) -> Any:
        """Return the Var of the output's tangent."""
        return self.adjoints_or_zeros([self._output])[0]

    def _is_last(self, slot: int) -> bool:
        return slot == self._output

    def _is_end(self, slot: int) -> bool:
        return slot in self.seeds

    def _leading_to(self, wanted: Iterable[int]) -> set[int]:
        return self._needed(slot for slot in self.seeds if slot in self._edges)

    def _sweep(
        self, totals: set[int], anew: set[int], redefine: Redefine | None
    ) -> dict[int, None]:
        """Walk from the sources to the output, and give tangents to nodes.

        Nodes of `totals` that have none get one, nodes of `anew` get another one if theirs changes.
        """
        rank = self._graph._scheduler.topology.rank
        # By rank: operands before what is computed from them.
        queue = [(rank[slot], slot) for slot in totals | anew]
        heapify(queue)
        anew, moved, last = set(anew), dict[int, None](), -1
        wide: Wide = {}
        while queue:
            slot = heappop(queue)[1]
            if slot == last or (slot not in anew and self.known(slot) is not None):
                continue
            last = slot
            if self._push(slot, redefine):
                moved[slot] = None
                for child in self._consumers(slot):
                    if self._leads(slot, child, wide):
                        anew.add(child)
                        heappush(queue, (rank[child], child))
        return moved

    def _push(self, slot: int, redefine: Redefine | None) -> bool:
        """Give a node its tangent. Return whether that is another node than before."""
        graph, topology, before = self._graph, self._graph._scheduler.topology, self.known(slot)
        first = topology.next_serial
        parts = [self._direction(slot)] if slot in self.seeds else []
        self._forget_seen(slot)
        moving = {i: t for i, s in self._edges[slot] if (t := self.known(s)) not in (None, ZERO)}
        op = graph._host.ops[slot]
        if moving:
            parts += self._contributions_of(slot, moving)
        adjoint: Any = ZERO
        alone = several = False
        if len(parts) == 1 and not isinstance(parts[0], Placed | Share):
            adjoint = parts[0]._slot
            # A function's rule may return a node that it also uses elsewhere.
            alone = isinstance(op, Op) and topology.serial[adjoint] >= first
        elif parts:
            several = isinstance(parts[0], Share)
            if graph._host.specs[slot] is None and any(isinstance(p, Placed) for p in parts):
                parts = [self._background(slot), *parts]
            adjoint, alone = accumulate(parts, self._sum_shape(slot))._slot, True
        if adjoint == before:
            return False
        own = before is not None and slot in self._own and not several
        # The tangent of the output lives while it is given out, and the program as long as that.
        hold = adjoint is not ZERO and slot != self._output
        moved = self._enter(slot, adjoint, alone, own, hold, redefine)
        return moved and (before is not None or adjoint is not ZERO)

    def _direction(self, slot: int) -> Any:
        """Return the direction in which a source moves, in its dtype."""
        return self._in_dtype(slot, self.seeds[slot])

    def _in_dtype(self, slot: int, part: Any) -> Any:
        specs = self._graph._host.specs
        found, given = specs[slot], specs[part._slot]
        if found is None or (given is not None and given.dtype == found.dtype):
            return part
        return astype(part, found.dtype)

    def _contributions_of(self, slot: int, moving: dict[int, int]) -> Iterator[Any]:
        """Yield what the tangents of the operands at these positions contribute to that of this
        node.
        """
        graph = self._graph
        op, attrs = graph._host.ops[slot], graph._host.attrs[slot]
        tangents = {i: handle(graph, tangent) for i, tangent in moving.items()}
        self._check_rule(slot, [edge for edge in self._edges[slot] if edge[0] in moving])
        ans, operands = handle(graph, slot), operand_vars(graph, slot)
        if isinstance(op, Output):
            check_outputs(graph, self._edges[slot][0][1], op.index)
            share = share_of(tangents[0], op.index)
            if share is not None:
                yield share
        elif not isinstance(op, Op):
            for part in custom_tangents(self, slot, operands, tangents):
                yield part if isinstance(part, Share) else self._like_result(slot, part, False)
        else:
            rule = _rule_of_all(op, ans, operands, attrs)
            for i, t in tangents.items():
                part = rule(i, t)
                if part is not None:
                    yield self._like_result(slot, part, op.broadcasts)

    def _like_result(self, slot: int, part: Any, broadcasts: bool) -> Any:
        """Return a contribution in the shape and dtype of the node that it belongs to."""
        if isinstance(part, Placed):
            part.gradient = self._in_dtype(slot, part.gradient)
            return part
        # One of several operands may be smaller than the result.
        if broadcasts and len(self._graph._scheduler.operands(slot)) > 1:
            part = spread(part, handle(self._graph, slot))
        return self._in_dtype(slot, part)

    def _check_rules(self, slots: set[int], needed: set[int]) -> None:
        """Check nothing yet: only nodes that move need a rule, and the sweep finds these."""

    def _has_rule(self, op: Any) -> bool:
        return op.has_forward_rules

    def _no_rule(self, slot: int) -> MissingRuleError:
        """Return the error for a node that no tangent passes."""
        host = self._graph._host
        op = host.ops[slot]
        how = "rg.extend.defjvp(op, rule)" if isinstance(op, Op) else op.HOW_FORWARD
        return MissingRuleError(
            f"node {host.label(slot)!r} ({host.describe_op(slot)}) has no forward rule, so no tangent "
            f"passes it. Give one, {how}, use reverse mode, rg.grad or rg.vjp, or detach "
            "its operands, x.detach(), if none shall pass."
        )

    def _check_seed(self) -> None:
        for var, shape, seed in self._misfits():
            raise ShapeError(
                f"{var.label!r} would get the shape {shape}, and tangents exist that were asked for "
                f"with a direction of shape {seed} for it. Drop these tangents first, or set the "
                "direction together with it, g.set({x: ..., t: ...})."
            )


def _rule_of_all(op: Op, ans: Any, operands: Any, attrs: Any) -> RuleOfAll:
    """Return a function ``(i, t)`` that returns what the tangent of operand `i` contributes."""
    jvps: Any = op.jvps
    if jvps is None:
        assert op.variadic_jvp is not None
        return op.variadic_jvp(ans, operands, attrs)

    def rule(i: int, t: Any) -> Any:
        if jvps[i] is LINEAR:
            return apply(op, (*operands[:i], t, *operands[i + 1 :]), attrs)
        return None if jvps[i] is None else jvps[i](t, ans, *operands, *attrs)

    return rule
