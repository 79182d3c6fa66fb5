"""Other ways to see a graph: folded, coloured by a measure, with the way of a change, and its time."""

from __future__ import annotations

import re
from graphlib import TopologicalSorter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import reactgrad as rg
from reactgrad.explain._snapshot import key_of
from tests.viz.browser import Seen, need
from tests.viz.live import live
from tests.viz.test_page_story import opened, recorded

need("pygraphviz")

pytestmark = pytest.mark.slow  # a browser has to start


def lines(seen: Seen) -> list[tuple[str, str]]:
    script = "all => all.map(l => [l.dataset.from, l.dataset.to])"
    return [tuple(ends) for ends in seen.page.locator(".rg-line").evaluate_all(script)]


def acyclic(seen: Seen) -> None:
    before: dict[str, set[str]] = {}
    for parent, child in lines(seen):
        before.setdefault(child, set()).add(parent)
    list(TopologicalSorter(before).static_order())


def tangled(g: rg.Graph) -> rg.Var:
    """Ops that follow each other in any order, in scopes that lead back into each other."""
    x = g.input(1.0, name="x")
    for n in range(30):
        with g.scope("ab"[n % 2]):
            x = (rg.tanh, rg.exp, rg.sin)[n % 3](x * g.param(0.5, name=f"w{n}"))
    return x


@pytest.mark.parametrize("fold", ["scope", "op", "level", "none"])
def test_folded_by_anything_there_is_no_cycle_and_every_node_is_in_a_box(
    chromium_page: Any, fold: str
) -> None:
    g = rg.Graph()
    y = tangled(g)
    g.forward(y)
    with live(chromium_page, g, fold=1) as seen:
        seen.page.get_by_label("what is one box").select_option(fold)
        seen.page.wait_for_timeout(200)
        acyclic(seen)
        boxes = seen.looks()
        if fold == "op":
            assert {key.split("(")[0] for key in boxes} >= {"op tanh", "op exp", "op multiply"}
        if fold == "level":
            assert len(boxes) > 20
        if fold == "none":
            assert {int(key) for key in boxes} == {key_of(g, var) for var in g.nodes}
        g.set({g["x"]: 2.0})
        g.forward(y)
        seen.until(lambda: "ran" in seen.looks().values())


def test_a_group_opens_and_one_goes_back(chromium_page: Any) -> None:
    g = rg.Graph()
    x = g.input(1.0, name="x")
    tanhs = [rg.tanh(x * float(n)) for n in range(12)]
    total = rg.stack(tanhs).sum()
    g.forward(total)
    with live(chromium_page, g) as seen:
        seen.page.get_by_label("what is one box").select_option("op")
        seen.until(lambda: "op tanh" in seen.looks())
        assert "12 ran" in seen.box("op tanh").locator(".rg-row1").text_content()
        assert "39 nodes in 6 ops, opened by a click" in seen.text("header .rg-note")
        seen.box("op tanh").click()
        seen.until(lambda: "op tanh" not in seen.looks())
        assert {key_of(g, var) for var in tanhs} <= {int(key) for key in seen.looks()}
        seen.page.get_by_label("back to the former part").click()
        seen.until(lambda: "op tanh" in seen.looks())


def test_the_way_of_a_change_is_lit(chromium_page: Any, tmp_path: Path) -> None:
    g, nodes, _, file = recorded(tmp_path)
    seen = opened(chromium_page, file)  # the run after a change of share
    seen.box(key_of(g, nodes["profit"])).click()
    seen.until(lambda: seen.page.locator(".rg-line.rg-way").count() > 0)
    script = "all => all.map(l => [l.dataset.from, l.dataset.to])"
    lit = {tuple(ends) for ends in seen.page.locator(".rg-line.rg-way").evaluate_all(script)}
    (exp,) = [var for var in nodes["sold"].parents if var.parents]
    way = [str(key_of(g, var)) for var in (nodes["share"], exp, nodes["sold"], nodes["profit"])]
    assert lit == set(pairwise(way))
    assert seen.keys("rg-on-way") == {int(key) for key in way}
    seen.page.locator(".rg-close").click()
    seen.until(lambda: seen.page.locator(".rg-line.rg-way").count() == 0)


