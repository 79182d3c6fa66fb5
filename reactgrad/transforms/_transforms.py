"""Derivatives of nodes, and of functions of arrays: ``rg.grad``, ``vjp``, ``jvp`` and so on.

The first argument decides. For a Var the derivatives are Vars of its graph. For a function the
result is a function of arrays (see ``_trace``) or, called with Vars, of Vars; so transforms of
transforms work to any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Never

from reactgrad._errors import DTypeError, GradientError
from reactgrad._habits import unknown_keyword
from reactgrad.autodiff import _transforms as of_nodes
from reactgrad.autodiff._grad import grad as grad_of_nodes
from reactgrad.nodes._handle import Handle
from reactgrad.transforms._functions import (
    Mode,
    _along,
    _gradient_function,
    _hessian_function,
    _hessian_product,
    _jacobian_function,
    _pullback,
    _refuse,
    _second_argnums,
    _value_and_tangent,
)


def grad(
    y: Any,
    xs: Any = None,
    gradient: Any = None,
    allow_unused: bool = False,
    *,
    argnums: int | Sequence[int] = 0,
    **unknown: Never,
) -> Any:
    """Return the gradient of `y` with respect to `xs` as live nodes, or the gradient of a function.

    The results follow every change of the inputs, recompute only what is stale, and can be
    differentiated again. A second request gives the same Vars.

    Parameters
    ----------
    y : Var or callable
        Of a float dtype; with one element, unless `gradient` is given.
    xs : Var or sequence of Var
        Float nodes: leaves or intermediate ones, frozen or not.
    gradient : Var or array_like, optional
        The gradient that flows into `y`, in its shape; by default 1.
    allow_unused : bool
        If true, return ``None`` for nodes that `y` does not depend on, instead of raising.
    argnums : int or sequence of int
        For a function: the arguments to differentiate for.

    Returns
    -------
    Var or tuple of Var
        A Var for a Var, a tuple for a sequence; each of the shape and dtype of its `x`.
    callable
        For a function: takes its arguments, numbers and arrays, and returns arrays, which are
        read-only; zeros for arguments without a part in the result.

    Raises
    ------
    ShapeError
        If `y` has several elements and `gradient` is missing, or has another shape.
    DTypeError
        If `y` or an `x` is not of a float dtype.
    GradientError
        If `y` does not depend on an `x` over edges that gradients pass, or a node between has no
        derivative rule; of a function, if an argument is only used as a number taken out of it.

    Notes
    -----
    A function is called with Vars, once for each kind of arguments (shapes and dtypes of arrays,
    types of numbers, values of other objects); later calls only set and recompute what the
    arguments change. So it must be pure: what it does besides computing its result happens
    once. It is called again where one of its globals or closed-over variables is another number,
    text or object; what changes inside of such an object is not seen. If it reads
    a value (``if x > 0``) its result may depend on that, and it is called again every time: right,
    but slower. ``rg.where`` and ``rg.switch`` choose without a read. ``x.value`` is a constant, which no
    gradient passes; ``float(x)``, ``math.exp(x)`` and ``np.array([x])`` raise ``ImplicitValueError``.
    An argument whose only part in the result is such a constant is refused: the function is called
    again then, with others nearby.

    What was built is kept as long as the function, with its values: of the latest kinds of
    arguments, at most 64 of them and 256 MiB. Of one kind that takes more, the arguments stay
    between calls.

    Inside of a call with Vars, or of another function that is being differentiated, transforms give
    Vars of that graph for arrays, too: the function may close over the outer function's arguments.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input(3.0)
    >>> dy = rg.grad(x * x, x)
    >>> dy.value
    np.float64(6.0)
    >>> x.set(4.0)
    >>> dy.value, rg.grad(dy, x).value
    (np.float64(8.0), np.float64(2.0))

    Of a function, once and twice:

    >>> slope = rg.grad(rg.sin)
    >>> slope(0.0), rg.grad(slope)(1.0)
    (np.float64(1.0), np.float64(-0.8414709848078965))
    """
    if unknown:
        known = ("xs", "gradient", "allow_unused", "argnums")
        raise unknown_keyword("rg.grad", unknown, known)
    if _is_function(y):
        _refuse(gradient is not None, "rg.grad", "gradient=", "use rg.vjp(fn, *primals)")
        return _gradient_function(y, _second_argnums(xs, argnums), "rg.grad")
    return grad_of_nodes(y, _nodes(y, xs, "rg.grad"), gradient, allow_unused)


def value_and_grad(
    y: Any,
    xs: Any = None,
    gradient: Any = None,
    allow_unused: bool = False,
    *,
    argnums: int | Sequence[int] = 0,
) -> Any:
    """Return a node and its gradient, or a function that returns its value and its gradient.

    Parameters
    ----------
    y, xs, gradient, allow_unused, argnums
        As for ``rg.grad``.

    Returns
    -------
    tuple
        `y`, and what ``rg.grad`` returns.
    callable
        For a function: returns the value and the gradient, from one run.

    Raises
    ------
    ShapeError, DTypeError, GradientError
        As ``rg.grad``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> rg.value_and_grad(lambda w, x: (w * x).sum())(2.0, [1.0, 3.0])
    (np.float64(8.0), np.float64(4.0))
    """
    if _is_function(y):
        _refuse(gradient is not None, "rg.value_and_grad", "gradient=", "use rg.vjp(fn, *primals)")
        return _gradient_function(y, _second_argnums(xs, argnums), "rg.value_and_grad")
    return y, grad_of_nodes(y, _nodes(y, xs, "rg.value_and_grad"), gradient, allow_unused)


def vjp(y: Any, /, *args: Any, allow_unused: bool = False, **named: Any) -> Any:
    """Return vector times Jacobian, ``vjp(y, xs, v)``: the gradients of `xs` if that of `y` is `v`.

    One pass of reverse mode. ``vjp(fn, *primals)`` returns the value of a function and the function
    of `v`.

    Parameters
    ----------
    y : Var or callable
        Of a float dtype and any shape.
    xs : Var or sequence of Var
        Float nodes.
    v : Var or array_like
        In the shape of `y`. A Var: the results follow it, and asking again gives the same ones.
    allow_unused : bool
        If true, return ``None`` for nodes that `y` does not depend on, instead of raising.

    Returns
    -------
    Var or tuple of Var
        A Var for a Var, a tuple for a sequence.
    tuple
        For a function: its value, and a function from `v` to a tuple of arrays, one for each
        argument.

    Raises
    ------
    ShapeError, DTypeError, GradientError
        As ``rg.grad``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input([1.0, 2.0])
    >>> rg.vjp(x * x, x, [1.0, 10.0]).value
    array([ 2., 40.])
    >>> value, pullback = rg.vjp(rg.square, [1.0, 2.0])
    >>> value, pullback([1.0, 10.0])
    (array([1., 4.]), (array([ 2., 40.]),))
    """
    if _is_function(y):
        _refuse(allow_unused, "rg.vjp", "allow_unused=", "unused arguments get zeros")
        for name in named:
            _refuse(True, "rg.vjp", f"{name}=", "differentiate lambda x: fn(x, ...)")
        return _pullback(y, args)
    if len(args) + len(named) != 2 or not named.keys() <= {"xs", "v"}:
        raise GradientError(
            f"rg.vjp was given {len(args) + len(named) + 1} arguments; of a node write "
            "rg.vjp(y, xs, v), of a function rg.vjp(fn, *primals)."
        )
    return of_nodes.vjp(y, *args, allow_unused=allow_unused, **named)


def jvp(y: Any, xs: Any, ts: Any, allow_unused: bool = False) -> Any:
    """Return Jacobian times vector: the derivative of `y` when `xs` move along `ts`.

    One pass of forward mode, by the ops' own forward rules. The result is a live node, as gradients
    are.

    Parameters
    ----------
    y : Var or callable
        Of a float dtype and any shape.
    xs : Var or sequence of Var
        Float nodes: leaves or intermediate ones. For a function: a tuple of its arguments.
    ts : Var, array_like, or sequence of these
        For each `x` its direction, in its shape. Vars: the result follows them, and asking again
        gives the same one.
    allow_unused : bool
        If true, nodes that `y` does not depend on add nothing, instead of raising.

    Returns
    -------
    Var
        Of the shape and dtype of `y`.
    tuple
        For a function: its value and its tangent, as arrays.

    Raises
    ------
    ShapeError, DTypeError
        If a direction has not the shape of its node, or something is not of a float dtype.
    GradientError
        If `y` does not depend on an `x`, or a node between has no forward rule.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input([1.0, 2.0])
    >>> t = g.input([1.0, 0.0])
    >>> dy = rg.jvp(x * x, x, t)
    >>> dy.value
    array([2., 0.])
    >>> t.set([0.0, 1.0])
    >>> dy.value
    array([0., 4.])
    >>> rg.jvp(rg.square, (3.0,), (1.0,))
    (np.float64(9.0), np.float64(6.0))
    """
    if _is_function(y):
        _refuse(allow_unused, "rg.jvp", "allow_unused=", "unused arguments add nothing")
        return _along("rg.jvp", y, xs, ts, _value_and_tangent)
    return of_nodes.jvp(y, xs, ts, allow_unused)


def hvp(y: Any, xs: Any, vs: Any, allow_unused: bool = False) -> Any:
    """Return the Hessian of `y` times `vs`, without the Hessian: one pass of each mode.

    Parameters
    ----------
    y : Var or callable
        Of a float dtype and one element.
    xs : Var or sequence of Var
        Float nodes. For a function: a tuple of its arguments.
    vs : Var, array_like, or sequence of these
        For each `x` its direction, in its shape.
    allow_unused : bool
        If true, nodes that `y` does not depend on get zeros, instead of raising.

    Returns
    -------
    Var or tuple of Var
        For each `x`, in its shape, the change of its gradient when all `xs` move along `vs`.
    tuple
        For a function: the same as arrays, one for each argument.

    Raises
    ------
    ShapeError, DTypeError, GradientError
        As ``rg.grad`` and ``rg.jvp``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input([1.0, 2.0])
    >>> rg.hvp((x**3).sum(), x, [1.0, 0.5]).value
    array([6., 6.])
    >>> rg.hvp(lambda a, b: a * b * b, (2.0, 3.0), (1.0, 0.0))
    (np.float64(0.0), np.float64(6.0))
    """
    if _is_function(y):
        _refuse(allow_unused, "rg.hvp", "allow_unused=", "unused arguments get zeros")
        return _along("rg.hvp", y, xs, vs, _hessian_product)
    return of_nodes.hvp(y, xs, vs, allow_unused)


def jacobian(
    y: Any,
    xs: Any = None,
    mode: Mode | None = None,
    allow_unused: bool = False,
    *,
    argnums: int | Sequence[int] = 0,
) -> Any:
    """Return the derivative of every element of `y` by every element of `xs`, as a live node.

    One pass carries all directions along an axis of their own, so the number of nodes does not
    depend on the sizes. Time and memory grow with the size of the nodes between, times the number
    of directions.

    Parameters
    ----------
    y : Var or callable
        Of a float dtype and any shape.
    xs : Var or sequence of Var
        Float nodes whose lengths are known.
    mode : {"forward", "reverse"}, optional
        Forward has a direction for each element of `x`, reverse one for each element of `y`. By
        default the one that has fewer, forward if both have as many; but the other one if a node
        between has rules for that only. Gradient hooks are passed by reverse mode only, which is the
        default in graphs that have some. One that was built forward does not follow a hook that is
        registered later, as gradients do: ask again then, which gives another node.
    allow_unused : bool
        If true, return ``None`` for nodes that `y` does not depend on, instead of raising.
    argnums : int or sequence of int
        For a function: the arguments to differentiate for.

    Returns
    -------
    Var or tuple of Var
        Of the shape of `y` followed by that of `x`, in the dtype of `x`.
    callable
        For a function: takes what it takes and returns arrays.

    Raises
    ------
    DTypeError, ShapeError, GradientError
        As ``rg.grad``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input([1.0, 2.0, 3.0])
    >>> rg.jacobian(x[1:] * x[:-1], x).value
    array([[2., 1., 0.],
           [0., 3., 2.]])
    >>> rg.jacobian(rg.square)([1.0, 2.0])
    array([[2., 0.],
           [0., 4.]])
    """
    if _is_function(y):
        _refuse(allow_unused, "rg.jacobian", "allow_unused=", "unused arguments get zeros")
        return _jacobian_function(y, _second_argnums(xs, argnums), mode)
    return of_nodes.jacobian(y, _nodes(y, xs, "rg.jacobian"), mode, allow_unused)


def hessian(
    y: Any,
    xs: Any = None,
    mode: Mode | None = None,
    allow_unused: bool = False,
    *,
    argnums: int | Sequence[int] = 0,
) -> Any:
    """Return all second derivatives of `y`: the Jacobian of its gradient, as a live node.

    Parameters
    ----------
    y : Var or callable
        Of a float dtype and one element.
    xs : Var or sequence of Var
        Float nodes whose lengths are known.
    mode : {"forward", "reverse"}, optional
        The mode that differentiates the gradient; see ``rg.jacobian``. By default forward in graphs
        with gradient hooks: the gradient has passed them, its derivatives do not pass them again.
    allow_unused : bool
        If true, nodes that `y` does not depend on get zeros, instead of raising.
    argnums : int or sequence of int
        For a function: the arguments to differentiate for.

    Returns
    -------
    Var or tuple of tuple of Var
        For a Var, of its shape twice; for a sequence, by rows.
    callable
        For a function: takes what it takes and returns arrays.

    Raises
    ------
    DTypeError, ShapeError, GradientError
        As ``rg.grad``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input([1.0, 2.0])
    >>> rg.hessian(x[0] * x[1] ** 2, x).value
    array([[0., 4.],
           [4., 2.]])
    >>> rg.hessian(lambda a, b: a * b, argnums=(0, 1))(2.0, 3.0)
    ((np.float64(0.0), np.float64(1.0)), (np.float64(1.0), np.float64(0.0)))
    """
    if _is_function(y):
        _refuse(allow_unused, "rg.hessian", "allow_unused=", "unused arguments get zeros")
        return _hessian_function(y, _second_argnums(xs, argnums), mode)
    return of_nodes.hessian(y, _nodes(y, xs, "rg.hessian"), mode, allow_unused)


# --- functions: what they build of Vars ----------------------------------------------------------


# --- functions: from arrays to Vars and back -------------------------------------------------------


def _nodes(y: Any, xs: Any, what: str) -> Any:
    """Return the nodes to differentiate for, which may be given by their names."""
    if not isinstance(y, Handle):
        raise DTypeError(
            f"{what} takes a Var, not {type(y).__name__} ({y!r:.40}): {what}(y, x); or a function, "
            f"{what}(fn)(3.0)."
        )
    if xs is None:
        raise GradientError(f"{what} of a node needs the nodes to differentiate for: {what}(y, x).")
    if isinstance(xs, str):
        return y._graph[xs]
    if isinstance(xs, tuple | list):
        return [y._graph[x] if isinstance(x, str) else x for x in xs]
    return xs


def _is_function(y: Any) -> bool:
    return not isinstance(y, Handle) and callable(y)
