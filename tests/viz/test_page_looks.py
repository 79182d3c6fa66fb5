"""What was hard to read on the page: pale words on coloured boxes, cut names, words that contradict each other."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.explain._snapshot import key_of
from tests.viz.browser import Seen, need
from tests.viz.live import live
from tests.viz.test_page_sight import in_sight
from tests.viz.test_page_story import opened, recorded

need("pygraphviz")

pytestmark = pytest.mark.slow  # a browser has to start

# Contrast (WCAG 2) of each text of a box with the box; colours as the browser paints them.
CONTRASTS = """all => all.flatMap(box => {
  const canvas = Object.assign(document.createElement('canvas'), { width: 1, height: 1 });
  const pen = canvas.getContext('2d', { willReadFrequently: true });
  const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const light = (...colours) => {
    for (const colour of colours) { pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1); }
    const [r, g, b] = [...pen.getImageData(0, 0, 1, 1).data].map(c => linear(c / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const fill = (of) => getComputedStyle(of).fill, shape = fill(box.querySelector('.rg-shape'));
  return [...box.querySelectorAll('text')].filter(t => t.textContent).map(text => {
    const [one, two] = [light('white', shape), light('white', shape, fill(text))];
    return [box.dataset.look, text.textContent, (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05)];
  });
})"""


def states() -> rg.Graph:
    """A node of each look, after a change that the page is asked not to compute."""
    g = rg.Graph()
    x = g.input(3.0, name="x")
    sign = rg.lift(lambda v: v > 0, cutoff="equal")(x)
    broken = rg.lift(lambda v: 1.0 / (v - 2.0))(x)
    parts = {"sign": sign, "broken": broken, "double": x * 2.0, "used": rg.lift(bool)(sign)}
    for name, var in parts.items():
        var.name = name
        g.keep(var)
    g.forward(*[var for name, var in parts.items() if name != "broken"])
    x.set(2.0)
    g.forward(sign, parts["double"])
    with pytest.raises(ZeroDivisionError):
        g.forward(broken)
    return g


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("colour", ["state", "size"])
def test_all_texts_of_boxes_stand_out(chromium_page: Any, theme: str, colour: str) -> None:
    g = states()
    with live(chromium_page, g) as seen:
        seen.page.emulate_media(color_scheme=theme)
        looks = set(seen.looks().values())
        seen.page.get_by_label("what colours say").select_option(colour)
        seen.page.get_by_role("button", name="a change only marks what depends on it").click()
        seen.page.get_by_label("x, as a number").fill("5")
        seen.until(lambda: "would run" in seen.text(".rg-status"))
        looks |= set(seen.looks().values())
        assert {"clean", "stale", "error"} <= looks
        found = seen.page.locator(".rg-box").evaluate_all(CONTRASTS)
        seen.page.get_by_role("button", name="a change computes at once").click()
        seen.until(lambda: "ran" in seen.looks().values())
        found += seen.page.locator(".rg-box").evaluate_all(CONTRASTS)
        assert [one for one in found if one[2] < 4.5] == []
        outlines = seen.page.locator(".rg-key .rg-shape").evaluate_all(
            "all => all.map(s => parseFloat(getComputedStyle(s).strokeWidth) * s.getScreenCTM().a)"
        )
        assert min(outlines) >= 1.0, "outlines of the legend can be seen"


def test_a_graph_that_has_run_is_not_said_to_have_no_runs(chromium_page: Any) -> None:
    g = rg.Graph()
    y = g.input(1.0, name="x") * 2.0
    y.value
    with live(chromium_page, g) as seen:
        assert seen.text(".rg-status").startswith("ran 1 of 1")
        assert seen.text(".rg-run") == "now"


def test_a_value_of_unknown_type_is_not_a_value(chromium_page: Any) -> None:
    g = rg.Graph()
    y = rg.lift(abs)(g.input(1.0, name="x"))
    with live(chromium_page, g) as seen:
        assert seen.box(key_of(g, y)).locator(".rg-row1").text_content() == ""


def exported(chrome: Any, path: Path) -> Seen:
    g = rg.Graph()
    with g.scope("IBM"), g.scope("13m"):
        x = g.input(np.arange(-40.0, 40.0), name="quantities")
    y = (x * 2.0).sum()
    y.name = "y"
    with g.record(snapshots=True) as log:
        y.value
        x.set(x.value + 1.0)
        y.value
        x.set(x.value + 1.0)
        y.value
    g.export_html(path, log)
    return opened(chrome, path)


def test_names_of_inputs_are_whole_beside_arrays(chromium_page: Any, tmp_path: Path) -> None:
    seen = exported(chromium_page, tmp_path / "page.html")
    name = seen.page.locator(".rg-leaf .rg-name")
    assert name.text_content() == "IBM/13m/quantities"
    assert name.evaluate("e => e.scrollWidth <= e.clientWidth")


def test_search_takes_the_words_of_a_headline(chromium_page: Any, tmp_path: Path) -> None:
    seen = exported(chromium_page, tmp_path / "page.html")
    assert seen.text(".rg-status").startswith("IBM 13m quantities set")
    seen.page.get_by_label("find a node by its name").fill("IBM 13m quant")
    assert seen.page.locator(".rg-hits [role=option]").all_inner_texts() == ["IBM/13m/quantities"]


def test_of_two_runs_a_box_says_which_ran_it_and_is_not_cut(
    chromium_page: Any, tmp_path: Path
) -> None:
    seen = exported(chromium_page, tmp_path / "page.html")
    seen.page.get_by_label("compare with").select_option(index=1)
    seen.until(lambda: "ran in both" in seen.text(".rg-compare"))
    texts = seen.page.locator(".rg-box.rg-both .rg-row2").all_text_contents()
    assert set(texts) == {"in both runs"}


def test_the_figure_of_an_array_is_in_sight(chromium_page: Any) -> None:
    g = rg.Graph()
    x = g.input(np.linspace(0.0, 1.0, 5000), name="x")
    y = x.sum()
    y.value
    with live(chromium_page, g) as seen:
        seen.box(key_of(g, x)).click()
        seen.page.locator(".rg-spark").wait_for()
        panel, figure = (
            seen.page.locator(css).bounding_box() for css in (".rg-panel", ".rg-figure")
        )
        assert figure["y"] + figure["height"] < panel["y"] + panel["height"] / 2


def test_numbers_of_inputs_are_not_cut(chromium_page: Any) -> None:
    """A number wider than its field could be scrolled in it."""
    g = rg.Graph()
    x = g.input(-0.343935, name="volatility")
    _ = (x * 2.0).value
    with live(chromium_page, g) as seen:
        field = seen.page.get_by_label("volatility, as a number")
        assert field.input_value() == "-0.343935"
        assert field.evaluate("e => e.scrollWidth <= e.clientWidth")


@pytest.mark.parametrize("recorded", [False, True])
def test_no_row_of_inputs_is_half_in_sight(
    chromium_page: Any, tmp_path: Path, recorded: bool
) -> None:
    g = rg.Graph()
    inputs = [g.input(float(n), name=f"input {n}") for n in range(40)]
    total = rg.stack(inputs).sum()
    total.name = "total"
    g.forward(total)

    def halves(seen: Seen) -> list[str]:
        script = """list => { const edge = list.getBoundingClientRect().bottom;
          return [...list.children].filter(row => { const { top, bottom } = row.getBoundingClientRect();
            return top < edge - 2 && bottom > edge; }).map(row => row.textContent); }"""
        return seen.page.locator(".rg-controls").evaluate(script)

    def look(seen: Seen) -> None:
        for width in (800, 620, 720):
            seen.page.set_viewport_size({"width": width, "height": 900})
            seen.until(lambda: halves(seen) == [])
            assert seen.page.locator(".rg-controls").evaluate(
                "e => e.scrollHeight > e.clientHeight"
            )
        seen.page.set_viewport_size({"width": 1400, "height": 900})
        seen.until(lambda: seen.page.locator(".rg-controls").bounding_box()["height"] > 300)

    if recorded:
        g.export_html(tmp_path / "page.html")
        look(opened(chromium_page, tmp_path / "page.html", 800))
        return
    with live(chromium_page, g, size=(800, 900)) as seen:
        look(seen)


def test_the_title_says_what_a_large_graph_answers(chromium_page: Any, tmp_path: Path) -> None:
    g = rg.Graph()
    inputs = [g.input(float(n), name=f"a rather long name of input {n}") for n in range(60)]
    total = rg.stack(inputs).sum()
    total.name = "total"
    spread = rg.stack(inputs).max() * g.param(2.0, name="w")
    spread.name = "spread"
    g.forward(total, spread)
    title = "total, spread from 60 inputs and 1 param"
    with live(chromium_page, g, size=(800, 900)) as seen:
        assert seen.text("header h2") == title
    g.export_html(tmp_path / "page.html")
    seen = opened(chromium_page, tmp_path / "page.html", 800)
    assert seen.text("header h2") == seen.page.title() == title
    g.export_html(tmp_path / "one.html", targets=[inputs[0] * 2.0])
    assert (
        opened(chromium_page, tmp_path / "one.html")
        .text("header h2")
        .startswith("Graph from 60 inputs and 1 param")
    )


def test_what_a_change_would_do_follows_the_states(chromium_page: Any) -> None:
    g = rg.Graph()
    x, s = g.input(2.0, name="x"), g.input(0.5, name="s")
    profit = rg.exp(s) * x
    profit.name = "profit"
    g.forward(profit)
    with live(chromium_page, g) as seen:
        seen.page.get_by_role("button", name="a change only marks what depends on it").click()
        seen.until(lambda: seen.page.locator('[data-mode="asked"][aria-pressed="true"]').count())
        seen.box(key_of(g, x)).focus()
        seen.until(lambda: "a read then runs 1" in seen.text(".rg-preview"))
        s.set(0.7)  # as a cell would
        seen.until(lambda: "a read then runs 2" in seen.text(".rg-preview"))


def test_an_answer_with_a_name_is_seen_first(chromium_page: Any) -> None:
    random, g = Random(3), rg.Graph()
    nodes = [g.input(1.0, name=f"x{n}") for n in range(100)]
    for _ in range(900):
        nodes.append(random.choice(nodes[-400:]) * random.choice(nodes[-400:]))
    answer = rg.stack(nodes[-3:]).sum()
    answer.name = "answer"
    g.forward(*nodes, answer)
    with live(chromium_page, g) as seen:
        seen.until(lambda: in_sight(seen, key_of(g, answer)))


def test_nothing_of_a_panel_is_cut(chromium_page: Any) -> None:
    g = rg.Graph()
    bias = g.param(np.array([-0.18297915137]), name="bias")
    grid = bias * np.linspace(0.1, 1.0, 150).reshape(5, 30)
    grid.name = "grid"
    g.forward(grid)
    with live(chromium_page, g) as seen:
        field = seen.page.locator(".rg-numbers input")
        assert float(field.input_value()) == bias.value[0]
        assert field.evaluate("e => e.scrollWidth <= e.clientWidth")
        seen.box(key_of(g, grid)).click()
        seen.page.get_by_role("button", name="as a table").click()
        seen.until(lambda: "rows 0 to 4 of 5" in seen.text(".rg-table"))
        table = seen.page.locator(".rg-table")
        table.evaluate("e => { e.scrollLeft = 400; }")
        left = table.bounding_box()["x"]
        for css in ("th", "p"):
            assert abs(table.locator(css).first.bounding_box()["x"] - left) < 8, "stays in sight"


def test_times_by_scope_are_as_wide_as_the_panel(chromium_page: Any) -> None:
    g = rg.Graph()
    x = g.input(1.0, name="x")
    y = rg.tanh(x)
    y.name = "y"
    _ = y.value
    with live(chromium_page, g, size=(800, 900)) as seen:
        seen.page.get_by_label("x, as a number").fill("2")
        seen.until(lambda: "1 → 2" in seen.text(".rg-status"))
        seen.page.get_by_label("where the time of this run goes").click()
        seen.until(lambda: seen.page.locator(".rg-flames").count() == 1)
        panel, flames = (
            seen.page.locator(css).bounding_box()["width"] for css in (".rg-panel", ".rg-flames")
        )
        assert panel - 60 < flames < panel - 20


def test_the_run_to_compare_with_has_room(chromium_page: Any, tmp_path: Path) -> None:
    *_, file = recorded(tmp_path)
    seen = opened(chromium_page, file)
    assert seen.page.get_by_label("compare with").bounding_box()["width"] > 200
    seen.page.set_viewport_size({"width": 800, "height": 900})
    seen.until(lambda: seen.page.get_by_label("compare with").bounding_box()["width"] <= 150)
