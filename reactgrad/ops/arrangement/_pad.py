"""Values with a border around them."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._errors import DTypeError, ParameterError, ShapeError
from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend.array_api._on_host import on_host
from reactgrad.backend.numpy import _pad
from reactgrad.nodes._handle import apply, holds_handles
from reactgrad.nodes._op import LINEAR, Attrs, Op
from reactgrad.ops._deferred import deferred
from reactgrad.ops._layout import alias
from reactgrad.ops._operand import node
from reactgrad.ops._shapes import normal_axis
from reactgrad.ops.arrangement._pad_by_values import constant_by_nodes, linear_ramp, statistic
from reactgrad.scheduler import safe_repr

add_kernels(_pad.register, on_host(("pad", "pad_back")))

Widths = tuple[tuple[int, int], ...]

# In these modes each element of the border is one of the value, or follows from two of them: one op does all.
OF_ELEMENTS = ("constant", "empty", "edge", "reflect", "symmetric", "wrap")
_KEYWORDS = {
    "constant": "constant_values",
    "linear_ramp": "end_values",
    "maximum": "stat_length",
    "mean": "stat_length",
    "median": "stat_length",
    "minimum": "stat_length",
    "reflect": "reflect_type",
    "symmetric": "reflect_type",
}


def _infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one,), (widths, mode, _, _) = specs, attrs
    if mode not in ("constant", "empty"):
        for axis, (n, width) in enumerate(zip(one.shape, widths, strict=True)):
            if n == 0 and any(width):
                raise ShapeError(
                    f"pad(mode={safe_repr(mode)}): axis {axis} of {one!r} has no element that its border could follow "
                    "from; use mode='constant'."
                )
    shape = [
        None if n is None else left + n + right
        for n, (left, right) in zip(one.shape, widths, strict=True)
    ]
    return spec(tuple(shape), one.dtype, one.device)


def _infer_back(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (g,), (widths, *_) = specs, attrs
    shape = [
        None if n is None else n - left - right
        for n, (left, right) in zip(g.shape, widths, strict=True)
    ]
    return spec(tuple(shape), g.dtype, g.device)


def _moved(t: Any, widths: Widths, mode: str, odd: bool) -> Any:
    """Return the border's own contribution to a tangent: nothing of a constant one."""
    return apply(PAD, (t,), (widths, "empty" if mode == "constant" else mode, odd, ()))


PAD = Op(
    "pad",
    _infer,
    (lambda g, ans, x, widths, mode, odd, _: apply(PAD_BACK, (g,), (widths, mode, odd)),),
    (lambda t, ans, x, widths, mode, odd, _: _moved(t, widths, mode, odd),),
)

# Each element of the border, added to those that it follows from.
PAD_BACK = Op(
    "pad_back",
    _infer_back,
    (lambda h, ans, g, widths, mode, odd: _moved(h, widths, mode, odd),),
    (LINEAR,),
)


@deferred
def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    """Return `array` with a border around it.

    Parameters
    ----------
    array : Var or array_like
        Any shape.
    pad_width : int, (int, int), sequence of such pairs, or dict
        The width of the border before and after each axis; of a dict, by axis.
    mode : str
        ``"constant"``, ``"edge"``, ``"linear_ramp"``, ``"maximum"``, ``"mean"``, ``"median"``, ``"minimum"``,
        ``"reflect"``, ``"symmetric"``, ``"wrap"``, or ``"empty"``, which gives zeros here.
    **kwargs
        NumPy's: `constant_values` and `end_values` (which may be Vars), `stat_length`, `reflect_type`
        (``"even"`` or ``"odd"``).

    Returns
    -------
    Var
        Of the dtype of `array`. Gradients pass in all modes; those of half floats and of many elements are
        added up in a wider dtype.

    Raises
    ------
    DTypeError
        If `mode` is a function, which would write into arrays; or is none of these; or an argument does not
        belong to it.
    ShapeError
        If a width is negative, or an axis without elements would get other than constants.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input([1.0, 2.0, 3.0])
    >>> rg.pad(x, (1, 2)).value
    array([0., 1., 2., 3., 0., 0.])
    >>> rg.pad(x, 2, mode="reflect").value
    array([3., 2., 1., 2., 3., 2., 1.])
    """
    x = node(array, *kwargs.values())
    _check(mode, kwargs)
    widths = _widths(pad_width, x.ndim)
    if not x.ndim:
        return alias(x)
    if mode == "linear_ramp":
        return linear_ramp(x, widths, pairs(kwargs.get("end_values", 0), x.ndim))
    if mode in ("maximum", "mean", "median", "minimum"):
        return statistic(x, widths, mode, pairs(kwargs.get("stat_length"), x.ndim))
    odd = kwargs.get("reflect_type", "even")
    if odd not in ("even", "odd"):
        raise ParameterError(f"pad(reflect_type={safe_repr(odd)}): write 'even' or 'odd'.")
    constants: Any = ()
    if mode == "constant":
        constants = pairs(kwargs.get("constant_values", 0), x.ndim)
        if holds_handles(constants):
            return constant_by_nodes(x, widths, constants)
        constants = tuple([tuple([_number(one, x.dtype) for one in pair]) for pair in constants])
        if not any(any(pair) for pair in constants):
            constants = ()
    return apply(PAD, (x,), (widths, mode, odd == "odd", constants))


