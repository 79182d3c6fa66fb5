"""Runs tell a story: what caused each, how much it ran, and what two of them have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import reactgrad as rg
from reactgrad.explain._snapshot import key_of
from tests.viz.browser import Seen, need
from tests.viz.live import live

need("pygraphviz")

pytestmark = pytest.mark.slow  # a browser has to start


def shop(g: rg.Graph) -> dict[str, rg.Var]:
    price, share = g.input(11.5, name="goods/price"), g.input(0.592, name="share")
    sold = rg.exp(share) * 100.0
    sold.name = "sold"
    profit = sold * price
    profit.name = "profit"
    with g.scope("many"):
        many = [rg.tanh(price + float(n)) for n in range(150)]
    total = rg.stack(many).sum()
    total.name = "total"
    return {"price": price, "share": share, "sold": sold, "profit": profit, "total": total}


def recorded(tmp_path: Path) -> tuple[rg.Graph, dict[str, rg.Var], Any, Path]:
    """All, a small run, a large one, and one that has nothing to do."""
    g = rg.Graph()
    nodes = shop(g)
    with g.record(snapshots=True) as log:
        g.forward(nodes["profit"], nodes["total"])
        nodes["share"].set(0.621)
        g.forward(nodes["profit"], nodes["total"])
        nodes["price"].set(12.0)
        g.forward(nodes["profit"], nodes["total"])
        nodes["share"].cutoff = "equal"
        nodes["share"].set(0.621)
        g.forward(nodes["profit"], nodes["total"])
    g.export_html(tmp_path / "page.html", log)
    return g, nodes, log, tmp_path / "page.html"


def opened(chrome: Any, file: Path, width: int = 1400) -> Seen:
    page = chrome.new_context(viewport={"width": width, "height": 900}).new_page()
    seen = Seen(page)
    page.goto(file.as_uri())
    page.wait_for_selector(".rg-explorer[data-draws] .rg-box")
    page.wait_for_timeout(150)
    return seen


@pytest.mark.parametrize("width", [1400, 800])
def test_a_recording_opens_on_a_small_run_and_says_what_it_is(
    chromium_page: Any, tmp_path: Path, width: int
) -> None:
    g, nodes, log, file = recorded(tmp_path)
    seen = opened(chromium_page, file, width)
    assert "run 2 of 4" in seen.text(".rg-run")
    run = log.runs[1]
    computed = sum(bool(var.parents) for var in g.nodes)
    began = f"share 0.592 → 0.621: ran {len(run.ran)} of {computed} computed nodes"
    assert seen.text(".rg-status").startswith(began)
    assert "This page replays 4 recorded runs: after each change only what depends" in seen.text(
        ".rg-about"
    )
    assert {key_of(g, nodes["profit"])} <= seen.keys("ran") <= {key_of(g, v) for v in run.ran}
    assert seen.keys("rg-changed") == {key_of(g, nodes["share"])}
    assert seen.page.locator(".rg-leaf.rg-set .rg-name").all_inner_texts() == ["share"]
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width


def test_each_run_has_bars_and_its_cause(chromium_page: Any, tmp_path: Path) -> None:
    _, _, log, file = recorded(tmp_path)
    seen = opened(chromium_page, file)
    bars = seen.page.locator(".rg-run-bar")
    assert bars.count() == 4
    heights = [bars.nth(n).locator(".rg-nodes").bounding_box()["height"] for n in range(4)]
    assert [len(run.ran) for run in log.runs[1:2]] == [3]
    assert heights[3] < heights[1] < min(heights[0], heights[2])
    titles = [bars.nth(n).get_attribute("title") for n in range(4)]
    assert titles[0].startswith(f"run 1: read: {len(log.runs[0].ran)} ran")
    assert titles[1].startswith("run 2: share 0.592 → 0.621: ")
    assert titles[2].startswith("run 3: goods price 11.5 → 12: ")
    assert titles[3].startswith("run 4: nothing to do: 0 ran")
    bars.nth(2).click()
    seen.until(lambda: "run 3 of 4" in seen.text(".rg-run"))
    assert seen.text(".rg-status").startswith("goods price 11.5 → 12: ran ")


def test_two_runs_side_by_side(chromium_page: Any, tmp_path: Path) -> None:
    g, nodes, log, file = recorded(tmp_path)
    seen = opened(chromium_page, file)
    seen.page.get_by_label("compare with").select_option("2")
    former, latter = ({key_of(g, var) for var in log.runs[n].ran} for n in (2, 1))
    seen.until(lambda: seen.text(".rg-compare") != "")
    said = seen.text(".rg-compare")
    line = seen.page.locator(".rg-compare")
    line.evaluate("p => { p.textContent = 'a change of many inputs, '.repeat(100); }")
    height = line.bounding_box()["height"]
    assert height < 70, "however much there is to say, the map keeps its room"
    assert f"{len(former & latter)} node ran in both" in said
    assert f"{len(former - latter)} only in the former" in said
    assert f"{len(latter - former)} only in the latter" in said
    drawn = {int(key) for key in seen.looks() if key.isdecimal()}
    for side, keys in (
        ("rg-both", former & latter),
        ("rg-former", former - latter),
        ("rg-latter", latter - former),
    ):
        assert seen.keys(side) == keys & drawn
    values = [snapshot.by_key[key_of(g, nodes["profit"])].value for snapshot in log.snapshots]
    assert f"profit {float(values[3]):.6g} → {float(values[2]):.6g}" in said.replace(",", "")
    assert seen.complaints == []


def test_a_live_run_says_what_was_changed(chromium_page: Any) -> None:
    g = rg.Graph()
    nodes = shop(g)
    g.forward(nodes["profit"], nodes["total"])
    with live(chromium_page, g) as seen:
        seen.page.get_by_label("share, as a number").fill("0.7")
        seen.until(lambda: seen.text(".rg-status").startswith("share 0.592 → 0.7: ran 3 of "))
        assert seen.keys("rg-changed") == {key_of(g, nodes["share"])}
        g.set({nodes["price"]: 14.0, nodes["share"]: 0.75})
        g.forward(nodes["profit"])
        begins = "goods price 11.5 → 14, share 0.7 → 0.75: ran 3 of "
        other = "share 0.7 → 0.75, goods price 11.5 → 14: ran 3 of "
        seen.until(lambda: seen.text(".rg-status").startswith((begins, other)))
        assert seen.page.locator(".rg-about").inner_text() == ""
