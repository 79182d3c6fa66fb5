"""Matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._errors import ShapeError
from reactgrad.backend import Spec, spec
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import LINEAR, Attrs, Op
from reactgrad.ops._elementwise import UFUNCS
from reactgrad.ops._layout import expand_dims, squeeze, swap_last
from reactgrad.ops._shapes import broadcast, common_device, operand_types, resolve


def _infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    a, b = specs
    if not a.shape or not b.shape:
        raise ShapeError(
            f"matmul of {a!r} and {b!r}: both need at least one axis; use * for numbers."
        )
    rows = a.shape[-2:-1]
    columns = b.shape[-1:] if len(b.shape) > 1 else ()
    inner_a, inner_b = a.shape[-1], b.shape[-min(len(b.shape), 2)]
    if inner_a != inner_b and inner_a is not None and inner_b is not None:
        raise ShapeError(
            f"matmul of {a!r} and {b!r}: the last axis of the first ({inner_a}) and the "
            f"{'last but one' if len(b.shape) > 1 else 'only'} axis of the second ({inner_b}) "
            "must have the same length. Transpose one with .T if that is what is meant."
        )
    batch = broadcast("matmul", [spec(one.shape[:-2], one.dtype, one.device) for one in specs])
    dtype = resolve(np.matmul, operand_types(specs))[-1]
    return spec((*batch, *rows, *columns), dtype, common_device("matmul", specs))


def _as_matrices(g: Any, a: Any, b: Any) -> tuple[Any, Any, Any]:
    """Return all three with vectors as matrices of one row or one column."""
    if a.ndim == 1:
        a, g = expand_dims(a, 0), expand_dims(g, -1 if b.ndim == 1 else -2)
    if b.ndim == 1:
        b, g = expand_dims(b, 1), expand_dims(g, -1)
    return g, a, b


def first_rule(g: Any, ans: Any, a: Any, b: Any) -> Any:
    """Return the gradient of the first operand of a matrix product."""
    g, _, matrix = _as_matrices(g, a, b)
    out = g @ swap_last(matrix)
    return squeeze(out, -2) if a.ndim == 1 else out


def second_rule(g: Any, ans: Any, a: Any, b: Any) -> Any:
    """Return the gradient of the second operand of a matrix product."""
    g, matrix, _ = _as_matrices(g, a, b)
    out = swap_last(matrix) @ g
    return squeeze(out, -1) if b.ndim == 1 else out


MATMUL = Op("matmul", _infer, (first_rule, second_rule), (LINEAR, LINEAR), broadcasts=True)


def matmul(x: Any, y: Any, /) -> Any:
    """Return the matrix product; leading axes broadcast, vectors count as one row or one column.

    Parameters
    ----------
    x : Var or array_like
        Shape (..., m, k) or (k,).
    y : Var or array_like
        Shape (..., k, n) or (k,).

    Returns
    -------
    Var
        Shape (..., m, n), without the axes that a vector lacks.

    Raises
    ------
    ShapeError
        If the inner lengths differ, or one operand is a number.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.matmul([[1.0, 2.0]], [[3.0], [4.0]])
    >>> y.value
    array([[11.]])
    """
    return apply(MATMUL, (x, y))


UFUNCS[np.matmul] = matmul
