"""Indexing, and its reverse: the sum of contributions, each added to one part of the result.

Basic indices (integers, slices, ``None``, ``...``) give views. The gradient of an indexed value is
not an array of zeros with one part filled: the rule returns a ``Placed`` contribution, and
``accumulate`` adds all contributions to a node into one array, in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reactgrad._errors import DTypeError, IndexingError, ShapeError
from reactgrad.backend import Spec, check_numbers, placed, spec
from reactgrad.nodes._handle import Handle, apply, stacked
from reactgrad.nodes._op import LINEAR, Attrs, Op, RuleOfAll
from reactgrad.ops._places import Index, Slot
from reactgrad.ops._shapes import normal_axis
from reactgrad.ops._tuples import Share, no_shares, pack
from reactgrad.scheduler import safe_repr


class Placed:
    """A contribution to a gradient or tangent that belongs to a part of the value.

    `operands` are the nodes in the index, see ``Slot``.
    """

    __slots__ = ("gradient", "index", "operands")

    def __init__(self, gradient: Any, index: Index, *operands: Any) -> None:
        self.gradient = gradient
        self.index = index
        self.operands = operands


def _integer(part: Any) -> int | None:
    try:
        return int(part.__index__())
    except (AttributeError, TypeError):
        return None


def _part(part: Any, operands: list[Any]) -> Any:
    if part is None or part is Ellipsis:
        return part
    if isinstance(part, Handle):
        operands.append(part)
        return Slot(len(operands) - 1)
    if isinstance(part, slice):
        ends = [None if e is None else _integer(e) for e in (part.start, part.stop, part.step)]
        if any(e is None and o is not None for e, o in zip(ends, _ends(part), strict=True)):
            raise DTypeError(
                f"index {safe_repr(part)}: slices have integer ends. A Var cannot be one, since the shape "
                "of the result would depend on its value; use rg.where, or rg.lift."
            )
        if ends[2] == 0:
            raise ShapeError(f"index {safe_repr(part)}: the step of a slice cannot be 0.")
        return slice(*ends)
    if isinstance(part, bool | np.bool_) or (number := _integer(part)) is None:
        if isinstance(part, list | tuple) and _holds_vars(part):
            operands.append(stacked(part))
            return Slot(len(operands) - 1)
        try:
            array = np.array(part)
        except ValueError as error:
            raise ShapeError(
                f"index {safe_repr(part):.60}: nested lists of different lengths ({error})."
            ) from None
        if not array.size and array.dtype.kind == "f":
            array = array.astype(np.intp)
        if array.dtype.kind not in "iub":
            raise DTypeError(
                f"index {safe_repr(part)}: an index is made of integers, slices, ..., None, and arrays of "
                "integers or booleans."
            )
        array.flags.writeable = False
        return array
    if not -(2**63) <= number < 2**63:
        raise IndexingError(f"index {safe_repr(number):.60}: no array has so many elements.")
    return number


def _holds_vars(part: Any) -> bool:
    return any(isinstance(one, Handle) for one in part)


def _ends(part: slice) -> tuple[Any, Any, Any]:
    return part.start, part.stop, part.step


def _sample(one: Spec) -> Any:
    """Return an array of this spec that takes no memory: all of its elements are the same one."""
    return np.broadcast_to(np.empty((), one.dtype), tuple(1 if n is None else n for n in one.shape))


def infer_part(specs: tuple[Spec, ...], attrs: Attrs) -> Spec | None:
    """Return the spec of a part, by those of what is indexed and of the Vars in the index."""
    one, index = specs[0], attrs[0]
    by_value = any(i.dtype.kind == "b" for i in specs[1:])  # as many elements as are true
    try:
        if index.along is not None:
            shape: tuple[int | None, ...] = _along_shape(one, specs[1], index.along)
        elif index.row is not None and not by_value:
            shape = _rows_shape(one, index, specs[1:])
        elif one.known and all(i.known for i in specs[1:]):
            samples = [None, *map(_index_sample, specs[1:])]
            parts = tuple(samples[p.number] if isinstance(p, Slot) else p for p in index.parts)
            shape = _sample(one)[parts].shape
        elif by_value:
            return None
        else:
            shape = _unknown(one, index, specs[1:])
    except IndexError as error:
        raise IndexingError(f"index {safe_repr(index)} of {one!r}: {error}.") from None
    return None if by_value else spec(shape, one.dtype, one.device)


def _index_sample(one: Spec) -> Any:
    if one.dtype.kind not in "iub":
        raise DTypeError(f"an index Var holds integers or booleans, not {one!r}.")
    sample = np.zeros(tuple(0 if n is None else n for n in one.shape), one.dtype)
    if one.dtype.kind == "b" and sample.size:
        sample.flat[0] = True  # one element broadcasts with the other arrays of the index
    return sample


def _check_integers(one: Spec) -> None:
    if one.dtype.kind not in "iu":
        raise DTypeError(f"an index Var holds integers or booleans, not {one!r}.")


def _rows_shape(one: Spec, index: Index, indices: tuple[Spec, ...]) -> tuple[int | None, ...]:
    """Return the shape of rows taken along an axis."""
    shape, axis = one.shape, index.row
    assert axis is not None
    ndim, used = len(shape), sum(p is not Ellipsis for p in index.parts)
    if used > ndim:
        raise IndexError(f"too many indices: the value has {ndim} axes, and {used} are indexed")
    at = axis % ndim
    if indices:
        _check_integers(indices[0])
        length: tuple[int | None, ...] = indices[0].shape
    else:
        numbers, _ = index.numbers(())
        length = numbers.shape
        if shape[at] is not None:
            check_numbers(numbers, shape, at)
    return (*shape[:at], *length, *shape[at + 1 :])


def _along_shape(one: Spec, numbers: Spec, slot: Slot) -> tuple[int | None, ...]:
    """Return the shape of elements taken along an axis by their numbers."""
    _check_integers(numbers)
    shape, wanted = one.shape, numbers.shape
    if len(shape) < len(wanted) or not wanted:
        raise ShapeError(
            f"numbers of elements along an axis of {one!r} have as many axes as it has, and not the shape "
            f"{wanted}. rg.take(x, indices, axis) takes whole rows by indices of any shape."
        )
    axis = normal_axis("the index", slot.axis, len(wanted))
    found: list[int | None] = []
    for i, (m, n) in enumerate(zip(shape, wanted, strict=False)):
        fits = n is not None and m is not None and (n < m if slot.short else m == 1)
        if i == axis or m is None or m == n or fits:
            found.append(n)
        elif n is None or (n == 1 and not slot.short):
            found.append(m)
        else:
            raise ShapeError(
                f"numbers of elements along axis {axis} of {one!r} have the shape {wanted}: their length "
                f"{n} at axis {i} does not fit {m}."
            )
    return (*found, *shape[len(wanted) :])


def _unknown_rows(one: Spec, index: Index, indices: tuple[Spec, ...]) -> tuple[int | None, ...]:
    """Return the shape for an index that is one array, with all other axes taken as a whole."""
    parts, shape = index.parts, one.shape
    arrays = [i for i, p in enumerate(parts) if isinstance(p, np.ndarray | Slot)]
    others = [p for i, p in enumerate(parts) if i not in arrays and p is not Ellipsis]
    if len(arrays) > 1 or any(not isinstance(p, slice) or p != slice(None) for p in others):
        raise DTypeError(
            f"index {safe_repr(index)} of {one!r}: an array together with other arrays, numbers or parts of "
            "axes as indices needs known lengths; set the input first."
        )
    (at,) = arrays
    part = parts[at]
    taken = 1 if isinstance(part, Slot) or part.dtype.kind != "b" else part.ndim
    if len(others) + taken > len(shape):
        raise IndexingError(f"index {safe_repr(index)} of {one!r}: too many indices.")
    behind = any(p is Ellipsis for p in parts[:at])
    first = len(shape) - (len(parts) - at - 1) - taken if behind else at
    before, axes, after = shape[:first], shape[first : first + taken], shape[first + taken :]
    if isinstance(part, Slot):
        _index_sample(indices[part.number - 1])
        length: tuple[int | None, ...] = indices[part.number - 1].shape
    elif None in axes:
        length = (int(part.sum()),) if part.dtype.kind == "b" else part.shape
    else:
        length = _sample(spec(axes, one.dtype, one.device))[part].shape
    return (*before, *length, *after)


def _unknown(one: Spec, index: Index, indices: tuple[Spec, ...]) -> tuple[int | None, ...]:
    """Return the shape of an indexed value some of whose lengths are not known yet."""
    if not index.basic:
        return _unknown_rows(one, index, indices)
    used = sum(p is not None and p is not Ellipsis for p in index.parts)
    parts: list[Any] = []
    for part in index.parts if Ellipsis in index.parts else (*index.parts, Ellipsis):
        parts += [slice(None)] * (len(one.shape) - used) if part is Ellipsis else [part]
    if used > len(one.shape):
        raise IndexingError(f"index {safe_repr(index)} of {one!r}: too many indices.")
    shape: list[int | None] = []
    lengths = iter(one.shape)
    for part in parts:
        if part is None:
            shape.append(1)
            continue
        length = next(lengths)
        if isinstance(part, slice):
            unknown = length is None
            shape.append(None if unknown else len(range(*part.indices(length))))  # type: ignore[arg-type]
        elif length is not None and not -length <= part < length:
            raise IndexingError(f"index {part} is out of bounds for an axis of length {length}.")
    return tuple(shape)


def _view(x: Any, index: Index) -> Any:
    # The ellipsis keeps a view where all axes are indexed by integers.
    parts = index.parts
    return x[parts if Ellipsis in parts else (*parts, ...)] if index.basic else None


GETITEM = Op(
    "getitem", infer_part, (lambda g, ans, x, index: Placed(g, index),), (LINEAR,), view=_view
)


def _gather_rule(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
    return lambda i, g: None if i else Placed(g, attrs[0], *operands[1:])


def _gather_jvp(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
    return lambda i, t: None if i else apply(GATHER, (t, *operands[1:]), attrs)


def _gather_loop(specs: tuple[Spec, ...]) -> tuple[Any, ...]:
    return (specs[0].dtype, *[np.dtype(np.intp)] * (len(specs) - 1))


GATHER = Op(
    "gather",
    infer_part,
    variadic=_gather_rule,
    variadic_jvp=_gather_jvp,
    loop_dtypes=_gather_loop,
)


def getitem(x: Any, key: Any) -> Any:
    """Return the element or the part of `x` at `key`, as ``x[key]`` does.

    Parameters
    ----------
    x : Var
        Any shape.
    key
        As in NumPy: integers, slices, ``None``, ``...``, arrays of integers or booleans, or Vars
        of these.

    Returns
    -------
    Var
        A view for indices without arrays. Where a Var of booleans chooses the elements, their number shows
        only when it has been computed, and so the shape does.

    Raises
    ------
    IndexingError
        If there is no such element or axis.
    DTypeError
        If `key` is no index.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input([[1, 2], [3, 4]])
    >>> x[:, 1].value
    array([2, 4])
    >>> large = x[x > 1]
    >>> large.value
    array([2, 3, 4])
    >>> x.set([[5, 0], [0, 1]])
    >>> large.value
    array([5])
    """
    index, operands = index_of(key)
    return part_at(x, index, operands)


def index_of(key: Any) -> tuple[Index, list[Any]]:
    """Return an index as a caller writes it, normalised, and the Vars in it.

    Raises
    ------
    IndexingError, DTypeError, ShapeError
        If it is none.
    """
    operands: list[Any] = [None]  # in front of them stands what is indexed
    index = Index(tuple(_part(p, operands) for p in (key if isinstance(key, tuple) else (key,))))
    if sum(p is Ellipsis for p in index.parts) > 1:
        raise IndexingError(f"index {safe_repr(index)}: only one ... can stand in an index.")
    return index, operands[1:]


def part_at(x: Any, index: Index, operands: Sequence[Any]) -> Any:
    """Return the part of `x` at a normalised index with these Vars in it."""
    return apply(GATHER if operands else GETITEM, (x, *operands), (index,))


# --- the sum of contributions ------------------------------------------------------------------


def _infer_accumulate(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    return specs[0] if attrs[0] is None else spec(attrs[0], specs[0].dtype, specs[0].device)


def _accumulate_rule(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
    given = [*placed(operands, attrs[1])]

    def rule(i: int, g: Any) -> Any:
        if i >= len(given):  # an operand of an index, whose dtype may be known only when it has run
            return None
        _, place, indices = given[i]
        if place is None:
            return g
        return apply(GATHER if indices else GETITEM, (g, *indices), (place,))

    return rule


def _accumulate_jvp(ans: Any, operands: tuple[Any, ...], attrs: Attrs) -> RuleOfAll:
    given = [*placed(operands, attrs[1])]

    def rule(i: int, t: Any) -> Any:
        if i >= len(given):
            return None
        _, place, indices = given[i]
        return t if place is None else Placed(t, place, *indices)

    return rule


def _accumulate_loop(specs: tuple[Spec, ...]) -> tuple[Any, ...]:
    return tuple([np.dtype(np.intp) if s.dtype.kind in "iu" else specs[0].dtype for s in specs])


# Contributions, added in their order: each to the whole (place None) or to the part at its index. After
# all of them come the operands of the indices, in the same order; no gradient passes those.
ACCUMULATE = Op(
    "accumulate",
    _infer_accumulate,
    variadic=_accumulate_rule,
    variadic_jvp=_accumulate_jvp,
    loop_dtypes=_accumulate_loop,
)

# At most so many dense contributions are added by one node; more are added in a tree, so that a change
# in one of 10,000 consumers adds up a few short sums and not one long one.
FAN_IN = 16


def accumulate(contributions: Sequence[Any], shape: tuple[int | None, ...] | None) -> Any:
    """Return the sum of contributions to the gradient of a value of this shape, in their order.

    Parameters
    ----------
    contributions : sequence of Var, Placed or Share
        At least one; if one is a share, all of them.
    shape : tuple of int
        The shape of the value; ``None`` for the shape of the first contribution.
    """
    if any(isinstance(one, Share) for one in contributions):
        return _packed(contributions)
    level = _grouped(contributions, shape)
    return level[0] if _is_sum(level) else apply(ACCUMULATE, *_terms(level, shape))


def accumulated(
    contributions: Sequence[Any], shape: tuple[int | None, ...] | None
) -> tuple[list[Any], tuple[Any, ...]]:
    """Return the operands and attributes of the last node that ``accumulate`` would build for these.

    There must be several contributions, and no share among them.
    """
    return _terms(_grouped(contributions, shape), shape)


def _grouped(contributions: Sequence[Any], shape: tuple[int | None, ...] | None) -> list[Any]:
    """Return contributions that one node can add up: the given ones, or the sums of groups of them."""
    level = list(contributions)
    while len(level) > FAN_IN:
        groups: list[list[Any]] = [[]]
        for one in level:
            # Only dense ones count: a placed one costs little beside the whole array of its group.
            group = groups[-1]
            dense = not isinstance(one, Placed)
            if dense and sum(not isinstance(other, Placed) for other in group) == FAN_IN:
                groups.append(group := [])
            group.append(one)
        if len(groups) == 1:
            break
        level = [
            group[0] if _is_sum(group) else apply(ACCUMULATE, *_terms(group, shape))
            for group in groups
        ]
    return level


def _packed(contributions: Sequence[Any]) -> Any:
    """Return a node for the tuple of gradients: for each output the sum of its contributions."""
    given: dict[int, list[Any]] = {}
    for one in contributions:
        if not isinstance(one, Share):
            raise no_shares()
        given.setdefault(one.index, []).append(one.gradient)
    return pack({index: accumulate(parts, None) for index, parts in given.items()})


def _is_sum(group: list[Any]) -> bool:
    return len(group) == 1 and not isinstance(group[0], Placed)


def _terms(
    group: list[Any], shape: tuple[int | None, ...] | None
) -> tuple[list[Any], tuple[Any, ...]]:
    operands = [one.gradient if isinstance(one, Placed) else one for one in group]
    places = tuple(one.index if isinstance(one, Placed) else None for one in group)
    for one in group:
        if isinstance(one, Placed):
            operands += one.operands
    return operands, (shape, places)
