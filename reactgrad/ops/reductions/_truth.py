"""Questions about all elements along axes: all, any, count_nonzero."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad.backend import Spec, add_kernels
from reactgrad.backend.array_api._on_host import on_host
from reactgrad.backend.numpy import _reductions
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Op
from reactgrad.ops._operand import node
from reactgrad.ops._reduce import Axis, attrs_of, reduction
from reactgrad.ops._where import where as choose

add_kernels(_reductions.register, on_host(_reductions.NAMES))


def own_dtypes(specs: tuple[Spec, ...]) -> tuple[Any, ...]:
    """Return the operands' own dtypes, for ops whose result has another one."""
    return tuple([one.dtype for one in specs])


def _op(name: str, dtype: Any) -> Op:
    found = np.dtype(dtype)
    rule = reduction(name, lambda _: found, identity=True)
    return Op(name, rule, loop_dtypes=own_dtypes)


ALL, ANY, COUNT = _op("all", bool), _op("any", bool), _op("count_nonzero", np.intp)


def all(a: Any, axis: Axis = None, *, keepdims: bool = False, where: Any = True) -> Any:
    """Return whether all elements along axes are true. Has no gradient.

    Parameters
    ----------
    a : Var or array_like
        Any shape; numbers other than 0 count as true, NaN too.
    axis : int, tuple of int or None
        The axes to reduce; ``None`` for all.
    keepdims : bool
        Whether these axes stay, with length 1.
    where : Var or array_like
        Booleans that broadcast with `a`: the elements that are asked.

    Returns
    -------
    Var
        Booleans; true where there are no elements.

    Raises
    ------
    AxisError
        If `a` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.all([[True, False], [True, True]], axis=1)
    >>> y.value
    array([False,  True])
    """
    if where is not True:
        a = choose(where, a, True)
    return apply(ALL, (a,), attrs_of(axis, keepdims))


def any(a: Any, axis: Axis = None, *, keepdims: bool = False, where: Any = True) -> Any:
    """Return whether any element along axes is true. Has no gradient.

    Parameters
    ----------
    a : Var or array_like
        Any shape; numbers other than 0 count as true, NaN too.
    axis : int, tuple of int or None
        The axes to reduce; ``None`` for all.
    keepdims : bool
        Whether these axes stay, with length 1.
    where : Var or array_like
        Booleans that broadcast with `a`: the elements that are asked.

    Returns
    -------
    Var
        Booleans; false where there are no elements.

    Raises
    ------
    AxisError
        If `a` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.any([[True, False], [False, False]], axis=1)
    >>> y.value
    array([ True, False])
    """
    if where is not True:
        a = choose(where, a, False)
    return apply(ANY, (a,), attrs_of(axis, keepdims))


def count_nonzero(a: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    """Return how many elements along axes are not 0. Has no gradient.

    Parameters
    ----------
    a : Var or array_like
        Any shape.
    axis : int, tuple of int or None
        The axes to count over; ``None`` for all.
    keepdims : bool
        Whether these axes stay, with length 1.

    Returns
    -------
    Var
        Integers.

    Raises
    ------
    AxisError
        If `a` has no such axis.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.count_nonzero([[0, 1], [2, 3]], axis=1)
    >>> y.value
    array([1, 2])
    """
    return apply(COUNT, (node(a),), attrs_of(axis, keepdims))
