"""Resize and its relatives: each axis of space is a product with a matrix of weights."""

from __future__ import annotations

from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad.models._call import Call, checked, converts
from reactgrad.models._layout import affordable

Array = np.ndarray[Any, Any]


def _places(mode: str, length: int, count: int, scale: float, roi: tuple[float, float]) -> Array:
    """Return where the elements of a result lie in the input."""
    i = np.arange(count, dtype=float)
    exact = scale * length
    if mode == "align_corners":
        return np.zeros(count) if exact == 1 else i * (length - 1) / (exact - 1)
    if mode == "asymmetric":
        return i / scale
    if mode == "tf_crop_and_resize":
        start, end = roi
        if exact == 1:
            return np.full(count, (end - start) * (length - 1) / 2 + start * (length - 1))
        return i * (end - start) * (length - 1) / (exact - 1) + start * (length - 1)
    if mode == "pytorch_half_pixel" and exact == 1:
        return np.full(count, -0.5)
    if mode == "half_pixel_symmetric":
        return length / 2 * (1 - count / exact) + (i + 0.5) / scale - 0.5
    return (i + 0.5) / scale - 0.5


def _kernel(call: Call, distance: Array) -> Array:
    """Return the weight of elements by their distance."""
    d = np.abs(distance)
    if call.attr("mode", "nearest") == "linear":
        return np.maximum(0.0, 1.0 - d)
    a = call.attr("cubic_coeff_a", -0.75)  # Keys, 1981
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))


def _nearest(mode: str, x: Array) -> Array:
    if mode == "round_prefer_floor":
        return np.ceil(x - 0.5)
    if mode == "round_prefer_ceil":
        return np.floor(x + 0.5)
    return np.floor(x) if mode == "floor" else np.ceil(x)


def _weights(
    call: Call, length: int, count: int, scale: float, roi: tuple[float, float]
) -> tuple[Array, Array]:
    """Return the matrix from an axis to its result, and which elements of the result lie outside."""
    how = call.attr("coordinate_transformation_mode", "half_pixel")
    at = _places(how, length, count, scale, roi)
    outside = (at < 0) | (at > length - 1) if how == "tf_crop_and_resize" else np.zeros(count, bool)
    matrix = np.zeros((count, length))
    if call.attr("mode", "nearest") == "nearest":
        column = np.clip(
            _nearest(call.attr("nearest_mode", "round_prefer_floor"), at), 0, length - 1
        )
        matrix[np.arange(count), column.astype(int)] = 1.0
        return matrix, outside
    wide = min(scale, 1.0) if call.attr("antialias", 0) else 1.0
    reach = int(np.ceil((1 if call.attr("mode") == "linear" else 2) / wide)) + 1
    columns = np.floor(at)[:, None] + np.arange(-reach, reach + 1)
    weights = _kernel(call, (columns - at[:, None]) * wide)
    if call.attr("exclude_outside", 0):
        weights = np.where((columns < 0) | (columns > length - 1), 0.0, weights)
    total = weights.sum(1, keepdims=True)
    if call.attr("exclude_outside", 0) or call.attr("antialias", 0):
        weights = weights / np.where(total == 0, 1.0, total)
    rows = np.broadcast_to(np.arange(count)[:, None], columns.shape)
    np.add.at(matrix, (rows, np.clip(columns, 0, length - 1).astype(int)), weights)
    return matrix, outside


