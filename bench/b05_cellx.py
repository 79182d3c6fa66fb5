"""B5: the cellx suite, beside reaktiv: four properties a layer, computed from those of the layer
before.

The suite observes every property. In reaktiv a set then costs as much as there are paths (seconds
at 20 layers), so the timed case observes nothing and reads the last layer; the counted case
observes all.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

import reactgrad as rg
from bench._calls import Calls
from bench._case import Case, Contest, Count, Peer, Setting, Side, Step, Workload
from bench._goal import exactly, faster
from bench._measure import DifferentOutputs
from bench._peers import load

# The suite's published values of the last layer, before and after the signals are set to 4, 3, 2,
# 1.
PUBLISHED = {
    1000: ([-3, -6, -2, 2], [-2, -4, 2, 3]),
    2500: ([-3, -6, -2, 2], [-2, -4, 2, 3]),
}


def ours(layers: int, tally: Calls | None = None) -> Step:
    """Return the step. With a tally, every property is observed and every call counted."""
    g = rg.Graph()
    signals = [g.input(i) for i in (1, 2, 3, 4)]
    first, second, third, fourth = (
        rg.lift(f if tally is None else tally(f))
        for f in (lambda b: b, lambda a, c: a - c, lambda b, d: b + d, lambda c: c)
    )
    layer, every = signals, []
    for _ in range(layers):
        a, b, c, d = layer
        layer = [first(b), second(a, c), third(b, d), fourth(c)]
        every += layer
    observers = [] if tally is None else [node.observe(lambda old, new: None) for node in every]
    forward = g.forward

    def step(values: Any) -> Any:
        g.set(dict(zip(signals, values, strict=True)))
        if observers:
            g.stabilize()
        forward(*layer)
        return [node.value for node in layer]

    return step


def in_reaktiv(layers: int) -> Step:
    """Return the step by reaktiv."""
    reaktiv = load("reaktiv")
    signals = [reaktiv.Signal(i) for i in (1, 2, 3, 4)]
    layer: list[Any] = signals
    for _ in range(layers):
        a, b, c, d = layer
        layer = [
            reaktiv.Computed(lambda b=b: b()),
            reaktiv.Computed(lambda a=a, c=c: a() - c()),
            reaktiv.Computed(lambda b=b, d=d: b() + d()),
            reaktiv.Computed(lambda c=c: c()),
        ]
    ends = layer

    def step(values: Any) -> Any:
        with reaktiv.batch():
            for signal, value in zip(signals, values):
                signal.set(value)
        return [node() for node in ends]

    return step


def deeply(build: Callable[[], Step]) -> Step:
    """Return a step that may nest as deeply as there are layers, on a stack of its own."""
    sys.setrecursionlimit(1_000_000)
    former = threading.stack_size(1 << 29)
    try:
        orders: list[Any] = []
        results: list[Any] = []
        wake, done = threading.Semaphore(0), threading.Semaphore(0)

        def serve() -> None:
            step: Any = None
            while True:
                wake.acquire()
                if orders[0] is None:
                    return
                try:
                    step = step or build()
                    results.append(step(orders.pop()))
                except BaseException as error:
                    results.append(error)
                done.release()

        threading.Thread(target=serve, daemon=True).start()
    finally:
        threading.stack_size(former)

    def step(values: Any) -> Any:
        orders.append(values)
        wake.release()
        done.acquire()
        result = results.pop()
        if isinstance(result, BaseException):
            raise result
        return result

    return step


def counted(layers: int) -> tuple[float, float]:
    """Return the calls that a change of all signals makes, and the number that it must make."""
    calls = Calls()
    step = ours(layers, calls)
    before = step((1, 2, 3, 4))
    calls.count = 0
    after = step((4, 3, 2, 1))
    if (before, after) != PUBLISHED.get(layers, (before, after)):
        raise DifferentOutputs(f"cellx, {layers} layers: {before}, {after}; not as published")
    return calls.count, 4 * layers


def draw(rng: np.random.Generator) -> Any:
    """Draw four new values."""
    return rng.integers(0, 1000, 4).tolist()


def cases(setting: Setting) -> list[Case]:
    """Return the cases of this workload."""
    found: list[Case] = []
    for layers in (10, 20) if setting.small else (1000, 2500):
        if setting.permuted:
            layers += layers // 5
        found += [
            Contest(
                f"{layers} layers",
                draw,
                Side("reactgrad", lambda n=layers: ours(n)),
                (
                    Peer(
                        Side(
                            "reaktiv",
                            lambda n=layers: deeply(lambda: in_reaktiv(n)),
                            needs="reaktiv",
                        ),
                        faster(10.0),
                    ),
                ),
            ),
            Count(
                f"{layers} layers, values as published",
                "calls",
                lambda n=layers: counted(n),
                "the suite",
                exactly(),
            ),
        ]
    return found


WORKLOAD = Workload("B5", "cellx", cases)


def test_b05_cellx(benchmark: Any, race: Any) -> None:
    """Time one side of one contest."""
    race(benchmark)
