"""A matrix product plus a bias, as one op."""

from __future__ import annotations

from typing import Any

from reactgrad.backend import Spec
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Attrs, Op
from reactgrad.ops._elementwise import ELEMENTWISE
from reactgrad.ops._layout import known_shape
from reactgrad.ops._matmul import MATMUL, first_rule, matmul, second_rule
from reactgrad.ops._reduce import sum_to


def _infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    product = MATMUL.result(specs[:2], ())
    return ELEMENTWISE["add"].result((product, specs[2]), ())


def _of_product(g: Any, ans: Any, x: Any, w: Any) -> Any:
    """Return the gradient of ``x @ w``: `g`, summed over the axes that the bias has added."""
    specs = x._graph._host.specs
    # If both shapes are known, the product needs no node of its own to give its shape.
    operands = specs[x._slot], specs[w._slot]
    if None not in operands and MATMUL.result(operands, ()).shape == known_shape(ans):
        return g
    return sum_to(g, x @ w)


LINEAR_OP = Op(
    "linear",
    _infer,
    (
        lambda g, ans, x, w, b: first_rule(_of_product(g, ans, x, w), ans, x, w),
        lambda g, ans, x, w, b: second_rule(_of_product(g, ans, x, w), ans, x, w),
        lambda g, ans, x, w, b: g,
    ),
    (
        lambda t, ans, x, w, b: t @ w,
        lambda t, ans, x, w, b: x @ t,
        lambda t, ans, x, w, b: t,
    ),
    broadcasts=True,
)


def linear(x: Any, w: Any, b: Any, /) -> Any:
    """Return ``x @ w + b``, or ``x @ w`` for no bias.

    Parameters
    ----------
    x : Var or array_like
        Shape (..., m, k) or (k,).
    w : Var or array_like
        Shape (..., k, n) or (k,).
    b : Var, array_like or None
        Of a shape that broadcasts with that of ``x @ w``; ``None`` for none.

    Returns
    -------
    Var
        Shape (..., m, n), without the axes that a vector lacks.

    Raises
    ------
    ShapeError
        If the shapes do not fit.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.linear([[1.0, 2.0]], [[3.0], [4.0]], [0.5])
    >>> y.value
    array([[11.5]])
    """
    return matmul(x, w) if b is None else apply(LINEAR_OP, (x, w, b))
