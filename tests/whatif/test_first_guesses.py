"""What one writes first where a what-if question is asked otherwise: it works, or the error says how to ask it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg


@pytest.fixture
def model() -> tuple[rg.Graph, Any, Any]:
    g = rg.Graph()
    growth = g.input([0.1, 0.2], name="growth")
    rate = g.input(0.05, name="rate")
    y = (growth * 10.0).sum() / rate
    y.name = "y"
    return g, growth, y


def test_an_amount_in_the_place_of_inputs(model: Any) -> None:
    with pytest.raises(ValueError, match=r"write tornado\(y, .*amount=0\.1\)"):
        rg.tornado(model[2], 0.1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"write tornado\(y, \[x\]\)"):
        rg.tornado(model[2], "rate")


def test_an_element_of_an_input_is_no_input(model: Any) -> None:
    _, growth, y = model
    with pytest.raises(ValueError, match=r"is a part of 'growth'.*rg\.stack"):
        rg.scenarios(y, {growth[0]: [0.1, 0.2]})
    with pytest.raises(ValueError, match=r"is computed from others"):
        rg.scenarios(y, {growth * 2.0: [0.1, 0.2]})


def test_units_by_name(model: Any) -> None:
    found = rg.sensitivities(model[2], ["rate"], units={"rate": "bp"})
    assert found["rate"].unit == 0.0001
    assert found["rate"].unit_name == "bp"
    assert found["rate"].effect == pytest.approx(-3.0 / 0.05**2 * 0.0001)
    for wrong in ("cent", ("a", "b"), True):
        with pytest.raises(ValueError, match="unit of 'rate'"):
            rg.sensitivities(model[2], units={"rate": wrong})


def test_an_array_has_a_row_for_each_element(model: Any) -> None:
    with pytest.raises(ValueError, match=r"Rows of its elements are growth\[0\], growth\[1\]\.$"):
        rg.sensitivities(model[2])["growth"]


def test_one_output_need_not_be_named(model: Any) -> None:
    y = model[2]
    found = rg.monte_carlo(y, {"rate": ("uniform", 0.04, 0.06)}, 200, seed=1)
    assert found.mean() == found.mean(y)
    assert found.std() == found.std(y)
    assert found.standard_error() == found.standard_error("y")
    assert np.array_equal(found.percentile(q=[5, 50]), found.percentile(y, [5, 50]))
    two = rg.monte_carlo([y, y * 2.0], {"rate": ("uniform", 0.04, 0.06)}, 10, seed=1)
    with pytest.raises(ValueError, match="several outputs"):
        two.mean()


def test_draws_are_drawn(model: Any) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot

    _, _, y = model
    found = rg.monte_carlo(y, {"rate": ("uniform", 0.04, 0.06)}, 500, seed=1)
    ax = rg.plot.histogram(found, bins=20)
    assert sum(bar.get_height() for bar in ax.patches) == 500
    middle = ax.lines[1].get_xdata()[0]
    assert middle == pytest.approx(found.percentile(y, 50))
    assert ax.get_xlabel().startswith("y, mean ")
    assert found.plot(ax=ax) is ax
    with pytest.raises(ValueError, match=r"histogram was given Var"):
        rg.plot.histogram(y)  # type: ignore[arg-type]
    pyplot.close("all")


def test_a_ladder_has_one_number_on_each_axis(model: Any) -> None:
    pytest.importorskip("matplotlib")
    _, growth, y = model
    with pytest.raises(
        ValueError, match=r"x is an input of one number, and 'growth' has the shape \(2,\)"
    ):
        rg.plot.ladder(y, growth, [1.0, 2.0])
    with pytest.raises(ValueError, match=r"y is one number, and .* has the shape \(2,\)"):
        rg.plot.ladder(growth * 2.0, "rate", [1.0, 2.0])
