"""Lessons for networks: samples or sequences with what is wanted, and a loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad.neat._samples import columns

Array = np.ndarray[Any, Any]
Loss = Callable[[rg.Var, Any], rg.Var]


class Lesson:
    """Samples or sequences with what is wanted, checked.

    Attributes
    ----------
    x, y : array of shape (steps, inputs or outputs, samples)
        One step where networks have no memory.
    loss : callable or None
        ``None`` for the mean of the squared differences.
    window : int
        Gradients pass no more steps than these.
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        counts: tuple[int, int],
        loss: str | Loss,
        memory: bool,
        window: int | None,
    ) -> None:
        inputs, outputs = counts
        if memory:
            wanted, given = _sequences(y, outputs, "y"), _sequences(X, inputs, "X")
            self._form: tuple[int, ...] = (*np.shape(X)[:-1], outputs)
            if given.shape[:2] != wanted.shape[:2]:
                raise rg.ShapeError(
                    f"fit was given X of {given.shape[0]} steps and {given.shape[1]} samples, and y of "
                    f"{wanted.shape[0]} and {wanted.shape[1]}. Give what is wanted at each step."
                )
        else:
            wanted = _wanted(y, outputs)[None]
            rows, alone = columns(X, range(inputs))
            given = rows.T[None]
            if alone and wanted.shape[1] != 1:
                raise rg.ShapeError(
                    f"fit was given X of shape {np.shape(X)}, which is one sample, and {wanted.shape[1]} rows "
                    f"of y. Give X of shape (samples, {inputs})."
                )
            self._form = wanted.shape[1:]
        if not wanted.size or not (np.isfinite(given).all() and np.isfinite(wanted).all()):
            raise rg.ParameterError(
                "fit learns from finite numbers, of one sample at least, and X or y holds NaN, an infinity, "
                "or nothing. Leave such samples out: keep = np.isfinite(y)."
            )
        if given.shape[1] != wanted.shape[1]:
            raise rg.ShapeError(
                f"fit was given {given.shape[1]} samples and {wanted.shape[1]} rows of y. Give one for each "
                "sample."
            )
        if loss != "mse" and not callable(loss):
            raise rg.ParameterError(
                f"fit(loss={loss!r}): it is 'mse' or a function of outputs and y."
            )
        self.loss = None if isinstance(loss, str) else loss
        self.x = np.ascontiguousarray(given.transpose(0, 2, 1))
        self.y = np.ascontiguousarray(wanted.transpose(0, 2, 1))
        self.window = min(window or len(self.x), len(self.x))
        self._nodes: Any = None

    def judge(self, outputs: Array) -> tuple[float, Array]:
        """Return the loss and its gradient, for outputs of shape (steps, outputs, samples).

        The loss is built once, for all networks.
        """
        if self.loss is None:
            errors = outputs - self.y
            return float(np.square(errors).mean()), 2.0 / errors.size * errors
        rows = np.ascontiguousarray(outputs.transpose(0, 2, 1)).reshape(self._form)
        if self._nodes is None:
            graph = rg.Graph()
            var = graph.input(rows)
            wanted = np.ascontiguousarray(self.y.transpose(0, 2, 1)).reshape(self._form)
            total = self.loss(var, wanted)
            if not isinstance(total, rg.Var) or total.shape != ():
                raise rg.DTypeError(
                    f"fit(loss=...): the function returned {total!r:.60}. It returns a scalar Var, such as "
                    "rg.mean(rg.square(outputs - y))."
                )
            self._nodes = graph, var, total, rg.grad(total, var, allow_unused=True)
        graph, var, total, slope = self._nodes
        graph.set({var: rows})
        graph.forward(*[one for one in (total, slope) if one is not None])
        seed = np.zeros_like(rows) if slope is None else np.broadcast_to(slope.value, rows.shape)
        steps, _, samples = outputs.shape
        seed = seed.reshape(steps, samples, -1).transpose(0, 2, 1)
        return total.item(), np.ascontiguousarray(seed)


def _numbers(values: Any, name: str) -> Array:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise rg.ParameterError(
            f"fit was given {name} that is no array of real numbers: {error}."
        ) from None


def _wanted(y: Any, outputs: int) -> Array:
    """Return `y` as an array of shape (samples, outputs)."""
    array = _numbers(y, "y")
    if array.ndim == 1 and outputs == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] != outputs:
        raise rg.ShapeError(
            f"fit was given y of shape {array.shape}, and the genome has {outputs} outputs. Give an array "
            f"of shape (samples, {outputs})."
        )
    return array


def _sequences(values: Any, count: int, name: str) -> Array:
    """Return an array of shape (steps, samples, count)."""
    array = _numbers(values, name)
    if array.ndim == 2 and array.shape[1] == count:
        array = array[:, None]
    if array.ndim != 3 or array.shape[2] != count:
        what = "inputs" if name == "X" else "outputs"
        raise rg.ShapeError(
            f"fit was given {name} of shape {np.shape(values)}, and networks with memory of {count} {what}. Give "
            f"an array of shape (steps, {count}) or (steps, samples, {count})."
        )
    return array
