"""One element of each row, by its number; and the reverse, an element put into a row of zeros."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._errors import ShapeError
from reactgrad.backend import Spec, spec
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import LINEAR, Attrs, Op
from reactgrad.ops._shapes import common_device, normal_axis


def _infer_pick(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    x, numbers = specs
    axis = normal_axis("pick", attrs[0], len(x.shape))
    rows = (*x.shape[:axis], *x.shape[axis + 1 :])
    if not agree(numbers.shape, rows):
        raise ShapeError(
            f"integers that choose from {x!r} along axis {axis} have the shape {rows}, one for each "
            f"row, and not {numbers.shape}."
        )
    return spec(rows, x.dtype, common_device("pick", specs))


def agree(one: tuple[int | None, ...], other: tuple[int | None, ...]) -> bool:
    """Return whether two shapes are the same, as far as they are known."""
    return len(one) == len(other) and all(
        m == n or m is None or n is None for m, n in zip(one, other, strict=True)
    )


def _infer_place(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    g, _, like = specs
    return spec(like.shape, g.dtype, g.device)


def _dtypes(specs: tuple[Spec, ...]) -> tuple[Any, ...]:
    return (specs[0].dtype, np.dtype(np.intp), *[one.dtype for one in specs[2:]])


PICK = Op(
    "pick",
    _infer_pick,
    (lambda g, ans, x, numbers, axis: apply(PLACE, (g, numbers, x), (axis,)), None),
    (LINEAR, None),
    loop_dtypes=_dtypes,
)

PLACE = Op(
    "place",
    _infer_place,
    (lambda g, ans, one, numbers, like, axis: pick(g, numbers, axis), None, None),
    (LINEAR, None, None),
    loop_dtypes=_dtypes,
)


def pick(x: Any, numbers: Any, axis: int) -> Any:
    """Return from each row along `axis` the element with the row's number."""
    return apply(PICK, (x, numbers), (axis,))
