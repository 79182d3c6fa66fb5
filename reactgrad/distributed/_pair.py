"""A collective as two nodes: *start* gives this rank's values to the others, *wait* takes what comes back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from reactgrad.backend import spec
from reactgrad.build._functions import call_lifted
from reactgrad.distributed._group import Group
from reactgrad.distributed._rounds import Rounds
from reactgrad.distributed._start import UNSAVED, Start
from reactgrad.distributed._work import Work
from reactgrad.nodes._lifted import Lifted
from reactgrad.ops import known_shape

Rule = Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]


class Wait(Lifted):
    """The op of a node that waits for a collective, and has what this rank gets."""

    UNSAVED = UNSAVED
    __slots__ = ("key",)

    def __init__(self, function: Any, declared: Any, vjp: Any, jvp: Any, key: Any) -> None:
        several = isinstance(declared, tuple)
        super().__init__(
            function,
            None if several else declared,
            vjp,
            None,
            (),
            jvp,
            declared if several else None,
        )
        self.key = key
        self.name = key[1]

    def call(self, arguments: list[Any]) -> Any:
        """Return what this rank gets."""
        # With a declared result the step copies it into the buffer of the node: no other copy is needed.
        return super().call(arguments) if self.declared is None else self.function(*arguments)

    def definition(self) -> Any:
        """Return a key, equal for two calls that may share a node."""
        return (type(self), self.key, self.declared, self.outputs)


def pair(
    group: Group,
    kind: str,
    operands: Sequence[Any],
    shapes: Sequence[tuple[int | None, ...] | None],
    vjp: Rule | None,
    jvp: Rule | None = None,
    factor: Any = None,
    **options: Any,
) -> tuple[Any, ...]:
    """Build a collective. Return a Var for each array that this rank gets.

    Parameters
    ----------
    operands : sequence of Var
    shapes : sequence of tuple
        The shapes of what this rank gets; ``None`` where they are not known yet.
    vjp, jvp : callable
        ``vjp(gs, ans)`` returns the gradients of the operands, ``jvp(ts, ans)`` the tangents of the results.
    factor : Var, optional
        What this rank multiplies its arrays by on the way.
    """
    first = operands[0]
    graph = first._graph
    Rounds.of(graph)
    start_op = Start(group, kind, options, _label(first), factor is not None)
    given = [one.detach() for one in ([] if factor is None else [factor]) + list(operands)]
    start = call_lifted(graph, start_op, given, None, shared=True)
    several = len(operands) > 1

    def wait(work: Work, *values: Any) -> Any:
        flat, results, at = work.result(), [], 0
        for shape in _received(work, group.size):
            count = int(np.prod(shape))
            results.append(flat[at : at + count].reshape(shape))
            at += count
        return tuple(results) if several else results[0]

    def pull(g: Any, ans: Any, _: Any, *xs: Any) -> Any:
        assert vjp is not None
        gs = list(g) if several else [g]
        return (None, *vjp(gs, ans if several else (ans,)))

    def push(ts: Any, ans: Any, _: Any, *xs: Any) -> Any:
        assert jvp is not None
        pushed = jvp(ts[1:], ans if several else (ans,))
        return tuple(pushed) if several else pushed[0]

    specs = tuple(
        [
            None if shape is None or found is None else spec(shape, found.dtype)
            for shape, found in zip(
                shapes, [graph._host.specs[one._slot] for one in operands], strict=True
            )
        ]
    )
    key = (id(group), kind, tuple(sorted(options.items())), factor is not None)
    op = Wait(
        wait,
        specs if several else specs[0],
        None if vjp is None else pull,
        None if jvp is None else push,
        key,
    )
    result = call_lifted(graph, op, [start, *operands], None, shared=True)
    return tuple(result) if several else (result,)


def _received(work: Work, size: int) -> list[tuple[int, ...]]:
    """Return the shapes of what this rank gets."""
    kind = work.request.kind
    return [received_shape(kind, shape, size) for shape in work.request.shapes]


def received_shape(kind: str, shape: Any, size: int) -> Any:
    """Return the shape of what a rank gets for one array that it gives."""
    if shape is None:
        return None
    if kind in ("gather", "all_gather"):
        if shape == ():
            return (size,)
        return (None if shape[0] is None else shape[0] * size, *shape[1:])
    if kind in ("scatter", "reduce_scatter"):
        return (None if shape[0] is None else shape[0] // size, *shape[1:])
    return shape


def shape_of(x: Any) -> Any:
    """Return the shape of a node as far as it is known without a run."""
    return known_shape(x)


def _label(x: Any) -> str:
    name = x.name
    return name if isinstance(name, str) else ""
