"""Python functions as nodes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from reactgrad._errors import DTypeError, ParameterError, ShapeError
from reactgrad.backend import Spec, spec
from reactgrad.build._functions import call_lifted
from reactgrad.nodes._cutoff import read_cutoff
from reactgrad.nodes._function_names import remember
from reactgrad.nodes._handle import Handle, graph_of
from reactgrad.nodes._lifted import OPERAND, Lifted, refuse_hidden
from reactgrad.scheduler import safe_repr


def _declared(shape: Any, dtype: Any) -> Spec:
    """Return the declared spec of one output."""
    lengths = () if shape is None else shape if isinstance(shape, tuple | list) else (shape,)
    if any(isinstance(n, bool) or not isinstance(n, int) or n < 0 for n in lengths):
        raise ShapeError(
            f"rg.lift(shape={safe_repr(shape)}): declare integers of at least 0, or leave shape= out where it "
            "varies."
        )
    try:
        wanted = np.dtype(np.float64 if dtype is None else dtype).newbyteorder("=")
    except TypeError:
        wanted = np.dtype(object)
    if wanted.kind not in "biufc":
        raise DTypeError(
            f"rg.lift(dtype={safe_repr(dtype)}): declare a numeric dtype, or leave it out."
        )
    return spec(tuple(lengths), wanted)


def _declared_each(count: Any, shapes: Any, dtypes: Any) -> tuple[Spec | None, ...]:
    """Return the declared specs of several outputs."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ParameterError(
            f"rg.lift(outputs={safe_repr(count)}): the number of outputs is at least 1."
        )
    each: list[Any] = []
    for word, given in (("shape", shapes), ("dtype", dtypes)):
        given = [None] * count if given is None else given
        if not isinstance(given, tuple | list) or len(given) != count:
            raise ShapeError(
                f"rg.lift(outputs={count}, {word}={safe_repr(given)}): declare one for each output, in a list "
                f"of {count}; None where it varies."
            )
        each.append(given)
    return tuple(
        [
            None if shape is None and dtype is None else _declared(shape, dtype)
            for shape, dtype in zip(*each, strict=True)
        ]
    )


def lift(
    function: Callable[..., Any] | None = None,
    /,
    *,
    cutoff: Any = None,
    vjp: Callable[..., Any] | None = None,
    jvp: Callable[..., Any] | None = None,
    outputs: int | None = None,
    shape: Sequence[Any] | None = None,
    dtype: Any = None,
) -> Callable[..., Any]:
    """Make a Python function build a node when it is called.

    The node calls the function with the values of its arguments: arrays read-only, other objects as
    they are. Arguments that are not Vars are passed on as they are. The result may be any object
    and is never converted. Also a decorator, with or without arguments.

    The function may read other nodes by ``v.value``; it runs again when a node changes that it read
    in its last run. It may catch the error that such a read raises, and runs again when the read
    would raise another error or none. A read that would close a cycle raises ``CycleError``. A node
    of another graph is read as it is; when it changes the function does not run again.

    Parameters
    ----------
    function : callable
        Should depend on nothing but its arguments and the nodes that it reads, and not change them.
    cutoff : None, "equal", rg.tolerance(...) or callable
        When a new result counts as unchanged; of several outputs, each by itself.
    vjp : callable, optional
        ``vjp(g, ans, *args)`` returns the gradient of each argument as a tuple (``None`` for
        none), built of ops: it gets Vars. With `outputs`, `g` and `ans` are tuples; in `g` stands
        ``None`` for outputs that nothing depends on.
    jvp : callable, optional
        The rule of forward mode: ``jvp(ts, ans, *args)`` returns the tangent of the result from
        those of the arguments (``None`` for none); with `outputs`, a tuple.
    outputs : int, optional
        How many values the function returns, in a tuple. Each is then a node with a version and
        consumers of its own; the function runs once for all of them.
    shape, dtype : optional
        What the function returns; with `outputs`, lists with one for each. Ops on the node then
        check shapes when they are built, and ``.shape`` needs no run. `dtype` is float64 if only
        `shape` is given.

    Returns
    -------
    callable
        Returns a Var, or a tuple of `outputs` Vars.

    Raises
    ------
    DTypeError
        If `function`, `vjp` or `jvp` cannot be called, or `outputs` is no number of outputs.
    ShapeError
        If the declared shapes are none, or not one for each output.

    Examples
    --------
    >>> import math
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
    >>> rest, whole = rg.lift(math.modf, outputs=2, cutoff="equal")(x)
    >>> whole.value, rest.value
    (1.0, 0.0)
    """
    if function is None:
        return functools.partial(  # type: ignore[return-value]
            lift, cutoff=cutoff, vjp=vjp, jvp=jvp, outputs=outputs, shape=shape, dtype=dtype
        )
    if not callable(function):
        raise DTypeError(
            f"rg.lift({safe_repr(function):.60}): it takes a function. A value that changes is "
            "an input, g.input(value)."
        )
    for name, given, call in (
        ("vjp", vjp, "vjp(g, ans, *args)"),
        ("jvp", jvp, "jvp(ts, ans, *args)"),
    ):
        if given is not None and not callable(given):
            raise DTypeError(
                f"rg.lift(..., {name}={safe_repr(given):.60}): it takes a function, called as {call}, or None."
            )
    rule = read_cutoff(cutoff)
    for one in (function, vjp, jvp):
        remember(one)
    declared = each = None
    if outputs is not None:
        each = _declared_each(outputs, shape, dtype)
    elif shape is not None or dtype is not None:
        declared = _declared(shape, dtype)

    @functools.wraps(function)
    def build(*args: Any, **kwargs: Any) -> Any:
        values = [*args, *kwargs.values()]
        operands = [v for v in values if isinstance(v, Handle)]
        for value in values:
            refuse_hidden(function, value)
        # No layout where all arguments are operands: a run then passes the values on as they are.
        plain = len(operands) == len(values) and not kwargs
        layout = None if plain else tuple(OPERAND if isinstance(v, Handle) else v for v in values)
        op = Lifted(function, declared, vjp, layout, tuple(kwargs), jvp, each)
        graph = graph_of(operands)
        return call_lifted(graph, op, operands, rule, shared=True)

    return build
