"""Convolutions and pooling: windows that move over axes of space."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

import reactgrad as rg
from reactgrad.models._call import Call, checked, converts, with_open
from reactgrad.models._layout import affordable

MAX_PADS: Final = 1 << 12


class _Windows:
    """The windows of a node: their lengths, steps, and where they begin and end."""

    def __init__(self, call: Call, kernel: Any, space: tuple[int, ...]) -> None:
        n = len(space)
        self.call, self.space = call, space
        self.kernel = tuple(kernel)
        self.strides = tuple(call.attr("strides") or (1,) * n)
        self.dilations = tuple(call.attr("dilations") or (1,) * n)
        pads: list[int] = list(call.attr("pads") or [0] * (2 * n))
        reach = [d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilations, strict=True)]
        mode = call.attr("auto_pad", "NOTSET")
        if mode in ("SAME_UPPER", "SAME_LOWER"):
            for i in range(n):
                places = -(-space[i] // self.strides[i])
                total = max(0, (places - 1) * self.strides[i] + reach[i] - space[i])
                less = total // 2
                pads[i], pads[i + n] = (
                    (less, total - less) if mode == "SAME_UPPER" else (total - less, less)
                )
        elif mode == "VALID":
            pads = [0] * (2 * n)
        checked(
            max(pads, default=0) <= MAX_PADS,
            f"{call} has pads {pads}: at most {MAX_PADS} on a side. The file is damaged: export it again.",
        )
        self.before, self.after = tuple(pads[:n]), tuple(pads[n:])
        self.beyond = [0] * n  # what windows reach behind the padding, where lengths are rounded up
        self.places = []
        for i in range(n):
            free = space[i] + self.before[i] + self.after[i] - reach[i]
            places = free // self.strides[i] + 1
            if call.attr("ceil_mode", 0):
                up = -(-free // self.strides[i]) + 1
                # A window that would begin behind the input and its padding in front is left out.
                if (up - 1) * self.strides[i] >= space[i] + self.before[i]:
                    up -= 1
                places = up
            self.places.append(places)
            self.beyond[i] = max(0, (places - 1) * self.strides[i] + reach[i] - free - reach[i])

    def padded(self, x: Any, value: Any, rank: int, beyond: bool = True) -> Any:
        """Return the input with `value` around it."""
        affordable(
            self.call,
            [n + a + b for n, a, b in zip(self.space, self.before, self.after, strict=True)],
        )
        width = [(0, 0)] * (rank - len(self.kernel))
        for i in range(len(self.kernel)):
            width.append((self.before[i], self.after[i] + (self.beyond[i] if beyond else 0)))
        return rg.pad(x, width, constant_values=value) if any(w != (0, 0) for w in width) else x

    def taken(self, x: Any) -> Any:
        """Return all windows of a padded input: axes of places, then one axis with their elements."""
        n = len(self.kernel)
        if isinstance(x, rg.Var) and None in x.shape:
            return self._taken_by_axes(x)
        index: list[Any] = [slice(None), slice(None)]
        for i in range(n):
            at = (
                np.arange(self.places[i])[:, None] * self.strides[i]
                + np.arange(self.kernel[i]) * self.dilations[i]
            )
            shape = [1] * (2 * n)
            shape[i], shape[n + i] = at.shape
            index.append(at.reshape(shape))
        windows = x[tuple(index)]
        return rg.reshape(windows, with_open((*windows.shape[: 2 + n], math.prod(self.kernel))))

    def _taken_by_axes(self, x: Any) -> Any:
        """Return all windows of an input with open lengths, taken along one axis after the other."""
        n = len(self.kernel)
        for i in reversed(range(n)):
            at = (
                np.arange(self.places[i])[:, None] * self.strides[i]
                + np.arange(self.kernel[i]) * self.dilations[i]
            )
            x = rg.take(x, at, axis=2 + i)
        x = rg.transpose(x, (0, 1, *range(2, 2 + 2 * n, 2), *range(3, 2 + 2 * n, 2)))
        return rg.reshape(x, with_open((*x.shape[: 2 + n], math.prod(self.kernel))))


def _by_rank(call: Call, name: str) -> Any:
    n = call.rank(0) - 2
    if not 1 <= n <= 3:
        raise call.refuse(f"{n} axes of space")
    return getattr(rg, f"{name}{n}d")


def convolution(call: Call, x: Any, weight: Any, bias: Any, shape: tuple[int, ...]) -> Any:
    """Return the convolution of operands by the attributes of a node; `shape` is that of the weight."""
    n = call.rank(0) - 2
    known = call.attr("auto_pad", "NOTSET") not in ("SAME_UPPER", "SAME_LOWER")
    space = tuple(1 for _ in range(n)) if known else call.space()
    w = _Windows(call, shape[2:], space)
    padding = w.before
    if w.before != w.after:
        x, padding = w.padded(x, 0, call.rank(0), beyond=False), (0,) * n
    return _by_rank(call, "conv")(
        x,
        weight,
        bias,
        stride=w.strides,
        padding=padding,
        dilation=w.dilations,
        groups=call.attr("group", 1),
    )


@converts("Conv")
def _conv(call: Call) -> Any:
    return convolution(call, call[0], call[1], call[2], call.shape(1))


@converts("ConvTranspose")
def _conv_transpose(call: Call) -> Any:
    space, kernel = call.space(), call.shape(1)[2:]
    n = len(space)
    strides = call.attr("strides") or [1] * n
    dilations = call.attr("dilations") or [1] * n
    more = list(call.attr("output_padding") or [0] * n)
    pads = list(call.attr("pads") or [0] * (2 * n))
    full = [strides[i] * (space[i] - 1) + dilations[i] * (kernel[i] - 1) + 1 for i in range(n)]
    shape, mode = call.attr("output_shape"), call.attr("auto_pad", "NOTSET")
    if shape or mode in ("SAME_UPPER", "SAME_LOWER"):
        shape = list(shape)[-n:] if shape else [space[i] * strides[i] for i in range(n)]
        for i in range(n):
            total = full[i] + more[i] - shape[i]
            less = total // 2
            pads[i], pads[i + n] = (
                (less, total - less) if mode == "SAME_UPPER" else (total - less, less)
            )
    y = _by_rank(call, "conv_transpose")(
        call[0],
        call[1],
        None,
        stride=tuple(strides),
        groups=call.attr("group", 1),
        dilation=tuple(dilations),
    )
    # Zeros behind the end, for lengths that no input reaches; then the padding is cut off.
    behind = [max(0, more[i] - pads[i + n]) for i in range(n)]
    if any(behind) or any(p < 0 for p in pads):
        behind = [max(0, more[i] - pads[i + n]) for i in range(n)]
        front = [max(0, -pads[i]) for i in range(n)]
        y = rg.pad(y, [(0, 0), (0, 0), *zip(front, behind, strict=True)])
    ends = [full[i] + more[i] - pads[i] - pads[i + n] for i in range(n)]
    first = [max(0, p) for p in pads[:n]]
    y = y[(slice(None), slice(None), *(slice(f, f + e) for f, e in zip(first, ends, strict=True)))]
    return y + rg.reshape(call[2], (-1, *[1] * n)) if call.has(2) else y


def _open(call: Call) -> bool:
    """Return whether lengths of space are open, and the windows do not hang on them."""
    fixed = call.attr("auto_pad", "NOTSET") in ("NOTSET", "VALID") and not call.attr("ceil_mode", 0)
    return (
        fixed and None in call.shape_or_none(0) and len(call.node.output) == 1 and call.rank(0) <= 5
    )


@converts("MaxPool")
def _max_pool(call: Call) -> Any:
    if _open(call) and call.dtype(0).kind == "f":
        w = _Windows(call, call.attr("kernel_shape"), (1,) * (call.rank(0) - 2))
        x = w.padded(call[0], -np.inf, call.rank(0), beyond=False)
        return _by_rank(call, "max_pool")(x, w.kernel, w.strides, 0, w.dilations)
    space = call.space()
    w = _Windows(call, call.attr("kernel_shape"), space)
    dtype = call.dtype(0)
    least = -np.inf if dtype.kind == "f" else np.iinfo(dtype).min
    n = len(space)
    plain = (
        w.before == w.after
        and not any(w.beyond)
        and all(2 * p <= k for p, k in zip(w.before, w.kernel, strict=True))
    )
    wanted = len(call.node.output) > 1
    if plain and n <= 3 and not wanted:
        return _by_rank(call, "max_pool")(call[0], w.kernel, w.strides, w.before, w.dilations)
    windows = w.taken(w.padded(call[0], least, n + 2))
    y = rg.max(windows, axis=-1)
    return (y, _places(call, w, windows, space)) if wanted else y


def _places(call: Call, w: _Windows, windows: Any, space: tuple[int, ...]) -> Any:
    """Return the numbers of the largest elements in the whole input."""
    order = (
        range(len(space)) if not call.attr("storage_order", 0) else range(len(space) - 1, -1, -1)
    )
    flat: Any = 0
    n = len(space)
    steps = dict.fromkeys(range(n), 1)
    size = 1
    for i in reversed(list(order)):
        steps[i] = size
        size *= space[i]
    for i in range(n):
        at = (
            np.arange(w.places[i])[:, None] * w.strides[i]
            + np.arange(w.kernel[i]) * w.dilations[i]
            - w.before[i]
        )
        shape = [1] * (2 * n)
        shape[i], shape[n + i] = at.shape
        flat = flat + at.reshape(shape) * steps[i]
    table = flat.reshape(*w.places, -1)
    rows = np.arange(math.prod(w.places)).reshape(w.places) * table.shape[-1]
    here = rg.take(table.reshape(-1), rg.argmax(windows, axis=-1) + rows)
    samples = call.told(0)[0] if call.shape_or_none(0)[0] is None else call.length(0, 0)
    channels = call.length(0, 1)
    images = rg.reshape(call.count(samples), (-1, *[1] * (n + 1))) * channels
    images = images + np.arange(channels).reshape(-1, *[1] * n)
    return here + images * math.prod(space)


@converts("AveragePool")
def _average_pool(call: Call) -> Any:
    if (
        _open(call)
        and not any(call.attr("pads") or ())
        and set(call.attr("dilations") or (1,)) == {1}
    ):
        strides = call.attr("strides") or [1] * (call.rank(0) - 2)
        return _by_rank(call, "avg_pool")(call[0], tuple(call.attr("kernel_shape")), tuple(strides))
    space = call.space()
    w = _Windows(call, call.attr("kernel_shape"), space)
    n = len(space)
    if not any((*w.before, *w.after, *w.beyond)) and n <= 3 and w.dilations == (1,) * n:
        return _by_rank(call, "avg_pool")(call[0], w.kernel, w.strides)
    ones = np.ones((1, 1, *space), call.dtype(0))
    inside = 1 if call.attr("count_include_pad", 0) else 0
    counted = np.pad(
        ones, [(0, 0), (0, 0), *zip(w.before, w.after, strict=True)], constant_values=inside
    )
    counted = np.pad(counted, [(0, 0), (0, 0), *((0, b) for b in w.beyond)])
    with rg.Graph():
        counts = w.taken(rg.const(counted)).value.sum(-1)
    return rg.sum(w.taken(w.padded(call[0], 0, n + 2)), axis=-1) / counts


@converts("LpPool")
def _lp_pool(call: Call) -> Any:
    space = call.space()
    w = _Windows(call, call.attr("kernel_shape"), space)
    windows, p = w.taken(w.padded(call[0], 0, len(space) + 2)), call.attr("p", 2)
    return rg.power(rg.sum(rg.power(rg.absolute(windows), p), axis=-1), 1.0 / p)


@converts("GlobalAveragePool")
def _global_average_pool(call: Call) -> Any:
    return rg.mean(call[0], axis=tuple(range(2, call.rank(0))), keepdims=True)


@converts("GlobalMaxPool")
def _global_max_pool(call: Call) -> Any:
    return rg.max(call[0], axis=tuple(range(2, call.rank(0))), keepdims=True)


@converts("GlobalLpPool")
def _global_lp_pool(call: Call) -> Any:
    p = call.attr("p", 2)
    axes = tuple(range(2, call.rank(0)))
    return rg.power(rg.sum(rg.power(rg.absolute(call[0]), p), axis=axes, keepdims=True), 1.0 / p)


@converts("MaxUnpool")
def _max_unpool(call: Call) -> Any:
    shape = call.shape(0)
    n = len(shape) - 2
    kernel = call.attr("kernel_shape")
    strides, pads = call.attr("strides") or [1] * n, call.attr("pads") or [0] * (2 * n)
    inferred = [
        (shape[2 + i] - 1) * strides[i] + kernel[i] - pads[i] - pads[i + n] for i in range(n)
    ]
    size = [*shape[:2], *inferred]
    given = affordable(call, call.ints(2) if call.has(2) else size)
    affordable(call, size)
    flat = (
        rg.zeros(math.prod(size), dtype=call.dtype(0))
        .at[rg.reshape(call[1], (-1,))]
        .set(rg.reshape(call[0], (-1,)))
    )
    y = rg.reshape(flat, tuple(size))
    return rg.pad(y, [(0, b - a) for a, b in zip(size, given, strict=True)])


@converts("Col2Im")
def _col2im(call: Call) -> Any:
    image, block = call.ints(1), call.ints(2)
    n = len(image)
    strides, dilations = call.attr("strides") or [1] * n, call.attr("dilations") or [1] * n
    pads = call.attr("pads") or [0] * (2 * n)
    batch, rows = call.shape(0)[:2]
    channels = rows // math.prod(block)
    affordable(call, (batch, rows, *image))
    full = [image[i] + pads[i] + pads[i + n] for i in range(n)]
    places = [(full[i] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1 for i in range(n)]
    x = rg.reshape(call[0], (batch, channels, *block, *places))
    index: list[Any] = [slice(None), slice(None)]
    for i in range(n):
        at = np.arange(block[i])[:, None] * dilations[i] + np.arange(places[i]) * strides[i]
        shape = [1] * (2 * n)
        shape[i], shape[n + i] = at.shape
        index.append(at.reshape(shape))
    y = rg.zeros((batch, channels, *full), dtype=call.dtype(0)).at[tuple(index)].add(x)
    return y[(slice(None), slice(None), *(slice(pads[i], pads[i] + image[i]) for i in range(n)))]
