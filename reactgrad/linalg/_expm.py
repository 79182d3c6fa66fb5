"""The matrix exponential; it and its derivatives of any order are one op."""

from __future__ import annotations

from typing import Any

from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend.array_api._on_host import on_host
from reactgrad.backend.numpy import _expm as kernels
from reactgrad.linalg._matrices import float_dtype, square_shape
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Attrs, Op, RuleOfAll
from reactgrad.ops._layout import swap_last
from reactgrad.ops._shapes import common_device


def _infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    batch, n = square_shape("expm", specs[0])
    dtype = float_dtype("expm", *[one.dtype for one in specs])
    return spec((*batch, n, n), dtype, common_device("expm", specs))


def _rules(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
    # The adjoint of a derivative is that at the transpose.
    turned = [swap_last(one) for one in operands]
    return lambda i, g: apply(EXPM, (*_without(turned, i), g))


def _forward_rules(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
    return lambda i, t: apply(EXPM, (*_without(list(operands), i), t))


def _without(operands: list[Any], i: int) -> list[Any]:
    """Return all operands but a direction; the matrix itself, at 0, stays."""
    return operands if i == 0 else operands[:i] + operands[i + 1 :]


# Operands: a matrix, and the directions along which the exponential is differentiated, none or more.
EXPM = Op("expm", _infer, variadic=_rules, variadic_jvp=_forward_rules)


def expm(a: Any) -> Any:
    """Return the exponentials of matrices.

    Parameters
    ----------
    a : Var or array_like
        Shape (..., n, n).

    Returns
    -------
    Var
        In the shape of `a`; integers give float64. By scaling and squaring (Higham, 2005), gradients
        by the same recurrences (Al-Mohy and Higham, 2009).

    Raises
    ------
    LinAlgError
        If `a` holds no square matrices; a ``ShapeError``, too.
    DTypeError
        For half floats.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.linalg.expm([[0.0, 1.0], [0.0, 0.0]])
    >>> y.value
    array([[1., 1.],
           [0., 1.]])
    """
    return apply(EXPM, (a,))


add_kernels(kernels.register, on_host(kernels.NAMES))
