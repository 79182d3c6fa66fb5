"""An interrupt at any line of the engine while leaves are set and what follows is read.

Each leaf has its former value or the one that it was given; whatever is read later is computed from what
the leaves hold then; what callers were given before stays as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
import reactgrad_scheduler

ENGINE = tuple(str(Path(one.__file__ or "").parent) for one in (rg, reactgrad_scheduler))
SIZE = 24

Leaves = list[Any]


def interrupted(act: Callable[[], object], at: int) -> bool:
    """Raise in the `at`-th line of the engine; whether `act` has so many."""
    lines = 0

    def follow(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal lines
        if event == "line":
            lines += 1
            if lines == at:
                sys.settrace(None)
                raise KeyboardInterrupt
        return follow

    def enter(frame: FrameType, event: str, argument: object) -> Any:
        return follow if frame.f_code.co_filename.startswith(ENGINE) else None

    former = sys.gettrace()
    sys.settrace(enter)
    try:
        act()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(former)
    return False


def expected(leaves: list[Any]) -> list[Any]:
    z = np.exp(leaves[0]) * 2.0 + leaves[1]
    return [z, z.sum(), z + leaves[2], np.clip(leaves[0], -1.0, 1.0) + leaves[3]]


def model(xs: Leaves) -> list[Any]:
    z = rg.exp(xs[0]) * 2.0 + xs[1]
    clipped = rg.clip(xs[0], -1.0, 1.0)
    clipped.cutoff = "equal"
    return [z, z.sum(), rg.lift(lambda a, b: a + b)(z, xs[2]), clipped + xs[3]]


KINDS: dict[str, tuple[int, Callable[[float], Any], dict[str, Any]]] = {
    "arrays": (5, lambda v: np.full(SIZE, v), {}),
    "0-d": (5, np.float64, {}),
    "numbers": (20, float, {}),
    "many 0-d": (20, np.float64, {}),
    "budget": (5, lambda v: np.full(SIZE, v), {"max_bytes": 4000}),
    "forked": (5, lambda v: np.full(SIZE, v), {}),
}
ACTS: dict[str, Callable[[rg.Graph, Leaves, Leaves, Leaves], object]] = {
    "set": lambda g, xs, new, out: xs[0].set(new[0]),
    "adopt": lambda g, xs, new, out: xs[0].set(new[0], copy=False),
    "group": lambda g, xs, new, out: g.set(dict(zip(xs, new, strict=True))),
    "set and read": lambda g, xs, new, out: (xs[0].set(new[0]), g.forward(*out)),
}


@pytest.mark.trusting
@pytest.mark.whole
@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore::reactgrad.BudgetWarning")
def test_an_interrupt_leaves_former_or_new_values_and_what_follows_from_them(
    kind: str, act: Callable[[rg.Graph, Leaves, Leaves, Leaves], object]
) -> None:
    many, make, options = KINDS[kind]
    at, more = 0, True
    while more:
        at += 1 if at < 40 else 11  # there are many in a read
        g = rg.Graph(**options)
        xs = [g.input(make(float(i))) for i in range(many)]
        out = model(xs)
        fork = g.fork() if kind == "forked" else None
        for turn in range(3):
            g.set({x: make(i + 0.1 * turn) for i, x in enumerate(xs)})
            g.forward(*out)
            xs[0].set(make(0.5 + turn))
            g.forward(*out)
        held = [node.value for node in (*xs, *out)]
        copies = [np.array(value) for value in held]
        new = [make(7.0 + 0.5 * i) for i in range(many)]
        more = interrupted(partial(act, g, xs, new, out), at)
        found = [x.value for x in xs]
        for value, before, after in zip(found, copies, new, strict=False):
            assert np.array_equal(value, before) or np.array_equal(value, after)
        for node, value in zip(out, expected(found), strict=True):
            assert np.array_equal(node.value, value)
        g.check_invariants()
        assert all(map(np.array_equal, held, copies))
        xs[0].set(make(0.25))
        g.set({x: make(0.5 + i) for i, x in enumerate(xs)})
        for node, value in zip(out, expected([x.value for x in xs]), strict=True):
            assert np.array_equal(node.value, value)
        if fork is not None:
            for node, value in zip(
                out, expected([make(float(i)) for i in range(many)]), strict=True
            ):
                assert np.allclose(fork[node].value, value)
    assert at > 20
