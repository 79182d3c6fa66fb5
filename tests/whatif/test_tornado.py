"""``rg.tornado``: a low and a high value of each input alone."""

from __future__ import annotations

import pytest

import reactgrad as rg
from reactgrad.whatif import ScenarioError
from tests.whatif.book import black_scholes, option


def test_swings_of_an_option_are_those_of_the_closed_form() -> None:
    o = option()
    found = rg.tornado(o.price, [o.spot, o.vol], 0.1)
    assert found.base == pytest.approx(black_scholes(100, 0.2))
    assert found["spot"].low == pytest.approx(black_scholes(90, 0.2), rel=1e-12)
    assert found["spot"].high == pytest.approx(black_scholes(110, 0.2), rel=1e-12)
    assert found["vol"].swing == pytest.approx(black_scholes(100, 0.22) - black_scholes(100, 0.18))
    assert [row.input for row in found] == ["spot", "vol"]
    assert [row.input for row in rg.tornado(o.price)] == ["spot", "vol", "years", "rate"]


def test_each_input_runs_its_own_nodes_twice_and_the_graph_is_untouched() -> None:
    g = rg.Graph()
    calls = {"a": 0, "b": 0}

    def counted(name: str):
        def f(x: float) -> float:
            calls[name] += 1
            return x * 2.0

        return rg.lift(f)

    a, b = g.input(1.0, name="a"), g.input(2.0, name="b")
    y = counted("a")(a) + counted("b")(b)
    y.value
    calls.update(a=0, b=0)
    before = y.value_version, len(g)
    assert [row.swing for row in rg.tornado(y, {a: (0.0, 5.0), b: 0.5})] == [10.0, 4.0]
    assert calls == {"a": 2, "b": 2}
    assert (y.value_version, len(g)) == before
    assert not y.is_stale


def test_arrays_move_as_a_whole() -> None:
    g = rg.Graph()
    w = g.input([1.0, -2.0], name="w")
    row = rg.tornado((w * w).sum(), [w], 0.5)[0]
    assert (row.low, row.high) == (0.25 + 9.0, 2.25 + 1.0)


def test_a_plot() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    o = option()
    ax = rg.tornado(o.price).plot()
    assert [text.get_text().split()[0] for text in ax.get_yticklabels()] == [
        "spot",
        "vol",
        "years",
        "rate",
    ]
    assert len(ax.patches) == 8
    from matplotlib import pyplot

    pyplot.close(ax.figure)


def test_a_table_of_pandas() -> None:
    pytest.importorskip("pandas")
    assert list(rg.tornado(option().price).to_pandas().index) == ["spot", "vol", "years", "rate"]


def test_errors_teach() -> None:
    g = rg.Graph()
    x, zero, n = g.input([1.0, 2.0], name="x"), g.input(0.0, name="zero"), g.input(3, name="n")
    y = x.sum() + zero + n
    with pytest.raises(ScenarioError, match=r"has the shape \(2,\)"):
        rg.tornado(x * 2.0, [x])
    with pytest.raises(ScenarioError, match="'zero' is 0, and a part of 0 is no change"):
        rg.tornado(y, [zero])
    with pytest.raises(ScenarioError, match="'n' is no float"):
        rg.tornado(y, [n])
    assert rg.tornado(y, {n: (1, 5)})["n"].swing == 4.0
    with pytest.raises(ScenarioError, match="has 3 values"):
        rg.tornado(y, {n: (1, 2, 5)})
    with pytest.raises(ScenarioError, match="has the amount -1"):
        rg.tornado(y, [x], -1)
    with pytest.raises(ScenarioError, match="there is no row 'q'"):
        rg.tornado(y, [x])["q"]
