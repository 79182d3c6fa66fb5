"""Connectionist temporal classification (Graves and others, 2006): costs of alignments, and their gradient.

All samples at once, step by step in time. A label of S classes has 2 S + 1 states: a blank around each class.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._errors import IndexingError
from reactgrad.backend._registry import register_kernel

_NONE = -np.inf


def _states(targets: Any, lengths: Any, blank: int) -> tuple[Any, Any]:
    """Return the class of each state of each sample, and whether a state may follow the one before the last."""
    samples, longest = targets.shape
    classes = np.full((samples, 2 * longest + 1), blank, np.int64)
    classes[:, 1::2] = np.where(np.arange(longest) < lengths[:, None], targets, blank)
    jumps = np.zeros(classes.shape, bool)
    jumps[:, 2:] = (classes[:, 2:] != blank) & (classes[:, 2:] != classes[:, :-2])
    return classes, jumps


def _check(log_probs: Any, targets: Any, times: Any, lengths: Any, blank: int) -> None:
    count = log_probs.shape[2]
    inside = np.arange(targets.shape[1]) < lengths[:, None]
    wrong = inside & ((targets < 0) | (targets >= count))
    if wrong.any():
        raise IndexingError(
            f"ctc_loss: {targets[wrong][0]} is among the targets, and there are {count} classes, numbered from 0, of "
            f"which {blank} is the blank. Write targets of these numbers."
        )
    if (
        (times > log_probs.shape[0]).any()
        or (lengths > targets.shape[1]).any()
        or (times < 0).any()
    ):
        raise IndexingError(
            f"ctc_loss: the lengths are at most {log_probs.shape[0]} steps and {targets.shape[1]} targets, and some "
            f"are larger: {times.max()} and {lengths.max()}. Write the lengths before padding."
        )


def _sum(*parts: Any) -> Any:
    """Return the logarithm of the sum of exponentials."""
    most = np.maximum.reduce(parts)
    safe = np.where(np.isfinite(most), most, 0.0)
    return np.log(sum(np.exp(one - safe) for one in parts)) + safe


def _moved(alpha: Any, by: int) -> Any:
    found = np.full_like(alpha, _NONE)
    found[:, by:] = alpha[:, :-by] if by < alpha.shape[1] else found[:, by:]
    return found


def _forward(log_probs: Any, targets: Any, times: Any, lengths: Any, blank: int) -> tuple[Any, ...]:
    """Return classes, jumps, and the logarithms of all alignments up to each step and state."""
    log_probs = log_probs.astype(np.float64, copy=False)
    targets, times, lengths = [one.astype(np.int64) for one in (targets, times, lengths)]
    _check(log_probs, targets, times, lengths, blank)
    classes, jumps = _states(targets, lengths, blank)
    steps, samples = log_probs.shape[:2]
    picked = np.take_along_axis(log_probs, np.broadcast_to(classes, (steps, *classes.shape)), 2)
    alpha = np.full((steps, *classes.shape), _NONE)
    if steps:
        alpha[0, :, 0] = picked[0, :, 0]
        if classes.shape[1] > 1:
            alpha[0, :, 1] = np.where(lengths > 0, picked[0, :, 1], _NONE)
    for t in range(1, steps):
        before = alpha[t - 1]
        two = np.where(jumps, _moved(before, 2), _NONE)
        alpha[t] = _sum(before, _moved(before, 1), two) + picked[t]
    rows, last = np.arange(samples), np.maximum(times - 1, 0)
    ends = alpha[last, rows, 2 * lengths] if steps else np.full(samples, _NONE)
    others = (
        np.where(lengths > 0, alpha[last, rows, np.maximum(2 * lengths - 1, 0)], _NONE)
        if steps
        else ends
    )
    total = _sum(ends, others)
    total = np.where(times > 0, total, np.where(lengths == 0, 0.0, _NONE))
    return classes, jumps, picked, alpha, total, times, lengths


def register(xp: Any, kind: str) -> None:
    """Register the kernels; they work in the memory of the host."""

    def cost(
        log_probs: Any, targets: Any, times: Any, lengths: Any, out: Any, blank: int, zero: bool
    ) -> None:
        with np.errstate(divide="ignore", invalid="ignore"):
            total = _forward(log_probs, targets, times, lengths, blank)[4]
        costs = -total
        out[...] = np.where(np.isinf(costs), 0.0, costs) if zero else costs

    def slope(
        g: Any,
        log_probs: Any,
        targets: Any,
        times: Any,
        lengths: Any,
        out: Any,
        blank: int,
        zero: bool,
    ) -> None:
        with np.errstate(divide="ignore", invalid="ignore"):
            found = _forward(log_probs, targets, times, lengths, blank)
            classes, jumps, picked, alpha, total, times, lengths = found
            steps, samples = log_probs.shape[:2]
            states = np.arange(classes.shape[1])
            ends = (states == 2 * lengths[:, None]) | (
                (states == 2 * lengths[:, None] - 1) & (lengths[:, None] > 0)
            )
            next_jumps = np.zeros_like(jumps)
            next_jumps[:, :-2] = jumps[:, 2:]
            beta = np.full(classes.shape, _NONE)
            shares = np.zeros((steps, *classes.shape))
            for t in range(steps - 1, -1, -1):
                if t + 1 < steps:
                    after = (beta + picked[t + 1])[:, ::-1]
                    two = np.where(next_jumps[:, ::-1], _moved(after, 2), _NONE)
                    beta = _sum(after, _moved(after, 1), two)[:, ::-1]
                beta = np.where((times == t + 1)[:, None], np.where(ends, 0.0, _NONE), beta)
                beta = np.where((times <= t)[:, None], _NONE, beta)
                shares[t] = np.exp(alpha[t] + beta - total[:, None])
        impossible = ~np.isfinite(total)
        shares[:, impossible] = 0.0
        made = np.zeros(log_probs.shape)
        for state in states:
            made[:, np.arange(samples), classes[:, state]] -= shares[:, :, state]
        made *= g[None, :, None]
        if not zero and impossible.any():
            made[(np.arange(steps)[:, None] < times) & impossible] = np.nan
        out[...] = made

    if xp is np:
        register_kernel("ctc_cost", kind, cost)
        register_kernel("ctc_slope", kind, slope)
