"""Frames of scopes in the views that the page lays out itself: around a node, unfolded, and in opened scopes."""

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
from tests.viz.test_page_story import opened

need("pygraphviz")

pytestmark = pytest.mark.slow  # a browser has to start

Rect = tuple[float, float, float, float]  # left, top, right, bottom


def layers() -> tuple[rg.Graph, rg.Var]:
    g = rg.Graph()
    h = g.input(np.linspace(0.0, 1.0, 6), name="x")
    with g.scope("net"):
        for n in range(3):
            with g.scope(f"layer{n}"):
                h = rg.tanh(h @ g.param(np.eye(6), name="w") + g.param(np.zeros(6), name="b"))
    y = h.sum()
    y.name = "y"
    return g, y


def frames(seen: Seen) -> dict[str, list[Rect]]:
    """The places of the frames, by their titles, in points of the picture."""
    script = """all => all.map((r, i) => { const n = (name) => +r.getAttribute(name);
        const names = document.querySelectorAll('.rg-names text');
        return [names[i].textContent, n('x'), n('y'), n('x') + n('width'), n('y') + n('height')]; })"""
    found: dict[str, list[Rect]] = {}
    for title, *place in seen.page.locator(".rg-frames rect").evaluate_all(script):
        found.setdefault(title, []).append(tuple(place))
    return found


def boxes(seen: Seen) -> dict[str, Rect]:
    script = r"""all => all.map(b => { const [x, y] = b.getAttribute('transform').match(/-?[\d.]+/g).map(Number);
        return [b.dataset.key, x - 78, y - 30, x + 78, y + 30]; })"""
    return {key: tuple(place) for key, *place in seen.page.locator(".rg-box").evaluate_all(script)}


def inside(inner: Rect, outer: Rect) -> bool:
    return (
        outer[0] <= inner[0]
        and outer[1] <= inner[1]
        and inner[2] <= outer[2]
        and inner[3] <= outer[3]
    )


def apart(one: Rect, other: Rect) -> bool:
    return one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


def stands_around(seen: Seen, title: str, members: set[str]) -> None:
    """A frame has these boxes in it, and no other one touches it."""
    (frame,) = frames(seen)[title]
    for key, place in boxes(seen).items():
        assert inside(place, frame) if key in members else apart(place, frame), (title, key)
    top = min(place[1] for key, place in boxes(seen).items() if key in members)
    assert top - frame[1] >= 15, "there is room for the title"


def members_of(g: rg.Graph, path: tuple[str, ...]) -> set[str]:
    return {str(node.key) for node in g.snapshot().nodes if node.scope[: len(path)] == path}


def test_unfolded_each_scope_has_a_frame(chromium_page: Any) -> None:
    g, y = layers()
    g.forward(y)
    with live(chromium_page, g, fold=1) as seen:
        seen.page.get_by_label("what is one box").select_option("none")
        seen.until(lambda: "layer2" in frames(seen))
        assert set(frames(seen)) == {"net", "layer0", "layer1", "layer2"}
        stands_around(seen, "net", members_of(g, ("net",)))
        for n in range(3):
            stands_around(seen, f"layer{n}", members_of(g, ("net", f"layer{n}")))
        assert seen.box(key_of(g, g["net/layer0/w"])).locator(".rg-row0").text_content() == "◆ w"
        # By op or level, boxes bring together what lies in different scopes.
        seen.page.get_by_label("what is one box").select_option("op")
        seen.until(lambda: not frames(seen))


def test_around_a_node_and_in_an_opened_scope_of_an_exported_page(
    chromium_page: Any, tmp_path: Path
) -> None:
    g, y = layers()
    g.forward(y)
    g.export_html(tmp_path / "page.html", fold=1)
    seen = opened(chromium_page, tmp_path / "page.html")
    seen.page.get_by_label("find a node by its name").fill("layer1/w")
    seen.page.keyboard.press("Enter")
    seen.until(lambda: "layer1" in frames(seen))
    shown = set(boxes(seen))
    stands_around(seen, "layer1", members_of(g, ("net", "layer1")) & shown)
    stands_around(seen, "net", members_of(g, ("net",)) & shown)
    seen.page.get_by_label("back to the former part").click()
    seen.until(lambda: not frames(seen))
    seen.page.locator('.rg-box[aria-label^="scope net"]').click()
    seen.until(lambda: "net" in frames(seen))
    folded = {key for key in boxes(seen) if not key.isdecimal()}
    assert len(folded) == 3
    stands_around(seen, "net", folded | members_of(g, ("net",)) & set(boxes(seen)))
    assert seen.complaints == []


@pytest.mark.parametrize("seed", range(6))
def test_of_random_scopes_every_box_lies_in_its_frames_and_in_no_others(
    chromium_page: Any, seed: int
) -> None:
    random, g = Random(seed), rg.Graph()
    nodes = [g.input(float(n), name=f"x{n}") for n in range(4)]
    for _ in range(50):
        path = [random.choice("abc") for _ in range(random.randrange(4))]
        with g.scope("/".join(path)) if path else g.scope("top"):
            nodes.append(random.choice(nodes[-12:]) * random.choice(nodes[-12:]))
    g.forward(*nodes)
    with live(chromium_page, g, fold=1) as seen:
        seen.page.get_by_label("what is one box").select_option("none")
        seen.until(lambda: len(boxes(seen)) == len(g.nodes))
        found, placed = frames(seen), boxes(seen)
        scopes = {
            node.scope[:n] for node in g.snapshot().nodes for n in range(1, len(node.scope) + 1)
        }
        assert sum(map(len, found.values())) == len(scopes)
        for node in g.snapshot().nodes:
            around = [
                title
                for title, places in found.items()
                for place in places
                if inside(placed[str(node.key)], place)
            ]
            assert sorted(around) == sorted(node.scope), node
            for places in found.values():
                for place in places:
                    at = placed[str(node.key)]
                    assert inside(at, place) or apart(at, place)
