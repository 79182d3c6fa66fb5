"""Linear systems and inverses.

A system of one matrix has two nodes: the factors of the matrix, which do not change with the right side, and
the solution. Gradients and tangents of any order use the same factors. A batch of matrices is solved
in one call, which keeps no factors.
"""

from __future__ import annotations

from math import prod
from typing import Any

from reactgrad._calls import whole
from reactgrad._errors import MatrixShapeError
from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend.array_api._on_host import on_host
from reactgrad.backend.numpy import _factor as kernels
from reactgrad.linalg._matrices import alike, float_dtype, nodes, real_dtype, square_shape
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Attrs, Op, RuleOfAll
from reactgrad.ops._deferred import deferred
from reactgrad.ops._layout import reshape, squeeze, swap_last, transpose
from reactgrad.ops._operand import node
from reactgrad.ops._shapes import broadcast, common_device, normal_axes


def infer_solution(name: str, specs: tuple[Spec, ...]) -> Spec:
    """Return the spec of the solutions of square systems; a right side with one axis is a vector."""
    a, b = specs
    batch, n = square_shape(name, a)
    if not b.shape:
        raise MatrixShapeError(
            f"{name} of {a!r} and {b!r}: the right side needs at least one axis."
        )
    vector = len(b.shape) == 1
    rows = b.shape[0] if vector else b.shape[-2]
    if n != rows and n is not None and rows is not None:
        hint = " Several vectors are columns of a matrix: b[..., None]." if not vector else ""
        raise MatrixShapeError(
            f"{name} of {a!r} and {b!r}: the matrix has {n} rows and the right side {rows}.{hint}"
        )
    n = rows if n is None else n
    dtype, device = float_dtype(name, a.dtype, b.dtype), common_device(name, specs)
    if vector:
        return spec((*batch, n), dtype, device)
    both = [spec(batch, dtype, device), spec(b.shape[:-2], dtype, device)]
    return spec((*broadcast(name, both), n, b.shape[-1]), dtype, device)


def as_columns(x: Any, vector: bool) -> Any:
    """Return right sides, or what has their shape, as matrices."""
    return x[..., None] if vector else x


def as_given(x: Any, vector: bool) -> Any:
    """Return a matrix of one column as a vector, where the right side is one."""
    return squeeze(x, -1) if vector else x