def _check(mode: Any, given: dict[str, Any]) -> None:
    if callable(mode):
        raise DTypeError(
            "pad(mode=function): the function would write into an array, which no version knows. Join the parts, "
            "rg.concatenate([before, x, after]), or wrap the call with rg.lift."
        )
    if not isinstance(mode, str) or (mode not in _KEYWORDS and mode not in OF_ELEMENTS):
        raise ParameterError(
            f"pad(mode={safe_repr(mode):.60}): write one of {', '.join(sorted({*_KEYWORDS, *OF_ELEMENTS}))}."
        )
    for name in given:
        if name != _KEYWORDS.get(mode):
            raise ParameterError(f"pad(mode={safe_repr(mode)}) takes no {name}.")


def _widths(given: Any, ndim: int) -> Widths:
    if isinstance(given, dict):
        by_axis: list[Any] = [(0, 0)] * ndim
        for axis, width in given.items():
            by_axis[normal_axis("pad", axis, ndim)] = (
                (width, width) if np.ndim(width) == 0 else tuple(width)
            )
        given = by_axis or 0
    numbers = np.asarray(given)
    if numbers.size and numbers.dtype.kind not in "iu":
        raise ParameterError(f"pad by {safe_repr(given):.60}: widths are integers.")
    if numbers.size and numbers.min() < 0:
        raise ShapeError(
            f"pad by {safe_repr(given):.60}: a width cannot be negative; slice instead, x[1:-1]."
        )
    return tuple([(int(left), int(right)) for left, right in pairs(given, ndim)])


def pairs(given: Any, ndim: int) -> tuple[tuple[Any, Any], ...]:
    """Return one number, one pair, or several as a pair for each axis.

    Raises
    ------
    ShapeError
        If there are not as many as axes.
    """
    if not _is_nest(given):
        return ((given, given),) * ndim
    table = np.empty(_nested_shape(given), object)
    for place in np.ndindex(table.shape):
        one = given
        for i in place:
            one = one[i]
        table[place] = one
    try:
        whole = np.broadcast_to(table, (ndim, 2))
    except ValueError:
        raise ShapeError(
            f"pad: {safe_repr(given):.60} says nothing for {ndim} axes; give one number, a pair, or a pair for each axis."
        ) from None
    return tuple([(one, other) for one, other in whole])


def _is_nest(given: Any) -> bool:
    """Return whether a number, a node or a nest of them is one that has parts."""
    return isinstance(given, list | tuple) or getattr(given, "ndim", 0) > 0


def _nested_shape(given: Any) -> tuple[int, ...]:
    shape: list[int] = []
    while _is_nest(given):
        shape.append(len(given))
        if not shape[-1]:
            break
        given = given[0]
    return tuple(shape)


def _number(one: Any, dtype: Any) -> Any:
    """Return a constant as NumPy would store it in an array of this dtype, for an attribute."""
    return np.asarray(one).astype(dtype, casting="unsafe").item()
