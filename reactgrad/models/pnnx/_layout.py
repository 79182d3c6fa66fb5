"""Elements in another order or shape, and parts of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad.models._errors import ModelError
from reactgrad.models.pnnx._call import Call, Length, converts, needs_known, rank, shape_of
from reactgrad.models.pnnx._expression import evaluated
from reactgrad.models.pnnx._text import INT_MAX


def _lengths(call: Call, name: str, i: int = 1) -> list[Any]:
    """Return lengths of a shape, ``-1`` for a single one that is not known."""
    found = call(name) if name in call.one.params or name in call.one.named else call[i]
    many = list(found) if isinstance(found, list | tuple) else [found]
    unknown = [n for n in many if isinstance(n, Length)]
    if len(unknown) == 1 and -1 not in many:
        return [-1 if isinstance(n, Length) else int(n) for n in many]
    call.one.params[name] = tuple(many)
    call.one.named.pop(name, None)
    return list(call.ints(name))


@converts("Tensor.reshape", "Tensor.view")
def _reshape(call: Call) -> Any:
    return rg.reshape(call.x(), tuple(_lengths(call, "shape")))


@converts("Tensor.reshape_as")
def _reshape_as(call: Call) -> Any:
    return rg.reshape(call[0], needs_known(call, call[1]))


@converts("Tensor.permute")
def _permute(call: Call) -> Any:
    return rg.transpose(call.x(), call.ints("dims"))


@converts("torch.transpose", "Tensor.transpose")
def _transpose(call: Call) -> Any:
    return rg.swapaxes(call.x(), call.integer("dim0"), call.integer("dim1"))


@converts("torch.unsqueeze")
def _unsqueeze(call: Call) -> Any:
    return rg.expand_dims(call.x(), call.integer("dim"))


@converts("torch.squeeze")
def _squeeze(call: Call) -> Any:
    shape = shape_of(call.x())
    axis = call.axis()
    axes = range(len(shape)) if axis is None else ((axis,) if isinstance(axis, int) else axis)
    return rg.squeeze(call.x(), tuple(a % len(shape) for a in axes if shape[a] == 1))


@converts("torch.flatten", "nn.Flatten")
def _flatten(call: Call) -> Any:
    return rg.flatten(call.x(), call.integer("start_dim", 0), call.integer("end_dim", -1))


@converts("Tensor.unflatten", "torch.unflatten", "nn.Unflatten")
def _unflatten(call: Call) -> Any:
    return rg.unflatten(call.x(), call.integer("dim"), call.ints("sizes"))


@converts("Tensor.expand", "Tensor.expand_as")
def _expand(call: Call) -> Any:
    x = call.x()
    if call.op == "Tensor.expand_as":
        return x + rg.zeros_like(call[1], dtype=x.dtype)
    old = shape_of(x)
    sizes = call("sizes") if "sizes" in call.one.params else call[1]
    many = list(sizes) if isinstance(sizes, list | tuple) else [sizes]
    first = len(many) - len(old)
    shape: list[Any] = []
    for i, n in enumerate(many):
        own = old[i - first] if i >= first else 1
        if isinstance(n, Length):
            if own is not None:
                raise call.refuse(f"repetition to the length {n!r}, which is not known,")
            n = -1
        shape.append(own if n == -1 else int(n))
    if None not in shape:
        return rg.broadcast_to(x, call.affordable(shape))
    ones = [1 if n is None else n for n in shape]
    return x + rg.zeros(call.affordable(ones), dtype=x.dtype)


@converts("Tensor.repeat", "torch.tile")
def _repeat(call: Call) -> Any:
    x = call.x()
    sizes = call.ints("sizes" if "sizes" in call.one.params else "dims")
    call.affordable([n or 1 for n in shape_of(x)] + list(sizes))
    return rg.tile(x, sizes)


@converts("torch.repeat_interleave")
def _repeat_interleave(call: Call) -> Any:
    return rg.repeat_interleave(call.x(), call.integer("repeats"), call.axis())


@converts("torch.cat", "torch.concat")
def _cat(call: Call) -> Any:
    return rg.concatenate(_many(call), axis=call.integer("dim", 0))


@converts("torch.stack")
def _stack(call: Call) -> Any:
    return rg.stack(_many(call), axis=call.integer("dim", 0))


def _many(call: Call) -> list[Any]:
    values = call.values
    return list(values[0]) if len(values) == 1 and isinstance(values[0], list | tuple) else values


@converts("torch.split", "torch.chunk", "torch.tensor_split")
def _split(call: Call) -> Any:
    x, axis = call.x("tensor"), call.integer("dim", 0)
    x = call.x() if "tensor" not in call.one.named else x
    if call.op == "torch.tensor_split":
        sections = call("indices", None) or call.integer("sections")
        return tuple(
            rg.array_split(
                x, list(sections) if isinstance(sections, tuple) else sections, axis=axis
            )
        )
    length = shape_of(x)[axis]
    if length is None:
        length = needs_known(call, x)[axis]
    if call.op == "torch.chunk":
        size: Any = -(-length // call.integer("chunks"))
    else:
        size = call("split_size_or_sections")
    if isinstance(size, int):
        if size < 1 or length > 2**20 * size:
            raise ModelError(f"{call}: parts of length {size} of {length}. The file is damaged.")
        ends = list(range(size, length, size))
    else:
        ends = np.cumsum(size)[:-1].tolist()
    return tuple(rg.split(x, ends, axis=axis))


@converts("torch.unbind")
def _unbind(call: Call) -> Any:
    return tuple(rg.unbind(call.x(), axis=call.integer("dim", 0)))


@converts("torch.flip")
def _flip(call: Call) -> Any:
    return rg.flip(call.x(), call.ints("dims"))


@converts("torch.roll")
def _roll(call: Call) -> Any:
    dims = call("dims", None)
    return (
        rg.roll(call.x(), call.ints("shifts"), call.ints("dims"))
        if dims
        else rg.roll(call.x(), call.integer("shifts"))
    )


@converts("torch.narrow")
def _narrow(call: Call) -> Any:
    start = call.integer("start")
    return rg.narrow(call.x(), call.integer("dim"), start, call.integer("length"))


@converts("Tensor.select", "torch.select")
def _select(call: Call) -> Any:
    axis = call.integer("dim")
    return call.x()[_at(rank(call.x()), axis, call.integer("index"))]


def _at(ndim: int, axis: int, part: Any) -> tuple[Any, ...]:
    return (*[slice(None)] * (axis % ndim), part)


@converts("Tensor.slice")
def _slice(call: Call) -> Any:
    x = call.x()
    many = "dims" in call.one.params or "dims" in call.one.named
    names = ("dims", "starts", "ends", "steps") if many else ("dim", "start", "end", "step")
    rows = [_row(call, name) for name in names]
    count = len(rows[0])
    starts, ends, steps = (row or [None] * count for row in rows[1:])
    selects = _row(call, "selects") or [None] * count
    key: list[Any] = [slice(None)] * rank(x)
    for axis, start, end, step, select in zip(rows[0], starts, ends, steps, selects, strict=True):
        if not -len(key) <= axis < len(key):
            raise ModelError(f"{call}: there is no axis {axis} of {len(key)}. The file is damaged.")
        key[axis] = slice(start, end, step) if select is None else select
    return x[tuple(key)]


def _row(call: Call, name: str) -> list[Any]:
    """Return integers of a slice; ``None`` for those that are none or stand for the end."""
    found = call(name, None)
    many = list(found) if isinstance(found, list | tuple) else [found]
    if found is None:
        return []
    row: list[Any] = []
    for n in many:
        if isinstance(n, rg.Var):
            raise call.refuse(f"a {name} that is computed")
        row.append(
            None if n is None or isinstance(n, Length) or n == "None" or n >= INT_MAX else int(n)
        )
    return row


@converts("Tensor.index")
def _index(call: Call) -> Any:
    if "expr" in call.one.params:
        key = evaluated(call, call.one.params["expr"], call.values)
        key = key if isinstance(key, list) else [key]
    else:
        key = call[1] if isinstance(call[1], list | tuple) else call.values[1:]
    return call[0][tuple(slice(None) if one is None else one for one in key)]


@converts("torch.index_select")
def _index_select(call: Call) -> Any:
    return rg.index_select(call.x(), call.integer("dim"), call.x("index", 1))


@converts("torch.gather")
def _gather(call: Call) -> Any:
    return rg.gather(call.x(), call.integer("dim"), call.x("index", 1))


@converts("torch.scatter_add")
def _scatter_add(call: Call) -> Any:
    return rg.scatter(
        call.x(), call.integer("dim"), call.x("index", 1), call.x("src", 2), reduce="add"
    )


@converts("torch.slice_scatter", "Tensor.slice_scatter")
def _slice_scatter(call: Call) -> Any:
    x, axis = call.x(), call.integer("dim", 0)
    ends = [_row(call, name) for name in ("start", "end", "step")]
    part = slice(*(row[0] if row else None for row in ends))
    return x.at[_at(rank(x), axis, part)].set(call.x("src", 1))


@converts("torch.masked_select")
def _masked_select(call: Call) -> Any:
    return call[0][call[1]]


@converts("torch.diag")
def _diag(call: Call) -> Any:
    return rg.diag(call.x(), call.integer("diagonal", 0))


@converts("aten::tril", "aten::triu", "torch.tril", "torch.triu")
def _triangle(call: Call) -> Any:
    k = call.integer("diagonal", 0) if len(call) == 1 else call[1]
    return getattr(rg, call.op[-4:])(call[0], int(k))


@converts("prim::TupleConstruct", "prim::ListConstruct")
def _tuple(call: Call) -> Any:
    return list(call.values)


@converts("prim::TupleUnpack", "prim::ListUnpack")
def _unpack(call: Call) -> Any:
    return tuple(call[0])


@converts("Tensor.size")
def _size(call: Call) -> Any:
    x = call.x()
    shape = [Length(x, i) if n is None else n for i, n in enumerate(shape_of(x))]
    return shape[call.integer("dim")] if call("dim", None) is not None else shape


@converts(
    "torch.zeros",
    "torch.ones",
    "torch.full",
    "torch.empty",
    "Tensor.new_zeros",
    "Tensor.new_ones",
    "Tensor.new_empty",
)
def _filled(call: Call) -> Any:
    name = "size" if "size" in call.one.params or "size" in call.one.named else "shape"
    shape = call.affordable(_lengths(call, name, len(call) - 1))
    value = 1 if call.op.endswith("ones") else call("fill_value", 0)
    kind = call("dtype", None)
    names = {"torch.long": "i8", "torch.int": "i4", "torch.bool": "?", "torch.double": "f8"}
    return np.full(shape, value, names.get(kind, "f4"))


@converts(
    "torch.zeros_like", "torch.ones_like", "torch.full_like", "torch.empty_like", "Tensor.fill"
)
def _filled_like(call: Call) -> Any:
    value = 1 if call.op.endswith("ones_like") else call("fill_value", call("value", 0))
    return rg.full_like(call[0], value)


@converts("torch.arange")
def _arange(call: Call) -> Any:
    start, step = call("start", 0), call("step", 1)
    end = call("end") if "end" in call.one.params else call[0]
    if isinstance(end, rg.Var | Length) or not step:
        raise call.refuse("an end that is not known")
    call.affordable([int(max(0, (end - start) / step))])
    kind = {"torch.long": "i8", "torch.int": "i4", "torch.float": "f4"}.get(call("dtype", None))
    return np.arange(start, end, step, dtype=kind or ("i8" if isinstance(end, int) else "f4"))


# --- padding -----------------------------------------------------------------------------------

MODES = {
    "constant": "constant",
    "zeros": "constant",
    "reflect": "reflect",
    "replicate": "edge",
    "circular": "wrap",
}
LAYERS = {
    "nn.ConstantPad": "constant",
    "nn.ZeroPad": "constant",
    "nn.ReflectionPad": "reflect",
    "nn.ReplicationPad": "replicate",
}


def padded(call: Call, x: Any, pad: Sequence[int], mode: str, value: Any) -> Any:
    """Return a value with a border, whose widths stand from the last axis to the first, as PyTorch has them."""
    if len(pad) % 2 or len(pad) > 2 * rank(x) or mode not in MODES:
        raise ModelError(f"{call}: widths {pad!r} by {mode!r}. The file is damaged.")
    call.affordable(
        [
            (n or 1) + max(pad[2 * i] + pad[2 * i + 1], 0)
            for i, n in enumerate(shape_of(x)[::-1])
            if 2 * i < len(pad)
        ]
    )
    pairs = [(pad[i], pad[i + 1]) for i in range(0, len(pad), 2)]
    key = [slice(max(-a, 0), None if b >= 0 else b) for a, b in pairs]
    if any(a < 0 or b < 0 for a, b in pairs):
        x = x[(..., *key[::-1])]
        pairs = [(max(a, 0), max(b, 0)) for a, b in pairs]
    width = [(0, 0)] * (rank(x) - len(pairs)) + pairs[::-1]
    if MODES[mode] == "constant":
        return rg.pad(x, width, "constant", constant_values=value or 0)
    return rg.pad(x, width, MODES[mode])


@converts("F.pad")
def _pad(call: Call) -> Any:
    return padded(call, call.x(), call.ints("pad"), call("mode", "constant"), call("value", 0))


@converts(*[f"{name}{n}d" for name in LAYERS for n in (1, 2, 3)])
def _pad_layer(call: Call) -> Any:
    return padded(call, call.x(), call.ints("padding"), LAYERS[call.op[:-2]], call("value", 0))
