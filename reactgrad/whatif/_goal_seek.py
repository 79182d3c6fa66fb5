"""The inputs for which outputs have given values: Newton's method on live gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad.scheduler import safe_repr
from reactgrad.whatif._errors import GoalError, ScenarioError
from reactgrad.whatif._inputs import input_of, is_float, number_of
from reactgrad.whatif._table import as_text

EXPANSIONS = 60  # doublings of the search for the other side
HALVINGS = 30  # of one step
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


@dataclass(frozen=True)
class Goal:
    """The inputs that were found; see ``goal_seek``.

    Attributes
    ----------
    inputs : dict
        The value of each input, by label.
    outputs : dict
        The value of each output there, by label.
    targets : tuple of float
        What was wanted.
    evaluations : int
        How often the outputs were computed.
    """

    inputs: dict[str, Any]
    outputs: dict[str, float]
    targets: tuple[float, ...]
    evaluations: int
    _leaves: tuple[rg.Var, ...]

    @property
    def value(self) -> Any:
        """The value of the input; of several inputs a tuple."""
        found = tuple(self.inputs.values())
        return found[0] if len(found) == 1 else found

    def apply(self) -> None:
        """Set the inputs of the graph to what was found, all or none."""
        self._leaves[0].graph.set(dict(zip(self._leaves, self.inputs.values(), strict=True)))

    def __str__(self) -> str:
        columns = {
            "input": [*self.inputs],
            "value": [*self.inputs.values()],
        }
        told = ", ".join(f"{label} = {value:.10g}" for label, value in self.outputs.items())
        return as_text(columns, f"{told} after {self.evaluations} evaluations")

    def __repr__(self) -> str:
        told = ", ".join(f"{label} = {value!r}" for label, value in self.inputs.items())
        return f"<Goal: {told}>"


class Model:
    """The outputs less their targets, and their gradients, in a fork."""

    def __init__(self, ys: list[rg.Var], xs: list[rg.Var], targets: list[float]) -> None:
        fork = ys[0].graph.fork()
        self.ys, self.xs = ys, xs
        self._fork, self._leaves = fork, [fork[x] for x in xs]
        self._outputs = [fork[y] for y in ys]
        self.targets = np.array(targets)
        self._slopes = [rg.grad(y, self._leaves, allow_unused=True) for y in self._outputs]
        self.evaluations = 0
        self.points: list[tuple[float, Any, Any]] = []  # misses, inputs, outputs; the closest one

    def start(self) -> np.ndarray[Any, Any]:
        """Return the present inputs."""
        return np.array(
            [number_of(x, t.value, "goal_seek") for x, t in zip(self.xs, self._leaves, strict=True)]
        )

    def used(self) -> list[bool]:
        """Return for each input whether any output has a gradient by it."""
        return [any(row[j] is not None for row in self._slopes) for j in range(len(self.xs))]

    def miss(self, at: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return outputs less targets; NaN where a node raises an error of arithmetic."""
        self._fork.set(dict(zip(self._leaves, map(float, at), strict=True)))
        self.evaluations += 1
        try:
            self._fork.forward(*self._outputs)
        except ArithmeticError:
            return np.full(len(self.ys), np.nan)
        pairs = zip(self.ys, self._outputs, strict=True)
        found = np.array([number_of(y, t.value, "goal_seek") for y, t in pairs]) - self.targets
        size = float(np.abs(found).max())
        if math.isfinite(size) and (not self.points or size < self.points[0][0]):
            self.points[:] = [(size, np.array(at), found + self.targets)]
        return found

    def slopes(self) -> np.ndarray[Any, Any]:
        """Return the Jacobian at the last inputs: a row an output, a column an input."""
        live = [one for row in self._slopes for one in row if one is not None]
        self._fork.forward(*live)
        return np.array(
            [[0.0 if one is None else float(one.value) for one in row] for row in self._slopes]
        )

    def error(self, why: str) -> GoalError:
        """Return the error that says why, and what came closest."""
        label = ", ".join(y.label for y in self.ys)
        target = ", ".join(f"{t:.6g}" for t in self.targets)
        told = f"no solution found for {label} = {target}: {why}"
        if not self.points:
            return GoalError(told)
        _, at, reached = self.points[0]
        closest = dict(zip((x.label for x in self.xs), map(float, at), strict=True))
        near = ", ".join(f"{name} = {value:.6g}" for name, value in closest.items())
        got = ", ".join(f"{value:.6g}" for value in reached)
        return GoalError(f"{told} Closest: {got} at {near}.", closest, list(map(float, reached)))


