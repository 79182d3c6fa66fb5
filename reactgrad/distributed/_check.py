"""Gradients across ranks, compared with finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from reactgrad._errors import GradientError
from reactgrad.distributed._group import Group
from reactgrad.distributed._group import group as present_group
from reactgrad.graph._graph import Graph
from reactgrad.transforms._transforms import grad, jvp


def check_grads(
    function: Callable[..., Any],
    arguments: Any,
    group: Group | None = None,
    *,
    order: int = 2,
    eps: float = 1e-6,
    rtol: float = 1e-5,
    atol: float = 1e-6,
) -> None:
    """Compare derivatives across ranks with finite differences; all ranks call it together.

    One element of one argument of one rank after the other is moved, while all ranks watch the sum of their
    outputs.

    Parameters
    ----------
    function : callable
        Builds a node from Vars.
    arguments : sequence of array_like
        Those of this rank, of one shape on all ranks.
    group : Group, optional
    order : int
        Up to which order: 1 or 2.
    eps : float
        The step of the finite differences.
    rtol, atol : float
        How near they must be.

    Raises
    ------
    GradientError
        If a derivative differs; on all ranks.

    Examples
    --------
    >>> import reactgrad as rg
    >>> def work(group):
    ...     f = lambda x: rg.distributed.all_reduce(x, "product", group)
    ...     rg.distributed.check_grads(f, [[1.5, group.rank + 2.0]], group)
    >>> rg.distributed.run(work, "local:2")
    [None, None]
    """
    group = present_group() if group is None else group
    values = [np.array(one, np.float64) for one in arguments]
    g = Graph()
    xs = [g.input(one.copy()) for one in values]
    y = function(*xs)
    weights = np.cos(1.0 + group.rank + np.arange(int(np.prod(y.shape)))).reshape(y.shape)
    target = (y * weights).sum()
    _compare(group, target, xs, values, eps, rtol, atol, "first")
    # Forward mode: along a direction of all ranks at once.
    directions = [
        np.sin(2.0 + group.rank + np.arange(one.size)).reshape(one.shape) for one in values
    ]
    tangent: Any = 0.0
    for x, direction in zip(xs, directions, strict=True):
        tangent = tangent + jvp(target, x, direction)
    slopes = [(grad(target, x) * d).sum() for x, d in zip(xs, directions, strict=True)]
    slope: Any = sum(slopes[1:], slopes[0])
    along = group.move("all_reduce", [float(tangent.value)], reduction="sum")[0]
    back = group.move("all_reduce", [float(slope.value)], reduction="sum")[0]
    if not np.isclose(along, back, rtol, atol):
        raise GradientError(
            f"forward mode gives {along} across the ranks, and reverse mode {back}. Look at the jvp of "
            "the functions in it."
        )
    if order > 1:
        _compare(group, slope, xs, values, eps, rtol, 100.0 * atol, "second")


def _compare(
    group: Group,
    target: Any,
    xs: Any,
    values: Any,
    eps: float,
    rtol: float,
    atol: float,
    which: str,
) -> None:
    grads = grad(target, xs, allow_unused=True)
    found = [
        np.zeros(v.shape) if d is None else d.value for d, v in zip(grads, values, strict=True)
    ]
    worst, where = 0.0, None
    for rank in range(group.size):
        for i, value in enumerate(values):
            for at in np.ndindex(value.shape):
                ends = []
                for step in (eps, -eps):
                    if group.rank == rank:
                        moved = value.copy()
                        moved[at] += step
                        xs[i].set(moved)
                    ends.append(group.move("all_reduce", [float(target.value)], reduction="sum")[0])
                if group.rank == rank:
                    xs[i].set(value)
                    expected, got = (ends[0] - ends[1]) / (2.0 * eps), float(found[i][at])
                    off = abs(expected - got) - rtol * abs(expected) - atol
                    if off > worst:
                        worst, where = off, (i, at, got, expected)
    told = group.all_gather_object(None if where is None else (group.rank, *where))
    for one in told:
        if one is not None:
            rank, i, at, got, expected = one
            raise GradientError(
                f"{which} derivative for argument {i + 1} at {at} of rank {rank} is {got}, and finite "
                f"differences give {expected}. Look at the rules of the functions in it."
            )
