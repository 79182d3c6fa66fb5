"""``rg.goal_seek``: solutions, and the reasons why there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import reactgrad as rg
from reactgrad.whatif import GoalError, ScenarioError
from tests.whatif.book import black_scholes, greeks, option


def test_an_implied_volatility() -> None:
    o = option()
    for vol in (0.05, 0.2, 0.8):
        goal = rg.goal_seek(o.price, o.vol, black_scholes(100.0, vol))
        assert goal.value == pytest.approx(vol, rel=1e-8)
        assert goal.evaluations < 25
    assert o.vol.value == 0.2
    goal.apply()
    assert o.price.value == pytest.approx(black_scholes(100.0, 0.8))


def test_newton_needs_few_evaluations() -> None:
    o = option()
    assert rg.goal_seek(o.price, "vol", black_scholes(100.0, 0.25)).evaluations <= 6


def test_two_goals_of_two_inputs() -> None:
    o = option()
    delta = rg.grad(o.price, o.spot)
    goal = rg.goal_seek([o.price, delta], [o.spot, o.vol], [12.0, 0.6])
    spot, vol = goal.value
    assert black_scholes(spot, vol) == pytest.approx(12.0)
    assert greeks(spot, vol)["spot"] == pytest.approx(0.6)


def test_more_inputs_than_goals_take_a_near_solution() -> None:
    o = option()
    goal = rg.goal_seek(o.price, [o.spot, o.vol], 12.0, bounds=[(90, 110), (0.1, 0.4)])
    assert black_scholes(*goal.value) == pytest.approx(12.0)
    assert 90 <= goal.value[0] <= 110
    assert 0.1 <= goal.value[1] <= 0.4


SOLVED: dict[str, tuple[Callable[[Any], Any], float, float, float]] = {
    # function, start, target, solution
    "a cycle of Newton": (lambda x: x**3 - 2.0 * x + 2.0, 0.0, 0.0, -1.7692923542386314),
    "a flat start": (lambda x: rg.relu(x - 10.0), 3.0, 5.0, 15.0),
    "an overshoot": (lambda x: rg.arctan(x), 20.0, 0.5, 0.5463024898437905),
    "a pole beside it": (lambda x: 1.0 / (x - 7.0), 3.0, -5.0, 6.8),
    "the edge of a domain": (lambda x: rg.log(x), 3.0, -5.0, 0.006737946999085467),
    "a wave": (lambda x: rg.sin(x) * x, 3.0, 8.0, 0.0),
}


@pytest.mark.parametrize("name", SOLVED)
def test_hard_ones_are_solved(name: str) -> None:
    f, start, target, solution = SOLVED[name]
    g = rg.Graph()
    x = g.input(start, name="x")
    y = f(x)
    goal = rg.goal_seek(y, x, target)
    with g.whatif({x: goal.value}) as fork:
        assert fork[y].value == pytest.approx(target, rel=1e-9, abs=1e-9)
    if solution:
        assert goal.value == pytest.approx(solution, rel=1e-7)


UNSOLVED: dict[str, tuple[Callable[[Any], Any], float, str]] = {
    # function, target, why
    "a minimum": (lambda x: (x - 1.0) ** 2 + 2.0, 1.0, "has a minimum above the target"),
    "a maximum": (lambda x: rg.sin(x), 1.2, "has a maximum below the target"),
    "a limit": (lambda x: rg.tanh(x), 2.0, "levels off below the target"),
    "a jump": (
        lambda x: rg.where(x > 5.0, 1.0, 0.0) + 0.0 * x,
        0.5,
        "jumps over the target, from 0 to 1",
    ),
    "steps": (lambda x: rg.floor(x), 2.5, "jumps over the target"),
    "a constant": (lambda x: 0.0 * x + 4.0, 5.0, "levels off below the target"),
    "a domain": (lambda x: rg.sqrt(x), -1.0, "above the target"),
}


@pytest.mark.parametrize("name", UNSOLVED)
def test_it_says_why_there_is_no_solution(name: str) -> None:
    f, target, why = UNSOLVED[name]
    g = rg.Graph()
    x = g.input(3.0, name="x")
    with pytest.raises(GoalError, match=why) as caught:
        rg.goal_seek(f(x), x, target)
    assert set(caught.value.closest) == {"x"}
    assert len(caught.value.reached) == 1
    assert x.value == 3.0


def test_bounds_and_what_does_not_hang_together() -> None:
    o = option()
    other = o.graph.input(1.0, name="other")
    with pytest.raises(GoalError, match="still below the target where spot ends, at the bound 120"):
        rg.goal_seek(o.price, o.spot, 50.0, bounds=(50.0, 120.0))
    with pytest.raises(GoalError, match="price does not depend on other"):
        rg.goal_seek(o.price, other, 5.0)
    with pytest.raises(GoalError, match="the outputs move together"):
        rg.goal_seek([o.price, o.price * 2.0], [o.spot, o.vol], [12.0, 20.0])


def test_the_graph_is_as_it_was() -> None:
    o = option()
    before = len(o.graph), o.vol.value_version, o.price.state
    rg.goal_seek(o.price, o.vol, 10.0)
    assert (len(o.graph), o.vol.value_version, o.price.state) == before


REFUSED: dict[str, Callable[[Any], Any]] = {
    "targets \\[1.0, 2.0\\]": lambda o: rg.goal_seek(o.price, o.vol, [1.0, 2.0]),
    "computed from others": lambda o: rg.goal_seek(o.price, o.price, 1.0),
    "low end must lie below": lambda o: rg.goal_seek(o.price, o.vol, 1.0, bounds=(2.0, 1.0)),
    "give a pair": lambda o: rg.goal_seek(o.price, o.vol, 1.0, bounds=[(1, 2), (3, 4)]),
    "start=\\[1.0, 2.0\\]": lambda o: rg.goal_seek(o.price, o.vol, 1.0, start=[1.0, 2.0]),
    "was given the output": lambda o: rg.goal_seek("price", o.vol, 1.0),
    "'n' is none": lambda o: rg.goal_seek(o.price, o.graph.input(3, name="n"), 1.0),
    "has the shape": lambda o: rg.goal_seek(o.graph.input([1.0]) * o.vol, o.vol, 1.0),
}


@pytest.mark.parametrize("text", REFUSED)
def test_errors_teach(text: str) -> None:
    with pytest.raises(ScenarioError, match=text):
        REFUSED[text](option())
