"""Ops of users' own, in a module that can be imported."""

from __future__ import annotations

from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad import extend


@extend.primitive("test_cube", lambda x: x, elementwise=True)
def cube(x: Any, out: Any) -> None:
    """The third power."""
    np.power(x, 3.0, out)


extend.defvjp(cube, lambda g, ans, x: 3.0 * g * x * x)
extend.defjvp(cube, lambda t, ans, x: 3.0 * t * x * x)


def _rolled(x: Any, shift: int, axis: int) -> Any:
    if not x.shape:
        raise rg.ShapeError("test_roll of a number: it has no axis.")
    return x


@extend.primitive("test_roll", _rolled, numpy=np.roll)
def roll(a: Any, out: Any, shift: Any, axis: Any = 0) -> None:
    out[...] = np.roll(a, shift, axis)


extend.defvjp(roll, lambda g, ans, a, shift, axis: roll(g, shift=-shift, axis=axis))
extend.defjvp(roll, "linear")


def _outer_spec(x: Any, y: Any) -> Any:
    dtype = np.result_type(x.dtype, y.dtype)
    return extend.spec((*x.shape, *y.shape), dtype, x.device)


@extend.primitive("test_outer", _outer_spec)
def outer(x: Any, y: Any, out: Any) -> None:
    np.multiply.outer(x, y, out=out)


extend.defvjp(outer, lambda g, ans, x, y: g @ y, lambda g, ans, x, y: x @ g)
extend.defjvp(outer, "linear", "linear")

distance = extend.primitive("test_distance", extend.broadcast, elementwise=True)(
    lambda x, y, out: np.hypot(x, y, out)
)
extend.defvjp(distance, lambda g, ans, x, y: g * x / ans, lambda g, ans, x, y: g * y / ans)
extend.defjvp(distance, lambda t, ans, x, y: t * x / ans, lambda t, ans, x, y: t * y / ans)
