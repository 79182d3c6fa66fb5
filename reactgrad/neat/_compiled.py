"""How the ops of neurons are bound in graphs with ``jit``: as calls of compiled loops (``_loops``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any, Final

import numpy as np

import reactgrad as rg
from reactgrad import extend
from reactgrad.extend import Whole

Step = Callable[[], object] | None

_HAS_NUMBA: Final = find_spec("numba") is not None


def new_graph() -> rg.Graph:
    """A graph that computes by compiled loops, where numba is installed."""
    return rg.Graph(jit=_HAS_NUMBA)


def _call(name: str, out: Any, operands: Sequence[Any], data: int = 0) -> Step:
    from reactgrad.neat._loops import address  # here, since it needs numba

    loop = address(name, out.dtype.char)
    return None if loop is None else extend.loop_call(loop, operands, data)


def _bind_activation(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Step:
    name = attrs[0]
    if type(name) is not str or inputs[-1].size != out.size:
        return None
    return _call(name if len(inputs) == 1 else f"{name} slope", out, [*inputs, out])


def _bind_weigh(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Step:
    genes, *sources = inputs
    return _call("neat_weigh", out, [*sources, Whole(genes), out], len(sources))


def _bind_neuron(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Step:
    genes, function = attrs
    potential = np.empty(out.shape)
    taking_in = _bind_weigh([np.array(genes), *inputs], potential, ())
    giving = _bind_activation([potential], out, (function,))
    return extend.InTurn(taking_in, giving) if taking_in and giving else None


def _bind_weigh_genes(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Step:
    g, genes, *sources = inputs
    if any(one.size > g.size for one in sources):
        return None
    return _call("neat_weigh_genes", out, [g, *sources, Whole(genes), Whole(out)], len(sources))


def _bind_weigh_source(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Step:
    g, genes = inputs
    return _call("neat_weigh_source", out, [g, Whole(genes), out], attrs[0])


def _bind_outputs(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Step:
    return extend.InTurn(*[partial(np.copyto, out[..., i], one) for i, one in enumerate(inputs)])


extend.register_binder("neat_activation", "jit", _bind_activation)
extend.register_binder("neat_activation_slope", "jit", _bind_activation)
extend.register_binder("neat_weigh", "jit", _bind_weigh)
extend.register_binder("neat_neuron", "jit", _bind_neuron)
extend.register_binder("neat_weigh_genes", "jit", _bind_weigh_genes)
extend.register_binder("neat_weigh_source", "jit", _bind_weigh_source)
extend.register_binder("neat_outputs", "jit", _bind_outputs)
