"""Outputs against one input."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad.plot._axes import axes, color, plain, tidy

STEPS = 41


def ladder(
    y: rg.Var | Sequence[rg.Var],
    x: rg.Var | str,
    values: Iterable[float] | None = None,
    *,
    tangent: bool = True,
    ax: Any = None,
) -> Any:
    """Draw outputs against one input, with the present point and the slope there.

    The values are computed in a fork, ``rg.scenarios``; the graph does not change.

    Parameters
    ----------
    y : Var or sequence of Var
        Outputs of one number each.
    x : Var or str
        An input of one number.
    values : iterable of float, optional
        Its values; by default 41 from half to one and a half times the present one.
    tangent : bool
        Whether to draw the gradient at the present value.
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ScenarioError
        If outputs, input and values do not fit together.
    MissingExtraError
        Without matplotlib (extra ``plot``).

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> spot = g.input(100.0, name="spot")
    >>> payoff = rg.maximum(spot - 95.0, 0.0)
    >>> rg.plot.ladder(payoff, spot)  # doctest: +SKIP
    <Axes: xlabel='spot', ylabel='maximum_4'>
    """
    outputs = [y] if isinstance(y, rg.Var) else [*y]
    leaf = outputs[0].graph[x] if isinstance(x, str) else x
    ax = axes(ax)
    points = np.sort(np.asarray([*values], float)) if values is not None else _around(leaf)
    here = float(leaf.value)
    # One more point, the present one, gives the values and slopes to mark.
    found = rg.scenarios(outputs, {leaf: [*points, here]}, gradients=tangent, progress=False)
    for number, one in enumerate(outputs):
        line = found[one]
        ax.plot(points, line[:-1], color=color(number), linewidth=1.8, label=plain(one.label))
        ax.plot([here], line[-1:], "o", color=color(number), markersize=6)
        if tangent:
            slope = found.grad(one, leaf)[-1]
            ends = np.array([points[0], points[-1]])
            reach = (ends[1] - ends[0]) / 5.0
            near = np.clip(ends, here - reach, here + reach)
            at = line[-1] + slope * (near - here)
            ax.plot(near, at, "--", color=color(number), linewidth=1.0)
            slope_text = f"slope {slope:.4g}"
            ax.annotate(
                slope_text,
                (here, line[-1]),
                textcoords="offset points",
                xytext=(8, -12),
                fontsize="small",
                color=color(number),
            )
    ax.set_xlabel(plain(leaf.label))
    if len(outputs) == 1:
        ax.set_ylabel(plain(outputs[0].label))
    else:
        ax.legend(frameon=False)
    return tidy(ax)


def _around(leaf: rg.Var) -> np.ndarray[Any, np.dtype[np.float64]]:
    here = float(leaf.value)
    low, high = sorted((0.5 * here, 1.5 * here)) if here else (-1.0, 1.0)
    return np.linspace(low, high, STEPS)
