"""Python functions as nodes."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from reactgrad._cutoff import read_cutoff
from reactgrad._errors import DTypeError, ShapeError
from reactgrad._names import remember
from reactgrad.backend import Spec, spec
from reactgrad.ops import Handle, current_graph


class Lifted:
    """The op of a node that calls a Python function.

    Attributes
    ----------
    function : callable
        Called with the operands' values, read-only.
    declared : Spec or None
        What the function promised to return.
    vjp : callable or None
        ``vjp(g, ans, *operands)`` returns the gradients of the operands, built of ops on Vars.
    layout
        Which positional and keyword arguments are operands, which are fixed.
    """

    __slots__ = ("declared", "function", "keywords", "layout", "name", "vjp")

    def __init__(
        self,
        function: Callable[..., Any],
        declared: Spec | None,
        vjp: Callable[..., Any] | None,
        layout: tuple[Any, ...] | None,
        keywords: tuple[str, ...],
    ) -> None:
        self.function = function
        self.declared = declared
        self.vjp = vjp
        self.layout = layout
        self.keywords = keywords
        self.name = getattr(function, "__name__", type(function).__name__).strip("<>")

    def call(self, arguments: list[Any]) -> Any:
        """Call the function and make its result safe to keep."""
        if self.layout is None:
            result = self.function(*arguments)
        else:
            operands = iter(arguments)
            values = [next(operands) if v is OPERAND else v for v in self.layout]
            split = len(values) - len(self.keywords)
            result = self.function(
                *values[:split], **dict(zip(self.keywords, values[split:], strict=True))
            )
        if type(result) is np.ndarray:
            return self.keep(result, arguments)
        return self.check(result)

    def check(self, result: Any) -> Any:
        """A result that is no array, as it is; but a Var is no value.

        Raises
        ------
        DTypeError
            If it is a Var.
        """
        if isinstance(result, Handle):
            raise DTypeError(
                f"function {self.name!r} returned the Var {result.name!r}, which is not a value: "  # type: ignore[attr-defined]
                "what it computes would never be looked at again. Return v.value, or build the "
                "node outside of the function."
            )
        return result

    def arguments(self, operands: Sequence[Any]) -> tuple[list[Any], list[int]]:
        """All arguments as they were written, and which of them are the operands."""
        if self.layout is None:
            return list(operands), list(range(len(operands)))
        rest = iter(operands)
        values = [next(rest) if v is OPERAND else v for v in self.layout]
        return values, [i for i, v in enumerate(self.layout) if v is OPERAND]

    @staticmethod
    def keep(result: Any, arguments: Sequence[Any]) -> Any:
        """An array that a function returned, so that nobody can change it any more."""
        # No more references than such a call itself makes: nobody else has it.
        if result.base is None and sys.getrefcount(result) <= OWN_REFERENCES:
            result.flags.writeable = False
            return result.view()
        if result.flags.writeable or not any(result is a or result.base is a for a in arguments):
            result = result.copy()
            result.flags.writeable = False
            return result.view()
        return result


def _refuse_hidden(function: Any, value: Any) -> None:
    """Raise for Vars inside of a container: nothing would rerun when they change."""
    parts: Any = ()
    if isinstance(value, list | tuple | set | frozenset):
        parts = value
    elif isinstance(value, dict):
        parts = value.values()
    for part in parts:
        if isinstance(part, Handle):
            name = getattr(function, "__name__", "the function")
            raise DTypeError(
                f"{name} was given a {type(value).__name__} that holds the Var {part.name!r}; it "  # type: ignore[attr-defined]
                "would not run again when that changes. Pass Vars as arguments of their own, "
                "f(a, b), with rg.lift(lambda *values: fn(list(values))) where the function wants "
                "a list, or join arrays with rg.stack."
            )


OPERAND = object()


def _declared(shape: Any, dtype: Any) -> Spec:
    lengths = () if shape is None else shape if isinstance(shape, tuple | list) else (shape,)
    if any(isinstance(n, bool) or not isinstance(n, int) or n < 0 for n in lengths):
        raise ShapeError(
            f"rg.lift(shape={shape!r}): declare integers of at least 0, or leave shape= out where it "
            "varies."
        )
    try:
        wanted = np.dtype(np.float64 if dtype is None else dtype).newbyteorder("=")
    except TypeError:
        wanted = np.dtype(object)
    if wanted.kind not in "biufc":
        raise DTypeError(f"rg.lift(dtype={dtype!r}): declare a numeric dtype, or leave it out.")
    return spec(tuple(lengths), wanted)


def _references(result: Any) -> int:
    return sys.getrefcount(result)


def _references_of_a_call() -> int:
    """References to an array inside ``keep`` that nobody but the call has."""
    result = np.empty(0)
    return _references(result)


# Measured, since it differs between versions of Python.
OWN_REFERENCES = _references_of_a_call()


def lift(
    function: Callable[..., Any] | None = None,
    /,
    *,
    cutoff: Any = None,
    vjp: Callable[..., Any] | None = None,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
) -> Callable[..., Any]:
    """Make a Python function build a node when it is called.

    The node calls the function with the values of its arguments: arrays read-only, other objects
    as they are. Arguments that are not Vars are passed on as they are. The result may be any
    object and is never converted. Also a decorator, with or without arguments.

    The function may read other nodes by ``v.value``; it runs again when one changes that it read the
    last time. It may handle the error that such a read raises, and runs again when that error is
    another one or gone. A read that would close a cycle raises ``CycleError``.

    Parameters
    ----------
    function : callable
        Should depend on nothing but its arguments and the nodes that it reads, and not change them.
    cutoff : None, "equal", rg.tolerance(...) or callable
        When a new result counts as unchanged.
    vjp : callable, optional
        ``vjp(g, ans, *args)`` returns the gradient of each argument as a tuple (``None`` for
        none), built of ops: it gets Vars.
    shape, dtype : optional
        What the function returns. Ops on the node then check shapes when they are built, and
        ``.shape`` needs no run. `dtype` is float64 if only `shape` is given.

    Returns
    -------
    callable
        Returns a Var.

    Raises
    ------
    DTypeError
        If `function` cannot be called.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input(3)
    >>> words = rg.lift(lambda n: ["word"] * n)
    >>> y = words(x)
    >>> y.value
    ['word', 'word', 'word']
    >>> x.set(1)
    >>> y.value
    ['word']

    What is read inside counts for as long as it is read:

    >>> rate, fallback = g.input(0.0), g.input(9.0)
    >>> inverse = rg.lift(lambda r: 1.0 / r)(rate)
    >>> def careful():
    ...     try:
    ...         return inverse.value
    ...     except ZeroDivisionError:
    ...         return fallback.value
    >>> with g:
    ...     z = rg.lift(careful)()
    >>> z.value
    9.0
    >>> rate.set(2.0)
    >>> z.value
    0.5
    >>> fallback.set(8.0)
    >>> z.is_stale
    False
    """
    if function is None:
        return functools.partial(  # type: ignore[return-value]
            lift, cutoff=cutoff, vjp=vjp, shape=shape, dtype=dtype
        )
    if not callable(function):
        raise DTypeError(
            f"rg.lift({function!r:.60}): it takes a function. A value that changes is "
            "an input, g.input(value)."
        )
    rule = read_cutoff(cutoff)
    for one in (function, vjp):
        remember(one)
    declared = None
    if shape is not None or dtype is not None:
        declared = _declared(shape, dtype)

    @functools.wraps(function)
    def build(*args: Any, **kwargs: Any) -> Any:
        values = [*args, *kwargs.values()]
        operands = [v for v in values if isinstance(v, Handle)]
        for value in values:
            _refuse_hidden(function, value)
        plain = len(operands) == len(values) and not kwargs
        layout = None if plain else tuple(OPERAND if isinstance(v, Handle) else v for v in values)
        op = Lifted(function, declared, vjp, layout, tuple(kwargs))
        graph = operands[0]._graph if operands else current_graph()
        return graph._call_lifted(op, operands, rule)

    return build
