"""Parts that the plots share: axes, colours, and the error where matplotlib is absent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from reactgrad._errors import MissingExtraError

# Tell apart in grey, and with the common kinds of colour blindness (Okabe and Ito, 2008).
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#666666")
MOST_LETTERS = 40
LEAST_SHARE = 0.1  # of the height of its Axes that a line takes; else it has others
ROW = 12.0  # points from one label of a row to the next


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


def panels(lines: Sequence[Any]) -> list[list[int]]:
    """Return lines in groups that one axis fits: in none of them another line makes one flat.

    A line that does not move is flat on any axis, and goes with others as long as these stay as they are.

    Examples
    --------
    >>> panels([[0.59, 0.62], [2100.0, 2300.0], [0.5, 0.7], [1000.0, 3000.0]])
    [[0, 2], [1, 3]]
    """
    ranges = [_range(line) for line in lines]
    found: list[list[int]] = []
    for number in range(len(lines)):
        for group in found:
            if _fit([ranges[one] for one in (*group, number)]):
                group.append(number)
                break
        else:
            found.append([number])
    return found


def _range(line: Any) -> tuple[float, float] | None:
    values = np.asarray(line, float)
    values = values[np.isfinite(values)]
    return (float(values.min()), float(values.max())) if values.size else None


def _fit(ranges: Sequence[tuple[float, float] | None]) -> bool:
    known = [one for one in ranges if one is not None]
    if not known:
        return True
    whole = max(high for _, high in known) - min(low for low, _ in known)
    return all(high - low >= LEAST_SHARE * whole for low, high in known if high > low)


def stacked(ax: Any, number: int) -> list[Any]:
    """Return so many Axes, one above the other, in the room of one, which becomes the lowest."""
    if number == 1:
        return [ax]
    figure, spec = ax.figure, ax.get_subplotspec()
    if spec is not None:
        rows = spec.subgridspec(number, 1)
        ax.set_subplotspec(rows[number - 1])
        others = [figure.add_subplot(rows[row], sharex=ax) for row in range(number - 1)]
    else:
        x, y, width, height = ax.get_position().bounds
        step = height / number
        ax.set_position((x, y, width, 0.7 * step))
        others = [
            figure.add_axes((x, y + (number - 1 - row) * step, width, 0.7 * step), sharex=ax)
            for row in range(number - 1)
        ]
    for one in others:
        one.tick_params(labelbottom=False)
    return [*others, ax]


def titled(ax: Any, members: Sequence[int], names: Sequence[str]) -> None:
    """Name the lines of Axes that are one of several: one line in its colour, more in a legend."""
    if len(members) > 1:
        ax.legend(frameon=False, fontsize="small")
    else:
        (number,) = members
        ax.set_title(plain(names[number]), loc="left", fontsize="medium", color=color(number))
    ax.ticklabel_format(axis="y", useOffset=False, scilimits=(-4, 7))


def label_rows(ax: Any, places: Sequence[float], names: Sequence[str]) -> int:
    """Label rows on the y axis, and return of how many rows one is labelled: of each, if there is room."""
    room = 72.0 * ax.figure.get_figheight() * ax.get_position().height / max(len(names), 1)
    step = max(1, int(np.ceil(ROW / room - 0.02)))
    ax.set_yticks(places[::step], [plain(name) for name in names[::step]])
    ax.tick_params(axis="y", length=0)
    return step
