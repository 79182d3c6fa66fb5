"""Outputs against one input."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad.plot._axes import axes, color, panels, plain, stacked, tidy, titled

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

    The values are computed in a fork, ``rg.scenarios``; the graph does not change. Outputs of very different
    sizes have Axes of their own, one above the other.

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
        Of several the lowest, in the place of ``ax``; ``ax.figure.axes`` has all.

    Raises
    ------
    VizError
        If ``y`` is no node of one number, or ``x`` no input of one.
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
    outputs = [y] if isinstance(y, rg.Var) else [*y] if isinstance(y, list | tuple) else []
    if not outputs or not all(isinstance(one, rg.Var) for one in outputs):
        raise rg.VizError(
            f"ladder: y is {type(y).__name__}, and is drawn as a node, or as a list of nodes: "
            "rg.plot.ladder(payoff, spot)."
        )
    leaf = outputs[0].graph[x] if isinstance(x, str) else x
    if not isinstance(leaf, rg.Var) or np.ndim(leaf.value):
        told = (
            f"{leaf.label!r} has the shape {leaf.shape}" if isinstance(leaf, rg.Var) else repr(leaf)
        )
        raise rg.VizError(
            f"ladder: x is an input of one number, and {told}. Give one, such as a shock that is added to all elements."
        )
    for one in outputs:
        if one.shape:
            raise rg.VizError(
                f"ladder: y is one number, and {one.label!r} has the shape {one.shape}. Reduce it, such as y.sum(), or "
                "choose an element, such as y[0]."
            )
    points = np.sort(np.asarray([*values], float)) if values is not None else _around(leaf)
    here = float(leaf.value)
    # One more point, the present one, gives the values and slopes to mark.
    found = rg.scenarios(outputs, {leaf: [*points, here]}, gradients=tangent, progress=False)
    lines, names = [found[one] for one in outputs], [one.label for one in outputs]
    groups = panels(lines)
    ax = axes(ax, height=max(3.6, 1.0 + 1.8 * len(groups)))
    for part, members in zip(stacked(ax, len(groups)), groups, strict=True):
        for number in members:
            line, shade = lines[number], color(number)
            part.plot(points, line[:-1], color=shade, linewidth=1.8, label=plain(names[number]))
            part.plot([here], line[-1:], "o", color=shade, markersize=6)
            if tangent:
                slope = found.grad(outputs[number], leaf)[-1]
                _draw_tangent(part, points, (here, line[-1]), slope, shade)
        if len(groups) > 1:
            titled(part, members, names)
        tidy(part)
    ax.set_xlabel(plain(leaf.label))
    if len(outputs) == 1:
        ax.set_ylabel(plain(names[0]))
    elif len(groups) == 1:
        ax.legend(frameon=False)
    return ax


def _draw_tangent(
    ax: Any, points: Any, place: tuple[float, float], slope: float, shade: str
) -> None:
    here, value = place
    ends = np.array([points[0], points[-1]])
    reach = (ends[1] - ends[0]) / 5.0
    near = np.clip(ends, here - reach, here + reach)
    ax.plot(near, value + slope * (near - here), "--", color=shade, linewidth=1.0)
    ax.annotate(
        f"slope {slope:.4g}",
        place,
        textcoords="offset points",
        xytext=(8, -12),
        fontsize="small",
        color=shade,
    )


def _around(leaf: rg.Var) -> np.ndarray[Any, np.dtype[np.float64]]:
    here = float(leaf.value)
    low, high = sorted((0.5 * here, 1.5 * here)) if here else (-1.0, 1.0)
    return np.linspace(low, high, STEPS)
