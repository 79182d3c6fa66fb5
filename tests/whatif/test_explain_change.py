"""``rg.explain_change``: contributions by gradients along the path, which add up to the difference."""

from __future__ import annotations

import math

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.whatif import ScenarioError
from tests.whatif.book import black_scholes, greeks, option

MOVES = {"spot": (100.0, 112.0), "vol": (0.2, 0.27), "rate": (0.02, 0.01), "years": (1.0, 0.8)}


def by_hand(name: str) -> float:
    """Return a contribution by the trapezoid of many points and Richardson's extrapolation."""
    found = []
    for n in (2000, 4000):
        t = np.linspace(0.0, 1.0, n + 1)
        slopes = [
            greeks(**{k: a + (b - a) * s for k, (a, b) in MOVES.items()})[name]  # type: ignore[arg-type]
            for s in t
        ]
        a, b = MOVES[name]
        found.append(float(np.trapezoid(slopes, t)) * (b - a))
    return found[1] + (found[1] - found[0]) / 3.0


def test_the_change_of_an_option() -> None:
    o = option()
    after = {o.graph[name]: b for name, (_, b) in MOVES.items()}
    found = rg.explain_change({}, after, o.price)
    assert found.before == pytest.approx(black_scholes(100, 0.2), rel=1e-12)
    assert found.after == pytest.approx(black_scholes(112, 0.27, 0.01, 0.8), rel=1e-12)
    assert abs(found.residual) <= 1e-12 * found.after
    for name in MOVES:
        assert found[name].contribution == pytest.approx(by_hand(name), rel=1e-9)
    assert math.fsum(row.contribution for row in found) == pytest.approx(
        found.difference, rel=1e-12
    )
    assert o.spot.value == 100.0


def test_graphs_forks_names_and_twins() -> None:
    o = option()
    monday = o.graph.fork()
    o.graph.set({o.spot: 110.0, o.vol: 0.3})
    friday = o.graph.fork()
    expected = [row.contribution for row in rg.explain_change(monday, o.graph, o.price)]
    for found in (
        rg.explain_change(monday, o.graph, "price"),
        rg.explain_change(monday[o.price], o.price),
        rg.explain_change(monday, friday, o.price),
        rg.explain_change(monday[o.price], friday[o.price]),
        rg.explain_change({o.spot: 100.0, "vol": 0.2}, {}, o.price),
    ):
        assert [row.contribution for row in found] == expected
    assert [row.input for row in rg.explain_change(monday, o.graph, "price")] == ["spot", "vol"]


def test_a_product_is_shared_evenly_and_exactly() -> None:
    g = rg.Graph()
    a, b = g.input(2.0, name="a"), g.input(3.0, name="b")
    found = rg.explain_change({}, {a: 4.0, b: 7.0}, a * b)
    assert found["a"].contribution == pytest.approx(2.0 * 5.0, rel=1e-14)
    assert found["b"].contribution == pytest.approx(4.0 * 3.0, rel=1e-14)
    assert found.reads == 24  # a rule of 8 nodes on the whole, and on both halves


def test_kinks_are_found() -> None:
    g = rg.Graph()
    x, k = g.input(3.0, name="x"), g.input(5.0, name="k")
    found = rg.explain_change({}, {x: 8.0, k: 4.0}, rg.relu(x - k))
    # The kink lies a third of the way: from there on x gains 5 * 2/3, and k 1 * 2/3.
    assert found["x"].contribution == pytest.approx(10.0 / 3.0, rel=1e-9)
    assert found["k"].contribution == pytest.approx(2.0 / 3.0, rel=1e-9)
    assert abs(found.residual) < 1e-12


def test_jumps_steps_and_edits_have_rows_of_their_own() -> None:
    g = rg.Graph()
    x, n, word = g.input(3.0, name="x"), g.input(2, name="n"), g.input("ab", name="word")
    y = rg.where(x > 5.0, 1.0, 0.0) + x * n + rg.lift(len)(word) * 1.0
    y.name = "y"
    h = g.fork()
    h.set({h[x]: 7.0, h[n]: 5, h[word]: "abcd"})
    found = rg.explain_change(g, h, y)
    assert found["x"].contribution == pytest.approx(8.0)
    assert (found["n"].kind, found["n"].contribution) == ("step", 21.0)
    assert (found["word"].kind, found["word"].contribution) == ("step", 2.0)
    (jump,) = [row for row in found if row.kind == "jump"]
    assert jump.contribution == pytest.approx(1.0)
    assert jump.input.startswith("(jump 50.000% of the way")
    h[y].replace_parent(1, h[x])
    assert [row.kind for row in rg.explain_change(g, h, y) if row.input == "(edits)"] == ["edit"]


def test_arrays_have_parts() -> None:
    g = rg.Graph()
    w = g.input([1.0, 2.0], name="w")
    found = rg.explain_change({}, {w: [3.0, 2.0]}, (w * w).sum())
    np.testing.assert_allclose(found["w"].parts, [8.0, 0.0])
    assert found["w"].contribution == pytest.approx(8.0)


def test_a_function_without_a_rule_is_a_step() -> None:
    g = rg.Graph()
    x, a = g.input(3.0, name="x"), g.input(1.0, name="a")
    y = rg.lift(lambda v: v * v)(x) + a * a
    found = rg.explain_change({}, {x: 4.0, a: 2.0}, y)
    assert (found["x"].kind, found["x"].contribution) == ("step", 7.0)
    assert found["a"].contribution == pytest.approx(3.0)


def test_nothing_has_changed() -> None:
    o = option()
    found = rg.explain_change({}, {o.spot: 100.0}, o.price)
    assert len(found) == 0
    assert found.difference == 0.0
    with pytest.raises(ScenarioError, match="'spot' has not changed"):
        found["spot"]


def test_errors_teach() -> None:
    o = option()
    with pytest.raises(ScenarioError, match="needs the output whose difference"):
        rg.explain_change({}, {o.spot: 1.0})
    with pytest.raises(ScenarioError, match="a fork keeps a state"):
        rg.explain_change(3, {}, o.price)
    with pytest.raises(ScenarioError, match="is in one of the two graphs only"):
        rg.explain_change(o.graph, rg.Graph(), o.price)
    with pytest.raises(ScenarioError, match="only finite numbers have a difference"):
        rg.explain_change({}, {o.vol: math.nan}, o.price)
    g = rg.Graph()
    x = g.input(0.0, name="x")
    with pytest.raises(ScenarioError, match="one number"):
        rg.explain_change({}, {x: 1.0}, rg.stack([x, x]))


def test_rounding_of_large_numbers_is_said_and_bounded() -> None:
    g = rg.Graph()
    x = g.input(1.0, name="x")
    y = (x + 1e9) - 1e9 + x * x
    found = rg.explain_change({}, {x: 2.0}, y)
    assert found["x"].contribution == pytest.approx(4.0, rel=1e-6)
    assert abs(found.residual) < 1e-12
    assert found.reads < 10_000
    smooth = rg.explain_change({}, {x: 2.0}, y, rtol=1e-5)
    assert smooth.reads == 24
    assert len(smooth) == 1
