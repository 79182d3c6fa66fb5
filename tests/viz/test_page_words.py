"""What the page says of a graph at first sight: it is true, and agrees with itself."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import reactgrad as rg
from reactgrad.explain._snapshot import key_of
from tests.viz.browser import Seen, need
from tests.viz.live import live

need("pygraphviz")

pytestmark = pytest.mark.slow  # a browser has to start


def model(g: rg.Graph) -> dict[str, rg.Var]:
    w, x = g.param([1.0, 2.0], name="w"), g.input(3.0, name="x")
    loss = (rg.tanh(w) * x * 2.0).sum()
    loss.name = "loss"
    return {"w": w, "x": x, "loss": loss, "slope": rg.grad(loss, w)}


def test_green_boxes_come_with_the_run_that_made_them_green(chromium_page: Any) -> None:
    g = rg.Graph()
    nodes = model(g)
    run = g.forward(nodes["loss"], nodes["slope"])
    with live(chromium_page, g, layer="all") as seen:
        assert len(seen.keys("ran")) == len(run.ran)
        assert "nothing has run" not in seen.text("header")
        computed = sum(bool(var.parents) for var in g.nodes)
        assert f"ran {len(run.ran)} of {computed} computed nodes" in seen.text(".rg-status")


def test_before_the_first_run_it_says_so(chromium_page: Any) -> None:
    g = rg.Graph()
    nodes = model(g)
    with live(chromium_page, g) as seen:
        assert nodes["loss"].is_stale
        assert seen.text(".rg-status") == "nothing has run yet; 8 of 8 would run"


def test_a_node_with_a_gradient_is_not_said_to_have_none(chromium_page: Any) -> None:
    g = rg.Graph()
    nodes = model(g)
    g.forward(nodes["loss"], nodes["slope"])
    assert "no gradient" in str(g.why(nodes["w"])), "nothing was added to w.grad"
    with live(chromium_page, g) as seen:
        seen.box(key_of(g, nodes["w"])).click()
        seen.until(lambda: "gradient norm" in seen.text(".rg-panel"))
        assert "no gradient" not in seen.text(".rg-panel")
        seen.box(key_of(g, nodes["x"])).click()
        seen.until(
            lambda: seen.text(".rg-panel h3") == "x" and "no gradient" in seen.text(".rg-panel")
        )


def totals(seen: Seen) -> tuple[int, int, int, int, int]:
    """All nodes, leaves, values, adjoints, and the nodes that a run could have run."""
    note, status = seen.text(".rg-note >> nth=0"), seen.text(".rg-status")
    numbers = re.match(
        r"([\d,]+) nodes: ([\d,]+) inputs, params and constants, ([\d,]+) computed values, ([\d,]+) adjoints",
        note,
    )
    of = re.search(r"of ([\d,]+) computed nodes", status)
    assert numbers, note
    assert of, status
    return tuple(int(text.replace(",", "")) for text in (*numbers.groups(), of[1]))  # type: ignore[return-value]


@pytest.mark.parametrize("layer", ["values", "gradients", "all"])
def test_totals_agree(chromium_page: Any, tmp_path: Path, layer: Any) -> None:
    g = rg.Graph()
    nodes = model(g)
    with g.record(snapshots=True) as log:
        passing = [rg.exp(nodes["x"]) for _ in range(5)]  # removed before the page is made
        g.forward(nodes["loss"], nodes["slope"], *passing)
        del passing
        for value in (4.0, 5.0):
            nodes["x"].set(value)
            g.forward(nodes["loss"])
    g.export_html(tmp_path / "page.html", log, layer=layer)
    page = chromium_page.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    page.wait_for_selector(".rg-box")
    seen = Seen(page)
    for position in range(3):
        seen.scrub(position)
        total, leaves, values, adjoints, computed = totals(seen)
        assert total == len(g.nodes)
        assert leaves + values + adjoints == total
        there_were = "there were then" in seen.text(".rg-status")
        assert there_were == (position == 0), "the first run had nodes that are gone"
        assert computed == values + adjoints + 5 * there_were


def test_what_waits_for_an_input_without_a_value_is_not_said_to_run(chromium_page: Any) -> None:
    g = rg.Graph()
    price, units = g.input(shape=(), dtype=float, name="price"), g.input(2.0, name="units")
    tax, double = price * 0.2, units * 2.0
    result = tax * double
    result.name = "result"
    with live(chromium_page, g, targets=[result]) as seen:
        seen.page.get_by_role("button", name="a change only marks what depends on it").click()
        seen.page.get_by_label("units, as a number").fill("3")
        seen.until(lambda: "units 2 → 3: 1 of 3 would run" in seen.text(".rg-status"))
        assert seen.text(".rg-status").endswith("; price has no value yet")
        assert seen.keys("rg-wait") == {key_of(g, double)}
        seen.page.get_by_role("button", name="compute what is stale").click()
        seen.until(lambda: double.state == "clean")
        seen.until(lambda: "price has no value yet" in seen.text(".rg-status"))
    price.set(1.0)
    with live(chromium_page, g, targets=[result]) as seen:
        assert "has no value" not in seen.text(".rg-status")
