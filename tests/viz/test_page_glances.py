"""Values in boxes: an array as a line, an image or a histogram, of the value that the box shows."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.explain._snapshot import key_of, slots_of
from reactgrad.viz._glance import BINS, COLUMNS, LETTERS, POINTS, ROWS, glance, glances
from tests.viz.browser import Seen, need
from tests.viz.live import live
from tests.viz.test_page_story import opened as page_of
from tests.viz.test_session import Page, opened

need("pygraphviz")
__all__ = ["opened"]


def levels(letters: str) -> list[int | None]:
    text = LETTERS.tobytes().decode()
    return [None if letter == " " else text.index(letter) for letter in letters]


def test_a_short_array_is_a_line_of_levels() -> None:
    seen = glance(np.array([0.0, 63.0, np.nan, 21.0, np.inf]))
    assert seen is not None
    assert (seen.kind, seen.wide) == ("line", 5)
    assert levels(seen.letters) == [0, 63, None, 21, None]
    assert seen.norm == 0.0, "it is no number"
    flat = glance(np.full(3, 7.0))
    assert flat is not None
    assert len(set(flat.letters)) == 1
    assert flat.norm == pytest.approx(7.0 * math.sqrt(3), rel=1e-3)


def test_an_array_of_two_axes_is_an_image_and_a_large_one_a_histogram() -> None:
    image = glance(np.arange(200.0 * 300).reshape(200, 300)[:100, :150])
    assert image is not None
    assert image.kind == "image"
    assert image.wide <= COLUMNS
    assert len(image.letters) % image.wide == 0
    assert len(image.letters) // image.wide <= ROWS
    assert levels(image.letters)[0] == 0
    for large in (np.random.default_rng(0).normal(size=200_000), np.zeros((2, 3, 4))):
        bins = glance(large)
        assert bins is not None
        assert (bins.kind, len(bins.letters)) == ("bins", BINS)
    top = levels(glance(np.r_[np.zeros(20_000), np.ones(10_000)]).letters)  # type: ignore[union-attr]
    assert (top[0], top[-1]) == (63, pytest.approx(31, abs=2))
    long = glance(np.arange(10_000))
    assert long is not None
    assert len(long.letters) <= POINTS


@pytest.mark.parametrize(
    "other",
    [1.0, "text", None, np.float64(3), np.array(2.0), np.array([1.0]), np.array(["a", "b"])],
)
def test_what_is_no_array_has_none(other: Any) -> None:
    assert glance(other) is None


def test_colours_are_an_image() -> None:
    photo = np.zeros((4, 5, 3), np.uint8)
    photo[0, 0] = 255
    seen = glance(photo)
    assert seen is not None
    assert (seen.kind, seen.wide) == ("image", 5)
    assert levels(seen.letters) == [63] + [0] * 19


def test_values_that_are_too_wide_or_no_numbers_raise_nothing() -> None:
    for odd in ([-1.7e308, 1.7e308], [np.nan, np.nan], [np.inf, -np.inf], [2**63 - 1, -(2**63)]):
        for value in (np.array(odd), np.array(odd * 20_000), np.array([odd, odd])):
            seen = glance(value)
            assert seen is not None
            assert math.isfinite(seen.norm)
            assert len(seen.letters) % seen.wide == 0
    wide = glance(np.array([-1.7e308, 0.0, 1.7e308]))
    assert wide is not None
    assert levels(wide.letters) == [0, 32, 63]


def test_glances_run_nothing_and_leave_stale_nodes_out() -> None:
    g = rg.Graph()
    x = g.input(np.arange(4.0), name="x")
    y, z = x * 2.0, x * 3.0
    y.value
    keys = [key_of(g, var) for var in (x, y, z)]
    before = g._scheduler.last_run
    found = glances(g, slots_of(g, keys))
    assert set(found) == {str(keys[0]), str(keys[1])}
    assert found[str(keys[1])][:3] == [1, "line", found[str(keys[1])][2]]
    assert z.is_stale
    assert g._scheduler.last_run is before


def test_frames_carry_what_is_in_sight_and_nothing_else(opened: Any) -> None:
    g = rg.Graph()
    x = g.input(1.0, name="x")
    y, z = np.arange(4.0) * x, np.arange(5.0) * x
    g.forward(y, z)
    page: Page = opened(g)
    page.session.receive({"kind": "sight", "keys": [key_of(g, y)]})
    first = page.wait_for("glances")
    assert set(first["found"]) == {str(key_of(g, y))}
    page.set(x, 2.0)
    frame = page.wait_for("frame", lambda told: told["runs"])
    assert set(frame["glances"]) == {str(key_of(g, y))}
    assert frame["glances"][str(key_of(g, y))][0] == frame["states"][str(key_of(g, y))][2]


def drawn(seen: Seen, key: int) -> str | None:
    """The path of a box's drawing."""
    script = "b => b.querySelector('.rg-thumb path')?.getAttribute('d') ?? null"
    return seen.box(key).evaluate(script)


