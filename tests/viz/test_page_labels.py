"""Words of the map lie over no others, and end where their room ends."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import reactgrad as rg
from tests.viz.browser import need
from tests.viz.live import live

need("pygraphviz")
pytestmark = pytest.mark.slow  # a browser has to start

# Pairs of words that lie over each other, or of a word and a box that it does not belong to.
COVERED = """map => {
  const inside = ({ left, right, top, bottom }) =>
    ({ left: left + 1, right: right - 1, top: top + 1, bottom: bottom - 1 });
  const words = [...map.querySelectorAll(".rg-more, .rg-names text")];
  const shapes = [...map.querySelectorAll(".rg-shape")];
  const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  const found = [];
  words.forEach((word, i) => {
    const place = inside(word.getBoundingClientRect());
    for (const other of [...words.slice(0, i), ...shapes]) {
      if (meet(place, inside(other.getBoundingClientRect()))) found.push([word.textContent, other.textContent]);
    }
  });
  return found;
}"""


def scattered() -> tuple[rg.Graph, Any]:
    """A graph of which only a part is shown, across."""
    random, g = Random(3), rg.Graph()
    nodes = [g.input(float(n), name=f"x{n}") for n in range(100)]
    for _ in range(900):
        nodes.append(random.choice(nodes[-400:]) * random.choice(nodes[-400:]))
    answer = rg.stack(nodes[-3:]).sum()
    answer.name = "answer"
    g.forward(answer)
    return g, (nodes, answer)


def test_numbers_of_hidden_neighbours_cover_nothing(chromium_page: Any) -> None:
    g, _kept = scattered()
    with live(chromium_page, g) as seen:
        words = seen.page.locator(".rg-more").all_text_contents()
        assert {word[0] for word in words} == {"←", "→"}
        assert seen.page.locator(".rg-map").evaluate(COVERED) == []


def test_weights_of_a_layer_cover_no_others(chromium_page: Any) -> None:
    g = rg.Graph()
    with g:
        inputs = [g.input(float(n), name=f"x{n}") for n in range(3)]
        hidden = [rg.neuron(inputs, weights=[0.5, -0.3, 0.2], name=f"h{n}") for n in range(3)]
        y = rg.neuron(hidden, weights=[1.25, -2.0, 0.7], name="y")
    g.forward(y.node)
    with live(chromium_page, g) as seen:
        weights = seen.page.locator(".rg-weight")
        assert sorted(weights.all_text_contents()) == sorted(
            ["0.5", "-0.3", "0.2"] * 3 + ["1.25", "-2", "0.7"]
        )
        meet = """all => {
          const boxes = all.map(one => one.getBoundingClientRect());
          const beside = (a, b) => a.left > b.right - 1 || b.left > a.right - 1;
          const apart = (a, b) => beside(a, b) || a.top > b.bottom - 3 || b.top > a.bottom - 3;
          return boxes.filter((a, i) => boxes.slice(0, i).some((b) => !apart(a, b))).length;
        }"""
        assert weights.evaluate_all(meet) == 0


def test_times_by_scope_have_whole_words_or_say_that_they_are_cut(chromium_page: Any) -> None:
    g = rg.Graph()
    x = g.input(1.0, name="x")
    with g.scope("accumulated"):
        ends = [rg.tanh(x * float(n)) for n in range(40)]
    y = rg.stack(ends).sum()
    g.forward(y)
    with live(chromium_page, g, size=(800, 900)) as seen:
        seen.page.get_by_label("x, as a number").fill("2")
        seen.until(lambda: "ran 82 of" in seen.text(".rg-status"))
        seen.page.get_by_label("where the time of this run goes").click()
        wide = """all => all.map(one => {
          const text = one.querySelector("text"), room = one.querySelector("rect").getBoundingClientRect().width;
          const title = one.querySelector("title").textContent;
          return [title, text?.textContent ?? null, text ? text.getComputedTextLength() : 0, room];
        })"""
        drawn = seen.page.locator(".rg-flame")
        seen.until(lambda: drawn.count() > 20)
        flames = drawn.evaluate_all(wide)
        told = [(title.split(":")[0], text, length, room) for title, text, length, room in flames]
        assert any(text for _, text, _, _ in told)
        for name, text, length, room in told:
            assert length <= room
            assert text is None or text == name or text.endswith("…")


@pytest.mark.parametrize("wide", [1400, 800])
def test_long_names_that_differ_at_their_ends_are_told_apart(chromium_page: Any, wide: int) -> None:
    g = rg.Graph()
    inputs = [
        g.input(1.2345678 * n, name=f"a rather long name of an input, number {n}")
        for n in range(12)
    ]
    y = rg.stack(inputs).sum()
    y.name = "y"
    g.forward(y)
    with live(chromium_page, g, size=(wide, 900)) as seen:
        for css in (".rg-control .rg-name", ".rg-box .rg-row0"):
            names = seen.page.locator(css)
            assert len(set(names.all_text_contents())) == names.count() >= 12
        cut = "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).length"
        assert seen.page.locator(".rg-control .rg-name").evaluate_all(cut) == 0
        assert seen.page.locator(".rg-control input[type=number]").evaluate_all(cut) == 0
