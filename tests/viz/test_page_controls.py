"""Fields of inputs in the page: they stand where their values are."""

from __future__ import annotations

from typing import Any

import pytest

import reactgrad as rg
from reactgrad.explain._snapshot import key_of
from tests.viz.browser import need
from tests.viz.live import live

need("pygraphviz")

pytestmark = pytest.mark.slow  # a browser has to start

VALUES = {"rate": 0.03, "share": 0.31, "tiny": 2.5e-7, "below": -0.004, "big": 7.25e6, "n": 3}


def test_sliders_stand_where_their_values_are(chromium_page: Any) -> None:
    g = rg.Graph()
    leaves = [g.input(value, name=name) for name, value in VALUES.items()]
    total = rg.stack([leaf * 1.0 for leaf in leaves]).sum()
    g.forward(total)
    bounds = {g["share"]: (0.25, 0.5)}
    with live(chromium_page, g, bounds=bounds) as seen:
        for name, value in VALUES.items():
            slider = seen.page.get_by_label(name, exact=True)
            low, high = (float(slider.get_attribute(end)) for end in ("min", "max"))
            step = float(slider.get_attribute("step"))
            assert float(slider.input_value()) == pytest.approx(value, abs=step / 2 + 1e-12)
            assert abs(float(slider.input_value()) - value) <= (high - low) / 400
            field = seen.page.get_by_label(f"{name}, as a number")
            assert float(field.input_value()) == value


def test_a_moved_slider_shows_what_ran_and_no_preview(chromium_page: Any) -> None:
    g = rg.Graph()
    x = g.input(1.0, name="x")
    positive = rg.lift(lambda v: v > 0, cutoff="equal")(x)
    y = rg.lift(lambda yes, v: v if yes else -v)(positive, x)
    g.forward(y)
    with live(chromium_page, g) as seen:
        slider = seen.page.get_by_label("x", exact=True)
        seen.page.locator(".rg-control").hover()
        seen.until(lambda: "a change of x" in seen.text(".rg-preview"))
        hint, legend = (
            seen.page.locator(css).bounding_box() for css in (".rg-preview", ".rg-legend")
        )
        assert hint["y"] + hint["height"] <= legend["y"] + 1, "the legend stays readable"
        slider.focus()
        slider.fill("0.5")
        seen.until(lambda: seen.keys("cut_off") == {key_of(g, positive)})
        assert seen.keys("ran") == {key_of(g, y)}
        assert seen.keys("rg-plan") == set()
        assert seen.text(".rg-preview") == ""
        assert "cut off" in seen.box(key_of(g, positive)).text_content()
        assert "ran" in seen.box(key_of(g, y)).text_content()