@pytest.mark.slow
def test_boxes_draw_arrays_and_follow_their_values(chromium_page: Any) -> None:
    g = rg.Graph()
    x, c = g.input(np.array([0.0, 1.0, 0.0]), name="x"), g.input(1.0, name="c")
    image = g.input(np.eye(6), name="image")
    large = g.input(np.random.default_rng(1).normal(size=(20, 30, 40)), name="large")
    y = x * c + (image.sum() + large.sum()) * 0.0
    y.name = "y"
    g.forward(y)
    with live(chromium_page, g) as seen:
        kinds = {x: "line", image: "image", large: "bins", y: "line"}
        for var, kind in kinds.items():
            box = seen.box(key_of(g, var))
            seen.until(lambda box=box, kind=kind: box.locator(f".rg-thumb-{kind}").count() == 1)
            text, shape = (
                box.locator(".rg-row1").bounding_box(),
                box.locator(".rg-thumb").bounding_box(),
            )
            assert text["x"] + text["width"] <= shape["x"], "the text ends before the drawing"
            outer = box.locator(".rg-shape").bounding_box()
            assert outer["x"] <= text["x"]
            assert shape["x"] + shape["width"] <= outer["x"] + outer["width"]
        assert seen.box(key_of(g, c)).locator(".rg-thumb").count() == 0
        assert seen.box(key_of(g, large)).locator(".rg-row1").text_content().startswith("20×30×40")
        assert drawn(seen, key_of(g, y)) == "M0.0 16.0L27.0 0.0L54.0 16.0"
        seen.page.get_by_label("c, as a number").fill("-1")
        seen.until(lambda: drawn(seen, key_of(g, y)) == "M0.0 0.0L27.0 16.0L54.0 0.0")


@pytest.mark.slow
def test_an_exported_page_draws_a_value_only_in_runs_that_had_it(
    chromium_page: Any, tmp_path: Path
) -> None:
    g = rg.Graph()
    x, c = g.input(np.array([0.0, 1.0, 0.0]), name="x"), g.input(1.0, name="c")
    y = x * c
    y.name = "y"
    with g.record(snapshots=True) as log:
        y.value
        c.set(2.0)
        y.value
    g.export_html(tmp_path / "page.html", log)
    seen = page_of(chromium_page, tmp_path / "page.html")
    seen.scrub(1)
    seen.until(lambda: drawn(seen, key_of(g, y)) is not None)
    seen.scrub(0)
    seen.until(lambda: drawn(seen, key_of(g, y)) is None)
    assert drawn(seen, key_of(g, x)) is not None
    assert seen.complaints == []


def test_a_card_draws_its_array() -> None:
    g = rg.Graph()
    for value, part in (
        (np.arange(5.0), "a line"),
        (np.eye(3), "an image"),
        (np.zeros((2, 3, 4)), "a histogram"),
    ):
        text = g.input(value)._repr_html_()
        assert f'aria-label="values as {part}"' in text
    assert "<svg" not in g.input(1.0)._repr_html_()
