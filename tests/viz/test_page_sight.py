"""What is in sight when the page opens: always the answer, whole, with room for its text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import reactgrad as rg
from reactgrad.explain._snapshot import key_of
from tests.viz.browser import Seen, need
from tests.viz.live import live

need("pygraphviz")

pytestmark = pytest.mark.slow  # a browser has to start


def deep(g: rg.Graph) -> rg.Var:
    y = g.input(1.0, name="x")
    for _ in range(30):
        y = rg.tanh(y)
    return y


def broad(g: rg.Graph) -> rg.Var:
    x = g.input(1.0, name="x")
    return rg.stack([rg.tanh(x * float(n)) for n in range(40)]).sum()


def in_sight(seen: Seen, key: int) -> bool:
    """Whether a box lies whole inside of the map, and its text can be read."""
    map_ = seen.page.locator(".rg-map").bounding_box()
    box = seen.box(key).locator(".rg-shape").bounding_box()
    size = (
        seen.box(key)
        .locator(".rg-row1")
        .evaluate("e => parseFloat(getComputedStyle(e).fontSize) * e.getCTM().a")
    )
    return (
        map_["x"] <= box["x"]
        and box["x"] + box["width"] <= map_["x"] + map_["width"]
        and map_["y"] <= box["y"]
        and box["y"] + box["height"] <= map_["y"] + map_["height"]
        and size > 7.5
    )


@pytest.mark.parametrize("size", [(1400, 900), (800, 900)])
@pytest.mark.parametrize("model", [deep, broad])
def test_the_answer_is_in_sight_at_first(
    chromium_page: Any, model: Callable[[rg.Graph], rg.Var], size: tuple[int, int]
) -> None:
    g = rg.Graph()
    y = model(g)
    y.name = "answer"
    g.forward(y)
    with live(chromium_page, g, size=size) as seen:
        assert in_sight(seen, key_of(g, y))


def test_displays_fit_a_notebook(chromium_page: Any, tmp_path: Path) -> None:
    g = rg.Graph()
    x = g.input(1.0, name="x")
    y = rg.stack([rg.tanh(x * float(n)) for n in range(7)]).sum()
    g.forward(y)
    page = chromium_page.new_page(viewport={"width": 700, "height": 900})
    page.set_content(f"<body style='margin:0'>{g._repr_html_()}")
    wide = page.evaluate(
        "[...document.querySelectorAll('*')].map(e => e.scrollWidth - e.clientWidth)"
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= 700
    assert page.locator("svg").bounding_box()["width"] <= 700
    assert page.locator("body > div").evaluate("e => e.scrollWidth - e.clientWidth") <= 0, wide


@pytest.mark.parametrize("size", [(1400, 900), (800, 900)])
def test_of_a_graph_without_scopes_the_answer_and_what_is_around_it_is_shown(
    chromium_page: Any, size: tuple[int, int]
) -> None:
    random, g = Random(3), rg.Graph()
    nodes = [g.input(float(n), name=f"x{n}") for n in range(100)]
    for _ in range(900):
        nodes.append(random.choice(nodes[-400:]) * random.choice(nodes[-400:]))
    g.forward(*nodes)
    answer = rg.stack(nodes[-3:]).sum()
    answer.name = "answer"
    answer.value
    with live(chromium_page, g, size=size, targets=[answer]) as seen:
        assert in_sight(seen, key_of(g, answer))
        assert len(seen.looks()) <= 60, "no more than can be told apart"
        parents = {key_of(g, var) for var in answer.parents}
        assert parents <= {int(key) for key in seen.looks()}
        assert "more of this part are hidden; search finds them" in seen.text(".rg-note >> nth=0")
