"""The swings of an output by each of its inputs, as bars."""

from __future__ import annotations

from typing import Any

from reactgrad.plot._axes import axes
from reactgrad.whatif._tornado import Tornado


def tornado(found: Tornado, *, top: int | None = 12, ax: Any = None) -> Any:
    """Draw the swings of ``rg.tornado`` as bars, the largest on top.

    Parameters
    ----------
    found : Tornado
        The result of ``rg.tornado``.
    top : int, optional
        How many inputs to draw.
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    MissingExtraError
        Without matplotlib (extra ``plot``).

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> a, b = g.input(2.0, name="a"), g.input(3.0, name="b")
    >>> rg.plot.tornado(rg.tornado(a * b * b))  # doctest: +SKIP
    <Axes: xlabel='multiply_4, 18 in the middle'>
    """
    rows = len(found.rows[:top])
    return found.plot(axes(ax, 7.0, 1.2 + 0.38 * max(rows, 1)), top=top)