def _rules(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
    a, b = operands
    vector = b.ndim == 1
    found: dict[int, Any] = {}

    def rule(i: int, g: Any) -> Any:
        right = found.get(g._slot)  # one solution serves both operands
        if right is None:
            right = found[g._slot] = apply(SOLVE, (swap_last(a), as_columns(g, vector)))
        if i == 1:
            return as_given(right, vector)
        return -(right @ swap_last(as_columns(ans, vector)))

    return rule


def _jvp(t: Any, ans: Any, a: Any, b: Any) -> Any:
    vector = b.ndim == 1
    return -as_given(apply(SOLVE, (a, t @ as_columns(ans, vector))), vector)


def _forward_rules(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
    a, b = operands
    return lambda i, t: apply(SOLVE, (a, t)) if i else _jvp(t, ans, a, b)


SOLVE = Op(
    "solve",
    lambda specs, attrs: infer_solution("solve", specs),
    variadic=_rules,
    variadic_jvp=_forward_rules,
    broadcasts=True,
)


def _infer_factors(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    n = square_shape("solve", specs[0])[1]
    return spec((None if n is None else n * n + n,), attrs[0], specs[0].device)


def _infer_by_factors(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    return infer_solution("solve", specs[1:])


def _by_factors_rules(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
    (factors, a, b), (transposed,) = operands, attrs
    vector = b.ndim == 1
    found: dict[int, Any] = {}

    def rule(i: int, g: Any) -> Any:
        if i == 0:
            return None
        right = found.get(g._slot)
        if right is None:
            right = found[g._slot] = apply(LU_SOLVE, (factors, a, g), (not transposed,))
        if i == 2:
            return right
        right, x = as_columns(right, vector), as_columns(ans, vector)
        return -(x @ swap_last(right) if transposed else right @ swap_last(x))

    return rule


def _by_factors_tangents(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
    (factors, a, _), (transposed,) = operands, attrs

    def rule(i: int, t: Any) -> Any:
        if i == 0:
            return None
        if i == 1:
            t = -((swap_last(t) if transposed else t) @ ans)
        return apply(LU_SOLVE, (factors, a, t), attrs)

    return rule


LU_FACTOR = Op("lu_factor", _infer_factors, (None,), (None,))
LU_SOLVE = Op(
    "lu_solve", _infer_by_factors, variadic=_by_factors_rules, variadic_jvp=_by_factors_tangents
)


def _inv_rule(g: Any, ans: Any, a: Any, strict: bool) -> Any:
    turned = swap_last(ans)
    return -(turned @ g @ turned)


def _inv_jvp(t: Any, ans: Any, a: Any, strict: bool) -> Any:
    return -(ans @ t @ ans)


INV = Op("inv", alike("inv"), (_inv_rule,), (_inv_jvp,))


def inverse(a: Any, *, strict: bool = False) -> Any:
    """Return inverses; of a singular matrix NaN, or, if `strict`, an error for the whole batch."""
    return apply(INV, (a,), (strict,))


@deferred
def solve(a: Any, b: Any) -> Any:
    """Return `x` with ``a @ x == b``.

    One matrix is factorised once, for the solution, its gradients and all later right sides: a change of `b`
    alone only substitutes. Systems built inside of one ``g.reuse()`` share the factors, too. This is so where
    SciPy is installed; elsewhere, and in a batch of matrices, each solution is one call of NumPy, which
    factorises. A solution may differ between the two in its last bits, within the same bound of the
    backward error.

    Parameters
    ----------
    a : Var or array_like
        Shape (..., n, n): regular matrices.
    b : Var or array_like
        Shape (n,) for one vector, else (..., n, k): the columns are right sides. Leading axes broadcast.

    Returns
    -------
    Var
        Shape (..., n) for one vector, else (..., n, k); integers give float64.

    Raises
    ------
    LinAlgError
        When read, if a matrix is singular; at once (``ShapeError``, too) if the shapes do not fit.
    DTypeError
        For half floats.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     x = rg.linalg.solve([[2.0, 0.0], [1.0, 1.0]], [4.0, 5.0])
    >>> x.value
    array([2., 3.])
    """
    a, b = nodes((a, b))
    if a.ndim != 2 or b.ndim not in (1, 2):
        return apply(SOLVE, (a, b))
    dtype = str(
        float_dtype("solve", a.dtype, b.dtype if b.dtype.kind != "c" else real_dtype(b.dtype))
    )
    return apply(LU_SOLVE, (apply(LU_FACTOR, (a,), (dtype,)), a, b), (False,))


def inv(a: Any) -> Any:
    """Return the inverses of matrices.

    Parameters
    ----------
    a : Var or array_like
        Shape (..., n, n): regular matrices.

    Returns
    -------
    Var
        In the shape of `a`; integers give float64.

    Raises
    ------
    LinAlgError
        When read, if a matrix is singular; at once (``ShapeError``, too) for other shapes.
    DTypeError
        For half floats.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.linalg.inv([[2.0, 0.0], [0.0, 4.0]])
    >>> y.value
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    return inverse(a, strict=True)


def _known(x: Any) -> tuple[int, ...]:
    """Return a shape whose lengths are all known."""
    if None in x.shape:
        raise x._unknown_length()
    return x.shape


def tensorinv(a: Any, ind: int = 2) -> Any:
    """Return the inverse of a tensor as a map from its last axes to its first `ind` ones.

    Parameters
    ----------
    a : Var or array_like
        As many elements along the first `ind` axes as along the others.
    ind : int
        The number of the first axes; above 0.

    Returns
    -------
    Var
        Shape ``a.shape[ind:] + a.shape[:ind]``.

    Raises
    ------
    LinAlgError
        When read, if the map is singular; at once (``ShapeError``, too) if it is not square.

    Examples
    --------
    >>> import numpy as np
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.linalg.tensorinv(np.eye(6).reshape(6, 2, 3), ind=1)
    >>> y.shape
    (2, 3, 6)
    """
    a = node(a)
    ind, shape = whole("tensorinv", "ind", ind, 1), _known(a)
    first, last = shape[:ind], shape[ind:]
    return reshape(inv(reshape(a, (-1, prod(last)))), (*last, *first))


def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    """Return `x` with ``tensordot(a, x, x.ndim) == b``.

    Parameters
    ----------
    a : Var or array_like
        Shape ``b.shape + x.shape``, with as many elements in the one as in the other.
    b : Var or array_like
        Any shape.
    axes : tuple of int, optional
        Axes of `a` that are moved to its end first.

    Returns
    -------
    Var
        The shape of the last axes of `a`.

    Raises
    ------
    LinAlgError
        When read, if the map is singular; at once (``ShapeError``, too) if it is not square.

    Examples
    --------
    >>> import numpy as np
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     x = rg.linalg.tensorsolve(2.0 * np.eye(6).reshape(6, 2, 3), np.ones(6))
    >>> x.value
    array([[0.5, 0.5, 0.5],
           [0.5, 0.5, 0.5]])
    """
    a, b = nodes((a, b))
    if axes is not None:
        last = normal_axes("tensorsolve", axes, a.ndim)
        a = transpose(a, (*[i for i in range(a.ndim) if i not in last], *last))
    shape = _known(a)[b.ndim :]
    size = prod(shape)
    if prod(_known(b)) != size:
        raise MatrixShapeError(
            f"tensorsolve: the first axes of a, {a.shape[: b.ndim]}, must be those of b, {b.shape}, and hold "
            f"as many elements as the last ones, {shape}."
        )
    rows = prod(_known(a)[: b.ndim])
    return reshape(solve(reshape(a, (rows, size)), reshape(b, -1)), shape)


add_kernels(kernels.register, on_host(kernels.NAMES))
