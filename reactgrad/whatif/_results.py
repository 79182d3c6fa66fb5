"""Results by scenario: values and gradients, with labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad._attributes import OwnAttributes
from reactgrad._habits import answer
from reactgrad._names_of_pandas import OF_SCENARIOS
from reactgrad.whatif._errors import ScenarioError
from reactgrad.whatif._points import BASE, Points
from reactgrad.whatif._sweep import MISSING, Sweep
from reactgrad.whatif._table import as_text, pandas


class Scenarios(OwnAttributes):
    """The values of outputs over many values of inputs; see ``scenarios``.

    Attributes
    ----------
    inputs, outputs : tuple of str
        Their labels.
    shape : tuple of int
        Of a grid: the number of values of each input; else the number of scenarios.
    errors : dict
        What scenarios have raised, by position, with ``errors="keep"``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> spot, rate = g.input(100.0, name="spot"), g.input(0.0, name="rate")
    >>> value = spot * rg.exp(rate)
    >>> value.name = "value"
    >>> found = rg.scenarios(value, {spot: [90.0, 110.0], rate: [0.0]})
    >>> found["value"]
    array([[ 90.],
           [110.]])
    >>> print(found)
    2 scenarios
    spot  rate  value
      90     0     90
     110     0    110
    """

    def __init__(self, points: Points, sweep: Sweep) -> None:
        self._points = points
        self._sweep = sweep
        self._labels = {var: label for label, var in sweep.outputs.items()}
        self.inputs: tuple[str, ...] = tuple(var.label for var in points.inputs)
        self.outputs: tuple[str, ...] = tuple(sweep.outputs)
        self.shape = points.shape
        self.errors = sweep.errors

    def __len__(self) -> int:
        return self._points.n

    @property
    def done(self) -> int:
        """The number of scenarios that have been computed."""
        return self._sweep.done

    @property
    def complete(self) -> bool:
        """False if Ctrl-C came before the last scenario; ``resume`` goes on."""
        return self.done == len(self)

    def resume(self) -> Scenarios:
        """Compute the scenarios that an interrupt has left out, with the same values of all else.

        Returns
        -------
        Scenarios
            This object.
        """
        self._sweep.run()
        return self

    def __getitem__(self, output: rg.Var | str) -> np.ndarray[Any, Any]:
        """Return the values of one output, in the shape of the grid followed by the output's own.

        A scenario that raised, or that an interrupt left out, has NaN.
        """
        return self._array(self._sweep.values[self._label(output)])

    def grad(self, output: rg.Var | str, input: rg.Var | str) -> np.ndarray[Any, Any]:
        """Return the gradients of one output by one input, scenario by scenario.

        Raises
        ------
        ScenarioError
            If ``scenarios`` was not asked for them.
        """
        key = self._label(output), input if isinstance(input, str) else input.label
        if key not in self._sweep.gradients:
            has = ", ".join(f"{y} by {x}" for y, x in self._sweep.gradients) or "none"
            raise ScenarioError(
                f"the gradient of {key[0]!r} by {key[1]!r} was not computed (there is: {has}). Ask for it "
                "with scenarios(..., gradients=True) or gradients=[input]."
            )
        return self._array(self._sweep.gradients[key])

    def column(self, input: rg.Var | str) -> list[Any]:
        """Return the values of one input, scenario by scenario."""
        label = input if isinstance(input, str) else input.label
        if label not in self.inputs:
            raise ScenarioError(f"{label!r} is none of the inputs {', '.join(self.inputs)}.")
        j = self.inputs.index(label)
        base = self._sweep.base[j]
        return [base if value is BASE else value for value in self._points.columns[j]]

    def columns(self) -> dict[str, Any]:
        """Return inputs, outputs and gradients as columns of one row a scenario.

        Gradients are called ``d(output)/d(input)``. Of an output with several elements a row holds an array.
        """
        n = len(self)
        found: dict[str, Any] = {}
        if self._points.labels is not None:
            found["scenario"] = self._points.labels
        for label in self.inputs:
            found[label] = self.column(label)
        tables = {
            **self._sweep.values,
            **{f"d({y})/d({x})": one for (y, x), one in self._sweep.gradients.items()},
        }
        for label, values in tables.items():
            array = self._array(values).reshape(n, -1) if n else np.zeros((0, 1))
            if array.shape[1] == 1:
                found[_free(label, found)] = array[:, 0]
            else:
                found[_free(label, found)] = [np.nan if one is MISSING else one for one in values]
        return found

    def to_pandas(self, index: bool = False) -> Any:
        """Return a DataFrame with one row a scenario: its inputs, outputs and gradients.

        Parameters
        ----------
        index : bool
            If true, the inputs become the index, so that ``frame.unstack()`` makes a table of a grid.

        Raises
        ------
        MissingExtraError
            Without pandas (extra ``tables``).
        """
        pd = pandas("to_pandas")
        frame = pd.DataFrame(self.columns())
        if "scenario" in frame and self._points.labels is not None:
            frame = frame.set_index("scenario")
        return frame.set_index(list(self.inputs)) if index and self.inputs else frame

    def _label(self, output: rg.Var | str) -> str:
        label = output if isinstance(output, str) else self._labels.get(output, output.label)
        if label not in self._sweep.values:
            raise ScenarioError(f"{label!r} is none of the outputs {', '.join(self.outputs)}.")
        return label

    def _array(self, values: Sequence[Any]) -> np.ndarray[Any, Any]:
        return stacked(values, self.shape)

    def __str__(self) -> str:
        n = len(self)
        head = f"{n:,} scenario{'s' if n != 1 else ''}"
        if not self.complete:
            head += f", {self.done:,} of them done: resume() computes the others"
        if self.errors:
            head += f", {len(self.errors)} raised: see errors"
        return as_text(self.columns(), head)

    def __repr__(self) -> str:
        done = "" if self.complete else f", {self.done:,} done"
        return f"<{type(self).__name__}: {len(self):,} points{done}, of {', '.join(self.outputs)}>"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"


answer(Scenarios, "found", OF_SCENARIOS)


def stacked(values: Sequence[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return values as one array of `shape` and theirs; of objects if theirs differ."""
    found = next((value for value in values if value is not MISSING), None)
    own = getattr(found, "shape", ())
    kind = getattr(getattr(found, "dtype", None), "kind", "")
    numbers = kind in "fiubc" if kind else isinstance(found, bool | int | float | complex)
    if found is None:
        return np.full(shape, np.nan)
    missing = any(value is MISSING for value in values)
    if numbers:
        try:
            if missing:
                blank = np.full(own, np.nan) if own else np.nan
                values = [blank if value is MISSING else value for value in values]
            return np.array(values).reshape(*shape, *own)
        except (ValueError, OverflowError):
            pass  # of different shapes
    table = np.empty(len(values), object)
    for i, value in enumerate(values):
        table[i] = np.nan if value is MISSING else value
    return table.reshape(shape)


def _free(label: str, taken: dict[str, Any]) -> str:
    """Return a title that no column has yet: an input may be an output, too."""
    while label in taken:
        label += " (output)"
    return label
