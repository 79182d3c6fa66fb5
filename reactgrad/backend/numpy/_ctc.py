"""Connectionist temporal classification (Graves and others, 2006): costs of alignments, and their gradient.

All samples at once, step by step in time. A label of S classes has 2 S + 1 states: a blank around each class.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from reactgrad._errors import IndexingError
from reactgrad.backend._registry import register_kernel

_NONE = -np.inf


def _states(xp: Any, targets: Any, lengths: Any, blank: int) -> tuple[Any, Any]:
    """Return the class of each state of each sample, and whether a state may follow the one before the last."""
    samples, longest = targets.shape
    classes = xp.full((samples, 2 * longest + 1), blank, np.int64)
    classes[:, 1::2] = xp.where(xp.arange(longest) < lengths[:, None], targets, blank)
    jumps = xp.zeros(classes.shape, bool)
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


def _sum(xp: Any, *parts: Any) -> Any:
    """Return the logarithm of the sum of exponentials."""
    most = reduce(xp.maximum, parts)
    safe = xp.where(xp.isfinite(most), most, 0.0)
    return xp.log(sum(xp.exp(one - safe) for one in parts)) + safe


def _moved(xp: Any, alpha: Any, by: int) -> Any:
    found = xp.full_like(alpha, _NONE)
    found[:, by:] = alpha[:, :-by] if by < alpha.shape[1] else found[:, by:]
    return found


def _forward(
    xp: Any, log_probs: Any, targets: Any, times: Any, lengths: Any, blank: int
) -> tuple[Any, ...]:
    """Return classes, jumps, and the logarithms of all alignments up to each step and state."""
    log_probs = log_probs.astype(np.float64, copy=False)
    targets, times, lengths = [one.astype(np.int64) for one in (targets, times, lengths)]
    if xp is np:  # elsewhere it would wait for the host
        _check(log_probs, targets, times, lengths, blank)
    classes, jumps = _states(xp, targets, lengths, blank)
    steps, samples = log_probs.shape[:2]
    picked = xp.take_along_axis(log_probs, xp.broadcast_to(classes, (steps, *classes.shape)), 2)
    alpha = xp.full((steps, *classes.shape), _NONE)
    if steps:
        alpha[0, :, 0] = picked[0, :, 0]
        if classes.shape[1] > 1:
            alpha[0, :, 1] = xp.where(lengths > 0, picked[0, :, 1], _NONE)
    for t in range(1, steps):
        before = alpha[t - 1]
        two = xp.where(jumps, _moved(xp, before, 2), _NONE)
        alpha[t] = _sum(xp, before, _moved(xp, before, 1), two) + picked[t]
    rows, last = xp.arange(samples), xp.maximum(times - 1, 0)
    ends = alpha[last, rows, 2 * lengths] if steps else xp.full(samples, _NONE)
    others = (
        xp.where(lengths > 0, alpha[last, rows, xp.maximum(2 * lengths - 1, 0)], _NONE)
        if steps
        else ends
    )
    total = _sum(xp, ends, others)
    total = xp.where(times > 0, total, xp.where(lengths == 0, 0.0, _NONE))
    return classes, jumps, picked, alpha, total, times, lengths


def register(xp: Any, kind: str) -> None:
    """Register the kernels."""

    def cost(
        log_probs: Any, targets: Any, times: Any, lengths: Any, out: Any, blank: int, zero: bool
    ) -> None:
        with np.errstate(divide="ignore", invalid="ignore"):
            total = _forward(xp, log_probs, targets, times, lengths, blank)[4]
        costs = -total
        out[...] = xp.where(xp.isinf(costs), 0.0, costs) if zero else costs

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
            found = _forward(xp, log_probs, targets, times, lengths, blank)
            classes, jumps, picked, alpha, total, times, lengths = found
            steps, samples = log_probs.shape[:2]
            states = xp.arange(classes.shape[1])
            ends = (states == 2 * lengths[:, None]) | (
                (states == 2 * lengths[:, None] - 1) & (lengths[:, None] > 0)
            )
            next_jumps = xp.zeros_like(jumps)
            next_jumps[:, :-2] = jumps[:, 2:]
            beta = xp.full(classes.shape, _NONE)
            shares = xp.zeros((steps, *classes.shape))
            for t in range(steps - 1, -1, -1):
                if t + 1 < steps:
                    after = (beta + picked[t + 1])[:, ::-1]
                    two = xp.where(next_jumps[:, ::-1], _moved(xp, after, 2), _NONE)
                    beta = _sum(xp, after, _moved(xp, after, 1), two)[:, ::-1]
                beta = xp.where((times == t + 1)[:, None], xp.where(ends, 0.0, _NONE), beta)
                beta = xp.where((times <= t)[:, None], _NONE, beta)
                shares[t] = xp.exp(alpha[t] + beta - total[:, None])
        impossible = ~xp.isfinite(total)
        shares[:, impossible] = 0.0
        made = xp.zeros(log_probs.shape)
        for state in states:
            made[:, xp.arange(samples), classes[:, state]] -= shares[:, :, state]
        made *= g[None, :, None]
        if not zero:
            made[(xp.arange(steps)[:, None] < times) & impossible] = np.nan
        out[...] = made

    register_kernel("ctc_cost", kind, cost)
    register_kernel("ctc_slope", kind, slope)
