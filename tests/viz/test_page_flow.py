"""Gradients in the picture: lines are as wide as what passes them, and a cross shows where none can pass."""

from __future__ import annotations

from pathlib import Path
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


def model() -> tuple[rg.Graph, dict[str, rg.Var]]:
    """A strong way and a weak one from the loss back to w, and three ends."""
    g = rg.Graph()
    scale = g.input(1.0, name="scale")
    w, k = g.param(np.array([3.0, 4.0]), name="w"), g.param(np.array([1.0, 1.0]), name="k")
    k.freeze()
    strong, weak, cut, ice = w * scale, w * 0.01, w.detach() * 2.0, k * 2.0
    loss = (strong + weak + cut + ice).sum() + rg.floor(w).sum()
    slope = rg.grad(loss, w)
    nodes = {"scale": scale, "w": w, "k": k, "strong": strong, "weak": weak}
    nodes |= {"cut": cut, "ice": ice, "loss": loss}
    for name, var in nodes.items():
        var.name = name
    g.forward(loss, slope)
    nodes["slope"] = slope
    return g, nodes


def lines(seen: Seen) -> dict[tuple[int, int], tuple[str | None, str]]:
    """What passes each line as text, and its width."""
    script = "all => all.map(l => [+l.dataset.from, +l.dataset.to, l.dataset.size ?? null, l.style.strokeWidth])"
    found = seen.page.locator(".rg-line").evaluate_all(script)
    return {(a, b): (size, width) for a, b, size, width in found}


def crosses(seen: Seen) -> dict[tuple[int, int], str]:
    script = "all => all.map(c => [+c.dataset.from, +c.dataset.to, c.dataset.why])"
    found = seen.page.locator(".rg-cross").evaluate_all(script)
    return {(a, b): why for a, b, why in found}


def by_name(g: rg.Graph, nodes: dict[str, rg.Var], *names: str) -> tuple[int, ...]:
    return tuple(key_of(g, nodes[name]) for name in names)


def shows_the_flow(seen: Seen, g: rg.Graph, nodes: dict[str, rg.Var]) -> None:
    strong, weak = by_name(g, nodes, "w", "strong"), by_name(g, nodes, "w", "weak")
    seen.until(lambda: lines(seen).get(strong, (None,))[0] == "1.414")
    found = lines(seen)
    assert found[weak][0] == "0.01414"
    assert (found[strong][1], found[weak][1]) == ("7", "4"), "half of four decades below"
    told = crosses(seen)
    assert told[by_name(g, nodes, "w", "cut")] == "detached"
    assert told[by_name(g, nodes, "k", "ice")] == "frozen"
    assert "zero" in told.values(), "floor"
    assert strong not in told
    assert seen.page.locator(".rg-cross").first.is_visible()


@pytest.mark.parametrize("fold", ["scope", "none"])
def test_lines_are_as_wide_as_what_passes_them(chromium_page: Any, fold: str) -> None:
    g, nodes = model()
    with live(chromium_page, g) as seen:
        seen.page.get_by_label("what is one box").select_option(fold)
        seen.page.wait_for_timeout(200)
        assert not any(cross.is_visible() for cross in seen.page.locator(".rg-cross").all())
        seen.page.get_by_label("what colours say").select_option("gradient")
        shows_the_flow(seen, g, nodes)
        # It follows the values.
        seen.page.get_by_label("scale, as a number").fill("0.001")
        strong, weak = by_name(g, nodes, "w", "strong"), by_name(g, nodes, "w", "weak")
        seen.until(lambda: lines(seen)[strong][0] == "0.001414")
        assert float(lines(seen)[strong][1]) < float(lines(seen)[weak][1])
        seen.page.get_by_label("what colours say").select_option("state")
        seen.until(lambda: {width for _, width in lines(seen).values()} == {""})
        assert not seen.page.locator(".rg-cross").first.is_visible()


def test_around_a_node_and_in_an_exported_page_too(chromium_page: Any, tmp_path: Path) -> None:
    g, nodes = model()
    g.export_html(tmp_path / "page.html")
    seen = opened(chromium_page, tmp_path / "page.html")
    seen.page.get_by_label("what colours say").select_option("gradient")
    shows_the_flow(seen, g, nodes)
    seen.page.get_by_label("find a node by its name").fill("weak")
    seen.page.keyboard.press("Enter")
    seen.page.get_by_label("layer").select_option("all")
    seen.page.wait_for_timeout(200)
    shows_the_flow(seen, g, nodes)
    assert seen.complaints == []


def test_without_a_gradient_the_scale_says_so(chromium_page: Any) -> None:
    g = rg.Graph()
    y = g.input(2.0, name="x") * 3.0
    y.value
    with live(chromium_page, g) as seen:
        seen.page.get_by_label("what colours say").select_option("gradient")
        seen.until(lambda: "no gradient has been computed here" in seen.text(".rg-scale"))
