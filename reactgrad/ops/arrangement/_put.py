"""A value in which the part at an index is replaced or changed: one node, and no write into the operand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reactgrad._errors import DTypeError, GradientError, ShapeError
from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend.array_api._on_host import on_host
from reactgrad.backend.numpy import _put
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Attrs, Op, RuleOfAll
from reactgrad.ops._astype import astype
from reactgrad.ops._chain import over, times
from reactgrad.ops._deferred import deferred
from reactgrad.ops._elementwise import ELEMENTWISE, equal
from reactgrad.ops._index import Placed, infer_part, part_at
from reactgrad.ops._layout import known_shape, spread
from reactgrad.ops._places import Index, Slot
from reactgrad.ops._shapes import common_device, promote

add_kernels(_put.register, on_host(("put", "put_winners", "gather_distinct")))

# name -> the op that it does to the elements at the index, if it is one
HOW = {
    "set": None,
    "add": "add",
    "multiply": "multiply",
    "divide": "divide",
    "power": "power",
    "min": "minimum",
    "max": "maximum",
}


def _infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    x, *indices, v = specs
    how = attrs[1]
    common = promote((x, v))
    if not np.can_cast(common, x.dtype, "same_kind") or (how == "divide" and x.dtype.kind in "iub"):
        raise DTypeError(
            f".at[...].{how}: the result keeps the dtype of {x!r}, and {v!r} does not fit it. Convert the whole "
            "first, x.astype('float64').at[...]."
        )
    if all(one.known for one in specs):
        part = infer_part((x, *indices), attrs[:1])
        if part is not None:
            _fits(v, part)
    return spec(x.shape, x.dtype, common_device("put", (x, v)))


def _fits(v: Spec, part: Spec) -> None:
    try:
        fits = np.broadcast_shapes(v.shape, part.shape) == part.shape  # type: ignore[arg-type]
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(
            f".at[...]: {v!r} does not broadcast to the part at the index, of shape {part.shape}."
        )


def _loop(specs: tuple[Spec, ...]) -> tuple[Any, ...]:
    dtype = specs[0].dtype
    return (dtype, *[np.dtype(np.intp)] * (len(specs) - 2), dtype)


def _rule(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
    (_, *indices, v), (index, how, distinct) = operands, attrs

    def rule(i: int, g: Any) -> Any:
        if 0 < i < len(operands) - 1:
            return None
        whole = i == 0
        if how == "set":
            if whole:
                return _put_at(g, index, indices, 0.0, "set", distinct)
            if distinct:
                return part_at(g, index, indices)
            return apply(WINNERS, (g, *indices), (index,))
        if how == "add":
            return g if whole else part_at(g, index, indices)
        if how in ("multiply", "divide") and whole:
            return _put_at(g, index, indices, v, how, distinct)
        if how == "divide":
            return over(-part_at(times(g, ans), index, indices), v)
        part = _slope(ans, operands, attrs, whole)(part_at(g, index, indices))
        if not whole:
            return part
        return _put_at(g, index, indices, 0.0 if part is None else part, "set", distinct)

    return rule


def _jvp(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
    (x, *indices, v), (index, how, distinct) = operands, attrs

    def rule(i: int, t: Any) -> Any:
        if 0 < i < len(operands) - 1:
            return None
        if i == 0:
            if how == "set":
                return _put_at(t, index, indices, 0.0, "set", distinct)
            if how == "add":
                return t
            if how in ("multiply", "divide"):
                return _put_at(t, index, indices, v, how, distinct)
            part = _slope(ans, operands, attrs, True)(part_at(t, index, indices))
            return _put_at(t, index, indices, 0.0 if part is None else part, "set", distinct)
        zeros = spread(x._graph.const(np.zeros((), x.dtype), device=x.device), x)
        if how in ("set", "add"):
            return _put_at(zeros, index, indices, t, how, distinct)
        if how == "divide":
            slope = over(-times(t, part_at(ans, index, indices)), v)
            return _put_at(zeros, index, indices, slope, "add", distinct)
        slope = _slope(ans, operands, attrs, False)(t)
        if slope is None:
            return None
        return _put_at(zeros, index, indices, slope, "add", distinct)

    return rule


def _slope(ans: Any, operands: tuple[Any, ...], attrs: Attrs, whole: bool) -> Any:
    """Return the rule from the gradient of the part at the index to that of one operand there."""
    (x, *indices, v), (index, how, distinct) = operands, attrs
    if how in ("min", "max"):
        # Who is chosen at a place shares its gradient evenly: the element itself, and all values put there.
        dtype = np.dtype(np.float32) if x.dtype == np.float16 else x.dtype
        chosen = astype(equal(v, part_at(ans, index, indices)), dtype)
        stays = astype(equal(x, ans), dtype)
        count = part_at(_put_at(stays, index, indices, chosen, "add", distinct), index, indices)
        share = over(part_at(stays, index, indices) if whole else chosen, count)
        return lambda g: astype(g * share, x.dtype)
    there, result = _distinct_part(x, attrs, indices), part_at(ans, index, indices)
    one: Any = ELEMENTWISE[HOW[how]].vjps[0 if whole else 1]  # type: ignore[index]
    return lambda g: one(g, result, there, v)


def _distinct_part(x: Any, attrs: Attrs, indices: Sequence[Any]) -> Any:
    """Return the part of `x` at an index that has no place twice."""
    index, how, distinct = attrs
    if distinct:
        return part_at(x, index, indices)
    if not indices:
        raise GradientError(
            f".at[...].{how}: a place stands twice in the index, and what each of the two does depends on the "
            f"other: that has no gradient here. Write .{how} once for each, or join the values first."
        )
    return apply(DISTINCT, (x, *indices), (index,))


PUT = Op(
    "put",
    _infer,
    variadic=_rule,
    variadic_jvp=_jvp,
    broadcasts=True,
    loop_dtypes=_loop,
)


def _part_loop(specs: tuple[Spec, ...]) -> tuple[Any, ...]:
    return (specs[0].dtype, *[np.dtype(np.intp)] * (len(specs) - 1))


def _winners_rule(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
    g, *indices = operands

    def rule(i: int, h: Any) -> Any:
        if i:
            return None
        zeros = spread(g._graph.const(np.zeros((), h.dtype), device=g.device), g)
        return _put_at(zeros, attrs[0], indices, h, "set", False)

    return rule


def _again(op: str) -> Any:
    def variadic(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
        made = {"put_winners": WINNERS, "gather_distinct": DISTINCT}[op]
        return lambda i, t: None if i else apply(made, (t, *operands[1:]), attrs)

    return variadic


def _distinct_rule(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
    return lambda i, g: None if i else Placed(g, attrs[0], *operands[1:])


# The part of a value at an index, and 0 where another element of the index is put to the same place later.
WINNERS = Op(
    "put_winners",
    infer_part,
    variadic=_winners_rule,
    variadic_jvp=_again("put_winners"),
    loop_dtypes=_part_loop,
)

# The part of a value at an index that has no place twice.
DISTINCT = Op(
    "gather_distinct",
    infer_part,
    variadic=_distinct_rule,
    variadic_jvp=_again("gather_distinct"),
    loop_dtypes=_part_loop,
)


def _put_at(x: Any, index: Index, indices: Sequence[Any], v: Any, how: str, distinct: bool) -> Any:
    return apply(PUT, (x, *indices, v), (index, how, distinct))


def put_at(x: Any, index: Index, indices: Sequence[Any], v: Any, how: str, distinct: bool) -> Any:
    """Return `x` with its part at an index changed.

    Parameters
    ----------
    x : Var
        Any shape.
    index, indices
        The index and the Vars in it, see ``index_of``.
    v : Var or array_like
        Broadcasts to the part.
    how : str
        ``"set"``, or the change: ``"add"``, ``"multiply"`` and so on.
    distinct : bool
        True if the caller knows that the index has no place twice.
    """
    known = distinct or has_each_once(x, index, indices)
    if not known and not indices and known_shape(x) is None:
        return _put_later(x, index, v, how)  # whether a place stands twice depends on the lengths
    return _put_at(x, index, indices, v, how, known)


@deferred
def _put_later(x: Any, index: Index, v: Any, how: str) -> Any:
    """Return the same of an index without Vars, once the lengths of `x` are known."""
    return put_at(x, index, (), v, how, False)


def has_each_once(x: Any, index: Index, indices: Sequence[Any]) -> bool:
    """Return whether an index has no place twice, as far as that can be seen without its Vars' values."""
    arrays: list[Any] = [p for p in index.parts if isinstance(p, np.ndarray | Slot)]
    if not arrays:
        return True
    if any(isinstance(p, Slot) for p in arrays):
        found = x._graph._host.specs[indices[0]._slot] if len(arrays) == 1 else None
        return found is not None and found.dtype.kind == "b"
    if len(arrays) == 1 and arrays[0].dtype.kind == "b":
        return True
    shape = known_shape(x)
    used = [p for p in index.parts if p is not None and p is not Ellipsis]
    if (
        shape is None
        or None in shape
        or len(used) > len(shape)
        or any(p.dtype.kind == "b" for p in arrays)
    ):
        return False
    lengths: Any = [_axis_length(shape, index, p) for p in arrays]
    fronts = [np.where(p < 0, p + n, p) for p, n in zip(arrays, lengths, strict=True)]
    places = np.ravel_multi_index(np.broadcast_arrays(*fronts), lengths, mode="wrap")
    return np.unique(places).size == places.size


def _axis_length(shape: Any, index: Index, part: Any) -> Any:
    """Return the length of the axis that an array of integers in an index is for."""
    parts = index.parts
    at = next(i for i, p in enumerate(parts) if p is part)
    if any(p is Ellipsis for p in parts[:at]):
        return shape[-sum(p is not None for p in parts[at:])]
    return shape[sum(p is not None for p in parts[:at])]