def goal_seek(
    y: rg.Var | Sequence[rg.Var],
    x: rg.Var | str | Sequence[rg.Var | str],
    target: float | Sequence[float],
    *,
    bounds: Any = None,
    start: Any = None,
    rtol: float = 1e-10,
    atol: float = 1e-10,
    most: int = 200,
) -> Goal:
    """Return the inputs for which outputs have the wanted values.

    Newton's method on live gradients, in a fork. For one input it keeps a bracket: once the target lies between
    two points, each step stays between them, and a step that does not at least halve it is a bisection. Where
    gradients lead nowhere, points on both sides are tried until the target lies between two.

    Parameters
    ----------
    y : Var or sequence of Var
        Outputs of one number each.
    x : Var, str, or sequence of these
        Inputs of one float each. With fewer outputs than inputs the nearest solution to the start is sought.
    target : float or sequence of float
        A wanted value for each output.
    bounds : (low, high) or sequence of these, optional
        Between which the inputs may lie; ``None`` for an end that is open.
    start : float or sequence of float, optional
        By default the present values.
    rtol, atol : float
        How close an output must come to its target.
    most : int
        The largest number of steps.

    Returns
    -------
    Goal
        ``goal.value`` is the input; ``goal.apply()`` sets it in the graph, which is otherwise unchanged.

    Raises
    ------
    GoalError
        If no solution is found. The message says why: the output does not react, has an extremum or a limit
        before the target, jumps over it, or a bound is in the way. ``error.closest`` has the nearest inputs.
    ScenarioError
        If outputs, inputs, targets or bounds do not fit together.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> price, units = g.input(5.0, name="price"), g.input(100.0, name="units")
    >>> profit = price * units - 200.0
    >>> rg.goal_seek(profit, price, 400.0).value
    6.0
    >>> rg.goal_seek(profit * profit, price, -1.0)
    Traceback (most recent call last):
    reactgrad...GoalError: no solution found for ... = -1: ...
    """
    ys: list[rg.Var] = [y] if isinstance(y, rg.Var) else list(y)
    if not ys or not all(isinstance(one, rg.Var) for one in ys):
        raise ScenarioError(
            f"goal_seek was given the output {y!r}: write a Var, or several in a list."
        )
    graph: rg.Graph = ys[0].graph
    keys = [x] if isinstance(x, rg.Var | str) else list(x)
    xs = [input_of(graph, key) for key in keys]
    targets = [float(one) for one in np.ravel(target)]
    for one in ys:
        if one.shape != ():
            raise ScenarioError(
                f"goal_seek needs outputs of one number, and {one.label!r} has the shape {one.shape}. Reduce it, "
                "such as y.sum(), or choose an element, such as y[0]."
            )
    for one in xs:
        if not is_float(one) or one.shape != ():
            raise ScenarioError(
                f"goal_seek moves inputs of one float, and {one.label!r} is none. Make it with a float, such as "
                "g.input(3.0), and build an array of such inputs with rg.stack."
            )
    if not xs or len(targets) != len(ys) or not all(map(math.isfinite, targets)):
        raise ScenarioError(
            f"{len(ys)} outputs, {len(xs)} inputs and the targets {targets}: give at least one input, and one finite "
            "target for each output."
        )
    model = Model(ys, xs, targets)
    low, high = _bounds(xs, bounds)
    at = model.start() if start is None else np.array([float(one) for one in np.ravel(start)])
    if len(at) != len(xs):
        raise ScenarioError(
            f"start={safe_repr(start)}: give one number for each of the {len(xs)} inputs."
        )
    at = np.clip(at, low, high)
    idle = [one.label for one, used in zip(xs, model.used(), strict=True) if not used]
    if idle:
        raise GoalError(
            f"{', '.join(one.label for one in ys)} does not depend on {', '.join(idle)} by any path that gradients "
            "pass, so no value of it can help. Choose another input."
        )
    close = np.maximum(atol, rtol * np.abs(model.targets))
    if len(ys) == len(xs) == 1:
        found: Any = _one(model, float(at[0]), float(low[0]), float(high[0]), float(close[0]), most)
    else:
        found = _several(model, at, low, high, close, most)
    return Goal(
        dict(zip((one.label for one in xs), map(float, found), strict=True)),
        dict(
            zip(
                (one.label for one in ys),
                map(float, model.miss(found) + model.targets),
                strict=True,
            )
        ),
        tuple(targets),
        model.evaluations,
        tuple(xs),
    )


