"""An error that was caught holds nothing: what it came through does not wait for the collector.

A traceback holds frames, and a frame holds its variables: one that names the error makes a cycle.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

Program = Callable[[rg.Graph], object]


def of(g: rg.Graph, *shapes: int) -> list[Any]:
    return [g.param(np.ones(shape)) for shape in shapes]


def divided(v: Any) -> Any:
    return 1.0 / v


def rolled_back(g: rg.Graph) -> None:
    x = g.input(1.0)
    with g.transaction():
        x.set(2.0)
        raise KeyError("x")


def edited(g: rg.Graph) -> None:
    y = g.input(1.0) * 2.0
    with g.edit():
        y.replace_parent(0, g.input(3.0))
        raise KeyError("x")


def reversed_edge(g: rg.Graph) -> None:
    a = g.input(1.0) * 2.0
    b = a + 1.0
    a.replace_parent(0, b)


def part_of_a_gradient(g: rg.Graph) -> None:
    (x,) = of(g, 3)
    y = x * x
    y.replace_parent(0, rg.grad(y.sum(), x))


def new_shape(g: rg.Graph) -> None:
    x, w = of(g, 3, 3)
    y = x * w
    assert y.value is not None
    x.set(np.ones(4))


def observed(g: rg.Graph) -> None:
    x = g.input(1.0)
    (x * 2.0).observe(lambda old, new: divided(0.0))
    (x * 3.0).observe(lambda old, new: divided(0.0))
    g.stabilize()


def observed_and_read(g: rg.Graph) -> None:
    x = g.input(1.0)
    y = x * 2.0
    y.observe(lambda old, new: divided(0.0))
    assert y.value is not None


def waiting_set(g: rg.Graph) -> None:
    x, w = g.input(1.0), g.input([1.0, 2.0], shape=(None,))
    y = w + g.input([1.0, 2.0])
    x.observe(lambda old, new: w.set([1.0, 2.0, 3.0]))
    x.set(2.0)
    g.stabilize()
    assert y is not None


def waiting_sets(g: rg.Graph) -> None:
    x, w = g.input(1.0), g.input([1.0, 2.0], shape=(None,))
    y = w + g.input([1.0, 2.0])
    assert y.value is not None
    for length in (3, 4):
        x.observe(lambda old, new, length=length: w.set(np.ones(length)))
    x.set(2.0)
    g.stabilize()


def endless(g: rg.Graph) -> None:
    x = g.input(1.0)
    x.observe(lambda old, new: x.set(new + 1.0))
    x.set(2.0)
    g.stabilize()


def observed_failure(g: rg.Graph) -> None:
    rg.lift(divided)(g.input(0.0)).observe(print)
    g.stabilize()


def hooks(g: rg.Graph) -> None:
    (x,) = of(g, 3)
    for _ in range(2):
        x.register_post_accumulate_grad_hook(lambda var: divided(0.0))
    x.sum().backward()


def interrupted(g: rg.Graph) -> None:
    def stop(v: float) -> float:
        raise KeyboardInterrupt

    assert (rg.lift(stop)(g.input(1.0)) * 2.0).value is not None


def broken_read(g: rg.Graph) -> None:
    bad = rg.lift(divided)(g.input(0.0))
    assert rg.lift(lambda v: v + bad.value)(g.input(1.0)).value is not None


def cancelled(g: rg.Graph) -> None:
    def stop(v: float) -> float:
        g.cancel()
        return v

    assert (rg.lift(stop)(g.input(1.0)) * 2.0).value is not None


def in_threads(g: rg.Graph) -> None:
    g.executor = rg.Threads(2)
    x = g.input(0.0)
    one, other = rg.lift(divided)(x), rg.lift(lambda v: 2.0 / v)(x)
    g.forward(one * 2.0, other * 3.0)


def interrupted_in_threads(g: rg.Graph) -> None:
    g.executor = rg.Threads(2)
    interrupted(g)


def in_two_steps(g: rg.Graph) -> None:
    step = g.reader(rg.lift(divided)(x := g.input(1.0)), feeds=[x])
    step(0.0)


def loaded(g: rg.Graph) -> None:
    class Bad(rg.data.Dataset):
        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int) -> Any:
            assert g is not None
            return divided(0)

    list(rg.data.DataLoader(Bad(), batch_size=2, workers=1))


def anomalous(g: rg.Graph) -> None:
    with rg.detect_anomaly():
        assert rg.log(g.input(-1.0)).value is not None


def sought(g: rg.Graph) -> None:
    x = g.input(0.25)
    rg.goal_seek(rg.where(x > 0.5, x + 1.0, x), x, 1.0)


PROGRAMS: dict[str, Program] = {
    "shapes": lambda g: np.add(*of(g, 3, 4)),
    "operators": lambda g: (lambda x, w: x + w)(*of(g, 3, 4)),
    "matmul": lambda g: (lambda x, w: x @ w)(*of(g, 3, 4)),
    "text": lambda g: g.input(1.0) + "a",  # type: ignore[operator]
    "two graphs": lambda g: g.input(1.0) * rg.Graph().input(2.0),
    "two graphs by name": lambda g: rg.maximum(g.input(1.0), rg.Graph().input(2.0)),
    "two graphs in a list": lambda g: rg.stack([g.input(1.0), rg.Graph().input(2.0)]),
    "truth": lambda g: bool(g.input(1.0) > 0.0),
    "float": lambda g: float(g.input(1.0)),
    "index": lambda g: g.input(np.ones(3))[5],
    "part": lambda g: g.input(np.ones(3)).__setitem__(0, 1.0),
    "masked": lambda g: np.ma.array([1.0, 2.0]) * g.input(np.ones(2)),
    "word": lambda g: np.sum(g.input(np.ones(2)), axes=1),  # type: ignore[call-overload]
    "words": lambda g: rg.sum(g.input(np.ones(2)), axes=1),
    "layer": lambda g: rg.nn.Linear(2, 3, baias=g),  # type: ignore[call-arg]
    "lazy layer": lambda g: rg.nn.LazyLinear(2, baias=g),  # type: ignore[call-arg]
    "attribute": lambda g: g.input(1.0).foo,  # type: ignore[attr-defined]
    "mistyped": lambda g: setattr(g, "max_byte", 3),
    "set": lambda g: g.input(1.0).set("a"),
    "set of several": lambda g: g.set({g.input(1.0): 2.0, g.input([1.0]): "a"}),
    "pin": lambda g: g.input(1.0).pin(2.0),
    "name": lambda g: [g.input(1.0, name="x") for _ in range(2)],
    "no name": lambda g: g["x"],
    "function": lambda g: rg.lift(divided)(g.input(0.0)).value,
    "behind a function": lambda g: (rg.lift(divided)(g.input(0.0)) * 2.0).value,
    "kernel": lambda g: rg.linalg.solve(np.zeros((2, 2)), g.input(np.ones(2))).value,
    "gradient": lambda g: rg.grad(of(g, 3)[0] * 2.0, g.input(1.0)),
    "backward": lambda g: (of(g, 3)[0] * 2.0).backward(),
    "unused": lambda g: rg.grad(g.input(1.0) * 2.0, g.input(1.0)),
    "hessian": lambda g: rg.hessian(of(g, 3)[0] * 2.0, g.input("a")),
    "of a function": lambda g: rg.grad(lambda v: v + g.input(np.ones(4)))(np.ones(3)),
    "subgraph": lambda g: rg.subgraph(lambda v: v + np.ones(4))(g.input(np.ones(3))),
    "switch": lambda g: rg.switch(g.input([1.0, 2.0]), g.input(1.0), g.input(2.0)).value,
    "fork": lambda g: g.fork()[g.input(1.0)].set("a"),
    "what-if": lambda g: g.whatif({"x": 1.0}).__enter__(),
    "reader": lambda g: g.reader(g.input(1.0), feeds=["x"]),
    "unset": lambda g: (g.input(shape=(2,), dtype="f8") * 2.0).value,
}
for one in (
    *(rolled_back, edited, reversed_edge, part_of_a_gradient, new_shape, observed),
    *(observed_and_read, waiting_set, waiting_sets, endless, observed_failure, hooks, interrupted),
    *(broken_read, cancelled, in_threads, interrupted_in_threads, in_two_steps, loaded),
    *(anomalous, sought),
):
    PROGRAMS[one.__name__.replace("_", " ")] = one


def failed(program: Program) -> None:
    raised = False
    try:  # ``pytest.raises`` would make a cycle of its own
        program(rg.Graph())
    except AssertionError:
        raise
    except BaseException:
        raised = True
    assert raised


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_frame_waits_for_the_collector(name: str) -> None:
    failed(PROGRAMS[name])  # what is made once is made
    gc.collect()
    gc.disable()
    try:
        failed(PROGRAMS[name])
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        frames = [one for one in gc.garbage if isinstance(one, FrameType)]
        assert [one.f_code.co_qualname for one in frames] == []
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
