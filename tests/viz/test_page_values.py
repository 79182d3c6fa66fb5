"""Values one can look at: arrays as lines, images, histograms, and tables with pages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.explain._snapshot import key_of
from reactgrad.viz._figures import figures, table
from tests.viz.browser import need
from tests.viz.live import live

need("pygraphviz")


def test_figures_of_arrays() -> None:
    line = figures(np.array([1.0, np.nan, 3.0]))
    assert line is not None
    assert (line["low"], line["high"], line["bad"]) == (1.0, 3.0, 1)
    assert line["line"] == [1.0, None, 3.0]
    assert sum(line["bins"]) == 2
    long = figures(np.arange(10_000))
    assert long is not None
    assert len(long["line"]) <= 120
    image = figures(np.zeros((300, 200)))
    assert image is not None
    assert (len(image["image"]), len(image["image"][0])) == (43, 40)
    colour = figures(np.full((2, 2, 4), 7, np.uint8))
    assert colour is not None
    assert colour["image"] == [[[7, 7, 7]] * 2] * 2
    for other in (1.0, "text", np.array(["a", "b"]), np.array([np.nan, np.inf]), np.float64(2)):
        assert figures(other) is None
    assert figures(np.array([-1.7e308, 1.7e308])) is not None


def test_pages_of_tables() -> None:
    page = table(np.arange(100.0).reshape(50, 2), 40)
    assert page is not None
    assert (page["start"], page["total"], page["wide"], len(page["rows"])) == (40, 50, 2, 10)
    assert page["rows"][0] == ["80.0", "81.0"]
    assert table(3.0, 0) is None
    last = table(np.arange(5), 900)
    assert last is not None
    assert last["start"] == 4
    right = table(np.arange(100.0).reshape(2, 50), 0, 47)
    assert right is not None
    assert (right["left"], right["wide"], right["rows"][0]) == (47, 50, ["47.0", "48.0", "49.0"])
    assert table(np.zeros((3, 0)), 0, 5) == {
        "start": 0,
        "left": 0,
        "total": 3,
        "wide": 0,
        "rows": [[], [], []],
    }


@pytest.mark.slow
def test_the_panel_draws_an_array_and_pages_through_it(chromium_page: Any) -> None:
    g = rg.Graph()
    x = g.input(np.linspace(0.0, 1.0, 50), name="x")
    y = rg.tanh(x)
    y.name = "y"
    picture = rg.lift(lambda v: np.outer(v, v))(x)
    picture.name = "picture"
    g.forward(y, picture)
    with live(chromium_page, g) as seen:
        seen.box(key_of(g, y)).click()
        seen.until(lambda: seen.page.locator(".rg-spark path").count() == 1)
        assert seen.page.locator(".rg-histogram rect").count() == 24
        assert "50: from 0 to 0.761594" in seen.text("figcaption")
        seen.page.get_by_role("button", name="as a table").click()
        seen.until(lambda: "rows 0 to 19 of 50" in seen.text(".rg-table"))
        seen.page.get_by_label("next rows").click()
        seen.until(lambda: "rows 20 to 39 of 50" in seen.text(".rg-table"))
        cell = seen.page.locator(".rg-table tr").nth(0).locator("td").inner_text()
        assert float(cell) == y.value[20]
        seen.box(key_of(g, picture)).click()
        seen.until(lambda: seen.page.locator("canvas.rg-image").count() == 1)
        pixels = seen.page.locator("canvas.rg-image").evaluate(
            "c => [...c.getContext('2d').getImageData(c.width - 1, c.height - 1, 1, 1).data]"
        )
        assert pixels[0] > 200


# The cells that are not in sight as a whole; and the texts of those that are, with the words of the pages.
CUT = """table => {
  const box = table.getBoundingClientRect();
  const inside = (one) => {
    const { left, right } = one.getBoundingClientRect();
    return left >= box.left && right <= box.right + 0.5;
  };
  return [...table.querySelectorAll("td, th, button")].filter(one => !inside(one)).length;
}"""


# The numbers of a row: what a cell shows in six digits, it says whole where the pointer rests.
WHOLE = """row => [...row.querySelectorAll("td")].map(one => {
  const six = text => Number(text.replaceAll(",", "")).toPrecision(6);
  const shown = one.innerText, whole = one.title || shown;
  if (six(whole) !== six(shown)) throw new Error(`${whole} is shown as ${shown}`);
  return whole;
})"""


@pytest.mark.slow
@pytest.mark.parametrize("size", [(1400, 900), (800, 900)])
def test_a_table_shows_every_column_and_whole_numbers_at_least_on_hover(
    chromium_page: Any, size: tuple[int, int]
) -> None:
    g = rg.Graph()
    rng = np.random.default_rng(0)
    x = g.input(rng.normal(size=(50, 30)) * 10.0 ** rng.integers(-300, 300, (50, 30)), name="x")
    y = x * 1.0
    y.name = "y"
    g.forward(y)
    with live(chromium_page, g, size) as seen:
        seen.box(key_of(g, y)).click()
        seen.page.get_by_role("button", name="as a table").click()
        table = seen.page.locator(".rg-table")
        table.wait_for()
        columns: list[str] = []
        while True:
            assert table.evaluate(CUT) == 0
            row = table.locator("tr").first.evaluate(WHOLE)
            assert len(row) >= min(2, 30 - len(columns))
            columns += row
            after = seen.page.get_by_label("next columns")
            if after.is_disabled():
                break
            before = seen.text(".rg-table")
            after.click()
            seen.until(lambda before=before: seen.text(".rg-table") != before)
        assert columns == columns_of(y.value[0])
        last = "column 29 of 30" if len(row) == 1 else f"columns {30 - len(row)} to 29 of 30"
        assert last in seen.text(".rg-table")
        seen.page.get_by_label("next rows").click()
        seen.until(lambda: "rows 20 to 39 of 50" in seen.text(".rg-table"))
        row = table.locator("tr").first.evaluate(WHOLE)
        assert row == columns_of(y.value[20])[-len(row) :]


def columns_of(row: Any) -> list[str]:
    return [str(one) for one in row.tolist()]


@pytest.mark.slow
def test_an_open_table_follows_the_node(chromium_page: Any) -> None:
    g = rg.Graph()
    x = g.input(2.0, name="x")
    y = x * np.arange(4.0)
    y.name = "y"
    g.forward(y)
    with live(chromium_page, g) as seen:
        seen.box(key_of(g, y)).click()
        seen.page.get_by_role("button", name="as a table").click()
        cells = seen.page.locator(".rg-table td")
        seen.until(lambda: cells.all_inner_texts() == ["0.0", "2.0", "4.0", "6.0"])
        seen.page.get_by_label("x, as a number").fill("3")
        seen.until(lambda: cells.all_inner_texts() == ["0.0", "3.0", "6.0", "9.0"])
