"""Neurons computed by compiled loops (``_loops``), where numba is installed.

The ops of neurons are bound to the loops in graphs with ``jit``; without a graph, ``Neurons`` calls
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib.util import find_spec
from typing import Any, Final

import numpy as np

import reactgrad as rg
from reactgrad import extend
from reactgrad.extend import Whole
from reactgrad.neat._neuron import activate, take_in
from reactgrad.neat._phenotype import Neuron

Step = Callable[[], object] | None

_HAS_NUMBA: Final = find_spec("numba") is not None


def new_graph() -> rg.Graph:
    """Return a graph that computes by compiled loops, where numba is installed."""
    return rg.Graph(jit=True if _HAS_NUMBA else None)


class Neurons:
    """Computes neurons without nodes: a row for each, with an element a sample, or one if it is the
    same in all.
    """

    def __init__(self, samples: int) -> None:
        self._each, self._same = extend.Sheet(samples), extend.Sheet(1)
        # Rows for what a neuron takes in, used by one neuron after the other.
        self._potentials = [one.row() for one in (self._same, self._each)]

    def given(self, values: Any) -> extend.Row:
        """Return the row of an input."""
        return self._each.row(values)

    def new(self, sources: Sequence[extend.Row]) -> extend.Row:
        """Return a row for a neuron that is computed from these."""
        return (self._each if any(one.step for one in sources) else self._same).row()

    def compute(self, neuron: Neuron, sources: Sequence[extend.Row], out: extend.Row) -> None:
        """Compute a neuron; its value is there after ``finish``."""
        call = (self._each if out.step else self._same).call
        potential = self._potentials[out.step > 0]
        if _HAS_NUMBA and neuron.aggregation == "sum":
            call(_loop("neat_weigh"), sources, neuron.genes, potential, len(sources))
        else:
            self.finish()
            take_in(neuron, [one.array for one in sources], potential.array)
        if _HAS_NUMBA and type(neuron.activation) is str:
            call(_loop(neuron.activation), [potential], (), out)
        else:
            self.finish()
            activate(neuron, potential.array, out.array)

    def forget(self) -> None:
        """Drop all calls that were not made yet."""
        self._same.forget()
        self._each.forget()

    def finish(self) -> None:
        """Make all calls that were not made yet."""
        if _HAS_NUMBA:
            self._same.play()
            self._each.play()


@cache
def _loop(name: str, dtype: str = "d") -> Any:
    if not _HAS_NUMBA:
        return None
    from reactgrad.neat._loops import address  # here, since it needs numba

    return address(name, dtype)


def _call(name: str, out: Any, operands: Sequence[Any], data: int = 0) -> Step:
    loop = _loop(name, out.dtype.char)
    return None if loop is None else extend.loop_call(loop, operands, data)


def _is_repeated(g: Any) -> bool:
    """Return whether all elements are one in memory, a view with strides of 0, which a loop cannot
    step through.
    """
    return g.size > 1 and not any(g.strides)


def _bind_activation(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Step:
    name = attrs[0]
    z = inputs[-1]
    if type(name) is not str or z.size != out.size or _is_repeated(z):
        return None
    return _call(name if len(inputs) == 1 else f"{name} slope", out, [*inputs, out])


def _bind_weigh(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Step:
    genes, *sources = inputs
    return _call("neat_weigh", out, [*sources, Whole(genes), out], len(sources))


def _bind_weigh_genes(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Step:
    g, genes, *sources = inputs
    if _is_repeated(g) or any(one.size > g.size for one in sources):
        return None
    return _call("neat_weigh_genes", out, [g, *sources, Whole(genes), Whole(out)], len(sources))


def _bind_weigh_source(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Step:
    g, genes = inputs
    if _is_repeated(g):
        return None
    return _call("neat_weigh_source", out, [g, Whole(genes), out], attrs[0])


def _bind_outputs(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Step:
    return extend.InTurn(*[partial(np.copyto, out[..., i], one) for i, one in enumerate(inputs)])


extend.register_binder("neat_activation", "jit", _bind_activation)
extend.register_binder("neat_activation_slope", "jit", _bind_activation)
extend.register_binder("neat_weigh", "jit", _bind_weigh)
extend.register_binder("neat_weigh_genes", "jit", _bind_weigh_genes)
extend.register_binder("neat_weigh_source", "jit", _bind_weigh_source)
extend.register_binder("neat_outputs", "jit", _bind_outputs)
