"""``rg.scenarios``: grids and lists, on one fork; what ran, what is kept, what is refused."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.whatif import ScenarioError
from tests.whatif.book import black_scholes, greeks, option

SPOTS, VOLS = [80.0, 100.0, 125.0], [0.1, 0.2, 0.3, 0.4]


@pytest.mark.parametrize("batch", [False, None])
def test_a_grid_of_an_option_is_its_closed_form(batch: bool | None) -> None:
    o = option()
    found = rg.scenarios(o.price, {o.spot: SPOTS, "vol": VOLS}, gradients=True, batch=batch)
    assert found.shape == (3, 4)
    assert found.inputs == ("spot", "vol")
    assert found.complete
    expected = [[black_scholes(s, v) for v in VOLS] for s in SPOTS]
    np.testing.assert_allclose(found[o.price], expected, rtol=1e-12)
    for x in ("spot", "vol"):
        slopes = [[greeks(s, v)[x] for v in VOLS] for s in SPOTS]
        np.testing.assert_allclose(found.grad("price", x), slopes, rtol=1e-10)


def test_values_are_those_of_sets_and_reads_bit_for_bit() -> None:
    o = option()
    found = rg.scenarios(o.price, {o.spot: SPOTS, o.vol: VOLS}, batch=False)
    for i, s in enumerate(SPOTS):
        for j, v in enumerate(VOLS):
            with o.graph.whatif({o.spot: s, o.vol: v}) as fork:
                assert fork[o.price].value == found[o.price][i, j]


def test_the_graph_is_as_it_was() -> None:
    o = option()
    before = len(o.graph), o.spot.value_version, o.price.state
    rg.scenarios(o.price, {o.spot: SPOTS}, gradients=True)
    assert (len(o.graph), o.spot.value_version, o.price.state) == before
    assert o.spot.value == 100.0
    o.graph.check_invariants()


def test_a_point_runs_what_differs_from_the_one_before() -> None:
    g = rg.Graph()
    calls = {"slow": 0, "fast": 0}

    def counted(name: str):
        def f(x: float) -> float:
            calls[name] += 1
            return x + 1.0

        return rg.lift(f)

    a, b, c = g.input(1.0, name="a"), g.input(2.0, name="b"), g.input(3.0, name="c")
    slow, fast = counted("slow")(a), counted("fast")(b)
    untouched = rg.exp(c)
    total = slow + fast + untouched
    total.value
    versions = untouched.value_version
    # `fast` changes fastest, also where the caller names it first.
    long = rg.tanh(rg.tanh(rg.tanh(slow))) + total
    calls.update(slow=0, fast=0)
    long.value
    rg.scenarios(long, {b: [5.0, 6.0, 7.0], a: [10.0, 20.0]})
    assert calls["slow"] <= 2 + 1
    assert calls["fast"] <= 6 + 1
    assert untouched.value_version == versions


def test_lists_named_scenarios_and_columns() -> None:
    o = option()
    listed = rg.scenarios(o.price, [{}, {o.spot: 80.0}, {"vol": 0.4}, {}])
    assert listed[o.price].tolist() == pytest.approx(
        [
            black_scholes(100, 0.2),
            black_scholes(80, 0.2),
            black_scholes(100, 0.4),
            black_scholes(100, 0.2),
        ]
    )
    named = rg.scenarios({"value": o.price}, {"base": {}, "crash": {o.spot: 60.0}})
    assert named.outputs == ("value",)
    assert named.columns()["scenario"] == ["base", "crash"]
    assert named.column(o.spot) == [100.0, 60.0]
    pairs = rg.scenarios(o.price, {o.spot: SPOTS, o.vol: VOLS[:3]}, product=False)
    assert pairs.shape == (3,)
    assert pairs[o.price][2] == pytest.approx(black_scholes(125, 0.3))


def test_several_outputs_and_arrays() -> None:
    g = rg.Graph()
    x, w = g.input(2.0, name="x"), g.input([1.0, 2.0], name="w")
    y = x * w
    total = y.sum()
    found = rg.scenarios([y, total], {x: [1.0, 3.0], w: [[1.0, 1.0], [0.0, 5.0]]})
    assert found[y].shape == (2, 2, 2)
    assert found[total].tolist() == [[2.0, 5.0], [6.0, 15.0]]
    text = str(found)
    assert text.startswith("4 scenarios")


def test_values_of_any_kind() -> None:
    g = rg.Graph()
    word, n = g.input("ab", name="word"), g.input(2, name="n")
    y = rg.lift(lambda w, k: w * k)(word, n)
    y.name = "y"
    found = rg.scenarios(y, {word: ["x", "yz"], n: [1, 2]})
    assert found[y].tolist() == [["x", "xx"], ["yz", "yzyz"]]


@pytest.mark.parametrize("workers", [2, rg.Threads(3)])
def test_workers_give_the_same_bits(workers: int | rg.Threads) -> None:
    o = option()
    values = {o.spot: np.linspace(80, 120, 17), o.vol: VOLS}
    one = rg.scenarios(o.price, values, gradients=True, batch=False)
    many = rg.scenarios(o.price, values, gradients=True, batch=False, workers=workers)
    assert (one[o.price] == many[o.price]).all()
    assert (one.grad(o.price, o.vol) == many.grad(o.price, o.vol)).all()


def test_workers_run_side_by_side() -> None:
    g = rg.Graph()
    x = g.input(0.0, name="x")
    meeting = threading.Barrier(2, timeout=20)
    y = rg.lift(lambda v: (meeting.wait(), v)[1])(x)
    found = rg.scenarios(y, {x: [1.0, 2.0, 3.0, 4.0]}, workers=2)
    assert found[y].tolist() == [1.0, 2.0, 3.0, 4.0]


def test_ctrl_c_keeps_what_is_done_and_resume_goes_on() -> None:
    g = rg.Graph()
    x = g.input(0.0, name="x")
    seen: list[float] = []

    def f(v: float) -> float:
        seen.append(v)
        if len(seen) == 4:
            raise KeyboardInterrupt
        return v * 2.0

    y = rg.lift(f)(x)
    y.name = "y"
    found = rg.scenarios(y, {x: [1.0, 2.0, 3.0, 4.0, 5.0]})
    assert not found.complete
    assert found.done == 3
    assert found[y][:3].tolist() == [2.0, 4.0, 6.0]
    assert np.isnan(found[y][3:]).all()
    assert "3 of them done: resume()" in str(found)
    assert found.resume().complete
    assert found[y].tolist() == [2.0, 4.0, 6.0, 8.0, 10.0]
    assert seen == [1.0, 2.0, 3.0, 4.0, 4.0, 5.0]


@pytest.mark.parametrize("workers", [1, 2])
def test_errors_name_the_scenario_or_are_kept(workers: int) -> None:
    g = rg.Graph()
    x = g.input(1.0, name="x")
    y = rg.lift(lambda v: 1.0 / v)(x)
    with pytest.raises(ZeroDivisionError) as caught:
        rg.scenarios(y, {x: [1.0, 0.0, 2.0]}, workers=workers)
    assert any("in scenario 1: x = 0.0" in note for note in caught.value.__notes__)
    kept = rg.scenarios(y, {x: [1.0, 0.0, 2.0]}, errors="keep", workers=workers)
    assert kept.complete
    assert list(kept.errors) == [1]
    assert isinstance(kept.errors[1], ZeroDivisionError)
    np.testing.assert_equal(kept[y], [1.0, np.nan, 0.5])


def test_a_table_of_pandas_goes_in_and_comes_out() -> None:
    pd = pytest.importorskip("pandas")
    o = option()
    table = pd.DataFrame({"spot": SPOTS, "vol": VOLS[:3]}, index=["low", "mid", "high"])
    frame = rg.scenarios(o.price, table, gradients=[o.spot]).to_pandas()
    assert list(frame.columns) == ["spot", "vol", "price", "d(price)/d(spot)"]
    assert list(frame.index) == ["low", "mid", "high"]
    assert frame.loc["high", "price"] == pytest.approx(black_scholes(125, 0.3))
    square = rg.scenarios(o.price, {o.spot: SPOTS, o.vol: VOLS}).to_pandas(index=True)
    assert square["price"].unstack().shape == (3, 4)


REFUSED = {
    "no nodes: give a Var": lambda o: rg.scenarios("price", {o.spot: [1.0]}),
    "computed from others, so it cannot take": lambda o: rg.scenarios(o.price, {o.price: [1.0]}),
    "one value: write the values to try as a list": lambda o: rg.scenarios(o.price, {o.spot: 1.0}),
    "have different numbers of values \\(spot: 1, vol: 2\\)": lambda o: rg.scenarios(
        o.price, {o.spot: [1.0], o.vol: [0.1, 0.2]}, product=False
    ),
    "'spot' is given twice": lambda o: rg.scenarios(o.price, {o.spot: [1.0], "spot": [2.0]}),
    "Write a grid": lambda o: rg.scenarios(o.price, 3.0),
    "points, more than": lambda o: rg.scenarios(
        o.price, {o.spot: np.ones(100_000), o.vol: np.ones(100_000)}
    ),
    "workers=0": lambda o: rg.scenarios(o.price, {o.spot: [1.0]}, workers=0),
    "errors='no'": lambda o: rg.scenarios(o.price, {o.spot: [1.0]}, errors="no"),
    "was not computed \\(there is: none\\)": lambda o: rg.scenarios(o.price, {o.spot: [1.0]}).grad(
        o.price, o.spot
    ),
}


@pytest.mark.parametrize("text", REFUSED)
def test_errors_teach(text: str) -> None:
    with pytest.raises(ScenarioError, match=text):
        REFUSED[text](option())


def test_gradients_are_of_one_number_by_floats() -> None:
    g = rg.Graph()
    x, n = g.input([1.0, 2.0], name="x"), g.input(2, name="n")
    with pytest.raises(ScenarioError, match="one number: reduce it"):
        rg.scenarios(x * 2.0, {x: [[1.0, 2.0]]}, gradients=True)
    with pytest.raises(ScenarioError, match="'n' has no gradient: it is no float"):
        rg.scenarios((x * n).sum(), {n: [1]}, gradients=[n])
    found = rg.scenarios((x * n).sum(), {n: [1, 2]}, gradients=[x])
    assert found.grad(found.outputs[0], x).tolist() == [[1.0, 1.0], [2.0, 2.0]]


def test_an_input_without_a_value() -> None:
    g = rg.Graph()
    x = g.input(shape=(), dtype="float64", name="x")
    y = x * 2.0
    assert rg.scenarios(y, {x: [1.0, 2.0]})[y].tolist() == [2.0, 4.0]
    with pytest.raises(ScenarioError, match="'x' has no value in the graph, and scenario 1"):
        rg.scenarios(y, [{x: 1.0}, {}])


def test_no_scenarios() -> None:
    o = option()
    found = rg.scenarios(o.price, {o.spot: []})
    assert found[o.price].shape == (0,)
    assert str(found).startswith("0 scenarios")


def test_a_bar_counts_points(capsys: pytest.CaptureFixture[str]) -> None:
    o = option()
    rg.scenarios(o.price, {o.spot: SPOTS}, progress=True)
    assert "scenarios: 100%" in capsys.readouterr().err
    rg.scenarios(o.price, {o.spot: SPOTS}, progress=True, workers=2)
    assert "100%" in capsys.readouterr().err
    rg.scenarios(o.price, {o.spot: SPOTS})
    assert not capsys.readouterr().err  # no terminal, so no bar


def test_ctrl_c_in_workers_keeps_what_is_done() -> None:
    g = rg.Graph()
    x = g.input(0.0, name="x")
    seen: list[float] = []

    def f(v: float) -> float:
        seen.append(v)
        if len(seen) == 20:
            raise KeyboardInterrupt
        return v * 2.0

    y = rg.lift(f)(x)
    found = rg.scenarios({"y": y}, {x: [float(i) for i in range(60)]}, workers=2)
    assert 0 < found.done < 60
    assert found.resume().complete
    assert found["y"].tolist() == [2.0 * i for i in range(60)]
