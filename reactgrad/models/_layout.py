"""Ops that arrange elements: shapes, slices, joins, and the integers that shapes are made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

import reactgrad as rg
from reactgrad.models._call import Call, checked, constant, converts, lifted, with_open
from reactgrad.models._open_lengths import Length

MAX_ELEMENTS: Final = 1 << 24
LAST: Final = 1 << 60  # behind the end of any axis


def affordable(call: Call, shape: Any) -> tuple[int, ...]:
    """Return a shape that a few bytes of a file ask for, unless it is absurdly large or negative."""
    shape = tuple(int(n) for n in shape)
    checked(
        all(n >= 0 for n in shape) and math.prod(shape) <= MAX_ELEMENTS,
        f"{call} makes an array of shape {shape}: at most {MAX_ELEMENTS} elements are made of a few numbers.",
    )
    return shape


@converts("Constant")
def _constant(call: Call) -> Any:
    for name, dtype in (
        ("value_float", "f4"),
        ("value_int", "i8"),
        ("value_floats", "f4"),
        ("value_ints", "i8"),
    ):
        if name in call.attributes:
            return np.array(call.attributes[name], dtype)
    if "value" not in call.attributes:
        raise call.refuse(f"a constant of {', '.join(call.attributes) or 'nothing'}")
    return call.attributes["value"]


@converts("ConstantOfShape")
def _constant_of_shape(call: Call) -> Any:
    value = call.attr("value", np.zeros(1, "f4")).reshape(-1)[0]
    lengths = (
        None
        if call.static_or_none(0) is not None
        else call.build.lengths.shape(call.node.output[0])
    )
    if lengths is not None:
        affordable(call, [n for n in lengths if isinstance(n, int)])
        mask = call.build.lengths.mask(lengths)
        if mask is not None:
            return rg.where(mask, value, np.zeros_like(value))
    return np.full(affordable(call, call.ints(0)), value)


@converts("Range")
def _range(call: Call) -> Any:
    if call.static_or_none(1) is None:
        return _open_range(call)
    start, limit, delta = (call.static(i).reshape(-1)[0] for i in range(3))
    checked(delta != 0, f"{call} goes from {start} to {limit} in steps of 0.")
    count = max(0, math.ceil((float(limit) - float(start)) / float(delta)))
    affordable(call, (count,))
    return (start + np.arange(count) * delta).astype(call.dtype(0))


def _open_range(call: Call) -> Any:
    """Return a range to a limit that is an open length."""
    start, delta = (call.static(i).reshape(-1)[0] for i in (0, 2))
    return rg.astype(start + call.count(call.made(1)[0], 1) * delta, call.dtype(0))


@converts("EyeLike")
def _eye_like(call: Call) -> Any:
    rows, columns = affordable(call, call.shape(0))
    return np.eye(rows, columns, call.attr("k", 0), call.dtype_attr("dtype", call.dtype(0)))


@converts("Shape")
def _shape(call: Call) -> Any:
    part = slice(call.attr("start", 0), call.attr("end"))
    lengths = call.shape_or_none(0)[part]
    if None in lengths:
        node = rg.lift(
            lambda x: np.array(np.shape(x)[part], "i8"), shape=(len(lengths),), dtype="i8"
        )(call[0])
        call.build.note(node, np.array([np.nan if n is None else n for n in lengths], float))
        return node
    return np.array(lengths, "i8")


@converts("Size")
def _size(call: Call) -> Any:
    if None in call.shape_or_none(0):
        return lifted(lambda x: np.array(np.size(x), "i8"), call[0])
    return np.array(math.prod(call.shape(0)), "i8")


def _new_shape(call: Call) -> Sequence[Length]:
    """Return the shape that a Reshape asks for; a single length that stays open is -1."""
    known = call.build.hint(call[1]) if call.has(1) and isinstance(call[1], rg.Var) else None
    if known is not None and np.isnan(known).sum() == 1 and not (known == -1).any():
        return [-1 if np.isnan(n) else int(n) for n in known]
    if not call.has(1) or constant(call.values[1]) or call.static_or_none(1) is not None:
        return list(call.ints(1, "shape"))
    return call.made(1)


@converts("Reshape")
def _reshape(call: Call) -> Any:
    shape: list[Any] = list(_new_shape(call))
    if not call.attr("allowzero", 0) and 0 in shape:
        lengths = call.shape_or_none(0)
        shape = [lengths[i] if n == 0 else n for i, n in enumerate(shape)]
    if sum(not isinstance(n, int) or n == -1 for n in shape) > 1:
        shape = call.made()
        if sum(not isinstance(n, int) for n in shape) > 1:
            return _behind_open(call, shape)
    shape = list(with_open(shape))
    if -1 in shape and 0 in shape:
        shape[shape.index(-1)] = 0
    return rg.reshape(call[0], tuple(shape))


def _behind_open(call: Call, shape: list[Length]) -> Any:
    """Return the elements in a shape that begins with several open lengths, which are those of the input."""
    lengths = call.told(0)
    same = 0
    while same < min(len(shape), len(lengths)) and shape[same] == lengths[same]:
        same += 1
    rest, former = shape[same:], lengths[same:]
    if not all(isinstance(n, int) for n in (*rest, *former)):
        raise call.open_length(0)
    fixed, whole = affordable(call, rest), affordable(call, former)
    places = np.unravel_index(np.arange(math.prod(fixed)).reshape(fixed), whole)
    return rg.asarray(call[0])[(..., *places)]


@converts("Flatten")
def _flatten(call: Call) -> Any:
    axis, rank = call.attr("axis", 1), call.rank(0)
    axis = rank if axis == rank else call.axis(axis)
    if None in call.shape_or_none(0)[axis:]:
        return rg.reshape(call[0], with_open(call.made()))
    lengths = call.shape_or_none(0)
    if axis == 0:
        return rg.reshape(call[0], (1, -1))
    if None not in lengths[axis:]:
        rest = math.prod(lengths[axis:])
        if rest or None in lengths:
            return rg.reshape(call[0], (-1, rest))
    shape = call.shape(0)
    return rg.reshape(call[0], (math.prod(shape[:axis]), math.prod(shape[axis:])))


@converts("Transpose")
def _transpose(call: Call) -> Any:
    order = call.attr("perm")
    return rg.transpose(call[0], None if order is None else tuple(order))


@converts("Squeeze")
def _squeeze(call: Call) -> Any:
    axes = call.ints(1, "axes")
    if axes is None:
        axes = tuple(i for i, n in enumerate(call.shape_or_none(0)) if n == 1)
    return rg.squeeze(call[0], axes)


@converts("Unsqueeze")
def _unsqueeze(call: Call) -> Any:
    return rg.expand_dims(call[0], call.ints(1, "axes"))


@converts("Expand")
def _expand(call: Call) -> Any:
    if None in call.shape_or_none(0) or call.static_or_none(1) is None:
        return _expand_open(call)
    wanted = affordable(call, call.ints(1))
    shape = call.shape(0)
    return rg.broadcast_to(call[0], affordable(call, np.broadcast_shapes(shape, wanted)))


def _expand_open(call: Call) -> Any:
    """Return input 0 broadcast to a shape with open lengths, of which it may have some."""
    wanted = call.made(1)
    own: list[Length] = [1] * (len(wanted) - call.rank(0)) + list(call.told(0))
    wider = [1 if n == has else n for n, has in zip(wanted, own, strict=True)]
    affordable(call, [n for n in wanted if isinstance(n, int)])
    return rg.where(call.mask(wider, 1), call[0], np.zeros((), call.dtype(0)))


@converts("Tile")
def _tile(call: Call) -> Any:
    counts = call.ints(1)
    affordable(call, [(n or 1) * m for n, m in zip(call.shape_or_none(0), counts, strict=True)])
    return rg.tile(call[0], counts)


@converts("Concat")
def _concat(call: Call) -> Any:
    return rg.concatenate(call.all(), axis=call.attr("axis", 1))


@converts("Split")
def _split(call: Call) -> Any:
    axis = call.axis(call.attr("axis", 0))
    parts = call.ints(1, "split")
    if parts is None:
        length, count = call.length(0, axis), call.attr("num_outputs", len(call.node.output))
        each = -(-length // count)
        parts = [min(each, max(0, length - i * each)) for i in range(count)]
    found = cut(call, axis, parts)
    return tuple(found) if len(found) > 1 else found[0]


def cut(call: Call, axis: int, parts: Sequence[int]) -> list[Any]:
    """Return the parts of input 0, whose lengths have to add up."""
    whole = call.shape_or_none(0)[axis]
    checked(
        all(n >= 0 for n in parts) and whole in (None, sum(parts)),
        f"{call} cuts an axis of length {whole} into parts of the lengths {list(parts)}.",
    )
    if len(parts) < 2:
        return [call[0]] * len(parts)
    return list(rg.split(call[0], list(np.cumsum(parts[:-1])), axis=axis))


def _limits(call: Call, i: int, axes: Any) -> Sequence[int]:
    """Return limits of a slice; those at a fixed distance from the end of an open axis are counted from there."""
    if call.static_or_none(i) is not None:
        return call.ints(i)
    numbers, lengths = call.build.lengths.numbers(call.node.input[i]), call.told(0)
    if numbers is None:
        return call.ints(i)  # raises
    found: list[int] = []
    for number, axis in zip(numbers, axes or range(len(numbers)), strict=True):
        length = lengths[axis]
        if not isinstance(number, int):
            whole = (length,) * len(number) if isinstance(length, int) else length
            gaps = {a - b for a, b in zip(number, whole, strict=True)}
            if len(gaps) != 1 or (gap := gaps.pop()) > 0:
                return call.ints(i)  # raises
            number = gap or LAST
        found.append(number)
    return found


@converts("Slice")
def _slice(call: Call) -> Any:
    starts, ends = (
        _limits(call, i, call.ints(3, "axes")) if call.has(i) else call.ints(i, name)
        for i, name in ((1, "starts"), (2, "ends"))
    )
    axes = [call.axis(a) for a in call.ints(3, "axes", range(len(starts)))]
    steps = call.ints(4, None, (1,) * len(starts))
    cut: list[Any] = [slice(None)] * call.rank(0)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        length = call.shape_or_none(0)[axis]
        if length is None:
            if (
                step < 0 and end < 0
            ):  # Python counts from the end, where ONNX means "to the very first"
                length = call.length(0, axis)
            else:
                cut[axis] = slice(start, end, step)
                continue
        first, last = (start + length if start < 0 else start), (end + length if end < 0 else end)
        if step > 0:
            cut[axis] = slice(min(max(first, 0), length), min(max(last, 0), length), step)
        else:
            first, last = min(max(first, 0), length - 1), min(max(last, -1), length - 1)
            cut[axis] = slice(first, None if last < 0 else last, step)
    return call[0][tuple(cut)]


@converts("Pad")
def _pad(call: Call) -> Any:
    rank = call.rank(0)
    pads = call.ints(1, "pads")
    axes = [call.axis(a) for a in call.ints(3, None, range(rank))]
    width = [(0, 0)] * rank
    for i, axis in enumerate(axes):
        width[axis] = (pads[i], pads[i + len(axes)])
    x, cut = call[0], tuple(slice(max(-a, 0), -max(-b, 0) or None) for a, b in width)
    if any(c != slice(0, None) for c in cut):  # negative pads take away
        x = x[cut]
    width = [(max(a, 0), max(b, 0)) for a, b in width]
    affordable(
        call, [(n or 1) + a + b for n, (a, b) in zip(call.shape_or_none(0), width, strict=True)]
    )
    mode = call.attr("mode", "constant")
    if mode == "constant":
        value = call[2] if call.has(2) else call.attr("value", 0)
        if isinstance(value, rg.Var | np.ndarray):
            value = call.static(2).reshape(-1)[0]
        return rg.pad(x, width, constant_values=value)
    if mode not in ("reflect", "edge", "wrap"):
        raise call.refuse(f"mode {mode!r}")
    return rg.pad(x, width, mode=mode)


@converts("Trilu")
def _trilu(call: Call) -> Any:
    return (rg.triu if call.attr("upper", 1) else rg.tril)(call[0], call.number(1, 0))


@converts("DepthToSpace")
def _depth_to_space(call: Call) -> Any:
    n = with_open(call.shape_or_none(0))[0]
    c, h, w = (call.length(0, axis) for axis in (1, 2, 3))
    b = call.attr("blocksize")
    if call.attr("mode", "DCR") == "DCR":
        x, order = rg.reshape(call[0], (n, b, b, c // (b * b), h, w)), (0, 3, 4, 1, 5, 2)
    else:
        x, order = rg.reshape(call[0], (n, c // (b * b), b, b, h, w)), (0, 1, 4, 2, 5, 3)
    return rg.reshape(rg.transpose(x, order), (n, c // (b * b), h * b, w * b))


@converts("SpaceToDepth")
def _space_to_depth(call: Call) -> Any:
    n = with_open(call.shape_or_none(0))[0]
    c, h, w = (call.length(0, axis) for axis in (1, 2, 3))
    b = call.attr("blocksize")
    order = (0, 3, 5, 1, 2, 4) if call.attr("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    x = rg.transpose(rg.reshape(call[0], (n, c, h // b, b, w // b, b)), order)
    return rg.reshape(x, (n, c * b * b, h // b, w // b))


@converts("ReverseSequence")
def _reverse_sequence(call: Call) -> Any:
    time, batch = call.attr("time_axis", 0), call.attr("batch_axis", 1)
    shape = call.shape(0)
    lengths = call.static(1).reshape(-1, 1)
    places = np.arange(shape[time])[None, :]
    index = np.where(places < lengths, lengths - 1 - places, places)  # one row a sample
    index = index if batch == 0 else index.T
    full = [1] * len(shape)
    full[time], full[batch] = shape[time], shape[batch]
    return rg.take_along_axis(call[0], np.broadcast_to(index.reshape(full), shape), time)
