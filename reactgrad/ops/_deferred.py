"""Functions built of several ops, called with a node whose number of axes only its value shows.

Such a function asks for axes and dtypes while it builds, and a node like ``x[mask]`` has none before it has
run. ``deferred`` makes the call one node instead. When that runs it calls the function with what its operands
are by then, in a graph apart that is kept for values of the same shapes, and takes the result. Its derivatives
are nodes of the same kind, which differentiate the function there; so derivatives of any order exist.

Where the number of results depends on the axes nothing can be built, and the call raises.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextvars import Context
from inspect import signature
from typing import Any, TypeVar

import numpy as np

from reactgrad._errors import ShapeError
from reactgrad.backend import Spec, register_anywhere
from reactgrad.nodes._handle import Handle, apply, deferred_call, holds_handles
from reactgrad.nodes._nested import elements
from reactgrad.nodes._op import Attrs, Op, RuleOfAll

Function = Callable[..., Any]
_F = TypeVar("_F", bound=Function)
# From the arguments of a call: the nest of what it returns, with None for each result.
Results = Callable[..., Any]
# The place of a result in the nest; () of a single one.
Place = tuple[int, ...]

# What stands in a layout: an operand in its place, then the forms of containers.
_OPERAND, _TUPLE, _LIST, _DICT, _FIXED = "operand", "tuple", "list", "dict", "fixed"
_SLICE, _ARRAY = "slice", "array"


def _late(x: Any) -> bool:
    """Return whether only the value of `x` shows its shape."""
    return isinstance(x, Handle) and x._graph._host.specs[x._slot] is None


def is_late(arguments: Any) -> bool:
    """Return whether the shape of a node in a nest of arguments shows only in its value."""
    for one in arguments:
        if isinstance(one, list | tuple):
            if holds_handles(one) and any(map(_late, elements(one))):
                return True
        elif _late(one):
            return True
    return False


# --- the layout of a call ----------------------------------------------------------------------------


def _layout(value: Any, operands: list[Any]) -> tuple[Any, ...]:
    """Return the nest of an argument without its nodes and arrays, which are added to `operands`.

    Arrays of integers and booleans stay: they may be places, which must be known when the function builds.
    """
    if isinstance(value, np.ndarray) and value.dtype.kind in "biu":
        return (_ARRAY, value.dtype.str, value.shape, tuple(value.ravel().tolist()))
    if isinstance(value, type | np.dtype):  # as a name, so that files take it
        return (_FIXED, np.dtype(value).str)
    if isinstance(value, slice):
        return (_SLICE, value.start, value.stop, value.step)
    if isinstance(value, Handle | np.ndarray) or hasattr(value, "__array_namespace__"):
        operands.append(value)
        return (_OPERAND,)
    if isinstance(value, list | tuple):
        form = _LIST if isinstance(value, list) else _TUPLE
        return (form, *[_layout(one, operands) for one in value])
    if isinstance(value, dict):
        parts = [(key, _layout(one, operands)) for key, one in value.items()]
        return (_DICT, *parts)
    if isinstance(value, np.generic):
        value = value.item()
    return (_FIXED, value)


def _filled(layout: tuple[Any, ...], operands: Any) -> Any:
    """Return the argument of this layout, with the operands that an iterator gives."""
    form, *parts = layout
    if form == _OPERAND:
        return next(operands)
    if form == _FIXED:
        return parts[0]
    if form == _SLICE:
        return slice(*parts)
    if form == _ARRAY:
        dtype, shape, numbers = parts
        return np.array(numbers, dtype).reshape(shape)
    if form == _DICT:
        return {key: _filled(one, operands) for key, one in parts}
    found = [_filled(one, operands) for one in parts]
    return found if form == _LIST else tuple(found)


# --- ops ---------------------------------------------------------------------------------------------


def _by_value(specs: tuple[Spec, ...], attrs: Attrs) -> None:
    """Return no spec: that of the result shows when the function has been called."""


class Deferred:
    """A function with the op of its deferred calls.

    The attributes of a node are the layout of the arguments, which of several results it is, the operands that
    no gradient passes, and how it is derived: ``("vjp", i)`` or ``("jvp", i)`` for each derivative, the first one
    first. The operands of a derivative are a gradient or a tangent and those of what it derives.

    Attributes
    ----------
    without
        The names of arguments that no gradient passes, as indices.
    """

    def __init__(self, function: Function, without: Sequence[str] = ()) -> None:
        self.function, self.without = function, without
        name = f"deferred_{function.__name__}"

        def variadic(ans: Any, operands: Sequence[Any], attrs: Attrs) -> RuleOfAll:
            return lambda i, g: self._derived("vjp", i, g, operands, attrs)

        def variadic_jvp(ans: Any, operands: Sequence[Any], attrs: Attrs) -> RuleOfAll:
            return lambda i, t: self._derived("jvp", i, t, operands, attrs)

        self.op = Op(
            name, _by_value, variadic=variadic, variadic_jvp=variadic_jvp, takes_numbers=True
        )
        register_anywhere(name, self._bind)

    def _derived(self, mode: str, i: int, g: Any, operands: Sequence[Any], attrs: Attrs) -> Any:
        layout, place, closed, derived = attrs
        behind = tuple([at + 1 for at in closed])
        attrs = (layout, place, behind, (*derived, (mode, i)))
        return apply(self.op, _detached((g, *operands), behind), attrs)

    def _bind(self, inputs: Sequence[Any], out: Any, attrs: Attrs) -> Callable[[], Any]:
        # In a context of its own: what is open around a read must not change what is built.
        return functools.partial(Context().run, deferred_call(), self, inputs, attrs)

    def call(self, layout: tuple[Any, ...], place: Place, operands: Sequence[Any]) -> Any:
        """Return the result of the function, or one of its results."""
        args, kwargs = _filled(layout, iter(operands))
        found = self.function(*args, **kwargs)
        for i in place:
            found = found[i]
        return found

    def nodes(self, args: Sequence[Any], kwargs: Any, results: Any) -> Any:
        """Return the nest of nodes that will call the function with these arguments, one for each result."""
        # Wrong arguments raise now, not at a read.
        named = signature(self.function).bind(*args, **kwargs).arguments
        operands: list[Any] = []
        layout = _layout((tuple(args), kwargs), operands)
        closed: tuple[int, ...] = ()
        if self.without:
            apart = {id(one) for word in self.without for one in elements(named.get(word))}
            closed = tuple([i for i, one in enumerate(operands) if id(one) in apart])
        operands = _detached(operands, closed)

        def nest(results: Any, place: Place) -> Any:
            if results is None:
                return apply(self.op, operands, (layout, place, closed, ()))
            many = [nest(one, (*place, i)) for i, one in enumerate(results)]
            return many if isinstance(results, list) else tuple(many)

        return nest(results, ())


def _detached(operands: Sequence[Any], closed: Sequence[int]) -> list[Any]:
    """Return operands, some of them detached."""
    return [
        one.detach() if i in closed and isinstance(one, Handle) else one
        for i, one in enumerate(operands)
    ]


def deferred(function: _F) -> _F:
    """Make a function build one node where the number of axes of an argument is not known."""
    return deferred_each(_one)(function)


def _one(*args: Any, **kwargs: Any) -> None:
    """Return the nest of a function with one result."""


def deferred_each(results: Results = _one, without: Sequence[str] = ()) -> Callable[[_F], _F]:
    """Do the same for a function that returns a tuple: one node for each result.

    Parameters
    ----------
    results
        Returns the nest of results from the arguments of the call, with ``None`` for each result. It raises
        where only the axes show how many there are; see ``needs_axes``.
    without
        The names of arguments that no gradient passes, as indices.
    """

    def define(function: _F) -> _F:
        one = Deferred(function, without)

        @functools.wraps(function)
        def build(*args: Any, **kwargs: Any) -> Any:
            if is_late(args) or (kwargs and is_late(kwargs.values())):
                return one.nodes(args, kwargs, results(*args, **kwargs))
            return function(*args, **kwargs)

        return build  # type: ignore[return-value]

    return define


def needs_axes(name: str, instead: str) -> ShapeError:
    """Return the error for a call whose number of results only a value shows."""
    return ShapeError(
        f"{name}: how many results there are depends on the shape of the value, which shows only when it is "
        f"computed. {instead} Results of functions have a known shape if it is declared, rg.lift(fn, shape=...)."
    )
