"""A histogram of random draws of an output."""

from __future__ import annotations

from typing import Any

import reactgrad as rg
from reactgrad.plot._axes import axes
from reactgrad.whatif._monte_carlo import MonteCarlo


def histogram(
    found: MonteCarlo, output: rg.Var | str | None = None, *, bins: int = 50, ax: Any = None
) -> Any:
    """Draw how one output of ``rg.monte_carlo`` is spread, with the middle and both 5 % ends marked.

    Parameters
    ----------
    found : MonteCarlo
        The result of ``rg.monte_carlo``.
    output : Var or str, optional
        Needed where there are several.
    bins : int
        The number of bars.
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    VizError
        If `found` is something else.
    MissingExtraError
        Without matplotlib (extra ``plot``).

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input(0.0, name="x")
    >>> found = rg.monte_carlo(x * 2.0, {x: ("normal", 0.0, 1.0)})
    >>> rg.plot.histogram(found)  # doctest: +SKIP
    <Axes: xlabel='multiply_2, mean 0.0131', ylabel='draws'>
    """
    if not isinstance(found, MonteCarlo):
        raise rg.VizError(
            f"histogram was given {type(found).__name__}, and draws the result of rg.monte_carlo(y, distributions)."
        )
    return found.plot(output, axes(ax), bins=bins)
