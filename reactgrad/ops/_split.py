"""A value taken apart along an axis: split, unbind. Each part is a node whose value is a view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from reactgrad._calls import whole
from reactgrad._errors import ParameterError, ShapeError
from reactgrad.backend import Cuts, Key, Spec, spec, split_key, unbind_key
from reactgrad.nodes._handle import Handle, apply, holds_handles
from reactgrad.nodes._op import LINEAR, Attrs, Op
from reactgrad.ops._index import Placed
from reactgrad.ops._operand import node
from reactgrad.ops._places import Index
from reactgrad.ops._shapes import normal_axis
from reactgrad.scheduler import safe_repr


def _infer_split(specs: tuple[Spec, ...], attrs: Attrs, any_length: bool = False) -> Spec:
    (one,), (cuts, axis, part) = specs, attrs
    at = normal_axis("split", axis, len(one.shape))
    length = one.shape[at]
    new = None
    if length is not None:
        if isinstance(cuts, int) and length % cuts and not any_length:
            raise ShapeError(
                f"split of {one!r} into {cuts} equal parts along axis {axis}: its length {length} is "
                f"no multiple of {cuts}. Say where to cut, rg.split(x, [2, 5]); the number is that of "
                "the parts, not their size."
            )
        ends: Any = split_key(one.shape, cuts, axis, part)[at]
        new = len(range(*ends.indices(length)))
    return spec((*one.shape[:at], new, *one.shape[at + 1 :]), one.dtype, one.device)


def _view(key: Callable[..., Key]) -> Callable[..., Any]:
    # The ellipsis keeps a view where no axis is left.
    return lambda x, *attrs: x[(*key(x.shape, *attrs), ...)]


def _rule(key: Callable[..., Key]) -> Callable[..., Placed]:
    return lambda g, ans, x, *attrs: Placed(g, Index(key(x.shape, *attrs)))


SPLIT = Op("split", _infer_split, (_rule(split_key),), (LINEAR,), view=_view(split_key))
# The same where the first parts may be longer by one.
ARRAY_SPLIT = Op(
    "array_split",
    partial(_infer_split, any_length=True),
    (_rule(split_key),),
    (LINEAR,),
    view=_view(split_key),
)


def split(x: Any, indices_or_sections: int | Sequence[int], /, axis: int = 0) -> tuple[Any, ...]:
    """Return parts of `x` along an axis.

    Parameters
    ----------
    x : Var or array_like
        With at least one axis.
    indices_or_sections : int or sequence of int
        The number of equal parts; or, as in NumPy, the indices at which to cut, which make one more
        part than there are indices.
    axis : int
        The axis to cut.

    Returns
    -------
    tuple of Var
        Views: they cost nothing. Each has its own version, and all follow a new length of `x`.

    Raises
    ------
    ShapeError
        If the axis cannot be cut into so many equal parts.
    AxisError
        If `x` has no such axis.
    DTypeError
        If `indices_or_sections` is no positive integer and no sequence of integers.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input([1.0, 2.0, 3.0, 4.0])
    >>> a, b = rg.split(x, 2)
    >>> b.value
    array([3., 4.])
    >>> [part.shape for part in rg.split(x, [1, 3])]
    [(1,), (2,), (1,)]
    """
    cuts = places_to_cut(indices_or_sections)
    x, at = node(x), whole("split", "axis", axis)
    return tuple([apply(SPLIT, (x,), (ends, at, part)) for ends, part in parts_to_cut(cuts)])


def _infer_unbind(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one,), (axis, count, _) = specs, attrs
    at = normal_axis("unbind", axis, len(one.shape))
    if one.shape[at] != count:
        raise ShapeError(
            f"unbind took {count} parts, one for each element of axis {axis}, and {one!r} has "
            f"{one.shape[at]}. Unbind it again, or index what is always there: x[0]."
        )
    return spec((*one.shape[:at], *one.shape[at + 1 :]), one.dtype, one.device)


UNBIND = Op("unbind", _infer_unbind, (_rule(unbind_key),), (LINEAR,), view=_view(unbind_key))


def unbind(x: Any, /, axis: int = 0) -> tuple[Any, ...]:
    """Return all elements of `x` along an axis, each without that axis.

    Parameters
    ----------
    x : Var or array_like
        With at least one axis, of a known length; later values must have the same.
    axis : int
        The axis that is removed.

    Returns
    -------
    tuple of Var
        Views: they cost nothing. Each has its own version.

    Raises
    ------
    AxisError
        If `x` has no such axis.
    ShapeError
        If the length is not known before an input is set.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input([[1.0, 2.0], [3.0, 4.0]])
    >>> low, high = rg.unbind(x, axis=1)
    >>> high.value
    array([2., 4.])
    """
    x, at = node(x), whole("unbind", "axis", axis)
    count = x.shape[normal_axis("unbind", at, x.ndim)]
    if count is None:
        raise ShapeError(
            f"unbind: the length of axis {axis} of {x.label!r} is not known before its input is set, "
            "and so not how many parts there are. Set it first, or declare the length."
        )
    return tuple([apply(UNBIND, (x,), (at, count, part)) for part in range(count)])


def parts_to_cut(cuts: Cuts) -> list[tuple[Cuts, int]]:
    """Return for each part what it knows of the cuts, and its number among the parts that these make.

    Each knows only the cuts at its own ends: all cuts for each would be quadratic.
    """
    if isinstance(cuts, int):
        return [(cuts, part) for part in range(cuts)]
    return [(cuts[max(i - 1, 0) : i + 1], min(i, 1)) for i in range(len(cuts) + 1)]


def places_to_cut(given: Any) -> Cuts:
    """Return the indices at which to cut, or the number of parts.

    Raises
    ------
    ParameterError
        If it is a node, or neither a positive whole number nor a row of whole numbers.
    """
    try:
        if isinstance(given, Handle) or holds_handles([given]):
            raise TypeError
        if not hasattr(given, "__index__") or getattr(given, "ndim", 0):
            return tuple([int(one.__index__()) for one in given])
        number = int(given.__index__())
    except (AttributeError, TypeError):
        raise ParameterError(
            f"split({safe_repr(given):.60}): say into how many parts, or at which indices to cut; a Var cannot "
            "be one, since shapes would depend on its value. Write its .value for the present number."
        ) from None
    check_count("split", number)
    return number


# Of parts, each a node of some 500 bytes.
_MOST: Final = 10**8


def check_count(name: str, count: int) -> None:
    """Raise ``ParameterError`` for a number of parts that nobody has."""
    if count < 1:
        raise ParameterError(f"{name} into {safe_repr(count):.60} parts: it needs at least one.")
    if count > _MOST:
        raise ParameterError(
            f"{name} into {safe_repr(count):.60} parts: each part is a node, and no memory holds so many. The "
            "number is that of the parts, not their size."
        )
