"""Cart-poles: the equations here are gymnasium's."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from reactgrad.demo.training._cart_pole import LONGEST, Equations, Gymnasium, cart_poles


def test_a_cart_that_is_pushed_moves_and_its_pole_falls_the_other_way() -> None:
    carts = Equations(2, 0)
    carts.states = np.zeros((2, 4))
    carts.step(np.array([0, 1]))
    # By hand: a = F / m + ..., with F = 10, m = 1.1, l = 0.5, and both at rest.
    push = 10 / 1.1
    twist = -push / (0.5 * (4 / 3 - 0.1 / 1.1))
    pull = push - 0.05 * twist / 1.1
    assert carts.states[1] == pytest.approx([0, 0.02 * pull, 0, 0.02 * twist])
    assert carts.states[0] == pytest.approx(-carts.states[1])


def test_an_episode_ends_by_a_fall_or_by_time() -> None:
    carts = Equations(3, 0)
    carts.states = np.array([[2.39, 1.0, 0, 0], [0, 0, 0.209, 1.0], [0.0, 0, 0, 0]])
    fallen, timed_out = carts.step(np.array([1, 1, 1]))
    assert (fallen.tolist(), timed_out.tolist()) == ([True, True, False], [False] * 3)
    carts.restart(fallen)
    assert (np.abs(carts.states[:2]) <= 0.05).all()
    for _ in range(LONGEST - 2):
        carts.states = np.zeros((3, 4))
        carts.step(np.array([0, 1, 0]))
    carts.states = np.zeros((3, 4))
    assert carts.step(np.array([0, 1, 0]))[1].tolist() == [False, False, True]


def test_gymnasiums_carts_move_alike() -> None:
    pytest.importorskip("gymnasium", reason="gymnasium: the extra `demo`")
    theirs, own = Gymnasium(4, 3), Equations(4, 3)
    rng = np.random.default_rng(0)
    own.restart(np.ones(4, bool))
    own.states = theirs.states.copy()
    for _ in range(300):
        pushes = rng.integers(0, 2, 4)
        ends = [theirs.step(pushes), own.step(pushes)]
        assert (ends[0][0] == ends[1][0]).all()
        assert own.states == pytest.approx(theirs.states, abs=1e-5)
        theirs.restart(ends[0][0])
        own.restart(ends[0][0])
        own.states = theirs.states.copy()  # gymnasium's are of float32


def test_without_gymnasium_it_says_whose_equations_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    carts, source = cart_poles(2, 0)
    assert isinstance(carts, Equations)
    assert source == "own equations (gymnasium is not installed)"
