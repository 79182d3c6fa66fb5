"""Inputs ranked by the swing between a low and a high value of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad.scheduler import safe_repr
from reactgrad.whatif._errors import ScenarioError
from reactgrad.whatif._inputs import input_of, inputs_behind, is_float, number_of
from reactgrad.whatif._ranking import Ranking
from reactgrad.whatif._table import as_text


@dataclass(frozen=True, slots=True)
class Swing:
    """One input at a low and at a high value, all others as they are.

    Attributes
    ----------
    input : str
        Its label.
    low_input, high_input
        Its two values.
    low, high : float
        The output there.
    swing : float
        How far the two outputs are apart.
    """

    input: str
    low_input: Any
    high_input: Any
    low: float
    high: float

    @property
    def swing(self) -> float:
        """The distance between the two outputs."""
        return abs(self.high - self.low)


class Tornado(Ranking[Swing]):
    """Swings of one output, the largest first; see ``tornado``.

    Attributes
    ----------
    output : str
        Its label.
    base : float
        Its value where no input is changed.
    rows : tuple of Swing
        The inputs, the largest swing first.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> a, b = g.input(2.0, name="a"), g.input(3.0, name="b")
    >>> found = rg.tornado(a * b * b, [a, b], 0.1)
    >>> [row.input for row in found], found.base
    (['b', 'a'], 18.0)
    """

    def __init__(self, output: str, base: float, rows: Iterable[Swing]) -> None:
        self.output = output
        self.base = base
        # A NaN first: what has no number must be seen.
        self._rows = tuple(sorted(rows, key=lambda r: (r.swing == r.swing, -r.swing)))

    @property
    def rows(self) -> tuple[Swing, ...]:
        """The inputs, the largest swing first."""
        return self._rows

    def columns(self) -> dict[str, list[Any]]:
        """Return the rows as columns by title."""
        titles = ["input", "low_input", "high_input", "low", "high", "swing"]
        return {title: [getattr(row, title) for row in self.rows] for title in titles}

    def plot(self, ax: Any = None, *, top: int | None = 12) -> Any:
        """Draw the swings as bars from the base, the largest on top.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default those of a new figure.
        top : int, optional
            How many inputs to draw.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        MissingExtraError
            Without matplotlib (extra ``plot``).
        """
        try:
            from matplotlib.figure import Figure
        except ModuleNotFoundError as error:
            raise rg.MissingExtraError(
                "plot needs the package matplotlib, which is not installed: "
                'pip install "reactgrad[plot]"'
            ) from error
        rows = self.rows[:top]
        if ax is None:
            from matplotlib import pyplot

            size = (7.0, 1.2 + 0.38 * max(len(rows), 1))
            figure: Figure = pyplot.figure(figsize=size, layout="constrained")
            ax = figure.add_subplot()
        places = np.arange(len(rows))[::-1]
        for side, color, name in (("low", "#4C78A8", "low"), ("high", "#F58518", "high")):
            widths = [getattr(row, side) - self.base for row in rows]
            ax.barh(places, widths, left=self.base, height=0.7, color=color, label=name)
        ax.axvline(self.base, color="#444444", linewidth=1.0)
        labels = [
            f"{row.input}  ({_short(row.low_input)} – {_short(row.high_input)})" for row in rows
        ]
        ax.set_yticks(places, labels)
        ax.tick_params(axis="y", length=0)
        ax.set_xlabel(f"{self.output}, {self.base:.6g} in the middle")
        ax.legend(loc="lower right", frameon=False)
        for edge in ("top", "right", "left"):
            ax.spines[edge].set_visible(False)
        return ax

    def __str__(self) -> str:
        return as_text(self.columns(), f"{self.output}: {self.base:.6g}")

    def __repr__(self) -> str:
        return f"<Tornado: {self.output} by {len(self)} inputs>"


def _short(value: Any) -> str:
    return (
        f"{value:.4g}" if isinstance(value, float) else "array" if np.shape(value) else str(value)
    )


def tornado(
    y: rg.Var,
    inputs: Iterable[rg.Var | str] | Mapping[Any, Any] | None = None,
    amount: float = 0.1,
) -> Tornado:
    """Return how far one number swings when each input alone goes to a low and to a high value.

    Each input costs two reads of the nodes that follow from it, and nothing else runs.

    Parameters
    ----------
    y : Var
        One number.
    inputs : iterable or mapping, optional
        Inputs, or a mapping from inputs to their low and high values: ``{spot: (90.0, 115.0), vol: 0.2}``. One
        number is a part of the value, as `amount` is. By default all inputs and params of floats that `y` is
        computed from.
    amount : float
        The part of its value by which an input goes down and up: 0.1 is ten percent. An array moves as a whole.

    Returns
    -------
    Tornado
        Rows ranked by swing, ``to_pandas()`` and ``plot()``.

    Raises
    ------
    ScenarioError
        If `y` is not one number, or an input has no value that could go up and down.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> price, units, rent = (
    ...     g.input(v, name=n) for v, n in ((5.0, "price"), (100.0, "units"), (200.0, "rent"))
    ... )
    >>> profit = price * units - rent
    >>> profit.name = "profit"
    >>> print(rg.tornado(profit, {price: 0.1, units: (80.0, 105.0), rent: 0.1}))
    profit: 300
    input  low_input  high_input  low  high  swing
    units         80         105  200   325    125
    price        4.5         5.5  250   350    100
    rent         180         220  320   280     40
    """
    if not isinstance(y, rg.Var):
        raise ScenarioError(
            f"tornado needs a node of one number, and was given {y!r}: write tornado(y, [a, b], 0.1)."
        )
    graph: rg.Graph = y.graph
    if inputs is None:
        inputs = [x for x in inputs_behind([y]) if is_float(x) and x.state != "unset"]
    if isinstance(inputs, rg.Var | str | int | float):
        wanted = (
            f"{{x: {inputs!r}}} or amount={inputs!r}" if isinstance(inputs, int | float) else "[x]"
        )
        raise ScenarioError(
            f"tornado was given {safe_repr(inputs)} for its inputs, which are several: write tornado(y, {wanted})."
        )
    given = inputs if isinstance(inputs, Mapping) else dict.fromkeys(inputs, amount)
    base = graph.fork()
    middle = number_of(y, base[y].value, "tornado")
    rows = []
    for key, ends in given.items():
        x = input_of(graph, key)
        low, high = _ends(x, base[x], ends)
        fork = base.fork()
        found = []
        for value in (low, high):
            fork[x].set(value)
            found.append(number_of(y, fork[y].value, "tornado"))
        rows.append(Swing(x.label, low, high, found[0], found[1]))
    return Tornado(y.label, middle, rows)


def _ends(x: rg.Var, twin: rg.Var, ends: Any) -> tuple[Any, Any]:
    """Return the low and the high value of one input."""
    if isinstance(ends, tuple | list):
        if len(ends) != 2:
            raise ScenarioError(
                f"{x.label!r} has {len(ends)} values: write its low and its high one, such as (90.0, 110.0)."
            )
        return ends[0], ends[1]
    if isinstance(ends, bool) or not isinstance(ends, int | float) or not ends > 0.0:
        raise ScenarioError(
            f"{x.label!r} has the amount {ends!r}: write a part of its value, such as 0.1 for ten percent, or its "
            "low and its high value, such as (90.0, 110.0)."
        )
    value = twin.value
    if not is_float(x):
        raise ScenarioError(
            f"{x.label!r} is no float, so {ends:g} of it need not be a value that it can have. Write its low and its "
            "high value: {x: (low, high)}."
        )
    if not np.any(value):
        raise ScenarioError(
            f"{x.label!r} is 0, and a part of 0 is no change. Write its low and its high value: "
            f"{{{x.label}: (low, high)}}."
        )
    step = np.abs(value) * ends
    low, high = value - step, value + step
    return (float(low), float(high)) if isinstance(value, float) else (low, high)
