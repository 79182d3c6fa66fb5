"""Outputs over random draws of inputs."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

import reactgrad as rg
from reactgrad._habits import answer
from reactgrad._names_of_pandas import OF_DRAWS
from reactgrad.scheduler import safe_repr
from reactgrad.whatif._batch import batch_of
from reactgrad.whatif._errors import ScenarioError
from reactgrad.whatif._inputs import input_of, outputs_of
from reactgrad.whatif._points import Points
from reactgrad.whatif._results import Scenarios
from reactgrad.whatif._scenarios import number_of_workers, wanted_of
from reactgrad.whatif._sweep import Sweep
from reactgrad.whatif._table import as_text, pandas

PERCENTILES = (5.0, 25.0, 50.0, 75.0, 95.0)


class MonteCarlo(Scenarios):
    """Draws of inputs, and the outputs for each; see ``monte_carlo``.

    ``found[y]`` has the output of each draw. An interrupt leaves NaN for draws that are not done; statistics
    leave those out. Where there is one output, it need not be named.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input(0.0, name="x")
    >>> y = x * 2.0 + 1.0
    >>> found = rg.monte_carlo(y, {x: ("normal", 0.0, 1.0)}, 10_000, seed=1)
    >>> found.percentile(y, 50).round(1), round(found.std(y), 1)
    (np.float64(1.0), 2.0)
    """

    def samples(self, output: rg.Var | str | None = None) -> np.ndarray[Any, Any]:
        """Return the outputs of the draws that are done and have not raised."""
        if output is None:
            output = self._only()
        values = self[output]
        if values.dtype.kind not in "fiub":
            raise ScenarioError(
                f"{self._label(output)!r} has no numbers, so it has no percentiles."
            )
        keep = [i for i in range(len(self)) if i not in self._sweep.left and i not in self.errors]
        return values if len(keep) == len(self) else values[keep]

    def _only(self) -> str:
        if len(self.outputs) != 1:
            raise ScenarioError(
                f"there are several outputs, {', '.join(self.outputs)}: say which one, as in found.mean(y)."
            )
        return self.outputs[0]

    def percentile(
        self,
        output: rg.Var | str | None = None,
        q: float | Sequence[float] = PERCENTILES,
    ) -> Any:
        """Return percentiles of one output over all draws, as ``np.percentile`` does."""
        return np.percentile(self.samples(output), q, axis=0)

    def mean(self, output: rg.Var | str | None = None) -> Any:
        """Return the mean of one output over all draws."""
        return _plain(np.mean(self.samples(output), axis=0))

    def std(self, output: rg.Var | str | None = None) -> Any:
        """Return the standard deviation of one output over all draws."""
        return _plain(np.std(self.samples(output), axis=0, ddof=1))

    def standard_error(self, output: rg.Var | str | None = None) -> Any:
        """Return the standard error of the mean: how far it is from the true one, by the number of draws."""
        return self.std(output) / math.sqrt(len(self.samples(output)))

    def summary(self, q: Sequence[float] = PERCENTILES) -> dict[str, list[Any]]:
        """Return mean, standard deviation, error of the mean and percentiles of each output, as columns."""
        single = [label for label in self.outputs if self.samples(label).ndim == 1]
        found: dict[str, list[Any]] = {"output": single}
        found["mean"] = [self.mean(label) for label in single]
        found["std"] = [self.std(label) for label in single]
        found["error"] = [self.standard_error(label) for label in single]
        for one in q:
            found[f"{one:g}%"] = [float(self.percentile(label, one)) for label in single]
        return found

    def summary_to_pandas(self, q: Sequence[float] = PERCENTILES) -> Any:
        """Return the summary as a DataFrame, one row an output."""
        return pandas("summary_to_pandas").DataFrame(self.summary(q)).set_index("output")

    def plot(self, output: rg.Var | str | None = None, ax: Any = None, *, bins: int = 50) -> Any:
        """Draw how one output is spread: a histogram with the mean, and with the middle and both 5 % ends marked.

        Parameters
        ----------
        output : Var or str, optional
            Needed where there are several.
        ax : matplotlib Axes, optional
            By default those of a new figure.
        bins : int
            The number of bars.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ScenarioError
            If the output has no numbers, or none is named of several.
        MissingExtraError
            Without matplotlib (extra ``plot``).
        """
        values = np.ravel(self.samples(output)).astype(float)
        values = values[np.isfinite(values)]
        label = self._only() if output is None else self._label(output)
        if not len(values):
            raise ScenarioError(f"plot: no draw of {label!r} has a finite number.")
        if ax is None:
            ax = _axes()
        ax.hist(values, bins=bins, color="#4C78A8", alpha=0.85)
        ends = np.percentile(values, [5, 50, 95])
        for at, style, text in zip(ends, ("--", "-", "--"), ("5 %", "50 %", "95 %"), strict=True):
            ax.axvline(at, color="#444444", linestyle=style, linewidth=1.0)
            ax.annotate(
                f"{text}\n{at:.4g}",
                (at, 1.0),
                xycoords=("data", "axes fraction"),
                xytext=(3, -2),
                textcoords="offset points",
                va="top",
                fontsize="small",
            )
        ax.margins(y=0.25)
        ax.set_xlabel(f"{label}, mean {np.mean(values):.6g}".replace("$", r"\$"))
        ax.set_ylabel("draws")
        for edge in ("top", "right"):
            ax.spines[edge].set_visible(False)
        return ax

    def __str__(self) -> str:
        head = f"{len(self):,} draws" + ("" if self.complete else f", {self.done:,} of them done")
        return as_text(self.summary(), head)


answer(MonteCarlo, "found", OF_DRAWS)


def _axes() -> Any:
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError as error:
        raise rg.MissingExtraError(
            'plot needs the package matplotlib, which is not installed: pip install "reactgrad[plot]"'
        ) from error
    return pyplot.figure(figsize=(7.0, 3.6), layout="constrained").add_subplot()


def _plain(value: Any) -> Any:
    return float(value) if np.ndim(value) == 0 else value


def monte_carlo(
    outputs: Any,
    distributions: Mapping[Any, Any],
    samples: int = 10_000,
    *,
    seed: int = 0,
    correlation: Mapping[tuple[Any, Any], float] | None = None,
    gradients: bool | Sequence[rg.Var | str] = False,
    workers: int | rg.Threads = 1,
    batch: bool | None = None,
    progress: bool | None = None,
    errors: Literal["raise", "keep"] = "raise",
) -> MonteCarlo:
    """Return outputs for random draws of the inputs: samples, percentiles, and the error of the mean.

    Where each op on the way allows it, all draws run as one pass with one more axis; else a fork is set draw
    by draw. The graph itself does not change.

    Parameters
    ----------
    outputs : Var, sequence of Var, or mapping of str to Var
        What to compute.
    distributions : mapping
        For each input one of: a method of ``numpy.random.Generator`` and its arguments, as in
        ``("normal", 100.0, 5.0)`` or ``("uniform", 0.1, 0.3)``; a function of a generator and a number of draws; a
        frozen distribution of SciPy; an array of numbers, from which is drawn with replacement.
    samples : int
        The number of draws.
    seed : int
        The same seed gives the same draws, of each input by its name: another input more changes none of them.
    correlation : mapping, optional
        Rank correlations of pairs of inputs: ``{(spot, vol): -0.6}``. Draws of each input are then put in another
        order (Iman and Conover 1982), so that each keeps its distribution.
    gradients, workers, batch, progress, errors
        As in ``scenarios``.

    Returns
    -------
    MonteCarlo

    Raises
    ------
    ScenarioError
        If a distribution cannot be drawn from, or correlations contradict each other.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> price, units = g.input(5.0, name="price"), g.input(100.0, name="units")
    >>> sales = price * units
    >>> sales.name = "sales"
    >>> found = rg.monte_carlo(
    ...     sales, {price: ("uniform", 4.0, 6.0), units: ("normal", 100.0, 10.0)}, seed=7
    ... )
    >>> int(found.mean(sales) + 0.5), found.percentile(sales, [5, 95]).round(-1)
    (501, array([380., 630.]))
    """
    named = outputs_of(outputs)
    graph: rg.Graph = next(iter(named.values())).graph
    if isinstance(samples, bool) or not isinstance(samples, int) or samples < 1:
        raise ScenarioError(
            f"samples={safe_repr(samples)}: write the number of draws, such as 10_000."
        )
    if not isinstance(distributions, Mapping) or not distributions:
        raise ScenarioError(
            'monte_carlo needs a distribution for at least one input, such as {spot: ("normal", 100.0, 5.0)}.'
        )
    inputs = [input_of(graph, key) for key in distributions]
    columns = [
        draw(x, j, given, samples, seed)
        for j, (x, given) in enumerate(zip(inputs, distributions.values(), strict=True))
    ]
    if correlation:
        columns = _correlated(graph, inputs, columns, correlation, seed)
    rows: list[Sequence[Any]] = [
        column.tolist() if column.ndim == 1 and column.dtype.kind in "fiub" else list(column)
        for column in columns
    ]
    points = Points(inputs, rows, (samples,))
    sweep = Sweep(
        graph,
        named,
        points,
        wanted_of(graph, inputs, gradients),
        workers=number_of_workers(workers),
        progress=progress,
        errors=errors,
        desc="draws",
    )
    sweep.batch = batch_of(sweep, batch)
    sweep.run()
    return MonteCarlo(points, sweep)


def draw(x: rg.Var, j: int, given: Any, n: int, seed: int) -> np.ndarray[Any, Any]:
    """Return draws of one input; those of a named one do not depend on its place among the others."""
    key = zlib.crc32(x.name.encode()) if x.name == x.label else j
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(key,)))
    try:
        if hasattr(given, "rvs"):
            found = given.rvs(size=n, random_state=rng)
        elif callable(given):
            found = given(rng, n)
        elif isinstance(given, tuple) and given and isinstance(given[0], str):
            method = getattr(rng, given[0], None)
            if method is None or given[0].startswith("_"):
                raise ScenarioError(
                    f"{x.label!r}: numpy.random.Generator has no {given[0]!r}. Write one of its methods, "
                    'such as ("normal", mean, std), ("lognormal", mean, sigma), ("uniform", low, high) or '
                    '("triangular", low, mode, high).'
                )
            found = method(*given[1:], size=n)
        elif not isinstance(given, str) and np.ndim(given) >= 1:
            found = rng.choice(np.asarray(given), n)
        else:
            raise ScenarioError(
                f"{x.label!r} was given {safe_repr(given)}, which is no distribution. Write "
                '("normal", mean, std), a function of (rng, n), a frozen distribution of SciPy, or an array.'
            )
    except (TypeError, ValueError) as error:
        if isinstance(error, ScenarioError):
            raise
        raise ScenarioError(
            f"{x.label!r}: {safe_repr(given)} cannot be drawn from: {error}"
        ) from error
    found = np.asarray(found)
    if found.shape[:1] != (n,):
        raise ScenarioError(
            f"{x.label!r}: its distribution gave the shape {found.shape} for {n} draws: return an array of {n}."
        )
    return found


def _correlated(
    graph: rg.Graph,
    inputs: list[rg.Var],
    columns: list[np.ndarray[Any, Any]],
    correlation: Mapping[tuple[Any, Any], float],
    seed: int,
) -> list[np.ndarray[Any, Any]]:
    """Return the draws in an order that has these rank correlations.

    Source: Iman and Conover (1982), "A distribution-free approach to inducing rank correlation among input
    variables".
    """
    n, k = len(columns[0]), len(inputs)
    place = {x: j for j, x in enumerate(inputs)}
    wanted = np.eye(k)
    for pair, rho in correlation.items():
        if not isinstance(pair, tuple) or len(pair) != 2 or not -1.0 < rho < 1.0:
            raise ScenarioError(
                f"correlation: {safe_repr(pair)}: {safe_repr(rho)} is no pair of inputs with a number "
                "between -1 and 1: write "
                "{(spot, vol): -0.6}."
            )
        a, b = (input_of(graph, key) for key in pair)
        if a is b or a not in place or b not in place:
            raise ScenarioError(
                f"correlation of {a.label!r} and {b.label!r}: both must be inputs with a "
                "distribution, and not the same."
            )
        wanted[place[a], place[b]] = wanted[place[b], place[a]] = rho
    if any(column.ndim != 1 for column in columns):
        raise ScenarioError("correlation: only inputs of one number can be put in another order.")
    # Rank correlation rho of normal scores needs the linear one 2 sin(pi rho / 6).
    linear = 2.0 * np.sin(np.pi * wanted / 6.0)
    np.fill_diagonal(linear, 1.0)
    try:
        goal = np.linalg.cholesky(linear)
    except np.linalg.LinAlgError:
        raise ScenarioError(
            "these correlations contradict each other: no inputs can have all of them (their matrix is "
            "not positive definite)."
        ) from None
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2**32 - 1,)))
    scores = rng.standard_normal((n, k))
    if n > k:
        scores -= scores.mean(axis=0)
        present = np.linalg.cholesky(np.atleast_2d(np.cov(scores, rowvar=False)))
        scores = np.linalg.solve(present, scores.T).T
    scores = scores @ goal.T
    found = []
    for j, column in enumerate(columns):
        ranks = np.argsort(np.argsort(scores[:, j], kind="stable"), kind="stable")
        found.append(np.sort(column)[ranks])
    return found