@converts("Resize", "Upsample")
def _resize(call: Call) -> Any:
    x, shape, dtype = call[0], call.shape_or_none(0), call.dtype(0)
    rank = len(shape)
    axes = [a % rank for a in call.attr("axes") or range(rank)]
    scales, sizes, roi = _asked(call)
    if None in shape:
        shape, moved = _moved(call, axes)
        axes, scales, sizes, roi = _only(moved, axes, scales, sizes, roi)
    lengths = [shape[a] for a in axes]
    if sizes is not None:
        each = [s / n for s, n in zip(sizes, lengths, strict=True)]
        policy = call.attr("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            one = min(each) if policy == "not_larger" else max(each)
            each, sizes = [one] * len(axes), [int(one * n + 0.5) for n in lengths]
    else:
        each = [float(s) for s in scales]
        sizes = [int(np.floor(s * n)) for s, n in zip(each, lengths, strict=True)]
    affordable(call, [dict(zip(axes, sizes, strict=True)).get(a, shape[a]) for a in range(rank)])
    y: Any = x if dtype.kind == "f" else rg.astype(x, "f8")
    plain = call.attr("coordinate_transformation_mode", "half_pixel") != "tf_crop_and_resize"
    for k, axis in enumerate(axes):
        if plain and each[k] == 1.0 and sizes[k] == shape[axis]:
            continue
        region = (float(roi[k]), float(roi[k + len(axes)])) if roi is not None else (0.0, 1.0)
        affordable(call, (sizes[k], shape[axis]))
        matrix, outside = _weights(call, shape[axis], sizes[k], each[k], region)
        if call.attr("mode", "nearest") == "nearest":
            y = rg.take(y, matrix.argmax(1), axis=axis)
        else:
            moved = rg.matmul(rg.moveaxis(y, axis, -1), matrix.T.astype(y.dtype))
            y = rg.moveaxis(moved, -1, axis)
        if outside.any():
            mask = outside.reshape([-1 if a == axis else 1 for a in range(rank)])
            y = rg.where(mask, np.asarray(call.attr("extrapolation_value", 0.0), y.dtype), y)
    return _back(y, dtype)


def _moved(call: Call, axes: list[int]) -> tuple[tuple[int, ...], list[int]]:
    """Return the lengths of an input of which some are open, 1 for these, and which of the axes change."""
    before, after = call.told(0), call.made()
    changed = [k for k, a in enumerate(axes) if before[a] != after[a] or isinstance(before[a], int)]
    if not all(isinstance(n, int) for k in changed for n in (before[axes[k]], after[axes[k]])):
        raise call.open_length(0)
    return tuple(n if isinstance(n, int) else 1 for n in before), changed


def _only(kept: list[int], axes: list[int], scales: Any, sizes: Any, roi: Any) -> tuple[Any, ...]:
    """Return what is asked of some of the axes."""
    one, two = (None if v is None else [v[k] for k in kept] for v in (scales, sizes))
    region = None if roi is None else [roi[k] for k in (*kept, *(k + len(axes) for k in kept))]
    return [axes[k] for k in kept], one, two, region


def _back(y: Any, dtype: np.dtype[Any]) -> Any:
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        y = rg.clip(rg.round(y), float(limits.min), float(limits.max))
    return rg.astype(y, dtype)


def _asked(call: Call) -> tuple[Any, Any, Any]:
    """Return scales, sizes and the region of the node; scales or sizes are ``None``."""
    if call.version < 11 or call.op == "Upsample":
        call.attributes.setdefault("coordinate_transformation_mode", "asymmetric")
        call.attributes.setdefault("nearest_mode", "floor")
        if call.attr("scales") is not None:
            return call.attr("scales"), None, None
        return call.static(1).reshape(-1), None, None
    roi = call.static(1).reshape(-1) if call.has(1) else None
    roi = roi if roi is not None and roi.size else None
    if call.has(3):
        open_too = call.static_or_none(3) is None
        wanted = [n if isinstance(n, int) else 0 for n in call.made(3)] if open_too else None
        if wanted is not None and call.attr("axes"):
            wanted = [wanted[a] for a in call.attr("axes")]
        return None, wanted if open_too else call.ints(3), roi
    checked(call.has(2), f"{call} has neither scales nor sizes.")
    return call.static(2).reshape(-1), None, roi


@converts("GridSample")
def _grid_sample(call: Call) -> Any:
    given: str = call.attr("mode", "linear")
    mode = {"linear": "bilinear", "cubic": "bicubic"}.get(given, given)
    return rg.grid_sample(
        call[0],
        call[1],
        mode,
        call.attr("padding_mode", "zeros"),
        bool(call.attr("align_corners", 0)),
    )
