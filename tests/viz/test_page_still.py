"""A page at rest: once what was asked for is drawn, nothing moves and nothing is written again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import reactgrad as rg
from reactgrad.explain._snapshot import key_of
from tests.viz.browser import Seen, browser, need
from tests.viz.live import live

need("pygraphviz")

pytestmark = pytest.mark.slow  # a browser has to start

REST = """async () => {
  const frame = () => new Promise(requestAnimationFrame);
  const places = () => JSON.stringify([...document.querySelectorAll(".rg-map, .rg-panel, .rg-box, .rg-below")]
    .map((e) => e.getBoundingClientRect()));
  const seen = new Set(), written = [], name = ({ className }) => className?.baseVal ?? className ?? "text";
  const watch = new MutationObserver((all) => written.push(...all.map((m) => `${m.type} of ${name(m.target)}`)));
  const kinds = { subtree: true, childList: true, attributes: true, characterData: true };
  watch.observe(document.querySelector(".rg-explorer"), kinds);
  for (let i = 0; i < 30; i += 1) {
    seen.add(places());
    await frame();
  }
  watch.disconnect();
  return { places: seen.size, written };
}"""
PLACES = """() => [...document.querySelectorAll(".rg-map, .rg-box")]
  .map((e) => JSON.stringify(e.getBoundingClientRect()))"""


@pytest.fixture(scope="module")
def chrome() -> Iterator[Any]:
    """A Chromium with scrollbars that take room, as on most desktops."""
    with browser(ignore_default_args=["--hide-scrollbars"]) as started:
        yield started


def model() -> tuple[rg.Graph, list[rg.Var]]:
    g = rg.Graph()
    x = g.input(1.0, name="an_input_with_a_long_name")
    w = g.param([2.0, 3.0, 5.0], name="another_input_with_a_long_name")
    hidden = rg.tanh(w * x)
    loss = (hidden**2.0).sum()
    loss.name = "loss"
    slope = rg.grad(loss, w)
    g.forward(loss, slope)
    return g, [x, w, loss, slope]


def at_rest(seen: Seen) -> dict[str, Any]:
    seen.page.wait_for_timeout(250)  # what was asked for is answered
    return seen.page.evaluate(REST)


@pytest.mark.parametrize("width", [1400, 1000, 800])
def test_nothing_moves_while_nothing_changes(chrome: Any, width: int) -> None:
    g, nodes = model()
    with live(chrome, g, size=(width, 760), layer="all") as seen:
        assert at_rest(seen) == {"places": 1, "written": []}
        for node in nodes[1:3]:
            seen.box(key_of(g, node)).locator(".rg-shape").dispatch_event("click")
            seen.until(lambda: seen.page.locator(".rg-panel dd").count() > 3)
            for pointed in nodes[:2]:
                box = seen.box(key_of(g, pointed)).bounding_box()
                seen.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
                assert at_rest(seen) == {"places": 1, "written": []}


@pytest.mark.parametrize("width", [1400, 800])
def test_a_preview_moves_no_box(chrome: Any, width: int) -> None:
    g, (x, w, *_) = model()
    with live(chrome, g, size=(width, 760), layer="all") as seen:
        seen.box(key_of(g, w)).click()
        at_rest(seen)
        seen.page.mouse.move(2, 2)
        seen.until(lambda: seen.text(".rg-preview") == "")
        before = seen.page.evaluate(PLACES)
        seen.box(key_of(g, x)).hover()
        seen.until(lambda: "a change of an_input" in seen.text(".rg-preview"))
        at_rest(seen)
        assert seen.page.evaluate(PLACES) == before


def test_the_small_map_covers_no_words(chrome: Any) -> None:
    g = rg.Graph()
    x = g.input(1.0, name="x")
    y = x
    for _ in range(30):
        y = rg.tanh(y)
    g.forward(y)
    with live(chrome, g, size=(800, 760)) as seen:
        for value in ("2", "3"):
            seen.page.get_by_label("x, as a number").fill(value)
            seen.until(lambda value=value: f"→ {value}: ran" in seen.text(".rg-status"))
        seen.page.get_by_label("compare with").select_option(index=1)
        seen.until(lambda: "ran in both" in seen.text(".rg-compare"))
        small, words, map_ = (
            seen.page.locator(css).bounding_box() for css in (".rg-mini", ".rg-compare", ".rg-map")
        )
        assert small["height"] > 10, "not all is in sight"
        assert small["y"] + small["height"] <= words["y"]
        assert map_["y"] <= small["y"]