def test_colours_say_time_age_or_magnitude(chromium_page: Any, tmp_path: Path) -> None:
    g, nodes, _, file = recorded(tmp_path)
    seen = opened(chromium_page, file)

    def fills() -> dict[str, str]:
        script = "all => Object.fromEntries(all.map(b => [b.dataset.key, b.querySelector('.rg-shape').style.fill]))"
        return seen.page.locator(".rg-box").evaluate_all(script)

    assert set(fills().values()) == {""}
    for colour, text in (
        ("time", r"(µs|ms)"),
        ("age", r"(this run|\d runs? ago)"),
        ("size", r"\d"),
    ):
        seen.page.get_by_label("what colours say").select_option(colour)
        seen.until(lambda text=text: bool(re.search(text, seen.text(".rg-scale"))))
        assert len(set(fills().values())) >= 2
    profit, share = (fills()[str(key_of(g, nodes[name]))] for name in ("profit", "share"))

    def share_of(fill: str) -> float:
        found = re.search(r"([\d.]+)%", fill)
        return float(found[1]) if found else 100.0

    assert share_of(profit) > share_of(share)
    seen.page.get_by_label("what colours say").select_option("state")
    seen.until(lambda: set(fills().values()) == {""})


def test_a_run_is_ranked_by_time(chromium_page: Any, tmp_path: Path) -> None:
    g, _, log, file = recorded(tmp_path)
    seen = opened(chromium_page, file)
    seen.page.get_by_label("former run").click()
    seen.page.get_by_label("where the time of this run goes").click()
    seen.until(lambda: seen.page.locator(".rg-ranked tr").count() == 20)
    times = log.run_snapshots[0].times
    slowest = max(times, key=lambda key: times[key])
    names = {node.key: node.name for node in g.snapshot().nodes}
    rows = seen.page.locator(".rg-ranked tr")
    assert rows.nth(0).locator("button").inner_text() == names[slowest]
    assert f"{len(times)} nodes" in seen.text(".rg-panel h3")
    flames = seen.page.locator(".rg-flame title").all_text_contents()
    assert any(text.startswith("many: ") for text in flames)
    rows.nth(0).locator("button").click()
    seen.until(lambda: seen.text(".rg-panel h3") == names[slowest])


def test_a_small_map_moves_the_large_one(chromium_page: Any) -> None:
    g = rg.Graph()
    y = g.input(1.0, name="x")
    for _ in range(60):
        y = rg.tanh(y)
    g.forward(y)
    with live(chromium_page, g) as seen:
        mini = seen.page.locator(".rg-mini")
        assert mini.is_visible()
        assert mini.locator("rect").count() == len(g) + 1
        top = seen.box(key_of(g, g["x"]))
        map_ = seen.page.locator(".rg-map").bounding_box()
        assert top.bounding_box()["y"] < map_["y"]
        place = mini.bounding_box()
        seen.page.mouse.click(place["x"] + place["width"] / 2, place["y"] + 2)
        seen.until(lambda: map_["y"] <= top.bounding_box()["y"])
        seen.page.get_by_label("show all").click()
        seen.until(lambda: not mini.is_visible())


@pytest.mark.parametrize("fold", ["op", "level"])
def test_what_is_repeated_needs_no_more_boxes(chromium_page: Any, fold: str) -> None:
    """A book of options folded by op was 500 boxes: "multiply (453)"."""

    def boxes(bands: int) -> int:
        g = rg.Graph()
        x = g.input(1.0, name="x")
        ends = [rg.tanh(rg.exp(rg.tanh(x * float(n)) * x) * x) for n in range(bands)]
        y = rg.stack(ends).sum()
        g.forward(y)
        with live(chromium_page, g) as seen:
            seen.page.get_by_label("what is one box").select_option(fold)
            seen.until(lambda: any(key.startswith(fold) for key in seen.looks()))
            return len(seen.looks())

    assert boxes(2) == boxes(12) < 12
