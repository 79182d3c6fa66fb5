"""Names on the page: a box says the name that the node has."""

from __future__ import annotations

from typing import Any

import pytest

import reactgrad as rg
from reactgrad.explain._snapshot import key_of
from tests.viz.browser import need
from tests.viz.live import live

need("pygraphviz")

pytestmark = pytest.mark.slow  # a browser has to start


def test_a_derivative_is_drawn_with_its_whole_name(chromium_page: Any) -> None:
    g = rg.Graph()
    w = g.param(2.0, name="w")
    s = rg.tanh(w)
    slope = rg.grad(s, w)
    slope.name = "ds/dw"
    g.forward(s, slope)
    with live(chromium_page, g, layer="all") as seen:
        assert seen.box(key_of(g, slope)).locator(".rg-row0").text_content() == "ds/dw"
        assert seen.page.locator(".rg-names text").count() == 0
