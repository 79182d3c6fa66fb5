"""A line search by the strong Wolfe conditions (Nocedal and Wright, 2006, algorithms 3.5 and 3.6).

The steps are those of PyTorch, which follow Mark Schmidt's minFunc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

# The loss and its gradient at a step length.
Evaluate = Callable[[float], tuple[float, Any]]


def _cubic(
    x1: float, f1: float, g1: float, x2: float, f2: float, g2: float, low: float, high: float
) -> float:
    """Return where the cubic through two points with slopes is least, between two bounds."""
    d1 = g1 + g2 - 3.0 * (f1 - f2) / (x1 - x2)
    square = d1 * d1 - g1 * g2
    if square < 0.0:
        return (low + high) / 2.0
    d2 = square**0.5
    if x1 <= x2:
        at = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2.0 * d2))
    else:
        at = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2.0 * d2))
    return min(max(at, low), high)


def strong_wolfe(
    evaluate: Evaluate,
    t: float,
    d: Any,
    f: float,
    g: Any,
    gtd: float,
    c1: float = 1e-4,
    c2: float = 0.9,
    tolerance_change: float = 1e-9,
    max_ls: int = 25,
) -> tuple[float, Any, float, int]:
    """Return loss, gradient and length of a step along `d`, and the number of evaluations.

    Parameters
    ----------
    evaluate : callable
        The loss and its gradient at a step length.
    t : float
        The first length.
    d : numpy.ndarray
        The direction.
    f, g, gtd
        Loss and gradient at the start, and the slope along `d`.
    """
    d_norm = float(np.abs(d).max())
    f_new, g_new = evaluate(t)
    made, gtd_new = 1, float(g_new @ d)
    t_prev, f_prev, g_prev, gtd_prev = 0.0, f, g, gtd
    done, tries = False, 0
    bracket: list[float] = []
    values: list[float] = []
    grads: list[Any] = []
    slopes: list[float] = []
    while tries < max_ls:
        if f_new > f + c1 * t * gtd or (tries > 1 and f_new >= f_prev):
            bracket, values = [t_prev, t], [f_prev, f_new]
            grads, slopes = [g_prev, g_new], [gtd_prev, gtd_new]
            break
        if abs(gtd_new) <= -c2 * gtd:
            bracket, values, grads, done = [t], [f_new], [g_new], True
            break
        if gtd_new >= 0.0:
            bracket, values = [t_prev, t], [f_prev, f_new]
            grads, slopes = [g_prev, g_new], [gtd_prev, gtd_new]
            break
        low, high = t + 0.01 * (t - t_prev), t * 10.0
        last, t = t, _cubic(t_prev, f_prev, gtd_prev, t, f_new, gtd_new, low, high)
        t_prev, f_prev, g_prev, gtd_prev = last, f_new, g_new, gtd_new
        f_new, g_new = evaluate(t)
        made, gtd_new, tries = made + 1, float(g_new @ d), tries + 1
    if tries == max_ls:
        bracket, values, grads = [0.0, t], [f, f_new], [g, g_new]
        slopes = [gtd, gtd_new]
    stuck = False
    low_at, high_at = (0, 1) if values[0] <= values[-1] else (1, 0)
    while not done and tries < max_ls:
        if abs(bracket[1] - bracket[0]) * d_norm < tolerance_change:
            break
        t = _cubic(
            *(bracket[0], values[0], slopes[0]),
            *(bracket[1], values[1], slopes[1]),
            *(min(bracket), max(bracket)),
        )
        # Points too near the bounds make no progress.
        margin = 0.1 * (max(bracket) - min(bracket))
        if min(max(bracket) - t, t - min(bracket)) < margin:
            if stuck or t >= max(bracket) or t <= min(bracket):
                at_high = abs(t - max(bracket)) < abs(t - min(bracket))
                t = max(bracket) - margin if at_high else min(bracket) + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        f_new, g_new = evaluate(t)
        made, gtd_new, tries = made + 1, float(g_new @ d), tries + 1
        if f_new > f + c1 * t * gtd or f_new >= values[low_at]:
            bracket[high_at], values[high_at] = t, f_new
            grads[high_at], slopes[high_at] = g_new, gtd_new
            low_at, high_at = (0, 1) if values[0] <= values[1] else (1, 0)
        else:
            if abs(gtd_new) <= -c2 * gtd:
                done = True
            elif gtd_new * (bracket[high_at] - bracket[low_at]) >= 0.0:
                bracket[high_at], values[high_at] = bracket[low_at], values[low_at]
                grads[high_at], slopes[high_at] = grads[low_at], slopes[low_at]
            bracket[low_at], values[low_at] = t, f_new
            grads[low_at], slopes[low_at] = g_new, gtd_new
    at = low_at if len(bracket) > 1 else 0
    return values[at], grads[at], bracket[at], made
