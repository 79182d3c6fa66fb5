"""Fourier transforms, whose complex numbers are pairs of floats in a last axis; and boxes."""

from __future__ import annotations

from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad.models._call import Call, checked, converts, lifted
from reactgrad.models._layout import affordable


def _pairs(x: Any, dtype: Any) -> Any:
    return rg.astype(rg.stack([rg.real(x), rg.imag(x)], axis=-1), dtype)


@converts("DFT")
def _dft(call: Call) -> Any:
    rank, dtype = call.rank(0), call.dtype(0)
    axis = int(call.number(2, -2)) if call.version >= 20 else call.attr("axis", 1)
    axis = call.axis(axis, rank)
    parts, x = call.shape(0)[-1], call[0]
    inverse, half = bool(call.attr("inverse", 0)), bool(call.attr("onesided", 0))
    length = int(call.number(1)) if call.has(1) else None
    if length is not None:
        shape = list(call.shape(0))
        shape[axis] = length
        affordable(call, shape)
    z = x[..., 0] if parts == 1 else x[..., 0] + 1j * x[..., 1]
    if inverse and half:
        y = rg.fft.irfft(z, n=length, axis=axis)
        return rg.astype(rg.expand_dims(y, -1), dtype)
    if half:
        return _pairs(rg.fft.rfft(x[..., 0], n=length, axis=axis), dtype)
    return _pairs((rg.fft.ifft if inverse else rg.fft.fft)(z, n=length, axis=axis), dtype)


@converts("STFT")
def _stft(call: Call) -> Any:
    signal, dtype = call[0], call.dtype(0)
    step = int(call.number(1))
    size = int(call.number(3)) if call.has(3) else call.shape(2)[0]
    length = call.shape(0)[1]
    checked(
        step > 0 and 0 < size <= length,
        f"{call} takes frames of {size} in steps of {step} from {length}.",
    )
    half = call.attr("onesided", 1)
    x = signal[..., 0] if call.rank(0) == 3 else signal
    if call.rank(0) == 3 and call.shape(0)[2] == 2:
        x, half = x + 1j * signal[..., 1], 0
    frames = (length - size) // step + 1
    affordable(call, (call.shape(0)[0], frames, size))
    x = x[:, np.arange(frames)[:, None] * step + np.arange(size)]
    x = x * call[2] if call.has(2) else x
    return _pairs((rg.fft.rfft if half else rg.fft.fft)(x, axis=-1), dtype)


@converts("NonMaxSuppression")
def _non_max_suppression(call: Call) -> Any:
    most = int(call.number(2, 0))
    overlap = float(call.number(3, 0.0))
    least = float(call.number(4)) if call.has(4) else None
    centred = bool(call.attr("center_point_box", 0))

    def chosen(boxes: Any, scores: Any) -> Any:
        found = []
        for b in range(scores.shape[0]):
            low, high = _corners(boxes[b], centred)
            for c in range(scores.shape[1]):
                order = np.argsort(-scores[b, c], kind="stable")
                kept: list[int] = []
                for i in order:
                    if len(kept) >= most or (least is not None and scores[b, c, i] <= least):
                        break
                    if all(_overlap(low, high, i, k) <= overlap for k in kept):
                        kept.append(int(i))
                found.extend((b, c, i) for i in kept)
        return np.array(found, "i8").reshape(-1, 3)

    return lifted(chosen, call[0], call[1])


def _corners(boxes: Any, centred: bool) -> tuple[Any, Any]:
    first, second = boxes[:, :2], boxes[:, 2:]
    if centred:
        return first - second / 2, first + second / 2
    return np.minimum(first, second), np.maximum(first, second)


def _overlap(low: Any, high: Any, i: int, k: int) -> float:
    both = np.maximum(0.0, np.minimum(high[i], high[k]) - np.maximum(low[i], low[k])).prod()
    total = (high[i] - low[i]).prod() + (high[k] - low[k]).prod() - both
    return float(both / total) if total > 0 else 0.0
