"""Stale first: in the page a change may wait, and what waits, runs and ran is what the graph says."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import reactgrad as rg
from reactgrad.explain._snapshot import key_of
from tests.viz.browser import Seen, need
from tests.viz.live import live

need("pygraphviz")

pytestmark = pytest.mark.slow  # a browser has to start


class Model:
    """Two inputs, a cutoff, a gradient, and a function that waits for a gate."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        g = self.g = rg.Graph()
        self.x, self.w = g.input(1.0, name="x"), g.param(2.0, name="w")
        positive = rg.lift(lambda v: v > 0, cutoff="equal")(self.x)
        signed = rg.lift(lambda yes, v: v if yes else -v)(positive, self.w * 3.0)
        first = rg.lift(lambda v: v + 1.0)(self.w)
        slow = rg.lift(self._wait)(first)
        after = slow + 1.0
        self.slope = rg.grad(rg.tanh(self.w), self.w)
        self.nodes = {"positive": positive, "signed": signed, "first": first, "slow": slow}
        self.nodes["after"] = after
        for name, var in self.nodes.items():
            var.name = name
        with g.record():
            for value in (2.5, 2.0):
                self.w.set(value)
                g.forward(*self.targets)

    @property
    def targets(self) -> list[rg.Var]:
        return [self.nodes["signed"], self.nodes["after"], self.slope]

    def _wait(self, value: float) -> float:
        assert self.gate.wait(60)
        return value

    def keys(self, variables: Any) -> set[int]:
        return {key_of(self.g, var) for var in variables}

    def key(self, name: str) -> int:
        return key_of(self.g, self.g[name])


@pytest.fixture
def model() -> Iterator[Model]:
    made = Model()
    yield made
    made.gate.set()


def shows_plan(seen: Seen, model: Model) -> None:
    """The page marks just what a read would run."""
    seen.until(lambda: seen.keys("rg-wait") == model.keys(model.g.plan(*model.targets).nodes))


def shows_run(seen: Seen, model: Model) -> None:
    """The page says of each node what the last run did."""
    cut_off = model.keys(model.g.last_run.cut_off)
    seen.until(lambda: seen.keys("cut_off") == cut_off)
    seen.until(lambda: seen.keys("ran") == model.keys(model.g.last_run.ran) - cut_off)
    assert seen.keys("rg-wait") == set()


def ask(seen: Seen) -> None:
    seen.page.get_by_role("button", name="a change only marks what depends on it").click()
    seen.until(lambda: seen.page.locator('[data-mode="asked"][aria-pressed="true"]').count() == 1)


def number(seen: Seen, model: Model, name: str, value: float) -> None:
    seen.page.get_by_label(f"{name}, as a number").fill(str(value))
    seen.until(lambda: float(model.g[name].value) == value)


def test_a_change_marks_what_would_run_and_computes_when_asked(
    chromium_page: Any, model: Model
) -> None:
    g = model.g
    with live(chromium_page, g, layer="all", targets=model.targets) as seen:
        ask(seen)
        number(seen, model, "w", 5.0)
        shows_plan(seen, model)
        plan = g.plan(*model.targets)
        assert len(plan) >= 6
        computed = sum(bool(var.parents) for var in g.nodes)
        status = seen.text(".rg-status")
        assert status.startswith(f"w 2 → 5: {len(plan)} of {computed} would run, about ")
        assert re.search(r"about [\d.]+ (µs|ms|s)$", status)
        signed = seen.box(model.key("signed"))
        assert signed.locator(".rg-row1").text_content() == "was 6"
        assert seen.keys("stale") == model.keys(plan.nodes)
        lit = seen.page.locator(".rg-line.rg-lit").count()
        assert lit == sum(
            1
            for var in plan.nodes
            for parent in set(g[var.name].parents)
            if parent is model.w or parent in plan.nodes
        )
        assert model.key("w") in seen.keys("rg-changed")
        seen.page.get_by_role("button", name="compute what is stale").click()
        shows_run(seen, model)
        assert signed.locator(".rg-row1").text_content() == "15"
        assert model.keys(plan.nodes) == model.keys(g.last_run.ran)


