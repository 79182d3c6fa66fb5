"""The values of all scenarios: a grid, a list, or a table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad.scheduler import safe_repr
from reactgrad.whatif._errors import ScenarioError
from reactgrad.whatif._inputs import input_of

MOST = 100_000_000  # of a grid: more is a slip


class Base:
    """The class of ``BASE``: an input keeps the value that it has in the graph."""

    def __repr__(self) -> str:
        return "base"


BASE = Base()


@dataclass
class Points:
    """Values of inputs, point by point.

    ``columns[j][i]`` is the value of ``inputs[j]`` in scenario `i`, or ``BASE``. ``prod(shape)`` is the
    number of scenarios; a grid has an axis for each input, in the order of the inputs.
    """

    inputs: list[rg.Var]
    columns: list[Sequence[Any]]
    shape: tuple[int, ...]
    labels: list[str] | None = None  # names of scenarios
    axes: list[Sequence[Any]] = field(default_factory=list)  # of a grid

    @property
    def n(self) -> int:
        """The number of scenarios."""
        return math.prod(self.shape)


def points_of(graph: rg.Graph, values: Any, *, product: bool = True) -> Points:
    """Return the points that the caller has written.

    Raises
    ------
    ScenarioError
        For anything that is no grid, list or table of values of inputs.
    """
    if hasattr(values, "columns") and hasattr(
        values, "index"
    ):  # a DataFrame, without importing pandas
        return _of_frame(graph, values)
    if isinstance(values, Mapping):
        if values and all(isinstance(one, Mapping) for one in values.values()):
            found = _of_list(graph, list(values.values()))
            found.labels = [str(label) for label in values]
            return found
        return _of_columns(graph, values, product=product)
    if isinstance(values, Iterable) and not isinstance(values, str):
        rows = list(values)
        if all(isinstance(row, Mapping) for row in rows):
            return _of_list(graph, rows)
    raise ScenarioError(
        f"scenarios were given as {type(values).__name__}. Write a grid, {{spot: [90.0, 110.0], vol: [0.1, 0.2]}}; "
        "a list of scenarios, [{spot: 90.0}, {spot: 110.0, vol: 0.3}]; named ones, "
        '{"crash": {spot: 60.0}}; or a DataFrame whose columns are names of inputs.'
    )


def _sequence(var: rg.Var, given: Any) -> Sequence[Any]:
    if isinstance(given, np.ndarray) and given.ndim == 1 and given.dtype != object:
        return given.tolist() if given.dtype.kind in "fiub" else list(given)
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable) or np.ndim(given) == 0:  # type: ignore[arg-type]
        raise ScenarioError(
            f"{var.label!r} was given {safe_repr(given)}, which is one value: write the values to try as a list, "
            f"such as [{safe_repr(given)}]."
        )
    return list(given)


def _of_columns(graph: rg.Graph, values: Mapping[Any, Any], *, product: bool) -> Points:
    inputs = [input_of(graph, key) for key in values]
    _refuse_twice(inputs)
    axes = [_sequence(var, given) for var, given in zip(inputs, values.values(), strict=True)]
    lengths = tuple(map(len, axes))
    if not product:
        if len(set(lengths)) > 1:
            told = ", ".join(f"{v.label}: {n}" for v, n in zip(inputs, lengths, strict=True))
            raise ScenarioError(
                f"with product=False the inputs are taken together, point by point, and have different numbers "
                f"of values ({told}). Give each as many, or leave out product=False for all combinations."
            )
        return Points(inputs, axes, (lengths[0] if lengths else 0,))
    n = math.prod(lengths)
    if n > MOST:
        told = " x ".join(map(str, lengths))
        raise ScenarioError(
            f"this grid has {told} = {n:,} points, more than {MOST:,}. Take fewer values of each input, "
            "points of your own with product=False, or draws with monte_carlo."
        )
    columns: list[Sequence[Any]] = []
    inner = n
    for axis in axes:
        inner //= max(len(axis), 1)
        one = [value for value in axis for _ in range(inner)]
        columns.append(one * (n // max(len(one), 1)))
    return Points(inputs, columns, lengths, axes=axes)


def _of_list(graph: rg.Graph, rows: list[Mapping[Any, Any]]) -> Points:
    inputs: dict[rg.Var, list[Any]] = {}
    for i, row in enumerate(rows):
        for key, value in row.items():
            var = input_of(graph, key)
            column = inputs.setdefault(var, [BASE] * len(rows))
            if column[i] is not BASE:
                raise ScenarioError(
                    f"scenario {i} gives {var.label!r} twice, as a Var and by name."
                )
            column[i] = value
    return Points(list(inputs), list(inputs.values()), (len(rows),))


def _of_frame(graph: rg.Graph, frame: Any) -> Points:
    known = [name for name in frame.columns if isinstance(name, str) and name in graph]
    if len(known) < len(frame.columns):
        other = [name for name in frame.columns if name not in known]
        raise ScenarioError(
            f"the table has the columns {other}, which are no names of inputs. Rename them, or leave "
            "them out: frame[names]."
        )
    inputs = [input_of(graph, name) for name in known]
    columns: list[Sequence[Any]] = [frame[name].tolist() for name in known]
    labels = None
    if frame.index.dtype.kind not in "iu":
        labels = [str(label) for label in frame.index]
    return Points(inputs, columns, (len(frame),), labels)


def _refuse_twice(inputs: list[rg.Var]) -> None:
    for i, var in enumerate(inputs):
        if any(var is other for other in inputs[:i]):
            raise ScenarioError(f"{var.label!r} is given twice, as a Var and by its name.")
