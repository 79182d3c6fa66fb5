"""Outputs over grids and lists of inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import reactgrad as rg
from reactgrad.scheduler import safe_repr
from reactgrad.whatif._batch import batch_of
from reactgrad.whatif._errors import ScenarioError
from reactgrad.whatif._inputs import input_of, is_float, outputs_of
from reactgrad.whatif._points import points_of
from reactgrad.whatif._results import Scenarios
from reactgrad.whatif._sweep import Sweep


def scenarios(
    outputs: Any,
    values: Any,
    *,
    product: bool = True,
    gradients: bool | Sequence[rg.Var | str] = False,
    workers: int | rg.Threads = 1,
    batch: bool | None = None,
    progress: bool | None = None,
    errors: Literal["raise", "keep"] = "raise",
) -> Scenarios:
    """Return outputs, and their gradients, for many values of the inputs.

    One fork is set and read again and again, so each scenario computes only the nodes that differ from
    the one before. The graph itself does not change.

    Parameters
    ----------
    outputs : Var, sequence of Var, or mapping of str to Var
        What to compute; a mapping gives the labels.
    values : mapping, sequence of mappings, or DataFrame
        A grid, ``{spot: [90.0, 110.0], vol: [0.1, 0.2]}``: all combinations. A list of scenarios,
        ``[{spot: 90.0}, {spot: 110.0, vol: 0.3}]``: an input that a scenario leaves out has its value of the
        graph. Named scenarios, ``{"crash": {spot: 60.0}, "calm": {vol: 0.05}}``. A DataFrame whose columns are
        names of inputs. Inputs are Vars or names.
    product : bool
        If false, the lists of a grid are taken together, point by point.
    gradients : bool or sequence of Var or str
        Also compute the gradients of each output by these inputs; ``True``: by all inputs in `values` that
        are floats.
    workers : int or Threads
        Threads with a fork each. They pay where nodes are large arrays or wait for something.
    batch : bool, optional
        ``True``: compute all scenarios in one pass, as one more axis of every array; raises if an op on the
        way cannot be. ``False``: never. Default: where each op can be. Values are then equal to
        rounding, as NumPy's loops over arrays differ from those over one number in the last bit.
    progress : bool, optional
        A bar. By default after a second, on a terminal and in notebooks.
    errors : {"raise", "keep"}
        Whether a scenario that raises ends all of them, or has NaN and its error in ``.errors``.

    Returns
    -------
    Scenarios
        ``found[y]`` is an array in the shape of the grid, ``found.to_pandas()`` a table. Ctrl-C ends the
        computation and keeps what is done: ``found.complete`` is false, and ``found.resume()`` goes on.

    Raises
    ------
    ScenarioError
        If outputs, inputs or values do not fit together.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> spot, strike = g.input(100.0, name="spot"), g.input(95.0, name="strike")
    >>> payoff = rg.maximum(spot - strike, 0.0)
    >>> found = rg.scenarios(payoff, {spot: [90.0, 100.0, 110.0]}, gradients=True)
    >>> found[payoff], found.grad(payoff, spot)
    (array([ 0.,  5., 15.]), array([0., 1., 1.]))
    >>> print(
    ...     rg.scenarios(
    ...         {"payoff": payoff},
    ...         {"base": {}, "crash": {spot: 60.0}, "low strike": {"strike": 50.0}},
    ...     )
    ... )
    3 scenarios
    scenario    spot  strike  payoff
    base         100      95       5
    crash         60      95       0
    low strike   100      50      50
    """
    named = outputs_of(outputs)
    graph = next(iter(named.values())).graph
    points = points_of(graph, values, product=product)
    wanted = wanted_of(graph, points.inputs, gradients)
    if errors not in ("raise", "keep"):
        raise ScenarioError(
            f"errors={safe_repr(errors)}: write 'raise', or 'keep' to go on with the next scenario."
        )
    sweep = Sweep(
        graph,
        named,
        points,
        wanted,
        workers=number_of_workers(workers),
        progress=progress,
        errors=errors,
    )
    sweep.batch = batch_of(sweep, batch)
    sweep.run()
    return Scenarios(points, sweep)


def wanted_of(graph: rg.Graph, inputs: list[rg.Var], gradients: Any) -> list[rg.Var]:
    """Return the inputs whose gradients are asked for."""
    if gradients is False:
        return []
    if gradients is True:
        return [var for var in inputs if is_float(var)]
    found = [input_of(graph, key) for key in gradients]
    for var in found:
        if not is_float(var):
            raise ScenarioError(
                f"{var.label!r} has no gradient: it is no float. Make it with a float, such as 3.0 in place of 3, or "
                "leave it out of gradients=."
            )
    return found


def number_of_workers(workers: int | rg.Threads) -> int:
    """Return the number of threads that a caller has written."""
    size = workers.size if isinstance(workers, rg.Threads) else workers
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise ScenarioError(
            f"workers={safe_repr(workers)}: write a number of threads, such as 4, or rg.Threads(4)."
        )
    return size