def _bounds(xs: list[rg.Var], bounds: Any) -> tuple[Any, Any]:
    pairs: list[Any] = [(None, None)] * len(xs) if bounds is None else list(bounds)
    if (
        bounds is not None
        and len(xs) == 1
        and len(pairs) == 2
        and not isinstance(pairs[0], tuple | list)
    ):
        pairs = [tuple(pairs)]
    if len(pairs) != len(xs) or any(len(pair) != 2 for pair in pairs):
        raise ScenarioError(
            f"bounds={safe_repr(bounds)}: give a pair (low, high) for each of the {len(xs)} inputs."
        )
    low = np.array([-np.inf if pair[0] is None else float(pair[0]) for pair in pairs])
    high = np.array([np.inf if pair[1] is None else float(pair[1]) for pair in pairs])
    if not np.all(low < high):
        raise ScenarioError(f"bounds={safe_repr(bounds)}: the low end must lie below the high one.")
    return low, high


class Bracket:
    """The two points nearest to each other between which a sign changes, once they are known."""

    def __init__(self) -> None:
        self.below: tuple[float, float] | None = None  # x, miss < 0
        self.above: tuple[float, float] | None = None
        self.tried: list[tuple[float, float]] = []
        self.jumps: list[float] = []

    def elsewhere(self) -> bool:
        """Leave the present bracket, in which the output jumps, for another one. Return whether there is any."""
        self.jumps.append(self.ends()[0])
        tried = sorted(self.tried)
        for one, other in pairwise(tried):
            if (one[1] < 0.0) != (other[1] < 0.0) and not any(
                one[0] <= jump <= other[0] for jump in self.jumps
            ):
                self.below, self.above = (one, other) if one[1] < 0.0 else (other, one)
                return True
        return False

    def add(self, x: float, miss: float) -> None:
        """Narrow the bracket by one point."""
        if math.isnan(miss):
            return
        self.tried.append((x, miss))
        if miss < 0.0:
            if self.above is None or self.below is None or self._inside(x):
                self.below = x, miss
        elif self.below is None or self.above is None or self._inside(x):
            self.above = x, miss

    def _inside(self, x: float) -> bool:
        low, high = self.ends()
        return low <= x <= high

    @property
    def known(self) -> bool:
        """True if both sides are known."""
        return self.below is not None and self.above is not None

    def ends(self) -> tuple[float, float]:
        """Return the ends, the lower one first."""
        assert self.below is not None
        assert self.above is not None
        return min(self.below[0], self.above[0]), max(self.below[0], self.above[0])


