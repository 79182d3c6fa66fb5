"""Pictures and displays in the pages of notebooks, light and dark: the page shows through, all can be read, and the
answer is in sight.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import reactgrad as rg
from tests.viz.browser import need

pytestmark = pytest.mark.slow  # a browser has to start
need("pygraphviz")

PAGES = {"light": "background:#fff;color:#1b1b1b", "dark": "background:#111;color:#ddd"}

# The contrast of each text, and of each line between boxes, with what is behind it.
CONTRASTS = """page => {
  const light = (color) => color.match(/[\\d.]+/g).slice(0, 3)
    .map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const between = (a, b) => {
    const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05);
  };
  const found = [], look = (one) => getComputedStyle(one);
  for (const text of document.querySelectorAll("svg text")) {
    const shape = text.parentNode.querySelector("polygon, ellipse, path"), fill = shape && look(shape).fill;
    found.push([text.textContent, between(look(text).fill, fill && fill !== "none" ? fill : page)]);
  }
  const lines = document.querySelectorAll("svg .edge path");
  for (const line of lines) found.push(["a line", between(look(line).stroke, page)]);
  return found;
}"""


def fan(bands: int) -> tuple[rg.Graph, rg.Var]:
    g = rg.Graph()
    x, k = g.input(1.0, name="x"), g.input(2.0, name="scale of everything")
    with g.scope("layer"):
        ends = [rg.tanh(x * float(n) + k) for n in range(bands)]
    answer = rg.stack(ends).sum()
    answer.name = "answer"
    g.forward(answer)
    return g, answer


def chain(links: int) -> tuple[rg.Graph, rg.Var]:
    g = rg.Graph()
    answer = g.input(1.0, name="x")
    for _ in range(links):
        answer = rg.tanh(answer)
    answer.name = "answer"
    g.forward(answer)
    return g, answer


@contextmanager
def opened(chrome: Any, inside: str, body: str, scheme: str, attributes: str = "") -> Iterator[Any]:
    context = chrome.new_context(
        viewport={"width": 1000, "height": 900}, color_scheme=scheme, offline=True
    )
    page = context.new_page()
    page.set_content(f"<!doctype html><body {attributes} style='{body}'>{inside}")
    try:
        yield page
    finally:
        context.close()


@pytest.mark.parametrize("form", ["picture", "display"])
@pytest.mark.parametrize("scheme", PAGES)
def test_a_picture_can_be_read_in_light_and_dark_pages(
    chromium_page: Any, scheme: str, form: str
) -> None:
    g, answer = fan(3)
    g["x"].set(3.0)
    text = g.picture().svg if form == "picture" else g._repr_html_()
    background = {"light": "rgb(255,255,255)", "dark": "rgb(17,17,17)"}[scheme]
    with opened(chromium_page, text, PAGES[scheme], scheme) as page:
        found = page.evaluate(CONTRASTS, background)
        assert {"answer", "stale", "layer", "a line"} <= {word for word, _ in found}
        assert min(found, key=lambda one: one[1])[1] > 3.9
        boxes = page.locator("svg .node ellipse, svg .node polygon, svg .node path").evaluate_all(
            "all => all.map(one => getComputedStyle(one).fill)"
        )
        is_dark = [sum(map(int, box[4:-1].split(","))) < 384 for box in boxes]
        assert all(is_dark) is (scheme == "dark")
    assert answer.is_stale


HOSTS = {
    "JupyterLab": 'data-jp-theme-light="false"',
    "VS Code": 'class="vscode-dark"',
    "Colab": 'theme="dark"',
    "documentation": 'data-theme="dark"',
    "marimo": 'class="dark"',
}


@pytest.mark.parametrize("host", HOSTS)
def test_the_page_decides_not_the_system(chromium_page: Any, host: str) -> None:
    g, _answer = fan(3)
    with opened(chromium_page, g.picture().svg, PAGES["dark"], "light", HOSTS[host]) as page:
        found = page.evaluate(CONTRASTS, "rgb(17,17,17)")
        assert min(found, key=lambda one: one[1])[1] > 3.9
        fill = page.locator("svg ellipse").first.evaluate("one => getComputedStyle(one).fill")
        assert fill == "rgb(29, 90, 44)"


def test_a_dark_page_that_says_nothing_can_be_read_too(chromium_page: Any) -> None:
    g, _answer = fan(3)
    with opened(chromium_page, g.picture().svg, PAGES["dark"], "light") as page:
        found = page.evaluate(CONTRASTS, "rgb(17,17,17)")
        assert min(found, key=lambda one: one[1])[1] > 3.9


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_no_picture_is_a_white_block(chromium_page: Any, tmp_path: Any, ending: str) -> None:
    g, _answer = fan(3)
    g.picture().save(tmp_path / f"a.{ending}")
    kind = {"svg": "image/svg+xml", "png": "image/png"}[ending]
    data = b64encode((tmp_path / f"a.{ending}").read_bytes()).decode()
    image = f'<img src="data:{kind};base64,{data}">'
    with opened(chromium_page, image, PAGES["dark"], "dark") as page:
        corners = page.locator("img").evaluate("""async image => {
          await image.decode();
          const canvas = document.createElement("canvas"), pen = canvas.getContext("2d");
          [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
          pen.drawImage(image, 0, 0);
          const all = pen.getImageData(0, 0, canvas.width, canvas.height).data;
          return [all[3], all.at(-1), all.some((alpha, i) => i % 4 === 3 && alpha === 255)];
        }""")
        assert corners == [0, 0, True]


@pytest.mark.parametrize("make", [lambda: fan(7), lambda: chain(31), lambda: chain(59)])
def test_the_answer_is_in_sight_at_first(chromium_page: Any, make: Any) -> None:
    g, _answer = make()
    with opened(chromium_page, g._repr_html_(), PAGES["light"], "light") as page:
        # Where it is cut off by nothing around it.
        seen = page.get_by_text("answer", exact=True).evaluate("""async text => {
          const seen = new Promise((tell) => {
            new IntersectionObserver(([one]) => tell(one.intersectionRatio)).observe(text.parentNode);
          });
          return [await seen, text.getBoundingClientRect().height];
        }""")
        assert seen[0] == 1.0
        assert seen[1] > 7.0


def test_a_display_of_32_nodes_is_seen_whole(chromium_page: Any) -> None:
    g, _answer = fan(7)
    assert len(g) == 32
    with opened(chromium_page, g._repr_html_(), PAGES["light"], "light") as page:
        cut = page.locator("body > div, body > div div").evaluate_all(
            "all => all.filter(one => one.scrollHeight > one.clientHeight + 1).length"
        )
        assert cut == 0
        assert page.locator("svg .node").count() == 32
