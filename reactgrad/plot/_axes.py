"""Parts that the plots share: axes, colours, and the error where matplotlib is absent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reactgrad._errors import MissingExtraError

# Tell apart in grey, and with the common kinds of colour blindness (Okabe and Ito, 2008).
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#666666")
MOST_LETTERS = 40


def axes(ax: Any, width: float = 7.0, height: float = 3.6) -> Any:
    """Return the Axes to draw in: those that are given, or those of a new figure of so many inches.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise MissingExtraError(
            "rg.plot needs the package matplotlib, which is not installed: "
            "pip install 'reactgrad[plot]'"
        ) from error
    return pyplot.figure(figsize=(width, height), layout="constrained").add_subplot()


def tidy(ax: Any, edges: Iterable[str] = ("top", "right")) -> Any:
    """Remove the edges that say nothing, and return the Axes."""
    for edge in edges:
        ax.spines[edge].set_visible(False)
    return ax


def color(number: int) -> str:
    """Return the colour of the line of this number."""
    return COLORS[number % len(COLORS)]


def plain(text: str) -> str:
    """Return a name as matplotlib shows it: short, on one line, and without formulas."""
    text = " ".join(text.split())
    text = text if len(text) <= MOST_LETTERS else "\u2026" + text[1 - MOST_LETTERS :]
    return text.replace("$", r"\$")
