"""Inputs ranked by their gradients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

import reactgrad as rg
from reactgrad.scheduler import safe_repr
from reactgrad.whatif._errors import ScenarioError
from reactgrad.whatif._inputs import input_of, inputs_behind, is_float
from reactgrad.whatif._ranking import Ranking
from reactgrad.whatif._table import as_text

By = Literal["effect", "gradient", "percent"]
Units = Mapping[Any, float | str | tuple[float, str]]
_SIZES = {"bp": 0.0001, "%": 0.01}


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """One number of an input, and what the output gains by it.

    Attributes
    ----------
    input : str
        The label of the input; of an element of an array with its index, as in ``vols[2]``.
    value : float
        Its present value.
    gradient : float
        The derivative of the output by it.
    unit : float
        The change that counts as one unit of it.
    unit_name : str
        How the caller calls this unit.
    effect : float
        The gradient times the unit: the change of the output, to first order, by one unit.
    percent : float
        The change of the output, to first order, by one percent of the value.
    """

    input: str
    value: float
    gradient: float
    unit: float
    unit_name: str
    effect: float
    percent: float


class Sensitivities(Ranking[Sensitivity]):
    """Live gradients of one output, ranked; see ``sensitivities``.

    Each look at it reads the gradients in one run, of the nodes that have become stale since.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> a, b = g.input(2.0, name="a"), g.input(3.0, name="b")
    >>> found = rg.sensitivities(a * b * b)
    >>> [(row.input, row.gradient) for row in found]
    [('b', 12.0), ('a', 9.0)]
    >>> a.set(10.0)
    >>> [(row.input, row.gradient) for row in found]
    [('b', 60.0), ('a', 9.0)]
    """

    def __init__(
        self,
        output: rg.Var,
        inputs: list[rg.Var],
        gradients: list[rg.Var | None],
        units: dict[rg.Var, tuple[float, str]],
        by: By,
        top: int | None,
    ) -> None:
        self.output = output
        self.inputs = tuple(inputs)
        self.gradients = tuple(gradients)
        self._units = units
        self._by: By = by
        self._top = top

    @property
    def rows(self) -> tuple[Sensitivity, ...]:
        """The rows of now, the largest first."""
        live = [one for one in self.gradients if one is not None]
        self.output.graph.forward(*self.inputs, *live)
        found: list[Sensitivity] = []
        for x, slope in zip(self.inputs, self.gradients, strict=True):
            unit, unit_name = self._units.get(x, (1.0, ""))
            values = np.asarray(x.value, float)
            slopes = np.zeros_like(values) if slope is None else np.asarray(slope.value, float)
            by_unit, by_percent = slopes * unit, slopes * values * 0.01
            found += [
                Sensitivity(
                    x.label + (f"[{', '.join(map(str, at))}]" if at else ""),
                    float(values[at]),
                    float(slopes[at]),
                    unit,
                    unit_name,
                    float(by_unit[at]),
                    float(by_percent[at]),
                )
                for at in self._places(slopes, {"effect": by_unit, "percent": by_percent})
            ]
        found.sort(key=lambda row: _rank(getattr(row, self._by)))
        return tuple(found[: self._top])

    def _places(self, slopes: Any, others: dict[str, Any]) -> list[tuple[int, ...]]:
        """Return the indices of the elements of one input that may be among the rows."""
        ranked = others.get(self._by, slopes)
        if self._top is None or ranked.size <= self._top:
            return list(np.ndindex(slopes.shape))
        size = np.abs(ranked).ravel()
        size[np.isnan(size)] = np.inf
        best = np.argpartition(-size, self._top - 1)[: self._top]
        return [tuple(map(int, np.unravel_index(i, ranked.shape))) for i in sorted(best)]

    def __len__(self) -> int:
        n = sum(max(1, x.size) for x in self.inputs)
        return n if self._top is None else min(n, self._top)

    def columns(self) -> dict[str, list[Any]]:
        """Return the rows as columns by title."""
        rows = self.rows
        titles = ["input", "value", "gradient", "unit", "effect", "percent"]
        found = {title: [getattr(row, title) for row in rows] for title in titles}
        if any(row.unit_name for row in rows):
            found["unit"] = [f"{row.unit:g} {row.unit_name}".rstrip() for row in rows]
        return found

    def __str__(self) -> str:
        return as_text(self.columns(), f"sensitivities of {self.output.label}")

    def __repr__(self) -> str:
        return f"<Sensitivities: {self.output.label} by {len(self)} numbers>"


def _rank(value: float) -> tuple[bool, float]:
    """Return a key that sorts by size, NaN first: what has no number must be seen."""
    return value == value, -abs(value)


def sensitivities(
    y: rg.Var,
    inputs: Iterable[rg.Var | str] | rg.Var | None = None,
    *,
    units: Units | None = None,
    by: By = "effect",
    top: int | None = None,
) -> Sensitivities:
    """Return the gradients of one number by its inputs, ranked; they stay live.

    Parameters
    ----------
    y : Var
        One number.
    inputs : iterable of Var or str, optional
        By default all inputs and params of floats that `y` is computed from.
    units : mapping, optional
        The change that counts as one unit of an input, with a name if it has one:
        ``{vol: (0.01, "vol point"), rate: (0.0001, "bp")}``. Default: 1.
    by : {"effect", "gradient", "percent"}
        The column that ranks: the effect of one unit, the gradient, or the effect of one percent of the value.
    top : int, optional
        Keep only so many rows. An array has a row for each element.

    Returns
    -------
    Sensitivities
        Its rows are read anew at each look, in one run.

    Raises
    ------
    ScenarioError
        If `y` is not one number, or an input has no gradient.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> spot, rate = g.input(100.0, name="spot"), g.input(0.02, name="rate")
    >>> forward = spot * rg.exp(rate * 2.0)
    >>> forward.name = "forward"
    >>> print(rg.sensitivities(forward, units={rate: (0.0001, "bp")}))
    sensitivities of forward
    input  value  gradient       unit     effect   percent
    spot     100   1.04081          1    1.04081   1.04081
    rate    0.02   208.162  0.0001 bp  0.0208162  0.0416324
    """
    if not isinstance(y, rg.Var) or y.shape != ():
        told = (
            f"{y.label!r} has the shape {y.shape}" if isinstance(y, rg.Var) else f"{y!r} is no node"
        )
        raise ScenarioError(
            f"sensitivities need a node of one number, and {told}. Reduce it, such as y.sum(), or choose an "
            "element, such as y[0]."
        )
    graph: rg.Graph = y.graph
    if inputs is None:
        found = [x for x in inputs_behind([y]) if is_float(x) and x.state != "unset"]
    else:
        keys = [inputs] if isinstance(inputs, rg.Var | str) else inputs
        found = [input_of(graph, key) for key in keys]
    for x in found:
        if not is_float(x):
            raise ScenarioError(
                f"{x.label!r} has no gradient: it is no float. Make it with a float, such as 3.0 in place of 3, or try "
                "values of it with scenarios or tornado."
            )
    if by not in ("effect", "gradient", "percent"):
        raise ScenarioError(f"by={safe_repr(by)}: write 'effect', 'gradient' or 'percent'.")
    if top is not None and (isinstance(top, bool) or not isinstance(top, int) or top < 1):
        raise ScenarioError(f"top={top!r}: write how many rows to keep, such as 10.")
    named: dict[rg.Var, tuple[float, str]] = {}
    for key, unit in (units or {}).items():
        x = input_of(graph, key)
        named[x] = _unit(x, unit)
    slopes = list(rg.grad(y, found, allow_unused=True)) if found else []
    return Sensitivities(y, found, slopes, named, by, top)


def _unit(x: rg.Var, given: Any) -> tuple[float, str]:
    """Return the size and the name of one unit of an input."""
    if isinstance(given, str) and given in _SIZES:
        return _SIZES[given], given
    size, name = given if isinstance(given, tuple) and len(given) == 2 else (given, "")
    if isinstance(size, str | bool) or not isinstance(size, int | float | np.number):
        raise ScenarioError(
            f"the unit of {x.label!r} is {safe_repr(given)}: write how large one is, such as 0.01, or "
            "with a name, such as "
            '(0.01, "cent"); "bp" and "%" are known.'
        )
    return float(size), str(name)
