"""Functions built of several ops that take lengths from a value: those that it has later count, too.

``with_axes``, ``with_length`` and ``with_lengths`` say where a function has counted on one, and refuse another one
when it comes; ``spread_along`` and the places follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reactgrad._errors import IndexingError, ShapeError
from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend.numpy import _places_of_shape
from reactgrad.backend.numpy._places_of_shape import inserted, kept, triangle
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import LINEAR, Attrs, Op

add_kernels(_places_of_shape.register, _places_of_shape.register_standard)

_INDEX = np.dtype(np.intp)

# --- refusals ------------------------------------------------------------------------------------


def _check_lengths(
    shape: Sequence[int | None], name: str, axis: int, least: int, most: Any
) -> None:
    """Raise for a shape that does not fit; `axis` -1 stands for the number of axes."""
    found = len(shape) if axis < 0 else shape[axis] if axis < len(shape) else None
    if axis >= len(shape):
        raise ShapeError(f"{name}: a value of shape {tuple(shape)} has no axis {axis}.")
    if found is None or (least <= found and (most is None or found <= most)):
        return
    what = "number of axes" if axis < 0 else f"length of axis {axis}"
    wanted = f"{least}" if most == least else f"at least {least}"
    raise ShapeError(
        f"{name} was built for a value whose {what} is {wanted}, and that of shape {tuple(shape)} has {found}. "
        "Build it again for the new shape."
    )


def _infer_checked(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one,) = specs
    _check_lengths(one.shape, *attrs)
    return spec(one.shape, one.dtype, one.device)


def _checked_view(x: Any, *attrs: Any) -> Any:
    _check_lengths(x.shape, *attrs)
    return x[...]


CHECKED = Op(
    "with_lengths",
    _infer_checked,
    (lambda g, ans, x, *attrs: g,),
    (lambda t, ans, x, *attrs: t,),
    view=_checked_view,
)


def with_axes(name: str, x: Any) -> Any:
    """Return `x` as a node that refuses values with another number of axes than `x` has now."""
    return apply(CHECKED, (x,), (name, -1, x.ndim, x.ndim))


def with_length(name: str, x: Any, axis: int, length: int) -> Any:
    """Return `x` as a node that refuses values with another length along an axis, from the front."""
    return apply(CHECKED, (x,), (name, axis, length, length))


def with_least(name: str, x: Any, axis: int, length: int) -> Any:
    """Return `x` as a node that refuses values with a smaller length along an axis, from the front."""
    return apply(CHECKED, (x,), (name, axis, length, None))


# --- shapes --------------------------------------------------------------------------------------


def _replaced(shape: Sequence[int | None], axis: int, count: int) -> tuple[int | None, ...]:
    return (*shape[:axis], count, *shape[axis + 1 :])


def _infer_along(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one, like), (name, axis, count) = specs, attrs
    shape = _replaced(like.shape, axis, count)
    if len(one.shape) > len(shape) or any(
        n not in (m, 1, None) and m is not None
        for n, m in zip(one.shape[::-1], shape[::-1], strict=False)
    ):
        raise ShapeError(
            f"{name}: {one!r} cannot become {shape}; every length must be the same or 1 before."
        )
    return spec(shape, one.dtype, one.device)


def _along_view(x: Any, shape: Sequence[int], name: str, axis: int, count: int) -> Any:
    return np.broadcast_to(x, _replaced(tuple(shape), axis, count))  # type: ignore[arg-type]


SPREAD_ALONG = Op(
    "spread_along",
    _infer_along,
    (lambda g, ans, x, like, *attrs: g, None),
    (LINEAR, None),
    broadcasts=True,
    view=_along_view,
)


def spread_along(name: str, x: Any, like: Any, axis: int, count: int) -> Any:
    """Return `x` broadcast to the shape of `like` with `count` elements along an axis, from the front."""
    return apply(SPREAD_ALONG, (x, like), (name, axis, count))


# --- places --------------------------------------------------------------------------------------


def _check_places(
    name: str, places: Sequence[int], least: int, most: int, axis: int, n: int
) -> None:
    wrong = [place for place in places if not least <= place <= most]
    if wrong:
        raise IndexingError(f"{name} at {wrong[0]}: axis {axis} has length {n}.")


def _infer_inserted(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one,), (axis, which) = specs, attrs
    n = one.shape[axis]
    if n is not None:
        _check_places("insert", which, -n, n, axis, n)
    return spec((None if n is None else len(inserted(n, which)),), _INDEX, one.device)


def _infer_kept(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one,), (axis, which) = specs, attrs
    n = one.shape[axis]
    if n is not None and which[0] != "slice":
        _check_places("delete", which, -n, n - 1, axis, n)
    return spec((None if n is None else len(kept(n, which)),), _INDEX, one.device)


def _infer_diagonal(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one,) = specs
    if len(one.shape) < 2 or len({*one.shape} - {None}) > 1:
        raise ShapeError(
            f"diag_indices_from of shape {one.shape}: it takes two or more axes of one length."
        )
    n = next((n for n in one.shape if n is not None), None)
    return spec((n,), _INDEX, one.device)


def _infer_triangle(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one,) = specs
    if len(one.shape) != 2:
        name = "triu_indices_from" if attrs[1] else "tril_indices_from"
        raise ShapeError(f"{name} of shape {one.shape}: it needs a matrix.")
    m, n = one.shape
    count = None if m is None or n is None else triangle(m, n, *attrs).shape[1]
    return spec((2, count), _INDEX, one.device)


def _infer_numbers(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one,), (axis,) = specs, attrs
    return spec((one.shape[axis],), _INDEX, one.device)


_NONE = (None,)
# The numbers of the elements of an axis.
AXIS_NUMBERS = Op("axis_numbers", _infer_numbers, _NONE, _NONE)
# Of a value with other ones put in along an axis: the number of each element in both, joined.
INSERTED = Op("insert_places", _infer_inserted, _NONE, _NONE)
# The elements along an axis that stay when some are left out.
KEPT = Op("delete_places", _infer_kept, _NONE, _NONE)
DIAGONAL = Op("diagonal_places", _infer_diagonal, _NONE, _NONE)
TRIANGLE = Op("triangle_places", _infer_triangle, _NONE, _NONE)
