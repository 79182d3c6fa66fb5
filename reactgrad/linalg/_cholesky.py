"""Cholesky factors, and systems whose matrix has triangular factors."""

from __future__ import annotations

from typing import Any

from reactgrad._errors import ParameterError
from reactgrad.linalg._matrices import (
    adjoint,
    alike,
    conjugate,
    hermitian_part,
    nodes,
    triangle,
)
from reactgrad.linalg._solve import as_columns, as_given, infer_solution
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Attrs, Op, RuleOfAll
from reactgrad.ops._deferred import deferred
from reactgrad.ops._layout import swap_last
from reactgrad.scheduler import safe_repr

_TRANS = {0: 0, 1: 1, 2: 2, "N": 0, "T": 1, "C": 2}

# --- triangular systems ------------------------------------------------------------------------


def _rules(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
    (a, b), (lower, transposed, unit) = operands, attrs
    vector = b.ndim == 1
    found: dict[int, Any] = {}

    def rule(i: int, g: Any) -> Any:
        right = found.get(g._slot)  # one solution serves both operands
        if right is None:
            columns = as_columns(g, vector)
            right = apply(SOLVE_TRIANGULAR, (a, columns), (lower, not transposed, unit))
            found[g._slot] = right
        if i == 1:
            return as_given(right, vector)
        x = as_columns(ans, vector)
        outer = x @ swap_last(right) if transposed else right @ swap_last(x)
        return -triangle(outer, lower, 0.0 if unit else 1.0)

    return rule


def _forward_rules(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
    (a, b), (lower, transposed, unit) = operands, attrs
    vector = b.ndim == 1

    def rule(i: int, t: Any) -> Any:
        if i == 1:
            return apply(SOLVE_TRIANGULAR, (a, t), attrs)
        t = triangle(t, lower, 0.0 if unit else 1.0)
        moved = (swap_last(t) if transposed else t) @ as_columns(ans, vector)
        return -as_given(apply(SOLVE_TRIANGULAR, (a, moved), attrs), vector)

    return rule


SOLVE_TRIANGULAR = Op(
    "solve_triangular",
    lambda specs, attrs: infer_solution("solve_triangular", specs),
    variadic=_rules,
    variadic_jvp=_forward_rules,
    broadcasts=True,
)


@deferred
def solve_triangular(
    a: Any, b: Any, trans: int | str = 0, lower: bool = False, unit_diagonal: bool = False
) -> Any:
    """Return `x` with ``a @ x == b`` for a triangular matrix.

    Parameters
    ----------
    a : Var or array_like
        Shape (..., n, n); what lies outside the triangle is not read.
    b : Var or array_like
        Shape (n,) for one vector, else (..., n, k). Leading axes broadcast.
    trans : {0, 1, 2} or {"N", "T", "C"}
        The system has the matrix itself, its transpose, or its conjugate transpose.
    lower : bool
        Which triangle of `a` is read.
    unit_diagonal : bool
        Whether the diagonal counts as ones and is not read.

    Returns
    -------
    Var
        Shape (..., n) for one vector, else (..., n, k).

    Raises
    ------
    LinAlgError
        When read, if a diagonal holds a zero; at once (``ShapeError``, too) if the shapes do not fit.
    DTypeError
        For half floats, or another `trans`.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     x = rg.linalg.solve_triangular([[2.0, 0.0], [1.0, 1.0]], [4.0, 5.0], lower=True)
    >>> x.value
    array([2., 3.])
    """
    a, b = nodes((a, b))
    kind = _TRANS.get(trans) if isinstance(trans, int | str) else None
    if kind is None:
        raise ParameterError(
            f"solve_triangular: trans={safe_repr(trans)}; it is 0, 1 or 2, or 'N', 'T' or 'C'."
        )
    if kind == 2:
        a = conjugate(a)
    return apply(SOLVE_TRIANGULAR, (a, b), (bool(lower), kind > 0, bool(unit_diagonal)))


# --- factors -----------------------------------------------------------------------------------


def _lower(x: Any, upper: bool) -> Any:
    """Return a factor, or what belongs to one, as that of the lower triangle."""
    return adjoint(x) if upper else x


def _cholesky_rule(g: Any, ans: Any, a: Any, upper: bool) -> Any:
    # Murray, "Differentiation of the Cholesky decomposition" (2016), eq. 10.
    factor, g = _lower(ans, upper), conjugate(_lower(g, upper))
    half = triangle(adjoint(factor) @ g, True, 0.5)
    left = solve_triangular(factor, half + adjoint(half), "C", True)
    both = solve_triangular(factor, adjoint(left), "C", True)
    return conjugate(adjoint(both)) * 0.5


def _cholesky_jvp(t: Any, ans: Any, a: Any, upper: bool) -> Any:
    factor = _lower(ans, upper)
    left = solve_triangular(factor, hermitian_part(t), 0, True)
    both = solve_triangular(factor, adjoint(left), 0, True)
    return _lower(factor @ triangle(adjoint(both), True, 0.5), upper)


CHOLESKY = Op("cholesky", alike("cholesky"), (_cholesky_rule,), (_cholesky_jvp,))


def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    """Return the triangular factor `l` of positive definite matrices, ``a == l @ l^H``.

    Parameters
    ----------
    a : Var or array_like
        Shape (..., n, n): Hermitian matrices, of which one triangle is read. Gradients and tangents are those
        of a function of Hermitian matrices: Hermitian, as the matrix is.
    upper : bool
        Whether to read the upper triangle and return the upper factor `u`, ``a == u^H @ u``.

    Returns
    -------
    Var
        In the shape of `a`; integers give float64.

    Raises
    ------
    LinAlgError
        When read, if a matrix is not positive definite; at once (``ShapeError``, too) for other shapes.
    DTypeError
        For half floats.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.linalg.cholesky([[4.0, 2.0], [2.0, 5.0]])
    >>> y.value
    array([[2., 0.],
           [1., 2.]])
    """
    return apply(CHOLESKY, (a,), (bool(upper),))


@deferred
def cho_solve(c_and_lower: tuple[Any, bool], b: Any) -> Any:
    """Return `x` with ``a @ x == b``, from the Cholesky factor of `a`.

    Parameters
    ----------
    c_and_lower : (Var or array_like, bool)
        The factor, of shape (..., n, n), and whether it is the lower one.
    b : Var or array_like
        Shape (n,) for one vector, else (..., n, k). Leading axes broadcast.

    Returns
    -------
    Var
        Shape (..., n) for one vector, else (..., n, k).

    Raises
    ------
    LinAlgError
        When read, if a diagonal holds a zero; at once (``ShapeError``, too) if the shapes do not fit.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     factor = rg.linalg.cholesky([[4.0, 2.0], [2.0, 5.0]])
    ...     x = rg.linalg.cho_solve((factor, True), [6.0, 7.0])
    >>> x.value
    array([1., 1.])
    """
    if not isinstance(c_and_lower, tuple | list) or len(c_and_lower) != 2:
        raise ParameterError(
            f"cho_solve({safe_repr(c_and_lower):.60}, b): the first argument is a factor and whether it is the lower "
            "one. Write rg.linalg.cho_solve((L, True), b) for L = rg.linalg.cholesky(a)."
        )
    factor, lower = c_and_lower
    factor, b = nodes((factor, b))
    first = solve_triangular(factor, b, "N" if lower else "C", lower)
    return as_given(
        solve_triangular(factor, as_columns(first, b.ndim == 1), "C" if lower else "N", lower),
        b.ndim == 1,
    )