def _one(model: Model, x: float, low: float, high: float, close: float, most: int) -> list[float]:
    """Return the solution for one input: Newton's method within a bracket.

    Source: Press et al., Numerical Recipes (2007), section 9.4, "rtsafe"; here the bracket is found on the way.
    """

    def miss(at: float) -> float:
        return float(model.miss(np.array([at]))[0])

    bracket = Bracket()
    y = miss(x)
    bracket.add(x, y)
    if math.isnan(y):
        raise model.error(
            f"the output is NaN at the start, {model.xs[0].label} = {x:.6g}. Give start=."
        )
    searched = False
    scale = abs(x)
    for _ in range(most):
        if abs(y) <= close:
            return [x]
        slope = float(model.slopes()[0, 0])
        step = -y / slope if slope else math.nan
        goal = x + step if math.isfinite(step) else math.nan
        if bracket.known:
            a, b = bracket.ends()
            if not a < goal < b:
                goal = a + (b - a) / 2.0
            if goal in (a, b) or b - a <= 1e-15 * max(abs(a), abs(b), scale):
                jump = _jump(model, bracket)
                if not bracket.elsewhere():
                    try:
                        raise jump
                    finally:
                        del jump  # its traceback holds this frame
                x = bracket.ends()[0]
                y = miss(x)
                continue
            x, y_before = goal, y
            y = miss(x)
            bracket.add(x, y)
            a2, b2 = bracket.ends()
            if math.isnan(y):
                raise model.error(f"the output is NaN at {model.xs[0].label} = {x:.6g}.")
            if b2 - a2 > (b - a) / 2.0 and abs(y) > abs(y_before) / 2.0:
                middle = a2 + (b2 - a2) / 2.0
                if a2 < middle < b2:
                    x = middle
                    y = miss(x)
                    bracket.add(x, y)
                    if math.isnan(y):
                        raise model.error(f"the output is NaN at {model.xs[0].label} = {x:.6g}.")
            continue
        if math.isfinite(goal):
            goal = min(max(goal, low), high)
            moved = goal - x
            for _ in range(HALVINGS):
                if not moved:
                    break
                tried = miss(x + moved)
                bracket.add(x + moved, tried)
                if abs(tried) < abs(y) or bracket.known:
                    break
                moved /= 2.0
            else:
                moved = 0.0
            if moved and (bracket.known or abs(tried) < abs(y)):
                slow = not bracket.known and abs(tried) > 0.9 * abs(y)
                x, y = x + moved, tried
                if not slow or searched:
                    continue
                # It creeps, as towards a limit or a multiple root: look for the other side.
                searched = True
                if not _expand(model, bracket, x, low, high, miss):
                    y = miss(x)
                    continue
        if bracket.known:
            assert bracket.below is not None
            assert bracket.above is not None
            x = min(bracket.below, bracket.above, key=lambda end: abs(end[1]))[0]
            y = miss(x)
            continue
        if searched or not _expand(model, bracket, x, low, high, miss):
            return [_extremum(model, bracket, x, y, low, high, close, miss)]
    if not bracket.known:
        return [_extremum(model, bracket, x, y, low, high, close, miss)]
    raise model.error(
        f"{most} steps were not enough. Give start= or bounds= nearer to the solution, or most=."
    )


def _expand(model: Model, bracket: Bracket, x: float, low: float, high: float, miss: Any) -> bool:
    """Try points on both sides, further and further away, until the target lies between two."""
    size = max(abs(x) * 0.01, 1e-6)
    for k in range(EXPANSIONS):
        for at in (x + size, x - size):
            inside = min(max(at, low), high)
            if inside != at and k and inside == x:
                continue
            bracket.add(inside, miss(inside))
            if bracket.known:
                return True
        size *= 2.0
        if x + size > high and x - size < low:
            for end in (low, high):
                if math.isfinite(end):
                    bracket.add(end, miss(end))
            return bracket.known
        if size > 1e12 * max(1.0, abs(x)):
            break
    return bracket.known


