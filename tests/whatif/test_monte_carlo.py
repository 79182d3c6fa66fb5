"""``rg.monte_carlo``: distributions in, percentiles out, the same by the same seed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.whatif import ScenarioError
from tests.whatif.book import black_scholes, option


def test_percentiles_of_a_monotone_output_are_those_of_its_input() -> None:
    o = option()
    found = rg.monte_carlo(o.price, {o.spot: ("normal", 100.0, 10.0)}, 20_000, seed=3)
    spots = np.asarray(found.column(o.spot))
    q = [5.0, 50.0, 95.0]
    np.testing.assert_allclose(
        found.percentile(o.price, q),
        np.percentile([black_scholes(s, 0.2) for s in spots], q),
        rtol=1e-10,
    )
    quantile = 100.0 + 10.0 * 1.6448536269514722
    assert found.percentile(o.price, 95.0) == pytest.approx(black_scholes(quantile, 0.2), rel=0.02)


def test_the_mean_of_the_payoff_is_the_price_of_black_and_scholes() -> None:
    g = rg.Graph()
    z = g.input(0.0, name="z")
    last = 100.0 * rg.exp((0.02 - 0.02) * 1.0 + 0.2 * z)
    payoff = math.exp(-0.02) * rg.maximum(last - 100.0, 0.0)
    found = rg.monte_carlo({"payoff": payoff}, {z: ("normal",)}, 200_000, seed=1)
    error = found.standard_error("payoff")
    assert error < 0.04
    assert abs(found.mean("payoff") - black_scholes(100.0, 0.2)) < 4.0 * error


def test_the_same_seed_gives_the_same_bits_by_batch_and_by_fork() -> None:
    o = option()
    given = {o.spot: ("normal", 100.0, 5.0), o.vol: ("uniform", 0.1, 0.3)}
    one = rg.monte_carlo(o.price, given, 500, seed=7)
    again = rg.monte_carlo(o.price, given, 500, seed=7)
    assert (one[o.price] == again[o.price]).all()
    forks = rg.monte_carlo(o.price, given, 500, seed=7, batch=False)
    np.testing.assert_allclose(forks[o.price], one[o.price], rtol=1e-13)
    other = rg.monte_carlo(o.price, given, 500, seed=8)
    assert (other[o.price] != one[o.price]).any()
    alone = rg.monte_carlo(o.price, {o.vol: given[o.vol]}, 500, seed=7)
    assert alone.column(o.vol) == one.column(o.vol)


def test_distributions_of_each_kind() -> None:
    o = option()
    given: dict[str, Any] = {
        "spot": lambda rng, n: rng.normal(100.0, 1.0, n),
        "vol": [0.1, 0.2, 0.3],
        "rate": ("triangular", 0.0, 0.02, 0.05),
    }
    found = rg.monte_carlo([o.price], given, 300)
    assert set(found.column("vol")) == {0.1, 0.2, 0.3}
    assert 0.0 <= min(found.column("rate")) <= max(found.column("rate")) <= 0.05


def test_a_distribution_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    o = option()
    found = rg.monte_carlo(o.price, {o.spot: stats.norm(100.0, 5.0)}, 400, seed=2)
    again = rg.monte_carlo(o.price, {o.spot: stats.norm(100.0, 5.0)}, 400, seed=2)
    assert found.column(o.spot) == again.column(o.spot)


def test_rank_correlations_keep_each_distribution() -> None:
    o = option()
    given = {o.spot: ("lognormal", math.log(100.0), 0.2), o.vol: ("uniform", 0.1, 0.3)}
    free = rg.monte_carlo(o.price, given, 4000, seed=5)
    tied = rg.monte_carlo(o.price, given, 4000, seed=5, correlation={(o.spot, "vol"): -0.6})
    for x in (o.spot, o.vol):
        assert sorted(free.column(x)) == sorted(tied.column(x))
    ranks = [np.argsort(np.argsort(tied.column(x))) for x in (o.spot, o.vol)]
    assert np.corrcoef(ranks[0], ranks[1])[0, 1] == pytest.approx(-0.6, abs=0.03)


def test_gradients_and_summary() -> None:
    o = option()
    found = rg.monte_carlo(o.price, {o.spot: ("normal", 100.0, 5.0)}, 300, gradients=True)
    assert 0.0 < found.grad(o.price, o.spot).min() < found.grad(o.price, o.spot).max() < 1.0
    summary = found.summary([50.0])
    assert list(summary) == ["output", "mean", "std", "error", "50%"]
    assert summary["error"][0] == pytest.approx(found.std(o.price) / math.sqrt(300))
    assert str(found).startswith("300 draws")


def test_an_interrupt_leaves_statistics_of_what_is_done() -> None:
    g = rg.Graph()
    x = g.input(0.0, name="x")
    seen: list[float] = []

    def f(v: float) -> float:
        seen.append(v)
        if len(seen) == 51:
            raise KeyboardInterrupt
        return v

    y = rg.lift(f)(x)
    found = rg.monte_carlo({"y": y}, {x: ("uniform", 0.0, 1.0)}, 200)
    assert found.done == 50
    assert found.mean("y") == pytest.approx(np.mean(seen[:50]))
    assert found.resume().complete


REFUSED: dict[str, Callable[[Any], Any]] = {
    "has no 'gauss'": lambda o: rg.monte_carlo(o.price, {o.spot: ("gauss", 1.0)}, 5),
    "which is no distribution": lambda o: rg.monte_carlo(o.price, {o.spot: 3.0}, 5),
    "cannot be drawn from": lambda o: rg.monte_carlo(o.price, {o.spot: ("normal", 0.0, -1.0)}, 5),
    "gave the shape": lambda o: rg.monte_carlo(o.price, {o.spot: lambda rng, n: np.ones(2)}, 5),
    "samples=0": lambda o: rg.monte_carlo(o.price, {o.spot: ("normal",)}, 0),
    "at least one input": lambda o: rg.monte_carlo(o.price, {}, 5),
    "no pair of inputs": lambda o: rg.monte_carlo(
        o.price, {o.spot: ("normal",)}, 5, correlation={(o.spot, o.vol): 2.0}
    ),
    "both must be inputs with": lambda o: rg.monte_carlo(
        o.price, {o.spot: ("normal",)}, 5, correlation={(o.spot, o.vol): 0.5}
    ),
    "contradict each other": lambda o: rg.monte_carlo(
        o.price,
        {o.spot: ("normal",), o.vol: ("normal",), o.rate: ("normal",)},
        5,
        correlation={(o.spot, o.vol): 0.9, (o.vol, o.rate): 0.9, (o.spot, o.rate): -0.9},
    ),
}


@pytest.mark.parametrize("text", REFUSED)
def test_errors_teach(text: str) -> None:
    with pytest.raises(ScenarioError, match=text):
        REFUSED[text](option())
