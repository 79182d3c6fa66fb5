"""The contributions of inputs to a difference: integrals of gradients along the straight path between two states."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad.whatif._errors import ScenarioError
from reactgrad.whatif._inputs import input_of, inputs_behind, is_float, number_of, twin
from reactgrad.whatif._ranking import Ranking
from reactgrad.whatif._table import as_text

NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)
NARROW = 2.0**-44  # a panel that is not smooth and so narrow holds a jump
MOST_PANELS = 300
State = Any  # a graph, a mapping from inputs to values, or a Var


@dataclass(frozen=True, slots=True)
class Contribution:
    """The part of a difference that one input has caused.

    Attributes
    ----------
    input : str
        Its label.
    before, after
        Its values.
    contribution : float
        Its part; of an array the sum over its elements.
    parts : ndarray or None
        Of an array: the part of each element.
    kind : str
        ``"path"``: by gradients along the way. ``"step"``: an input without a gradient, changed after all others.
        ``"jump"``: the output jumped on the way, which no gradient sees. ``"edit"``: the two graphs differ otherwise.
    """

    input: str
    before: Any
    after: Any
    contribution: float
    parts: Any = None
    kind: str = "path"


class Change(Ranking[Contribution]):
    """A difference of one output, by input; see ``explain_change``.

    Attributes
    ----------
    output : str
        Its label.
    before, after : float
        Its values.
    rows : tuple of Contribution
        The largest first.
    reads : int
        How often gradients were read on the way.
    """

    def __init__(
        self, output: str, before: float, after: float, rows: list[Contribution], reads: int
    ) -> None:
        self.output = output
        self.before = before
        self.after = after
        self._rows = tuple(sorted(rows, key=lambda row: -abs(row.contribution)))
        self.reads = reads

    @property
    def rows(self) -> tuple[Contribution, ...]:
        """The contributions, the largest first."""
        return self._rows

    @property
    def difference(self) -> float:
        """The output after less the output before."""
        return self.after - self.before

    @property
    def residual(self) -> float:
        """The difference less all contributions: rounding."""
        return math.fsum([self.after, -self.before, *(-row.contribution for row in self.rows)])

    def _absent(self, label: str, rows: tuple[Contribution, ...]) -> str:
        changed = ", ".join(row.input for row in rows) or "none"
        return f"{label!r} has not changed. Inputs that have: {changed}."

    def columns(self) -> dict[str, list[Any]]:
        """Return the rows as columns by title; ``share`` is the part of the whole difference."""
        rows, whole = self.rows, self.difference
        return {
            "input": [row.input for row in rows],
            "before": [row.before for row in rows],
            "after": [row.after for row in rows],
            "contribution": [row.contribution for row in rows],
            "share": [row.contribution / whole if whole else math.nan for row in rows],
        }

    def __str__(self) -> str:
        head = f"{self.output}: {self.before:.6g} -> {self.after:.6g} ({self.difference:+.6g})"
        return as_text(self.columns(), head)

    def __repr__(self) -> str:
        return f"<Change: {self.output} {self.difference:+.6g} by {len(self)} inputs>"


def explain_change(
    before: State, after: State, output: rg.Var | str | None = None, *, rtol: float = 1e-12
) -> Change:
    """Return how much each input has contributed to the difference of one output between two states.

    All inputs go together from their values before to those after, on a straight line. The contribution of
    one is the integral of its gradient along this way times its change (Aumann and Shapley 1974; "integrated
    gradients", Sundararajan et al. 2017). So contributions add up to the difference, and what does not
    add up is said: jumps, and inputs without a gradient, have rows of their own.

    Parameters
    ----------
    before, after : Graph, mapping, or Var
        A graph or a fork; or a mapping from inputs to their values, where those left out have their
        values of the graph of `output`; or the output itself in two graphs, ``explain_change(y, fork[y])``.
    output : Var or str, optional
        The output, of one number; not needed if `before` or `after` is the output.
    rtol : float
        How far contributions may miss the difference, relative to the output.

    Returns
    -------
    Change

    Raises
    ------
    ScenarioError
        If the two states have no common output, or a gradient on the way is not finite.

    Notes
    -----
    Gauss-Legendre rules of 8 nodes, on panels that are halved until values at their ends and both halves
    agree. Graphs are read in forks.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> price, units = g.input(5.0, name="price"), g.input(100.0, name="units")
    >>> sales = price * units
    >>> sales.name = "sales"
    >>> print(rg.explain_change({}, {price: 6.0, units: 110.0}, sales))
    sales: 500 -> 660 (+160)
    input  before  after  contribution    share
    price       5      6           105  0.65625
    units     100    110            55  0.34375
    >>> monday = g.fork()
    >>> g.set({price: 6.0, units: 110.0})
    >>> rg.explain_change(monday, g, "sales")["price"].contribution
    105.0
    """
    y, end = _states(before, after, output)
    fork: rg.Graph = y.graph
    y_end = number_of(y, twin(end, y).value, "explain_change")
    y_start = number_of(y, y.value, "explain_change")
    moved, stepped = [], []
    for x in inputs_behind([y]):
        old, new = _value(x), _value(twin(end, x))
        if _same(old, new):
            continue
        if is_float(x) and old is not None and new is not None and np.shape(old) == np.shape(new):
            moved.append((x, old, new))
        else:
            stepped.append((x, old, new))
    path = Path(fork, y, moved, rtol)
    rows = path.rows()
    stepped = [*path.without_gradient, *stepped]
    last = path.end
    for x, old, new in stepped:
        if new is None:
            raise ScenarioError(
                f"{x.label!r} has a value before and none after. Set it: {x.label}.set(value)."
            )
        x.set(new)
        found = number_of(y, y.value, "explain_change")
        rows.append(Contribution(x.label, old, new, found - last, None, "step"))
        last = found
    if abs(y_end - last) > rtol * max(abs(y_start), abs(y_end)):
        rows.append(Contribution("(edits)", "", "", y_end - last, None, "edit"))
    return Change(y.label, y_start, y_end, rows, path.reads)


def _states(before: State, after: State, output: Any) -> tuple[rg.Var, rg.Graph]:
    """Return the output in a fork of the first state, and a fork of the second one."""
    for state in (before, after):
        if not isinstance(state, rg.Graph | rg.Var | Mapping):
            raise ScenarioError(
                f"explain_change was given {type(state).__name__}: give two graphs or forks (a fork keeps a state: "
                "before = g.fork()), two mappings of inputs and values, or the output in two graphs."
            )
    if output is None:
        output = next((s for s in (before, after) if isinstance(s, rg.Var)), None)
    if isinstance(output, str):
        graph = next(
            (
                s if isinstance(s, rg.Graph) else s.graph
                for s in (before, after)
                if not isinstance(s, Mapping)
            ),
            None,
        )
        output = None if graph is None else graph[output]
    if not isinstance(output, rg.Var):
        raise ScenarioError(
            "explain_change needs the output whose difference is asked for: explain_change(before, after, y)."
        )
    own: rg.Graph = output.graph

    def of(state: State) -> rg.Graph:
        if isinstance(state, Mapping):
            fork = own.fork()
            fork.set({fork[input_of(own, key)]: value for key, value in state.items()})
            return fork
        return (state.graph if isinstance(state, rg.Var) else state).fork()

    start, end = of(before), of(after)
    try:
        y = twin(start, output)
        twin(end, y)
        return y, end
    except rg.GraphError as error:
        raise ScenarioError(
            f"{output.label!r} is in one of the two graphs only: compare a graph with forks of it. ({error})"
        ) from error


def _value(x: rg.Var) -> Any:
    return None if x.state == "unset" else x.value


def _same(old: Any, new: Any) -> bool:
    if old is new:
        return True
    try:
        return bool(np.array_equal(old, new, equal_nan=True))
    except TypeError:  # objects that have no isnan
        return bool(np.array_equal(old, new))


class Path:
    """The straight way from one state to another, and integrals of gradients along it."""

    def __init__(
        self, graph: rg.Graph, y: rg.Var, moved: list[tuple[rg.Var, Any, Any]], rtol: float
    ) -> None:
        self._graph, self._y = graph, y
        self.without_gradient: list[tuple[rg.Var, Any, Any]] = []
        self._moved = self._with_gradient(moved)
        self._xs = [x for x, _, _ in self._moved]
        self._steps = [np.subtract(new, old) for _, old, new in self._moved]
        self._slopes = list(rg.grad(y, self._xs, allow_unused=True)) if self._xs else []
        self._live = [one for one in self._slopes if one is not None]
        self.reads = 0
        self.start = self._value(0.0)
        self.end = self._value(1.0)
        self._near = rtol * max(abs(self.start), abs(self.end))
        if not math.isfinite(self.start) or not math.isfinite(self.end):
            raise ScenarioError(
                f"{y.label!r} is {self.start} before and {self.end} after: only finite numbers have a difference "
                "that can be explained. g.why(y) and rg.detect_anomaly() find where it comes from."
            )

    def _with_gradient(self, moved: list[tuple[rg.Var, Any, Any]]) -> list[tuple[rg.Var, Any, Any]]:
        """Return the inputs that have a gradient; a function without a rule may lie on the way of others."""
        found = []
        for one in moved:
            try:
                rg.grad(self._y, [one[0]], allow_unused=True)
            except rg.GradientError:
                self.without_gradient.append(one)
            else:
                found.append(one)
        return found

    def _go(self, t: float) -> None:
        self._graph.set(
            {
                x: new if t == 1.0 else old if t == 0.0 else _between(old, step, t)
                for (x, old, new), step in zip(self._moved, self._steps, strict=True)
            }
        )

    def _value(self, t: float) -> float:
        if self._moved:
            self._go(t)
        return number_of(self._y, self._y.value, "explain_change")

    def _panel(self, a: float, b: float) -> list[Any]:
        """Return the integrals over one panel by Gauss and Legendre's rule, input by input."""
        half = (b - a) / 2.0
        found: list[Any] = [0.0] * len(self._xs)
        for node, weight in zip(NODES, WEIGHTS, strict=True):
            t = a + half * (1.0 + float(node))
            self._go(t)
            self._graph.forward(*self._live)
            self.reads += 1
            for j, slope in enumerate(self._slopes):
                if slope is None:
                    continue
                value = slope.value
                if not np.all(np.isfinite(value)):
                    raise ScenarioError(
                        f"the gradient by {self._xs[j].label!r} is not finite {t:.2%} of the way, so the way cannot be "
                        "followed. Explain the change in two parts, or set this input apart."
                    )
                found[j] = found[j] + (weight * half) * (value * self._steps[j])
        return found

    def rows(self) -> list[Contribution]:
        """Return the contributions, and jumps on the way."""
        if not self._moved:
            return []
        sums: list[list[Any]] = [[] for _ in self._xs]
        jumps: list[tuple[float, float]] = []
        panels = [(0.0, 1.0, self.start, self.end, self._panel(0.0, 1.0))]
        scale = max(abs(self.start), abs(self.end), abs(self.end - self.start))
        count = 0
        while panels:
            a, b, y_a, y_b, whole = panels.pop()
            middle = a + (b - a) / 2.0
            left, right = self._panel(a, middle), self._panel(middle, b)
            both = [p + q for p, q in zip(left, right, strict=True)]
            missing = y_b - y_a - math.fsum(float(np.sum(part)) for part in both)
            apart = max(float(np.max(np.abs(p - q))) for p, q in zip(both, whole, strict=True))
            count += 1
            # A kink takes some 40 panels, which together stay within the tolerance.
            smooth = abs(missing) <= self._near / 40.0 and apart <= 1e-9 * scale
            if smooth or b - a <= NARROW or count > MOST_PANELS:
                for column, part in zip(sums, both, strict=True):
                    column.append(part)
                if abs(missing) > self._near:
                    jumps.append((a, missing))
            else:
                y_middle = self._value(middle)
                # The later half first: the stack gives the earlier one back first.
                panels += [(middle, b, y_middle, y_b, right), (a, middle, y_a, y_middle, left)]
        self._go(1.0)
        rows = []
        for (x, old, new), column in zip(self._moved, sums, strict=True):
            parts = np.sum(column, axis=0)
            rows.append(
                Contribution(
                    x.label, old, new, float(np.sum(parts)), parts if np.ndim(parts) else None
                )
            )
        rows += [
            Contribution(
                f"(jump {t:.3%} of the way)" if len(jumps) <= 20 else "(jumps and rounding)",
                "",
                "",
                missing,
                None,
                "jump",
            )
            for t, missing in _joined(jumps)
        ]
        return rows


def _between(old: Any, step: Any, t: float) -> Any:
    found = old + t * step
    return float(found) if isinstance(old, float) else found


def _joined(jumps: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return jumps; many are one, as of a function that is noise to gradients."""
    if len(jumps) > 20:
        return [(jumps[0][0], math.fsum(size for _, size in jumps))]
    return jumps