def _extremum(
    model: Model,
    bracket: Bracket,
    x: float,
    y: float,
    low: float,
    high: float,
    close: float,
    miss: Any,
) -> float:
    """Return a solution at which outputs touch the target, or raise the error that says why there is none."""
    label = model.xs[0].label
    best = float(model.points[0][1][0]) if model.points else x
    # Golden section around the closest point.
    size = max(abs(best) * 0.02, 1e-3)
    a, b = max(best - size, low), min(best + size, high)
    c, d = b - GOLDEN * (b - a), a + GOLDEN * (b - a)
    at_c, at_d = abs(miss(c)), abs(miss(d))
    for _ in range(60):
        if min(at_c, at_d) <= close:
            return c if at_c <= at_d else d
        if at_c < at_d or math.isnan(at_d):
            b, d, at_d = d, c, at_c
            c = b - GOLDEN * (b - a)
            at_c = abs(miss(c))
        else:
            a, c, at_c = c, d, at_d
            d = a + GOLDEN * (b - a)
            at_d = abs(miss(d))
    best = float(model.points[0][1][0])
    at_best = miss(best)
    slope = float(model.slopes()[0, 0])
    above = at_best > 0.0
    side = "above" if above else "below"
    ends = [
        end
        for end in (low, high)
        if math.isfinite(end) and abs(best - end) <= 1e-9 * max(1.0, abs(end))
    ]
    if ends:
        why = f"the output is still {side} the target where {label} ends, at the bound {ends[0]:.6g}. Widen bounds=."
    elif abs(best) > 1e9:
        why = f"the output stays {side} the target however far {label} goes."
    elif abs(slope) * max(1.0, abs(best)) <= 1e-4 * max(abs(at_best), close):
        what = "a minimum" if above else "a maximum"
        flat = abs(miss(best + 0.1 * max(1.0, abs(best))) - at_best) <= close
        why = (
            f"the output levels off {side} the target: there its gradient by {label} is 0."
            if flat
            else f"the output has {what} {side} the target, where its gradient by {label} is 0."
        )
    else:
        why = f"the output stays {side} the target wherever {label} was tried."
    raise model.error(why)


def _jump(model: Model, bracket: Bracket) -> GoalError:
    assert bracket.below is not None
    assert bracket.above is not None
    low, high = bracket.below, bracket.above
    return model.error(
        f"the output jumps over the target, from {low[1] + model.targets[0]:.6g} to "
        f"{high[1] + model.targets[0]:.6g}, at {model.xs[0].label} = {low[0]:.10g}."
    )


def _several(model: Model, at: Any, low: Any, high: Any, close: Any, most: int) -> Any:
    """Return the solution for several inputs: steps of Gauss and Newton, shortened until they help."""
    miss = model.miss(at)
    if not np.all(np.isfinite(miss)):
        raise model.error("an output is not finite at the start. Give start=.")
    for _ in range(most):
        if np.all(np.abs(miss) <= close):
            return at
        slopes = model.slopes()
        if not np.all(np.isfinite(slopes)):
            raise model.error("a gradient is not finite there.")
        free = np.ones(len(at), bool)
        step = np.zeros(len(at))
        # An input that would leave its bounds stays, and the others take over.
        for _ in range(len(at) + 1):
            step[:] = 0.0
            scale = np.maximum(np.abs(at[free]), 1e-8)
            step[free] = scale * np.linalg.lstsq(slopes[:, free] * scale, -miss, rcond=1e-13)[0]
            out = free & ((at + step < low) & (at <= low) | (at + step > high) & (at >= high))
            if not out.any():
                break
            free &= ~out
        size = np.abs(miss / close).max()
        for _ in range(HALVINGS):
            tried = np.clip(at + step, low, high)
            found = model.miss(tried)
            if np.all(np.isfinite(found)) and np.abs(found / close).max() < size:
                break
            step = step / 2.0
        else:
            model.miss(at)
            raise model.error(_stuck(model, slopes, at, low, high))
        at, miss = tried, found
    raise model.error(
        f"{most} steps were not enough. Give start= or bounds= nearer to a solution, or most=."
    )


def _stuck(model: Model, slopes: Any, at: Any, low: Any, high: Any) -> str:
    bound = [x.label for x, v, a, b in zip(model.xs, at, low, high, strict=True) if v in (a, b)]
    if bound:
        return f"{', '.join(bound)} is at its bound, and the others cannot make up for it. Widen bounds=."
    idle = [y.label for y, row in zip(model.ys, slopes, strict=True) if not row.any()]
    if idle:
        return f"all gradients of {', '.join(idle)} are 0 there."
    scale = np.maximum(np.abs(at), 1e-8)
    rank = np.linalg.matrix_rank(
        slopes * scale, tol=1e-9 * max(np.abs(slopes * scale).max(), 1e-300)
    )
    if rank < len(model.ys):
        return (
            "the outputs move together there (their gradients are multiples of each other), so they cannot have "
            "these values at once."
        )
    return "no step from there brings all outputs closer."
