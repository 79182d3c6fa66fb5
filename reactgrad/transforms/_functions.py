"""Derivatives of Python functions: a call traces the function into a graph and differentiates that."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from reactgrad._errors import DTypeError, GradientError, ShapeError
from reactgrad.autodiff import _transforms as of_nodes
from reactgrad.autodiff._grad import grad as grad_of_nodes
from reactgrad.backend import device_of, read_value, spec
from reactgrad.build._constants import zeros, zeros_like
from reactgrad.functions._perturbed import nearby
from reactgrad.graph._detached import DetachedVar
from reactgrad.nodes._handle import Handle
from reactgrad.ops import alias
from reactgrad.scheduler import safe_repr
from reactgrad.transforms._trace import (
    Arguments,
    TracedGraph,
    called_in,
    outer_graph,
    traced,
    values,
)

Mode = Literal["forward", "reverse"]


def _gradient_function(fn: Callable[..., Any], argnums: Any, what: str) -> Callable[..., Any]:
    """Return the function for the gradient of `fn`, or for its value and gradient."""

    def build(xs: Sequence[Any], y: Any) -> Any:
        _check_single(fn, y, what)
        found = _or_zeros(grad_of_nodes(y, xs, allow_unused=True), xs)
        gradient = found[0] if isinstance(argnums, int) else found
        return gradient if what == "rg.grad" else (y, gradient)

    return _transformed(fn, argnums, what, build)


def _jacobian_function(
    fn: Callable[..., Any], argnums: Any, mode: Mode | None
) -> Callable[..., Any]:
    """Return the function for the Jacobian of `fn`."""

    def build(xs: Sequence[Any], y: Any) -> Any:
        found = tuple(
            zeros(x._graph, spec((*y.shape, *x.shape), x.dtype, x.device)) if j is None else j
            for j, x in zip(of_nodes.jacobian(y, xs, mode, allow_unused=True), xs, strict=True)
        )
        return found[0] if isinstance(argnums, int) else found

    return _transformed(fn, argnums, "rg.jacobian", build, mode)


def _hessian_function(
    fn: Callable[..., Any], argnums: Any, mode: Mode | None
) -> Callable[..., Any]:
    """Return the function for the Hessian of `fn`."""

    def build(xs: Sequence[Any], y: Any) -> Any:
        _check_single(fn, y, "rg.hessian")
        found = of_nodes.hessian(y, xs, mode, allow_unused=True)
        return found[0][0] if isinstance(argnums, int) else found

    return _transformed(fn, argnums, "rg.hessian", build, mode)


def _value_and_tangent(fn: Callable[..., Any], y: Any, xs: Any, ts: Any) -> Any:
    return y, of_nodes.jvp(y, xs, ts, allow_unused=True)


def _hessian_product(fn: Callable[..., Any], y: Any, xs: Any, ts: Any) -> Any:
    _check_single(fn, y, "rg.hvp")
    return of_nodes.hvp(y, xs, ts, allow_unused=True)


def _transformed(
    fn: Callable[..., Any],
    argnums: Any,
    what: str,
    build: Callable[[Sequence[Any], Any], Any],
    *options: Any,
) -> Callable[..., Any]:
    """Return a function of the arguments of `fn`, which calls `build` with some of them and the
    result.
    """
    what = f"{what}({_name(fn)})"

    def on_vars(*args: Any, **kwargs: Any) -> Any:
        xs = [args[i] for i in _positions(argnums, len(args), what)]
        return build(xs, _result(fn, what, xs, args, kwargs))

    @functools.wraps(fn)
    def derivative(*args: Any, **kwargs: Any) -> Any:
        positions = _positions(argnums, len(args), what)
        graph = _graph_of((*args, *kwargs.values()))
        if graph is not None:
            with called_in(graph):
                return on_vars(*_entered(graph, args, positions), **kwargs)
        arguments = Arguments(what, args, kwargs)
        _check_floats(arguments, positions, what)
        with traced(fn, (what, argnums, *options), on_vars, arguments) as result:
            return values(result)

    return derivative


def _along(what: str, fn: Callable[..., Any], primals: Any, tangents: Any, build: Any) -> Any:
    """Return the result of `build` for a function, its arguments and their directions."""
    what = f"{what}({_name(fn)})"
    for name, given in (("arguments", primals), ("directions", tangents)):
        if not isinstance(given, tuple | list):
            raise DTypeError(
                f"{what} takes a tuple of the function's {name}, not {type(given).__name__}. For "
                "one argument write (x,)."
            )
    count = len(primals)
    if count != len(tangents) or not count:
        raise GradientError(
            f"{what} was given {count} arguments and {len(tangents)} directions; each argument "
            "needs one, of its shape."
        )

    def on_vars(*both: Any) -> Any:
        xs, ts = both[:count], both[count:]
        return build(fn, _result(fn, what, xs, xs, {}), xs, ts)

    graph = _graph_of((*primals, *tangents))
    if graph is not None:
        with called_in(graph):
            return on_vars(*_entered(graph, primals, range(count)), *tangents)
    arguments = Arguments(what, primals, {})
    _check_floats(arguments, range(count), what)
    directions = [
        _like(found, t, f"{what}: direction {i}")
        for i, ((found, _), t) in enumerate(zip(arguments.read, tangents, strict=True))
    ]
    with traced(fn, what, on_vars, Arguments(what, (*primals, *directions), {})) as result:
        return values(result)


def _pullback(fn: Callable[..., Any], primals: Sequence[Any]) -> Any:
    """Return the value of a function, and the function that maps `v` to gradients."""
    what = f"rg.vjp({_name(fn)})"
    if not primals:
        raise GradientError(f"{what} was given no arguments: rg.vjp(fn, *primals).")
    graph = _graph_of(primals)
    if graph is not None:
        with called_in(graph):
            xs = _entered(graph, primals, range(len(primals)))
            y = _result(fn, what, xs, xs, {})
        return y, lambda v: _or_zeros(of_nodes.vjp(y, xs, v, allow_unused=True), xs)

    def on_vars(*xs: Any) -> Any:
        y = _result(fn, what, xs, xs, {})
        device = device_of(y.device)
        v = y._graph.input(device.asarray(np.zeros(y.shape), y.dtype))
        return y, v, _or_zeros(of_nodes.vjp(y, xs, v, allow_unused=True), xs)

    arguments = Arguments(what, primals, {})
    arguments.own()  # the pullback is that of these values, even if the caller changes the arrays
    _check_floats(arguments, range(len(primals)), what)

    def pullback(v: Any) -> Any:
        with traced(fn, what, on_vars, arguments) as (_, seed, gradients):
            seed.set(_like(read_value(seed.value, what)[0], v, f"{what}: v"))
            return values(gradients)

    with traced(fn, what, on_vars, arguments) as (y, _, _):
        return y.value, pullback


def _result(
    fn: Callable[..., Any], what: str, xs: Sequence[Any], args: Sequence[Any], kwargs: Any
) -> Any:
    """Return the Var that a function returns."""
    y = fn(*args, **kwargs)
    if y is None or isinstance(y, tuple | list | dict):
        raise DTypeError(
            f"{what}: the function returned {type(y).__name__}; it must return one Var. Return "
            "the one to differentiate, or rg.stack or rg.concatenate several."
        )
    result = y if isinstance(y, Handle) else xs[0]._graph.const(y)
    if isinstance(result, DetachedVar):
        result = alias(result)  # a node that has a derivative, which is zero
    for x in _taken_out(xs, result):
        if _follows(fn, x, result, args, kwargs):
            i = next(i for i, arg in enumerate(args) if arg is x)
            raise GradientError(
                f"{what}: the result follows from argument {i} by numbers alone that the function takes out of "
                "the graph, by float(x), x.value, np.asarray(x) or a function of math, and no gradient "
                "passes a number. Compute with x itself, rg.exp(x) instead of math.exp(x). If it is a "
                "constant, leave it out: differentiate lambda x: fn(x, c)."
            )
    return result


def _taken_out(xs: Sequence[Any], y: Any) -> list[Any]:
    """Return the arguments from which numbers were taken out and on which the result does not
    depend.
    """
    graph = xs[0]._graph
    if not isinstance(graph, TracedGraph) or not graph.taken:
        return []
    topology = graph._scheduler.topology
    lost = topology.ancestors(graph.taken) - topology.ancestors([y._slot])
    return [x for x in xs if x._slot in lost]


def _follows(fn: Callable[..., Any], x: Any, y: Any, args: Sequence[Any], kwargs: Any) -> bool:
    """Return whether a function has other results for arguments nearby.

    False where it only makes a choice by them.
    """
    for way in (1, -1):
        instead = x._graph.const(nearby(x.value, way))
        other: Any = fn(*[instead if arg is x else arg for arg in args], **kwargs)
        other = getattr(other, "value", other)
        # Both ways must differ: one may cross a jump.
        if np.array_equal(y.value, other, equal_nan=True):
            return False
    return True


def _entered(graph: Any, args: Sequence[Any], positions: Sequence[int]) -> list[Any]:
    """Return arguments for a function, with separate nodes for those to differentiate for.

    The same node may be another argument, too, or be used by the function itself; there it counts
    as constant.
    """
    return [
        arg if i not in positions else alias(arg if isinstance(arg, Handle) else graph.const(arg))
        for i, arg in enumerate(args)
    ]


def _graph_of(args: Sequence[Any]) -> Any:
    """Return the graph of the first Var among arguments, or of the call around.

    ``None`` means arrays in, arrays out.
    """
    found = next((arg._graph for arg in args if isinstance(arg, Handle)), None)
    return outer_graph() if found is None else found


def _or_zeros(found: Sequence[Any], xs: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(
        zeros_like(x._graph, x) if one is None else one for one, x in zip(found, xs, strict=True)
    )


def _like(like: Any, given: Any, what: str) -> Any:
    """Return what was given for a value of the spec `like`, in its dtype and on its device."""
    found, value = read_value(given, what)
    if found is None or found.dtype.kind not in ("fiubc" if like.dtype.kind == "c" else "fiub"):
        raise DTypeError(f"{what} is {found or type(given).__name__}; directions are floats.")
    if found.shape != like.shape:
        raise ShapeError(
            f"{what} has shape {found.shape}; it must have that of what it is for, {like.shape}."
        )
    device = device_of(like.device)
    return device.asarray(value if device.owns(value) else np.asarray(value), like.dtype)


def _check_floats(arguments: Arguments, positions: Sequence[int], what: str) -> None:
    """Raise unless the arguments to differentiate for are floats."""
    for i in positions:
        found, value = arguments.read[i]
        if found is None or not found.differentiable:
            raise DTypeError(
                f"{what}: argument {i} is {found or type(value).__name__}, and only floats have "
                "derivatives. Write 3.0 instead of 3, convert with .astype, or differentiate for "
                "another argument, argnums=."
            )


def _check_single(fn: Callable[..., Any], y: Any, what: str) -> None:
    """Raise unless the result is a single number."""
    if any(n != 1 for n in y.shape):
        name = _name(fn)
        raise ShapeError(
            f"{what}({name}): the function returned shape {y.shape}, and only a single number has "
            f"a gradient. Reduce it first, with .sum(), or use rg.jacobian({name}) or "
            f"rg.vjp({name}, *primals)."
        )


def _positions(argnums: Any, count: int, what: str) -> tuple[int, ...]:
    """Return the positions to differentiate for, counted from 0."""
    wanted = (argnums,) if isinstance(argnums, int) else argnums
    for i in wanted:
        if not -count <= i < count:
            raise GradientError(
                f"{what}: argnums={safe_repr(argnums)}, and it was called with {count} positional "
                "arguments; they count from 0."
            )
    return tuple(i % count for i in wanted)


def _second_argnums(second: Any, argnums: Any) -> Any:
    """Return ``argnums``, which may also have been written second: ``rg.grad(fn, 1)``."""
    given = argnums if second is None else second
    many = [given] if isinstance(given, int) else given
    if (
        isinstance(given, Handle | str)
        or not isinstance(many, tuple | list)
        or not many
        or any(isinstance(i, bool) or not isinstance(i, int) for i in many)
    ):
        raise DTypeError(
            f"argnums={safe_repr(given):.60}: say by position which arguments of the function to "
            "differentiate for, argnums=0 or argnums=(0, 2). At an array, call what this gives: "
            "rg.grad(fn)(array), and so for rg.hessian and the others. To differentiate for a node, "
            "pass a Var first: rg.grad(fn(x), x)."
        )
    return given if isinstance(given, int) else tuple(given)


def _refuse(given: bool, what: str, option: str, instead: str) -> None:
    if given:
        raise GradientError(f"{what} of a function takes no {option}; {instead}.")


def _name(fn: Callable[..., Any]) -> str:
    return getattr(fn, "__name__", type(fn).__name__)
