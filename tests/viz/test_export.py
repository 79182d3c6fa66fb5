"""The exported page, opened from disk in Chromium: what it says is what ran, and all text is text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.explain._snapshot import key_of
from reactgrad.viz._export import as_script
from tests.viz.browser import Seen, browser, chromium, need
from tests.viz.test_any_text import NASTY

need("pygraphviz")

pytestmark = pytest.mark.slow  # a browser has to start


def story() -> tuple[rg.Graph, dict[str, rg.Var], Any]:
    """Three recorded runs: all, one with a cutoff, one that fails."""
    g = rg.Graph()
    x, w = g.input(1.0, name="x"), g.param(np.array([1.0, 2.0, 3.0]), name="w")
    positive = rg.lift(lambda v: v > 0, cutoff="equal")(x)
    signed = rg.lift(lambda yes, v: v if yes else -v)(positive, (w * 2.0).sum())
    inverse = rg.lift(lambda v: 1.0 / v)(x)
    loss = rg.tanh(w).sum()
    slope = rg.grad(loss, w)
    nodes = {"x": x, "w": w, "positive": positive, "signed": signed, "inverse": inverse}
    nodes |= {"loss": loss}
    for name, var in nodes.items():
        var.name = name
    with g.record(snapshots=True) as log:
        g.forward(signed, inverse, slope, loss)
        x.set(2.0)
        g.forward(signed, inverse)
        x.set(0.0)
        with pytest.raises(ZeroDivisionError):
            g.forward(inverse)
    nodes["slope"] = slope
    return g, nodes, log


@pytest.fixture(scope="module")
def chrome() -> Iterator[Any]:
    with browser() as started:
        yield started


def opened(chrome: Any, path: Path, **options: Any) -> Seen:
    page = chrome.new_context(**options).new_page()
    seen = Seen(page)
    page.goto(path.as_uri())
    page.wait_for_selector(".rg-explorer[data-draws]")
    page.wait_for_timeout(150)
    return seen


def keys(g: rg.Graph, variables: Any) -> set[int]:
    return {key_of(g, var) for var in variables}


def test_each_run_shows_what_ran_and_what_was_cut_off(chrome: Any, tmp_path: Path) -> None:
    g, nodes, log = story()
    g.export_html(tmp_path / "page.html", log, title="A story", layer="all")
    seen = opened(chrome, tmp_path / "page.html")
    for position, run in enumerate(log.runs):
        seen.scrub(position)
        cut_off = keys(g, run.cut_off)
        assert seen.keys("cut_off") == cut_off
        assert seen.keys("ran") == keys(g, run.ran) - cut_off
        assert seen.keys("error") == keys(g, run.failed)
        assert f"run {position + 1} of 3" in seen.text(".rg-run")
        assert f"ran {len(run.ran)} of" in seen.text(".rg-status")
    assert "1 cut off" not in seen.text(".rg-status")
    assert "1 failed" in seen.text(".rg-status")
    seen.scrub(1)
    assert "1 cut off" in seen.text(".rg-status")
    assert re.search(r"[\d.]+× (less work|fewer nodes)", seen.text(".rg-status"))
    assert "ZeroDivisionError" in (
        opened(chrome, tmp_path / "page.html")
        .box(key_of(g, nodes["inverse"]))
        .get_attribute("aria-label")
    )
    assert seen.complaints == []
    assert [url for url in seen.requests if not url.startswith("file:")] == []


def test_pointing_at_an_input_previews_the_plan(chrome: Any, tmp_path: Path) -> None:
    g, nodes, log = story()
    g.export_html(tmp_path / "page.html", log, layer="all")
    seen = opened(chrome, tmp_path / "page.html")
    targets = [g[node.name] for node in g.snapshot().nodes if node.key in g.snapshot().ends]
    for name in ("x", "w"):
        seen.box(key_of(g, nodes[name])).hover()
        seen.page.wait_for_timeout(100)
        twin = g.fork()
        twin[nodes[name]].touch()
        plan = twin.plan(*[twin[var] for var in targets])
        assert seen.keys("rg-plan") == {key_of(twin, var) for var in plan.nodes}
        said = seen.text(".rg-preview")
        assert said.startswith(f"a change of {name} makes ")
        assert f"a read then runs {len(plan)}" in said
    cost = g.fork().plan(nodes["loss"].name).cost
    assert cost is not None
    assert " ms" in said or " µs" in said


def test_a_click_says_why(chrome: Any, tmp_path: Path) -> None:
    g, nodes, log = story()
    g.export_html(tmp_path / "page.html", log, layer="all")
    seen = opened(chrome, tmp_path / "page.html")
    seen.box(key_of(g, nodes["positive"])).click()
    seen.page.wait_for_timeout(100)
    panel = seen.text(".rg-panel")
    for line in str(g.why(nodes["positive"])).splitlines():
        assert line.strip() in panel
    assert "equal" in panel  # the cutoff
    assert "test_export.py" in panel  # the user's line
    seen.box(key_of(g, nodes["w"])).click()
    seen.page.wait_for_timeout(100)
    norm = float(np.linalg.norm(nodes["slope"].value))
    assert f"{norm:.6g}" in seen.text(".rg-panel")
    assert "float64[3]" in seen.text(".rg-panel")
    seen.scrub(1)
    seen.box(key_of(g, nodes["inverse"])).click()
    seen.page.wait_for_timeout(100)
    assert "x: version 1 → 2" in seen.text(".rg-panel")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_accessibility_tree_names_every_node_and_keys_reach_them(
    chrome: Any, tmp_path: Path, scheme: str
) -> None:
    g, nodes, log = story()
    g.export_html(tmp_path / "page.html", log, layer="all")
    seen = opened(chrome, tmp_path / "page.html", color_scheme=scheme)
    tree = seen.tree()
    for var in g.nodes:
        assert f"{var.label}, " in tree
    seen.box(key_of(g, nodes["x"])).focus()
    reached = set()
    for _ in range(3):
        seen.page.keyboard.press("ArrowDown")
        reached.add(seen.page.evaluate("document.activeElement.dataset.key"))
    assert str(key_of(g, nodes["x"])) not in reached
    assert reached & {str(key_of(g, nodes[n])) for n in ("positive", "inverse", "signed")}
    seen.page.keyboard.press("Enter")
    assert seen.page.locator(".rg-panel").is_visible()
    seen.page.keyboard.press("Escape")
    assert not seen.page.locator(".rg-panel").is_visible()
    seen.page.keyboard.press("/")
    seen.page.keyboard.type("signed")
    seen.page.keyboard.press("Enter")
    seen.page.wait_for_timeout(100)
    assert seen.text(".rg-panel h3") == "signed"


def test_text_is_text(chrome: Any, tmp_path: Path) -> None:
    g = rg.Graph()
    leaves = []
    for i, name in enumerate(NASTY):
        leaf = g.input(float(i))
        leaf.name = name
        leaves.append(leaf)
    texts = rg.lift(lambda *values: NASTY)(*leaves)
    parts = [rg.lift(lambda v, i=i: v[i])(texts) for i in range(len(NASTY))]
    bad = rg.lift(lambda v: {}[v[0]])(texts)
    with g.record(snapshots=True) as log, pytest.raises(KeyError):
        g.forward(*parts, bad)
    g.export_html(tmp_path / "page.html", log, title=NASTY[1])
    seen = opened(chrome, tmp_path / "page.html")
    assert len(seen.looks()) == len(g)
    for var in (*leaves, *parts, bad):
        seen.box(key_of(g, var)).dispatch_event("click")
    seen.page.wait_for_timeout(200)
    assert seen.page.locator("img, iframe, b").count() == 0
    assert seen.page.locator("script").count() == 2
    # The parser ends a title at its end tag only; this one holds what was written, escaped.
    assert seen.page.title() == " ".join(NASTY[1].split())
    assert seen.complaints == []
    labels = seen.page.locator(".rg-box").evaluate_all(
        "all => all.map(b => b.getAttribute('aria-label'))"
    )
    assert any("<script>document.title='broken'</script>" in label for label in labels)
    assert max(map(len, labels)) < 700
    assert not any("\u202e" in label or "\x1b" in label for label in labels)
    wide = seen.page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0


def test_json_cannot_end_its_element() -> None:
    text = as_script({"a": NASTY})
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == {"a": NASTY}


@pytest.mark.parametrize("width", [1400, 800])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_cut_off(chrome: Any, tmp_path: Path, width: int, scheme: str) -> None:
    g, _, log = story()
    g.export_html(tmp_path / "page.html", log)
    seen = opened(
        chrome,
        tmp_path / "page.html",
        viewport={"width": width, "height": 900},
        color_scheme=scheme,
    )
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    map_, boxes = seen.page.locator(".rg-map").bounding_box(), seen.page.locator(".rg-shape")
    for place in boxes.evaluate_all(
        "all => all.filter(b => b.closest('.rg-map')).map(b => b.getBoundingClientRect().toJSON())"
    ):
        assert map_["x"] <= place["left"]
        assert place["right"] <= map_["x"] + map_["width"] + 1
        assert map_["y"] <= place["top"]
        assert place["bottom"] <= map_["y"] + map_["height"] + 1
    dark = seen.page.evaluate(
        "getComputedStyle(document.querySelector('.rg-explorer')).backgroundColor"
    )
    assert (dark == "rgb(255, 255, 255)") is (scheme == "light")


def test_two_thousand_nodes_are_folded_and_open(chrome: Any, tmp_path: Path) -> None:
    g = rg.Graph()
    x = g.input(1.0, name="x")
    ends = []
    for block in range(20):
        y = x
        for n in range(100):
            y = y * 1.0
            y.name = f"block{block}/{n}"
        ends.append(y)
    with g.record(snapshots=True) as log:
        g.forward(*ends)
        x.set(2.0)
        g.forward(ends[3])
    g.export_html(tmp_path / "page.html", log)
    seen = opened(chrome, tmp_path / "page.html")
    assert "2,001 nodes in 20 folded scopes" in seen.text(".rg-note >> nth=0")
    assert seen.looks()["block3/"] == "ran"
    assert seen.looks()["block4/"] == "stale"
    seen.box("block3/").click()
    seen.page.wait_for_timeout(300)
    assert len(seen.keys("ran")) == 100
    seen.page.get_by_label("back to the former part").click()
    seen.page.wait_for_timeout(300)
    assert "block3/" in seen.looks()
    seen.page.get_by_label("find a node by its name").fill("block7/55")
    seen.page.keyboard.press("Enter")
    seen.page.wait_for_timeout(400)
    assert seen.text(".rg-panel h3") == "block7/55"
    assert str(key_of(g, g["block7/55"])) in seen.looks()


def test_zoom_and_pan_move_the_map(chrome: Any, tmp_path: Path) -> None:
    g, nodes, log = story()
    g.export_html(tmp_path / "page.html", log)
    seen = opened(chrome, tmp_path / "page.html")
    box = seen.box(key_of(g, nodes["x"]))
    before = box.bounding_box()
    seen.page.get_by_label("zoom in").click()
    zoomed = box.bounding_box()
    assert zoomed["width"] > before["width"]
    map_ = seen.page.locator(".rg-map").bounding_box()
    seen.page.mouse.move(map_["x"] + 5, map_["y"] + 60)
    seen.page.mouse.down()
    seen.page.mouse.move(map_["x"] + 55, map_["y"] + 90)
    seen.page.mouse.up()
    moved = box.bounding_box()
    assert (round(moved["x"] - zoomed["x"]), round(moved["y"] - zoomed["y"])) == (50, 30)
    seen.page.get_by_label("show all").click()
    assert abs(box.bounding_box()["width"] - before["width"]) < 1


def test_a_page_without_recording_shows_the_present(chrome: Any, tmp_path: Path) -> None:
    g, nodes, _ = story()
    g.export_html(tmp_path / "page.html")
    seen = opened(chrome, tmp_path / "page.html")
    states = {node.key: node for node in g.snapshot().nodes if not node.gradient}
    stale = {key for key, node in states.items() if node.state == "stale"}
    assert seen.keys("stale") == stale
    assert key_of(g, nodes["inverse"]) in seen.keys("error")


def test_what_cannot_be_exported_says_so(tmp_path: Path) -> None:
    g = rg.Graph()
    y = rg.tanh(g.input(1.0))
    with g.record() as log:
        y.value
    with pytest.raises(rg.VizError, match="g.record\\(snapshots=True\\)"):
        g.export_html(tmp_path / "page.html", log)
    with pytest.raises(rg.VizError, match="of the graph|this graph's"):
        rg.Graph().export_html(tmp_path / "page.html", log)
    with pytest.raises(rg.VizError, match="layer"):
        g.export_html(tmp_path / "page.html", layer="both")  # type: ignore[arg-type]
    assert not (tmp_path / "page.html").exists()


def test_chromium_is_found_or_said_to_be_missing() -> None:
    assert Path(chromium()).exists()


def test_layers_show_values_or_adjoints(chrome: Any, tmp_path: Path) -> None:
    g, _, log = story()
    g.export_html(tmp_path / "page.html", log)
    seen = opened(chrome, tmp_path / "page.html")
    adjoints = {node.key for node in g.snapshot().nodes if node.gradient}
    assert not adjoints & {int(key) for key in seen.looks()}
    assert f"{len(adjoints)} adjoints in the other layer" in seen.text(".rg-note >> nth=0")
    seen.page.get_by_label("layer", exact=True).select_option("gradients")
    seen.until(lambda: adjoints <= {int(key) for key in seen.looks()})
    assert seen.keys("rg-adjoint") == adjoints


def test_what_was_added_and_removed_is_marked(chrome: Any, tmp_path: Path) -> None:
    g = rg.Graph()
    x = g.input(1.0, name="x")
    old, new = rg.exp(x), rg.sin(x)
    y = rg.tanh(old)
    y.value
    gone, before = key_of(g, old), g.snapshot()
    y.replace_parent(0, new)
    del old
    added = rg.cos(y)
    g.export_html(tmp_path / "page.html", since=before)
    seen = opened(chrome, tmp_path / "page.html")
    assert seen.keys("rg-removed") == {gone}
    assert seen.keys("rg-added") == {key_of(g, added)}
    assert "removed" in seen.box(gone).get_attribute("aria-label")
    assert seen.page.locator(".rg-line.rg-added").count() == 2
    assert seen.page.locator(".rg-line.rg-removed").count() == 2
