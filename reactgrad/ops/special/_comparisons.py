"""Questions about numbers and about pairs of arrays, answered with booleans."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._calls import real_number
from reactgrad._errors import DTypeError
from reactgrad.backend import Spec, add_kernels, in_blocks, spec
from reactgrad.backend.array_api._on_host import on_host
from reactgrad.backend.numpy import _comparisons
from reactgrad.nodes._handle import apply, graph_of
from reactgrad.nodes._op import Attrs, Op
from reactgrad.ops._complex import imag
from reactgrad.ops._deferred import deferred
from reactgrad.ops._elementwise import equal, not_equal
from reactgrad.ops._layout import alias
from reactgrad.ops._shapes import broadcast, common_device, operand_types, resolve
from reactgrad.ops.special._pairs import shared

_NAMES = ("isclose", "allclose", "array_equal", "array_equiv")
add_kernels(_comparisons.register, on_host(_NAMES))

_BOOL = np.dtype(np.bool_)
_INT = np.dtype(np.int64)


def _infer_isclose(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    return spec(broadcast("isclose", specs), _BOOL, common_device("isclose", specs))


def _infer_allclose(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    broadcast("allclose", specs)
    return spec((), _BOOL, common_device("allclose", specs))


def _infer_whole(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    return spec((), _BOOL, common_device("array_equal", specs))


def _loop(specs: tuple[Spec, ...]) -> tuple[Any, ...]:
    return resolve(np.equal, operand_types(specs))[:2]


def _number_loop(specs: tuple[Spec, ...]) -> tuple[Any, ...]:
    """Return the dtypes of a loop over numbers: two Python integers are objects for `equal`, and not here."""
    return tuple([_INT if one.kind == "O" else one for one in _loop(specs)])


_NONE = (None, None)
ISCLOSE = Op(
    "isclose",
    _infer_isclose,
    _NONE,
    _NONE,
    elementwise=True,
    broadcasts=True,
    loop_dtypes=_number_loop,
)
ALLCLOSE = Op("allclose", _infer_allclose, _NONE, _NONE, loop_dtypes=_number_loop)
ARRAY_EQUAL = Op("array_equal", _infer_whole, _NONE, _NONE, loop_dtypes=_loop)
ARRAY_EQUIV = Op("array_equiv", _infer_whole, _NONE, _NONE, loop_dtypes=_loop)
in_blocks(("isclose",), 25.0)


def _tolerances(name: str, rtol: Any, atol: Any) -> tuple[float, float]:
    return real_number(name, "rtol", rtol), real_number(name, "atol", atol)


def isclose(
    a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Any:
    """Return for each element whether two values are nearly the same.

    Parameters
    ----------
    a, b : Var or array_like
        Any shapes that broadcast together.
    rtol, atol : float
        How far `a` may be from `b`: by ``atol + rtol * abs(b)``.
    equal_nan : bool
        Whether NaN is close to NaN.

    Returns
    -------
    Var
        Booleans of the broadcast shape.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.isclose([1.0, 2.0], [1.0 + 1e-9, 2.1])
    >>> y.value
    array([ True, False])
    """
    return apply(ISCLOSE, (a, b), (*_tolerances("isclose", rtol, atol), bool(equal_nan)))


def allclose(
    a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Any:
    """Return whether all elements of two values are nearly the same; see ``isclose``.

    Parameters
    ----------
    a, b : Var or array_like
        Any shapes that broadcast together.
    rtol, atol : float
        How far `a` may be from `b`: by ``atol + rtol * abs(b)``.
    equal_nan : bool
        Whether NaN is close to NaN.

    Returns
    -------
    Var
        One boolean, a node that follows both values.

    Raises
    ------
    ShapeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.allclose([1.0, 2.0], [1.0 + 1e-9, 2.0])
    >>> y.value
    np.True_
    """
    return apply(ALLCLOSE, (a, b), (*_tolerances("allclose", rtol, atol), bool(equal_nan)))


@deferred
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """Return whether two values have the same shape and the same elements.

    Parameters
    ----------
    a1, a2 : Var or array_like
        Any shapes.
    equal_nan : bool
        Whether NaN equals NaN.

    Returns
    -------
    Var
        One boolean, a node that follows both values.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.array_equal([1, 2], [1, 2, 3])
    >>> y.value
    np.False_
    """
    if np.ndim(a1) != np.ndim(a2):
        return graph_of((a1, a2)).const(np.False_)
    return apply(ARRAY_EQUAL, (a1, a2), (bool(equal_nan),))


@deferred
def array_equiv(a1: Any, a2: Any) -> Any:
    """Return whether two values are equal after one of them is broadcast to the shape of the other.

    Parameters
    ----------
    a1, a2 : Var or array_like
        Any shapes; the answer is false if they do not broadcast together.

    Returns
    -------
    Var
        One boolean, a node that follows both values.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.array_equiv([1, 2], [[1, 2], [1, 2]])
    >>> y.value
    np.True_
    """
    return apply(ARRAY_EQUIV, (a1, a2))


@deferred
def isneginf(x: Any, /) -> Any:
    """Return for each element whether it is minus infinity.

    Parameters
    ----------
    x : Var or array_like
        Any shape; real numbers.

    Returns
    -------
    Var
        Booleans in the shape of `x`.

    Raises
    ------
    DTypeError
        For complex numbers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.isneginf([1.0, -float("inf")])
    >>> y.value
    array([False,  True])
    """
    return equal(_real("isneginf", x), -np.inf)


@deferred
def isposinf(x: Any, /) -> Any:
    """Return for each element whether it is plus infinity.

    Parameters
    ----------
    x : Var or array_like
        Any shape; real numbers.

    Returns
    -------
    Var
        Booleans in the shape of `x`.

    Raises
    ------
    DTypeError
        For complex numbers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.isposinf([1.0, float("inf")])
    >>> y.value
    array([False,  True])
    """
    return equal(_real("isposinf", x), np.inf)


def isreal(x: Any) -> Any:
    """Return for each element whether its imaginary part is 0.

    Parameters
    ----------
    x : Var or array_like
        Any shape.

    Returns
    -------
    Var
        Booleans in the shape of `x`.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.isreal([1.0, 1.0j])
    >>> y.value
    array([ True, False])
    """
    return equal(imag(x), 0)


def iscomplex(x: Any) -> Any:
    """Return for each element whether its imaginary part is not 0.

    Parameters
    ----------
    x : Var or array_like
        Any shape.

    Returns
    -------
    Var
        Booleans in the shape of `x`.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.iscomplex([1.0, 1.0j])
    >>> y.value
    array([False,  True])
    """
    return not_equal(imag(x), 0)


def iscomplexobj(x: Any) -> bool:
    """Return whether the dtype is one of complex numbers, without computing.

    Parameters
    ----------
    x : Var or array_like
        Any shape.

    Returns
    -------
    bool
        Not a node: the dtype is known when the graph is built.

    Examples
    --------
    >>> import reactgrad as rg
    >>> rg.iscomplexobj(rg.Graph().input([1.0]))
    False
    """
    return shared(x).dtype.kind == "c"


def isrealobj(x: Any) -> bool:
    """Return whether the dtype is none of complex numbers, without computing.

    Parameters
    ----------
    x : Var or array_like
        Any shape.

    Returns
    -------
    bool
        Not a node: the dtype is known when the graph is built.

    Examples
    --------
    >>> import reactgrad as rg
    >>> rg.isrealobj(rg.Graph().input([1.0]))
    True
    """
    return not iscomplexobj(x)


@deferred
def real_if_close(a: Any, tol: float = 100) -> Any:
    """Return real numbers as they are, and refuse complex ones.

    Parameters
    ----------
    a : Var or array_like
        Any shape; a real dtype.
    tol : float
        How close to 0 NumPy asks imaginary parts to be, in units of the spacing at 1. Without effect.

    Returns
    -------
    Var
        A view: costs nothing.

    Raises
    ------
    DTypeError
        For complex numbers: the dtype of the result would depend on their values.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.real_if_close([1.0, 2.0])
    >>> y.value
    array([1., 2.])
    """
    a = shared(a)
    if a.dtype.kind == "c":
        raise DTypeError(
            f"real_if_close of {a.label!r}, of {a.dtype}: the dtype of the result would depend on the "
            "imaginary parts. Take rg.real(x), or np.real_if_close(x.value) of the present value."
        )
    return alias(a)


def _real(name: str, x: Any) -> Any:
    x = shared(x)
    if x.dtype.kind == "c":
        raise DTypeError(f"{name} of {x.label!r}, of {x.dtype}: it takes real numbers only.")
    return x