def test_one_node_can_be_asked_for(chromium_page: Any, model: Model) -> None:
    with live(chromium_page, model.g, layer="all", targets=model.targets) as seen:
        ask(seen)
        number(seen, model, "w", 4.0)
        shows_plan(seen, model)
        seen.box(model.key("first")).click()
        seen.page.get_by_role("button", name="compute this node").click()
        seen.until(lambda: seen.keys("ran") == {model.key("first")})
        shows_plan(seen, model)
        assert model.key("signed") in seen.keys("stale")
        seen.page.get_by_role("button", name="a change computes at once").click()
        # The run that is shown until then is the former one.
        seen.until(lambda: not model.g.plan(*model.targets).nodes)
        shows_run(seen, model)


def test_at_once_what_is_shown_is_the_run_and_what_others_set_waits(
    chromium_page: Any, model: Model
) -> None:
    with live(chromium_page, model.g, layer="all", targets=model.targets) as seen:
        for name, value in (("x", 3.0), ("w", 1.5), ("x", -2.0)):
            number(seen, model, name, value)
            seen.until(lambda: not model.g.plan(*model.targets).nodes)
            shows_run(seen, model)
        model.w.set(9.0)  # as a cell would
        shows_plan(seen, model)
        assert "would run" in seen.text(".rg-status")
        seen.page.get_by_role("button", name="compute what is stale").click()
        shows_run(seen, model)


def test_boxes_turn_green_as_they_finish_and_what_is_cancelled_can_go_on(
    chromium_page: Any, model: Model
) -> None:
    g = model.g
    with live(chromium_page, g, layer="all", targets=model.targets) as seen:
        ask(seen)
        number(seen, model, "w", 7.0)
        shows_plan(seen, model)
        planned = model.keys(g.plan(*model.targets).nodes)
        model.gate.clear()
        seen.page.get_by_role("button", name="compute what is stale").click()
        slow, after, first = (model.key(name) for name in ("slow", "after", "first"))
        seen.until(lambda: seen.keys("running") == {slow})
        seen.until(lambda: first in seen.keys("ran"))
        assert after in seen.keys("stale")

        def done() -> int:
            return len(planned & seen.keys("ran"))

        seen.until(lambda: f"{done()} of {len(planned)} done" in seen.text(".rg-status"))
        assert 1 <= done() < len(planned)
        assert seen.keys("ran") | seen.keys("stale") | {slow} >= planned
        bar = seen.page.locator(".rg-progress")
        assert bar.get_attribute("max") == str(len(planned))
        seen.until(lambda: bar.evaluate("e => e.value") == done())
        seen.page.get_by_role("button", name="stop computing").click()
        seen.until(lambda: "cancelling" in seen.text(".rg-status"))
        seen.until(lambda: seen.session._stop)  # it has arrived
        model.gate.set()
        seen.until(lambda: "cancelled" in seen.text(".rg-problem"))
        shows_plan(seen, model)
        rest = model.keys(g.plan(*model.targets).nodes)
        assert rest < planned
        assert after in rest
        go = seen.page.get_by_role("button", name="compute what is stale")
        assert go.inner_text() == f"go on with {len(rest)}"
        go.click()
        shows_run(seen, model)
        assert model.keys(g.last_run.ran) == rest
        assert seen.box(after).locator(".rg-row1").text_content() == "9"


def test_a_second_page_is_in_the_same_mode(chromium_page: Any, model: Model) -> None:
    with live(chromium_page, model.g, targets=model.targets) as seen:
        ask(seen)
        number(seen, model, "w", 3.0)
        seen.until(lambda: "would run" in seen.text(".rg-status"))
        other = seen.page.context.new_page()
        other.goto(seen.page.url)
        other.wait_for_selector(".rg-explorer[data-draws] .rg-box")
        second = Seen(other)
        second.until(lambda: "would run" in second.text(".rg-status"))
        assert other.locator('[data-mode="asked"]').get_attribute("aria-pressed") == "true"
