"""One of several values for each element: choose, select and piecewise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reactgrad._errors import DTypeError, ParameterError, ShapeError
from reactgrad.backend import Spec, spec
from reactgrad.nodes._handle import Handle, apply, holds_handles
from reactgrad.nodes._op import Attrs, Op, RuleOfAll
from reactgrad.ops._astype import astype
from reactgrad.ops._clip import clip
from reactgrad.ops._elementwise import equal, logical_not, logical_or, remainder
from reactgrad.ops._operand import given, holds, known_dtype, nodes_of
from reactgrad.ops._shapes import broadcast, common_device, promote
from reactgrad.ops._split import unbind
from reactgrad.ops._where import where
from reactgrad.ops.ordering._take import MODES, numbers_of
from reactgrad.scheduler import safe_repr


def _infer_choose(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    numbers, *choices = specs
    if numbers.dtype.kind not in "iub":
        raise DTypeError(f"choose: the numbers of choices are integers, not {safe_repr(numbers)}.")
    return spec(broadcast("choose", specs), promote(choices), common_device("choose", specs))


def _choose_dtypes(specs: tuple[Spec, ...]) -> tuple[Any, ...]:
    return (np.dtype(np.intp), *[promote(specs[1:])] * (len(specs) - 1))


def _choose_rule(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
    numbers, count = operands[0], len(operands) - 1
    if attrs[0] == "wrap":
        numbers = remainder(numbers, count)
    elif attrs[0] == "clip":
        numbers = clip(numbers, 0, count - 1)
    return lambda i, g: where(equal(numbers, i - 1), g, 0.0) if i else None


CHOOSE = Op(
    "choose",
    _infer_choose,
    variadic=_choose_rule,
    variadic_jvp=_choose_rule,
    broadcasts=True,
    loop_dtypes=_choose_dtypes,
)


def choose(a: Any, choices: Any, *, mode: str = "raise") -> Any:
    """Return for each element that of the value whose number stands there.

    Parameters
    ----------
    a : Var or array_like of int
        The number of a choice for each element, from 0.
    choices : sequence of Var or array_like, or one of them
        The values; the elements of an array's first axis are choices.
    mode : {"raise", "wrap", "clip"}
        The meaning of a number that is none of a choice: an error, counting on from the other end, or the nearest one.

    Returns
    -------
    Var
        Of the shape to which all of them broadcast, and the common dtype of the choices.

    Raises
    ------
    IndexingError
        If there is no such choice, when it is computed.
    ShapeError
        If the shapes do not broadcast, or there are no choices.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.choose([1, 0], [[1.0, 2.0], [10.0, 20.0]])
    >>> y.value
    array([10.,  2.])
    """
    if mode not in MODES:
        raise ParameterError(
            f'choose: mode={safe_repr(mode)} is none of "raise", "wrap" and "clip".'
        )
    if isinstance(choices, Handle):
        choices = unbind(choices)
    elif isinstance(choices, np.ndarray):
        choices = [*choices]
    if not len(choices):
        raise ShapeError("choose needs at least one choice.")
    return apply(CHOOSE, (numbers_of("choose", a), *choices), (mode,))


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:
    """Return for each element that of the first value whose condition holds there.

    Parameters
    ----------
    condlist : sequence of Var or array_like of bool
        The conditions.
    choicelist : sequence of Var or array_like
        As many values.
    default : Var or array_like
        The value where no condition holds.

    Returns
    -------
    Var
        Of the shape to which all of them broadcast, and the common dtype of the values. An infinite or NaN
        element that is not chosen affects neither the value nor the gradient.

    Raises
    ------
    ShapeError
        If there are not as many values as conditions, or the shapes do not broadcast.
    DTypeError
        If a condition is not boolean.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input([-2.0, 0.5, 3.0])
    >>> rg.select([x < 0, x > 1], [-x, x * x], 1.0).value
    array([2., 1., 9.])
    """
    if len(condlist) != len(choicelist) or not len(condlist):
        raise ShapeError(
            f"select: {len(condlist)} conditions and {len(choicelist)} values; there is one value for each "
            "condition, and at least one."
        )
    conditions = [given(one) for one in condlist]
    for one in conditions:
        dtype = known_dtype(one)
        if dtype is not None and dtype.kind != "b":
            raise DTypeError(f"select: conditions are boolean, not {dtype}. Compare, as in x > 0.")
    chosen, *nodes = nodes_of(default, *conditions, *choicelist)
    count = len(conditions)
    for condition, choice in zip(reversed(nodes[:count]), reversed(nodes[count:]), strict=True):
        chosen = where(condition, choice, chosen)
    return chosen


def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Any:
    """Return for each element the value of the function whose condition holds there.

    Parameters
    ----------
    x : Var or array_like
        Any shape.
    condlist : sequence of Var or array_like of bool, or one of them
        The conditions; where several hold the last one counts.
    funclist : sequence of callable or number
        A function or a number for each condition, and perhaps one more for elements where none holds; else they
        are 0. A function must be elementwise: it is called once, as ``f(x, *args, **kw)``, with the whole of `x`.
    *args, **kw
        More arguments of the functions.

    Returns
    -------
    Var
        In shape and dtype of `x`. An infinite or NaN element that is not chosen affects neither the value nor
        the gradient.

    Raises
    ------
    ShapeError
        If there are not as many functions as conditions, or one more.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input([-2.0, 3.0])
    >>> rg.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: v * v]).value
    array([2., 9.])
    """
    x, *conditions = nodes_of(x, *_conditions(given(x), condlist))
    functions = [*funclist]
    if len(functions) == len(conditions) + 1:
        covered = conditions[0]
        for one in conditions[1:]:
            covered = logical_or(covered, one)
        conditions.append(logical_not(covered))
    elif len(functions) != len(conditions):
        raise ShapeError(
            f"piecewise: {len(functions)} functions for {len(conditions)} conditions; there is one for each, "
            "and perhaps one more for all other elements."
        )
    dtype = known_dtype(x)
    zero = 0.0 if dtype is None else x._graph.const(np.zeros((), dtype))
    result: Any = None
    for condition, function in zip(conditions, functions, strict=True):
        value = function(x, *args, **kw) if callable(function) else function
        result = where(condition, value, zero if result is None else result)
    return result if dtype is None or holds(result, dtype) else astype(result, dtype)


def _conditions(x: Any, condlist: Any) -> list[Any]:
    """Return the conditions of ``piecewise`` as a list of masks in the shape of `x`."""
    if isinstance(condlist, Handle):
        several = condlist.ndim > x.ndim  # type: ignore[attr-defined]
        return [*unbind(condlist)] if several else [condlist]
    if isinstance(condlist, list | tuple) and holds_handles(condlist):
        one = len(condlist) != 0 and all(np.ndim(c) == 0 for c in condlist) and x.ndim != 0
        many: Any = [given(condlist)] if one else [given(c) for c in condlist]
    else:
        masks = np.asarray(condlist)
        many = (
            [masks]
            if masks.ndim <= x.ndim and (masks.ndim or not x.ndim) and x.ndim
            else [*np.atleast_1d(masks)]
        )
        if not x.ndim and masks.ndim == 0:
            many = [masks]
    return [
        c if c.dtype.kind == "b" else astype(c, bool) if isinstance(c, Handle) else c.astype(bool)
        for c in many
    ]
