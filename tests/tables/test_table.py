"""``rg.Table``: a DataFrame in and out, keys kept, columns live."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

pd = pytest.importorskip("pandas")


def frame() -> Any:
    return pd.DataFrame(
        {
            "ticker": ["AAPL", "MSFT", "AAPL"],
            "units": [10, 20, 30],
            "price": [1.5, 2.5, 3.5],
            "open": [True, False, True],
            "date": pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-03"]),
        },
        index=["a", "b", "c"],
    )


def test_a_frame_goes_in_and_comes_out() -> None:
    t = rg.Table(frame())
    pd.testing.assert_frame_equal(t.to_pandas(), frame())
    assert t.columns == ("ticker", "units", "price", "open", "date")
    assert t.labels == ("ticker", "date")
    assert list(t.inputs) == ["units", "price", "open"]
    assert t["price"] is t.graph["price"]
    assert len(t) == 3


@pytest.mark.parametrize(
    "series",
    [
        pd.Series([1, None, 3], dtype="Int64"),
        pd.Series([1.0, None], dtype="Float64"),
        pd.Series([1, 2], dtype="int8"),
        pd.Series([1.0, np.nan], dtype="float32"),
        pd.Series(["x", "y"], dtype="category"),
        pd.Series(["x", None]),
        pd.Series([True, None], dtype="boolean"),
        pd.to_datetime(pd.Series(["2024-01-01", None])),
        pd.Series([{"a": 1}, [2]], dtype=object),
    ],
    ids=lambda s: str(s.dtype),
)
def test_each_kind_of_column_comes_out_as_it_went_in(series: Any) -> None:
    given = pd.DataFrame({"x": series})
    pd.testing.assert_frame_equal(rg.Table(given).to_pandas(), given)


def test_computed_columns_are_live_and_only_what_is_stale_runs() -> None:
    t = rg.Table(frame())
    t["value"] = t["price"] * t["units"]
    t["root"] = rg.sqrt(t["units"])
    t["rate"] = t.graph.input(0.5)
    assert t.to_pandas()["value"].tolist() == [15.0, 50.0, 105.0]
    assert t.to_pandas()["rate"].tolist() == [0.5] * 3
    t.set({"price": [2.0, 2.0, 2.0]})
    with t.graph.record() as log:
        assert t.to_pandas()["value"].tolist() == [20.0, 40.0, 60.0]
    assert [call.op for call in log.calls] == ["multiply"]
    assert rg.grad(t["value"].sum(), t["price"]).value.tolist() == [10.0, 20.0, 30.0]


def test_rows_are_found_by_keys() -> None:
    t = rg.Table(frame())
    t.set(frame()[["price"]].iloc[::-1] * 10.0)
    assert t["price"].value.tolist() == [15.0, 25.0, 35.0]
    t.set({"price": pd.Series({"c": 3.0, "a": 1.0, "b": 2.0})})
    assert t["price"].value.tolist() == [1.0, 2.0, 3.0]
    t.set_at("b", "price", 9.0)
    assert t["price"].value.tolist() == [1.0, 9.0, 3.0]
    t["factor"] = pd.Series({"b": 2.0, "a": 1.0, "c": 3.0})
    assert t["factor"].value.tolist() == [1.0, 2.0, 3.0]
    t["note"] = ["x", "y", "z"]
    assert t.labels == ("ticker", "date", "note")


def test_one_number_in_a_large_table_computes_its_rows() -> None:
    n = 100_000
    t = rg.Table({"price": np.ones(n), "units": np.arange(n, dtype=float)})
    t["value"] = t["price"] * t["units"]
    t["value"].value
    t.set_at(7, "price", 3.0)
    run = t.graph.forward(t["value"])
    assert sum(stop - start for start, stop in run.rows[t["value"]]) <= 64
    assert t["value"].value[7] == 21.0


def test_lookups_and_groups_are_live() -> None:
    g = rg.Graph()
    quotes = rg.Table(
        pd.DataFrame({"spot": [100.0, 200.0]}, index=["AAPL", "MSFT"]), g, name="quotes"
    )
    book = rg.Table(frame(), g, name="book")
    book["spot"] = quotes.lookup("spot", book["ticker"])
    book["value"] = book["spot"] * book["units"]
    names, totals = book.groups("ticker", "value")
    assert list(names) == ["AAPL", "MSFT"]
    assert totals.value.tolist() == [4000.0, 4000.0]
    assert book.groups("ticker", "value", "mean")[1].value.tolist() == [2000.0, 4000.0]
    quotes.set_at("AAPL", "spot", 110.0)
    assert totals.value.tolist() == [4400.0, 4000.0]
    assert rg.grad(totals[0], quotes["spot"]).value.tolist() == [40.0, 0.0]
    assert g["quotes/spot"] is quotes["spot"]


def test_params_scenarios_and_forks() -> None:
    t = rg.Table({"x": [1.0, 2.0]}, params=["x"])
    loss = (t["x"] ** 2).sum()
    loss.backward()
    assert t["x"].grad.tolist() == [2.0, 4.0]
    found = rg.scenarios(loss, {t["x"]: [[0.0, 0.0], [1.0, 1.0]]})
    assert found[loss].tolist() == [0.0, 2.0]


def test_a_series_times_a_var_is_live() -> None:
    t = rg.Table(frame())
    assert isinstance(pd.Series([1.0, 2.0, 3.0]) * t["price"], rg.Var)
    assert isinstance(t["price"] * pd.Series([1.0, 2.0, 3.0]), rg.Var)


REFUSED: dict[str, Callable[[Any], Any]] = {
    "has other keys than the table: without 'b', 'c'; more 'z'": lambda t: t.set(
        pd.DataFrame({"price": [1.0, 2.0]}, index=["a", "z"])
    ),
    "'a' is there twice": lambda t: t.set(pd.DataFrame({"price": [1.0] * 3}, index=list("aab"))),
    "holds labels": lambda t: t.set({"ticker": ["x", "y", "z"]}),
    "is no column": lambda t: t.set({"none": [1.0] * 3}),
    "'price' has 2 values, and the table 3 rows": lambda t: t.set({"price": [1.0, 2.0]}),
    "holds numbers, and was given other values": lambda t: t.set({"price": ["x"] * 3}),
    "'price' is an input: write t.set": lambda t: t.__setitem__("price", [1.0] * 3),
    "there is no column 'q'": lambda t: t["q"],
    "there is no row 'q'": lambda t: t.row("q"),
    "one value a row": lambda t: t.__setitem__("y", t.graph.input([1.0])),
    "another graph than the table": lambda t: t.__setitem__("y", rg.Graph().input([1.0] * 3)),
    "there are no rows 'zz'": lambda t: t.lookup("price", ["a", "zz"]),
    "holds numbers, which may change": lambda t: t.groups("price", "units"),
    "how='max'": lambda t: t.groups("ticker", "units", "max"),
    "set was given int": lambda t: t.set(3),
}


@pytest.mark.parametrize("text", REFUSED)
def test_errors_teach(text: str) -> None:
    t = rg.Table(frame())
    with pytest.raises(rg.ReactgradError, match=text):
        REFUSED[text](t)
    assert t["price"].value.tolist() == [1.5, 2.5, 3.5]


def test_frames_that_are_none() -> None:
    with pytest.raises(rg.ReactgradError, match="Table was given list"):
        rg.Table([1, 2])
    with pytest.raises(rg.ReactgradError, match="columns of different names"):
        rg.Table(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(rg.ReactgradError, match=r"params=\['q'\]"):
        rg.Table({"a": [1.0]}, params=["q"])


def test_a_dict_sets_the_rows_of_its_keys() -> None:
    t = rg.Table(frame())
    t.set({"price": {"b": 9.0, "a": 8.0}})
    assert t["price"].value.tolist() == [8.0, 9.0, 3.5]
    with pytest.raises(ValueError, match="there is no row 'z'"):
        t.set({"price": {"z": 9.0}})
    assert t["price"].value.tolist() == [8.0, 9.0, 3.5]


def test_integers_take_whole_numbers_only() -> None:
    t = rg.Table(frame())
    t.set_at("a", "units", 11.0)
    assert t["units"].value.tolist() == [11, 20, 30]
    with pytest.raises(ValueError, match=r"'units' holds integers, and 99\.5 is none.*astype"):
        t.set_at("a", "units", 99.5)


def test_a_formula_does_not_take_the_place_of_an_input_that_others_read() -> None:
    t = rg.Table(frame())
    t["sales"] = t["units"] * t["price"]
    with pytest.raises(ValueError, match="'price' is an input: .* would not follow the formula"):
        t["price"] = t["price"] * 1.1
    t["price"] = t["price"]  # the same one
    assert t.to_pandas()["sales"].tolist() == [15.0, 50.0, 105.0]


def test_plain_columns_are_named_after_the_table() -> None:
    t = rg.Table(frame(), name="book")
    t["days"] = [1.0, 2.0, 3.0]
    assert t["days"].name == "book/days"


@pytest.mark.parametrize(
    "pick", [["units", "price"], np.array([True, False, True]), frame()["open"]]
)
def test_a_table_gives_one_column_at_a_time(pick: Any) -> None:
    with pytest.raises(ValueError, match="gives one column at a time"):
        rg.Table(frame())[pick]


def test_columns_stay() -> None:
    t = rg.Table(frame())
    with pytest.raises(ValueError, match="keeps its columns"):
        del t["units"]


def test_table_of_a_fork_is_of_its_nodes() -> None:
    t = rg.Table(frame(), name="book")
    t["worth"] = t["units"] * t["price"]
    with t.graph.whatif({t["price"]: [2.0, 2.0, 2.0]}) as w:
        other = w[t]
        assert other["worth"].graph is w
        assert other.to_pandas()["worth"].tolist() == [20.0, 40.0, 60.0]
        assert other["ticker"].tolist() == ["AAPL", "MSFT", "AAPL"]
        other.set({"price": [1.0, 1.0, 1.0]})
        other["half"] = other["worth"] / 2.0
        assert other.to_pandas()["half"].tolist() == [5.0, 10.0, 15.0]
        assert other.to_pandas().dtypes["units"] == t.to_pandas().dtypes["units"]
    assert "half" not in t
    assert t.to_pandas()["worth"].tolist() == [15.0, 50.0, 105.0]


@pytest.mark.parametrize(
    "make",
    [
        lambda y: pd.DataFrame({"y": y}),
        lambda y: pd.DataFrame(y),
        lambda y: frame().assign(y=y),
        lambda y: frame().mul(y, axis=0),
    ],
)
def test_pandas_that_is_given_a_node_names_the_table(make: Callable[[Any], Any]) -> None:
    y = rg.Graph().input([1.0, 2.0, 3.0], name="y") * 2.0
    with pytest.raises(
        rg.ImplicitValueError, match=r"Write t = rg.Table\(frame\) and t\['name'\] = "
    ):
        make(y)
