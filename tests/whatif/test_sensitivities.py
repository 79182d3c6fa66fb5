"""``rg.sensitivities``: gradients ranked, in the units of the caller, live, in one read."""

from __future__ import annotations

import pytest

import reactgrad as rg
from reactgrad.whatif import ScenarioError
from tests.whatif.book import greeks, option


def test_they_are_the_greeks_ranked() -> None:
    o = option()
    found = rg.sensitivities(o.price, units={o.vol: (0.01, "point"), "rate": (0.0001, "bp")})
    expected = greeks(100.0, 0.2)
    for name, slope in expected.items():
        assert found[name].gradient == pytest.approx(slope, rel=1e-10)
    assert found["vol"].effect == pytest.approx(expected["vol"] * 0.01)
    assert found["rate"].unit_name == "bp"
    assert found["spot"].percent == pytest.approx(expected["spot"])
    assert [row.input for row in found] == ["years", "spot", "vol", "rate"]
    assert rg.sensitivities(o.price, by="percent")[0].input == "spot"
    assert [row.input for row in rg.sensitivities(o.price, by="gradient", top=2)] == ["rate", "vol"]
    assert "0.01 point" in str(found)


def test_they_are_live_and_read_in_one_run_of_what_is_stale() -> None:
    g = rg.Graph()
    a, b, c = (g.input(v, name=n) for v, n in ((2.0, "a"), (3.0, "b"), (0.5, "c")))
    y = a * b + rg.sin(c)
    found = rg.sensitivities(y)
    with g.record() as log:
        assert found["a"].gradient == 3.0
    assert len(log.runs) == 1
    with g.record() as log:
        found.rows
    assert not log.calls  # all clean
    a.set(5.0)
    with g.record() as log:
        assert found["b"].gradient == 5.0
    assert not any(call.op == "cos" for call in log.calls)


def test_the_nodes_are_those_of_grad() -> None:
    o = option()
    slope = rg.grad(o.price, [o.spot, o.vol, o.rate, o.years])
    before = len(o.graph)
    found = rg.sensitivities(o.price)
    found.rows
    assert all(a is b for a, b in zip(found.gradients, slope))
    assert len(o.graph) == before


def test_arrays_have_a_row_an_element() -> None:
    g = rg.Graph()
    w = g.input([[1.0, 2.0], [3.0, 4.0]], name="w")
    found = rg.sensitivities((w * w).sum(), top=2)
    assert [(row.input, row.gradient) for row in found] == [("w[1, 1]", 8.0), ("w[1, 0]", 6.0)]


def test_an_input_that_only_the_other_branch_uses_is_there() -> None:
    g = rg.Graph()
    a, b = g.input(1.0, name="a"), g.input(2.0, name="b")
    y = rg.switch(a > 0.0, a * 3.0, b * 5.0)
    y.value
    assert {row.input: row.gradient for row in rg.sensitivities(y)} == {"a": 3.0, "b": 0.0}


def test_a_table_of_pandas() -> None:
    pytest.importorskip("pandas")
    frame = rg.sensitivities(option().price).to_pandas()
    assert list(frame.columns) == ["value", "gradient", "unit", "effect", "percent"]
    assert frame.loc["spot", "gradient"] == pytest.approx(greeks(100, 0.2)["spot"])


def test_errors_teach() -> None:
    g = rg.Graph()
    x, n = g.input([1.0, 2.0], name="x"), g.input(3, name="n")
    with pytest.raises(ScenarioError, match=r"has the shape \(2,\). Reduce it"):
        rg.sensitivities(x * 2.0)
    with pytest.raises(ScenarioError, match="'n' has no gradient: it is no float"):
        rg.sensitivities((x * n).sum(), [n])
    with pytest.raises(ScenarioError, match="by='size'"):
        rg.sensitivities(x.sum(), by="size")
    with pytest.raises(ScenarioError, match="top=0"):
        rg.sensitivities(x.sum(), top=0)
    with pytest.raises(ScenarioError, match="there is no row 'z'"):
        rg.sensitivities(x.sum())["z"]
