"""Functions with two results: divmod, modf, frexp.

Each result is a node of its own, and computed alone where only one is read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad.backend import Spec, in_blocks, spec
from reactgrad.nodes._handle import Handle, apply, current_graph, graph_of, stacked
from reactgrad.nodes._op import Attrs, Infer, Op, Vjp
from reactgrad.ops._elementwise import floor_divide, negative, remainder
from reactgrad.ops._shapes import operand_types, resolve, ufunc_loop
from reactgrad.ops.special._ufuncs import ldexp


def _part(name: str, ufunc: np.ufunc, part: int, rule: Vjp | None) -> Op:
    """Return the op of one result of a ufunc of one operand."""

    def infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
        (one,) = specs
        dtypes = resolve(ufunc, operand_types(specs), ufunc.__name__)
        return spec(one.shape, dtypes[1 + part], one.device)

    found: Infer = infer
    return Op(name, found, (rule,), (rule,), elementwise=True, loop_dtypes=ufunc_loop(ufunc))


def _mantissa_rule(g: Any, ans: Any, x: Any) -> Any:
    return ldexp(g, negative(apply(EXPONENT, (x,))))


FRACTION = _part("modf_fraction", np.modf, 0, lambda g, ans, x: g)
WHOLE = _part("modf_whole", np.modf, 1, None)
MANTISSA = _part("frexp_mantissa", np.frexp, 0, _mantissa_rule)
EXPONENT = _part("frexp_exponent", np.frexp, 1, None)
in_blocks((one.name for one in (FRACTION, WHOLE, MANTISSA, EXPONENT)), 4.0)


def shared(x: Any) -> Any:
    """Return an operand as one node, so that several ops have it in common."""
    x = stacked(x)
    return x if isinstance(x, Handle) else current_graph().const(x)


def together(*operands: Any) -> list[Any]:
    """Return operands as nodes of one graph."""
    found = [stacked(one) for one in operands]
    graph = graph_of(found)
    return [one if isinstance(one, Handle) else graph.const(one) for one in found]


def divmod(x: Any, y: Any, /) -> tuple[Any, Any]:
    """Return the largest integer not above ``x / y``, and what is left.

    Parameters
    ----------
    x, y : Var or array_like
        Any shapes that broadcast together; real numbers.

    Returns
    -------
    tuple of Var
        As ``floor_divide`` and ``remainder`` give them, of the broadcast shape.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     quotient, rest = rg.divmod([7.0, -7.0], 4.0)
    >>> quotient.value, rest.value
    (array([ 1., -2.]), array([3., 1.]))
    """
    return floor_divide(x, y), remainder(x, y)


def modf(x: Any, /) -> tuple[Any, Any]:
    """Return the parts of numbers after and before the point, both with the sign of the number.

    Parameters
    ----------
    x : Var or array_like
        Any shape; real numbers, integers give floats.

    Returns
    -------
    tuple of Var
        In the shape of `x`. The gradient passes the first one.

    Raises
    ------
    DTypeError
        For complex numbers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     fraction, whole = rg.modf([1.5, -2.25])
    >>> fraction.value, whole.value
    (array([ 0.5 , -0.25]), array([ 1., -2.]))
    """
    x = shared(x)
    return apply(FRACTION, (x,)), apply(WHOLE, (x,))


def frexp(x: Any, /) -> tuple[Any, Any]:
    """Return numbers as ``mantissa * 2**exponent``, with a mantissa from 0.5 to 1 or its negative.

    Parameters
    ----------
    x : Var or array_like
        Any shape; real numbers, integers give floats.

    Returns
    -------
    tuple of Var
        Mantissas and exponents, int32, in the shape of `x`. The gradient passes the mantissa.

    Raises
    ------
    DTypeError
        For complex numbers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     mantissa, exponent = rg.frexp([1.0, -6.0])
    >>> mantissa.value, exponent.value
    (array([ 0.5 , -0.75]), array([1, 3], dtype=int32))
    """
    x = shared(x)
    return apply(MANTISSA, (x,)), apply(EXPONENT, (x,))
