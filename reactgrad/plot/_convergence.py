"""Losses over steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad.plot._axes import axes, color, plain, tidy


def convergence(
    losses: Sequence[float] | Mapping[str, Sequence[float]],
    *,
    log: bool | None = None,
    ax: Any = None,
) -> Any:
    """Draw losses over the steps of a loop, with the least one of each marked.

    Parameters
    ----------
    losses : sequence of float, or mapping of str to sequences
        One line, or several by name.
    log : bool, optional
        Whether the axis of losses is logarithmic; by default where all are positive and the largest is over
        ten times the least.
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ShapeError
        If a line is not a sequence of numbers.
    MissingExtraError
        Without matplotlib (extra ``plot``).

    Examples
    --------
    >>> import reactgrad as rg
    >>> rg.plot.convergence({"Adam": [1.0, 0.1, 0.01], "SGD": [1.0, 0.5, 0.3]})  # doctest: +SKIP
    <Axes: xlabel='step', ylabel='loss'>
    """
    named = losses if isinstance(losses, Mapping) else {"loss": losses}
    lines = {name: _numbers(name, line) for name, line in named.items()}
    ax = axes(ax)
    for number, (name, line) in enumerate(lines.items()):
        ax.plot(np.arange(1, line.size + 1), line, color=color(number), label=plain(name))
        if np.isfinite(line).any():
            best = int(np.nanargmin(np.where(np.isfinite(line), line, np.nan)))
            ax.plot([best + 1], line[best : best + 1], "o", color=color(number), markersize=5)
            ax.annotate(
                f"{line[best]:.3g}",
                (best + 1, line[best]),
                textcoords="offset points",
                xytext=(-2, -12),  # no part of the line is below it
                ha="right",
                fontsize="small",
                color=color(number),
            )
    every = np.concatenate([line[np.isfinite(line)] for line in lines.values()] or [np.array([])])
    if log is None:
        log = bool(every.size) and every.min() > 0.0 and every.max() > 10.0 * every.min()
    if log:
        ax.set_yscale("log")
    ax.margins(y=0.12)
    ax.set_xlabel("step")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_ylabel("loss")
    if len(lines) > 1:
        ax.legend(frameon=False)
    return tidy(ax)


def _numbers(name: str, line: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    try:
        found = np.asarray([float(one) for one in line])
    except (TypeError, ValueError):
        raise rg.ShapeError(
            f"convergence: {name!r} is no sequence of numbers. Append loss.item() at each step, and "
            "give that list."
        ) from None
    return found
