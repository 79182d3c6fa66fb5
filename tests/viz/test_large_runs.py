"""A change that reaches very many nodes: what is shown comes first, the rest right after it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import reactgrad as rg
from reactgrad.explain._snapshot import key_of, snapshot
from reactgrad.explain._snapshots import MANY
from reactgrad.viz._messages import _state
from tests.viz.browser import need
from tests.viz.live import live
from tests.viz.test_session import Page, opened

__all__ = ["opened"]

LENGTH = 2 * MANY


def chain(g: rg.Graph) -> tuple[rg.Var, list[rg.Var]]:
    x = g.input(1.0, name="x")
    with g.scope("chain"):
        nodes = [x * 0.5]
        for _ in range(LENGTH - 1):
            nodes.append(nodes[-1] + 1e-3)
    y = rg.tanh(nodes[-1])
    y.name = "y"
    g.forward(y)
    return x, [*nodes, y]


def test_what_is_shown_is_told_before_the_rest(opened: Callable[..., Page]) -> None:
    g = rg.Graph()
    x, nodes = chain(g)
    page = opened(g)
    page.set(x, 2.0)
    rest = page.wait_for("frame", lambda m: m.get("rest"))
    frames = [message for message in page.told if message["kind"] == "frame"]
    first = frames[frames.index(rest) - 1]
    assert first["part"]
    assert len(first["runs"]) == 1
    assert len(first["runs"][0]["ran"]) == len(nodes)
    assert {key_of(g, x), key_of(g, nodes[-1])} <= {*map(int, first["states"])}
    assert len(first["states"]) < 10
    assert not first["states"].keys() & rest["states"].keys()
    # Together they say what a page hears that opens now.
    told = [json.loads(json.dumps(_state(node))) for node in snapshot(g, None, True).nodes]
    assert [page.states[node.key] for node in snapshot(g, None, True).nodes] == told


def test_a_change_that_only_marks_is_told_in_the_same_way(opened: Callable[..., Page]) -> None:
    g = rg.Graph()
    x, nodes = chain(g)
    page = opened(g)
    page.session.receive({"kind": "mode", "mode": "asked"})
    page.set(x, 2.0)
    first = page.wait_for("frame", lambda m: m.get("part"))
    assert len(first["planned"]) == len(nodes)
    rest = page.wait_for("frame", lambda m: "rest" in m)
    assert rest["rest"] is False, "it belongs to no run"
    assert [page.states[key_of(g, var)][0] for var in nodes] == ["stale"] * len(nodes)


@pytest.mark.slow
def test_the_page_puts_both_together(chromium_page: Any) -> None:
    need("pygraphviz")
    g = rg.Graph()
    x, nodes = chain(g)
    middle = nodes[LENGTH // 2]
    with live(chromium_page, g) as seen:
        for value in (2.0, 4.0):
            seen.page.get_by_label("x, as a number").fill(str(value))
            seen.until(
                lambda value=value: f"→ {value:g}: ran {len(nodes)} of" in seen.text(".rg-status")
            )
        assert seen.box("chain/").locator(".rg-row1").inner_html().startswith(f"{LENGTH} ran")
        seen.page.locator(".rg-search input").fill(middle.label)
        seen.page.keyboard.press("Enter")
        row = seen.box(key_of(g, middle)).locator(".rg-row1")
        seen.until(lambda: row.count() == 1 and row.inner_html() == f"{middle.value:.6g}")
        seen.scrub(0)  # the first of the two runs
        seen.until(lambda: row.inner_html() == f"{1.0 + (LENGTH // 2) * 1e-3:.6g}")
        seen.scrub(2)
        x.set(6.0)  # not computed yet
        g.forward(nodes[3])
        key = key_of(g, nodes[2])
        seen.until(lambda: f"ran 4 of {len(nodes)}" in seen.text(".rg-status"))
        seen.page.locator(".rg-search input").fill(nodes[2].label)
        seen.page.keyboard.press("Enter")
        seen.until(lambda: seen.looks().get(str(key)) == "ran")
        assert "stale" in seen.looks().values()
