"""The cross product of vectors of two or three elements."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from reactgrad._errors import ShapeError
from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend.array_api import _cross as _standard
from reactgrad.backend.numpy import _cross
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import LINEAR, Attrs, Op
from reactgrad.ops._deferred import deferred
from reactgrad.ops._elementwise import multiply, negative, subtract
from reactgrad.ops._index import getitem
from reactgrad.ops._join import stack
from reactgrad.ops._layout import transpose
from reactgrad.ops._lengths import with_length
from reactgrad.ops._shapes import broadcast, common_device, normal_axis, operand_types, resolve
from reactgrad.ops.products._operands import variables

add_kernels(_cross.register, _standard.register)


def _infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    for one in specs:
        if one.shape[-1] not in (3, None):
            raise ShapeError(
                f"cross of {specs[0]!r} and {specs[1]!r}: the vectors had two or three elements when the node "
                "was built, and now have not."
            )
    shape = broadcast("cross", specs)
    product = resolve(np.multiply, operand_types(specs), "cross")[-1]
    dtype = resolve(np.subtract, (product, product), "cross")[-1]
    return spec((*shape[:-1], 3), dtype, common_device("cross", specs))


# Along the last axis, of length 3. The triple product `g . (a x b)` stays the same when its factors move on by one.
CROSS: Final = Op(
    "cross",
    _infer,
    (
        lambda g, ans, a, b: apply(CROSS, (b, g)),
        lambda g, ans, a, b: apply(CROSS, (g, a)),
    ),
    (LINEAR, LINEAR),
    broadcasts=True,
)


@deferred
def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Any:
    """Return the cross product of vectors.

    Parameters
    ----------
    a, b : Var or array_like
        Shapes that broadcast, but for the axes of the vectors, which have length 3, or 2 where the third
        element is 0.
    axisa, axisb, axisc : int
        The axes of the vectors in `a`, in `b`, and in the result.
    axis : int, optional
        All three of them.

    Returns
    -------
    Var
        The vectors; of two operands of length 2 their third elements only.

    Raises
    ------
    ShapeError
        If the vectors have another length, or the shapes do not broadcast.
    AxisError
        If an axis does not exist.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0])
    >>> y.value
    array([0., 0., 1.])
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = variables(a, b)
    a, b = _along_last(a, axisa), _along_last(b, axisb)
    m, n = a.shape[-1], b.shape[-1]
    if m not in (2, 3, None) or n not in (2, 3, None):
        raise ShapeError(
            f"cross of vectors with {m} and {n} elements: they have two or three. Name the axis of the vectors "
            "with axis=."
        )
    if 2 in (m, n):  # these are other formulas than that of vectors of three
        a = with_length("cross", a, a.ndim - 1, 3 if m is None else m)
        b = with_length("cross", b, b.ndim - 1, 3 if n is None else n)
    if m == n == 2:
        return _flat_product(a, b)
    found = _mixed(a, b) if 2 in (m, n) else apply(CROSS, (a, b))
    return _from_last(found, axisc)


def _along_last(x: Any, axis: Any) -> Any:
    at = normal_axis("cross", axis, x.ndim)
    last = x.ndim - 1
    return x if at == last else transpose(x, tuple([i for i in range(last + 1) if i != at] + [at]))


def _from_last(x: Any, axis: Any) -> Any:
    at, last = normal_axis("cross", axis, x.ndim), x.ndim - 1
    return x if at == last else transpose(x, (*range(at), last, *range(at, last)))


def _flat_product(a: Any, b: Any) -> Any:
    return subtract(multiply(_part(a, 0), _part(b, 1)), multiply(_part(a, 1), _part(b, 0)))


def _part(x: Any, i: int) -> Any:
    return getitem(x, (..., i))


def _mixed(a: Any, b: Any) -> Any:
    """Return the cross product where one operand has vectors of two elements."""
    if a.shape[-1] == 2:
        first = multiply(_part(a, 1), _part(b, 2))
        second = negative(multiply(_part(a, 0), _part(b, 2)))
    else:
        first = negative(multiply(_part(a, 2), _part(b, 1)))
        second = multiply(_part(a, 2), _part(b, 0))
    return stack([first, second, _flat_product(a, b)], -1)
