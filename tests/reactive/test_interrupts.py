"""Signals that raise at any moment, also between the engine's own lines, while values are set and read.

Whatever was set is set or not; what is read afterwards is computed from what the leaves hold.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "setitimer"), reason="this system has no timer that sends signals"
)

MANY = 30
ROUNDS = 150


class Interrupted(BaseException):
    """As KeyboardInterrupt."""


@contextmanager
def alarm() -> Iterator[Callable[[float], None]]:
    """A timer that raises ``Interrupted`` after so many seconds; 0: not any more."""
    armed = False

    def ring(*ignored: object) -> None:
        nonlocal armed
        if armed:
            armed = False
            raise Interrupted

    def arm(seconds: float) -> None:
        nonlocal armed
        armed = seconds > 0
        signal.setitimer(signal.ITIMER_REAL, seconds)

    former = signal.signal(signal.SIGALRM, ring)
    try:
        yield arm
    finally:
        arm(0)
        signal.signal(signal.SIGALRM, former)


def like(leaf: Any, value: float) -> Any:
    shape = np.shape(leaf.value)
    return np.full(shape, value) if shape else value


def set_one(g: rg.Graph, leaves: list[Any], value: float) -> None:
    leaves[0].set(like(leaves[0], value))


def set_all(g: rg.Graph, leaves: list[Any], value: float) -> None:
    g.set({leaf: like(leaf, value + i) for i, leaf in enumerate(leaves)})


def adopt(g: rg.Graph, leaves: list[Any], value: float) -> None:
    leaves[0].set(np.full(np.shape(leaves[0].value), value), copy=False)


@pytest.mark.parametrize("change", [set_one, set_all, adopt])
@pytest.mark.parametrize("first", [0.0, np.float64(0.0), np.zeros(3)], ids=["float", "0-d", "1-d"])
def test_what_is_read_later_comes_from_what_the_leaves_hold(
    change: Callable[[rg.Graph, list[Any], float], None], first: Any
) -> None:
    pick = Random(0)
    with alarm() as arm:
        g, value = rg.Graph(), 0.0
        leaves = [g.input(first) for _ in range(MANY)]
        doubled = [leaf * 2.0 for leaf in leaves]
        total = doubled[0]
        for node in doubled[1:]:
            total = total + node
        lifted = rg.lift(lambda *given: sum(np.sum(one) for one in given))(*leaves)
        for _ in range(ROUNDS):
            try:
                arm(pick.uniform(1e-6, 6e-4))
                for _ in range(20):
                    value += 1.0
                    change(g, leaves, value)
                    g.forward(total, lifted)
                arm(0)
            except Interrupted:
                pass
            held = [leaf.value for leaf in leaves]
            expected = held[0] * 2.0
            for one in held[1:]:
                expected = expected + one * 2.0
            assert np.array_equal(total.value, expected)
            assert lifted.value == sum(np.sum(one) for one in held)
            g.check_invariants()
