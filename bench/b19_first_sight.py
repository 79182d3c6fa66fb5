"""B19: what is seen for the first time: a graph, its gradients, its end, a what-if, a fork, an edit, another length."""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

import reactgrad as rg
from bench._case import Case, Contest, Peer, Setting, Side, Step, Workload
from bench._goal import at_most, within

SHAPE = (4, 8)


class Chain:
    """``h = tanh(h * w + b)`` again and again; each w and b is a param."""

    def __init__(self, layers: int, *, swapped: bool) -> None:
        g = self.graph = rg.Graph()
        rng = np.random.default_rng(0)
        self.x = g.input(rng.normal(size=SHAPE))
        self.params = [g.param(rng.normal(size=SHAPE[1])) for _ in range(2 * layers)]
        h = self.x
        for w, b in zip(self.params[::2], self.params[1::2], strict=True):
            h = rg.tanh((w * h if swapped else h * w) + b)
        self.y = h.sum()
        self.before_gradients = len(g)
        self.gradients: list[Any] = []

    def differentiated(self) -> Chain:
        self.gradients = list(rg.grad(self.y, self.params))
        return self

    @property
    def made(self) -> int:
        return len(self.graph) - self.before_gradients

    def read(self, graph: Any = None) -> Any:
        own = self.graph if graph is None else graph
        own.forward(*[own[one] for one in (self.y, *self.gradients)])

    def known(self) -> Chain:
        """Return it once several reads have shown it all that they can."""
        for _ in range(20):
            self.x.set(np.asarray(self.x.value) * 0.9)
            self.read()
        return self


def timed(act: Callable[[], object]) -> float:
    """Return the seconds that a call takes, with the collector off as `timeit` has it."""
    gc.collect()
    gc.disable()
    try:
        began = perf_counter()
        act()
        return perf_counter() - began
    finally:
        gc.enable()


def new_input(rng: np.random.Generator) -> Any:
    return rng.normal(size=SHAPE)


def read(chain: Chain) -> Callable[[], object]:
    """Return what reads everything for the first time."""
    return chain.read


def differentiate(chain: Chain) -> Callable[[], object]:
    """Return what builds the gradients."""
    return chain.differentiated


def drop(chain: Chain) -> Callable[[], object]:
    """Return what releases everything; the caller keeps nothing of it."""
    kept = [chain]
    return kept.clear


def phase(make: Callable[[], Chain], act: Callable[[Chain], Callable[[], object]]) -> Step:
    """Return a step that makes a chain anew, and reports how long something takes with it."""

    def step(value: Any) -> float:
        return timed(act(make()))

    return step


def ask_what_if(chain: Chain, value: Any) -> object:
    with chain.graph.whatif({chain.x: value}) as w:
        return w[chain.y].value


def set_and_read_fork(chain: Chain, value: Any) -> object:
    fork = chain.graph.fork()
    fork[chain.x].set(value)
    return fork[chain.y].value


def set_and_read(chain: Chain, value: Any) -> object:
    chain.x.set(value)
    return chain.y.value


def cases(setting: Setting) -> list[Case]:
    """Return the cases of this workload."""
    found: list[Case] = []
    swapped = setting.permuted
    layers = setting.size(100, 3)
    ops = 3 * layers

    def built() -> Chain:
        return Chain(layers, swapped=swapped)

    def ready() -> Chain:
        return built().differentiated()

    one = ready()
    for name, make, act, nodes, goal in (
        ("first read", ready, read, ops + one.made, 1.5e-6),
        ("build of gradients", built, differentiate, one.made, 2e-6),
        ("drop", ready, drop, len(one.graph), 0.5e-6),
    ):
        side = Side("reactgrad", lambda make=make, act=act: phase(make, act), reports=True)
        found.append(
            Contest(
                f"{name}, {ops} ops", new_input, side, goal=within(goal), unit="node", per=nodes
            )
        )
    known = Chain(layers, swapped=swapped).known()

    def again(act: Callable[[Chain, Any], object]) -> Step:
        return lambda value: timed(lambda: act(known, value))

    def at_first_sight(act: Callable[[Chain, Any], object]) -> Step:
        def step(value: Any) -> float:
            chain = Chain(layers, swapped=swapped).known()
            return timed(lambda: act(chain, value))

        return step

    for name, act in (("what-if", ask_what_if), ("fork, set and read", set_and_read_fork)):
        found.append(
            Contest(
                f"{name} at first sight, {3 * layers} ops",
                new_input,
                Side("reactgrad", lambda act=act: at_first_sight(act), reports=True),
                (
                    Peer(
                        Side("set and read", lambda: again(set_and_read), reports=True),
                        at_most(2.5),
                    ),
                ),
                alike=False,
            )
        )
    found.append(after_an_edit(layers, swapped))
    found.append(lengths_in_turn(layers))
    return found


def after_an_edit(layers: int, swapped: bool) -> Contest:
    """Return the contest of the read after an edit near the output, beside the read of everything."""

    def edited() -> Step:
        def step(value: Any) -> float:
            chain = Chain(layers, swapped=swapped).known()
            chain.y.replace_parent(0, chain.y.parents[0] * 1.5)
            return timed(lambda: chain.y.value)

        return step

    def whole() -> Step:
        chain = Chain(layers, swapped=swapped).known()
        return lambda value: timed(lambda: set_and_read(chain, value))

    return Contest(
        f"the read after an edit at the end, {3 * layers} ops",
        new_input,
        Side("reactgrad", edited, reports=True),
        (Peer(Side("set and read of all", whole, reports=True), at_most(1.0)),),
        alike=False,
    )


def lengths_in_turn(layers: int) -> Contest:
    """Return the contest of batches of three lengths in turn, beside one length."""

    def loop(lengths: tuple[int, ...]) -> Step:
        g = rg.Graph()
        rng = np.random.default_rng(0)
        x = g.input(shape=(None, SHAPE[1]), dtype="f8")
        params = [g.param(rng.normal(size=SHAPE[1])) for _ in range(2 * layers)]
        h = x
        for w, b in zip(params[::2], params[1::2], strict=True):
            h = rg.tanh(h * w + b)
        y = h.sum()
        x.set(np.ones((lengths[0], SHAPE[1])))
        gradients = rg.grad(y, params)

        def step(value: Any) -> float:
            def turn() -> None:
                for length in lengths:
                    x.set(np.resize(value, (length, SHAPE[1])))
                    g.forward(y, *gradients)

            return timed(turn) / len(lengths)

        return step

    return Contest(
        f"three lengths in turn, {3 * layers} ops",
        new_input,
        Side("reactgrad", lambda: loop((4, 5, 6)), reports=True),
        (Peer(Side("one length", lambda: loop((4, 4, 4)), reports=True), at_most(1.5)),),
        alike=False,
    )


WORKLOAD = Workload("B19", "first sight", cases)


def test_b19(benchmark: Any, race: Any) -> None:
    """Time one side of one contest."""
    race(benchmark)
