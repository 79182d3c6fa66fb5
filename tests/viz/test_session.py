"""What the explorer's page is told, without a page: it equals what ran, and nobody waits for it."""

from __future__ import annotations

import json
import math
import sys
import threading
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.explain._snapshot import computing, key_of
from reactgrad.viz._messages import control, wanted_value
from reactgrad.viz._session import Session
from reactgrad_scheduler import Scheduler
from tests.viz.browser import need

need("pygraphviz")

PATIENCE = 30.0


class Page:
    """A page without a screen: knows what a page would know."""

    def __init__(self, graph: rg.Graph, **options: Any) -> None:
        self.told: list[dict[str, Any]] = []
        self.states: dict[int, list[Any]] = {}
        self._news = threading.Condition()
        self.session = Session(graph, self._hear, **options)
        self.session.receive({"kind": "open"})
        self.graph = self.wait_for("graph")
        self.view = self.wait_for("view")

    def _hear(self, message: dict[str, Any]) -> None:
        message = json.loads(json.dumps(message, allow_nan=False))
        with self._news:
            if message["kind"] in ("graph", "frame"):
                if message["kind"] == "graph":
                    self.states = {}
                self.states |= {int(key): state for key, state in message["states"].items()}
            self.told.append(message)
            self._news.notify_all()

    def wait_for(
        self, kind: str, so_that: Callable[[dict[str, Any]], bool] = lambda message: True
    ) -> dict[str, Any]:
        """The latest message of a kind for which something holds."""
        found: list[dict[str, Any]] = []

        def arrived() -> bool:
            found[:] = [m for m in self.told if m["kind"] == kind and so_that(m)]
            return bool(found)

        with self._news:
            assert self._news.wait_for(arrived, PATIENCE), f"no message {kind!r}"
        return found[-1]

    def until(self, holds: Callable[[], bool]) -> None:
        with self._news:
            assert self._news.wait_for(holds, PATIENCE)

    def runs(self) -> list[dict[str, Any]]:
        return [run for m in self.told if m["kind"] == "frame" for run in m["runs"]]

    def set(self, var: rg.Var, value: Any) -> None:
        graph = var._graph
        self.session.receive({"kind": "set", "key": key_of(graph, var), "value": value})


@pytest.fixture
def opened() -> Iterator[Callable[..., Page]]:
    pages: list[Page] = []

    def make(graph: rg.Graph, **options: Any) -> Page:
        pages.append(Page(graph, **options))
        return pages[-1]

    yield make
    for page in pages:
        page.session.close()


def keys(graph: rg.Graph, variables: Any) -> list[int]:
    return [key_of(graph, var) for var in variables]


def model(g: rg.Graph) -> tuple[rg.Var, rg.Var, rg.Var, rg.Var]:
    x = g.input(1.0, name="x")
    w = g.param(2.0, name="w")
    positive = rg.lift(lambda v: v > 0, cutoff="equal")(x)
    positive.name = "positive"
    y = rg.lift(lambda yes, v: v if yes else -v)(positive, w * 3.0)
    y.name = "y"
    return x, w, positive, y


def test_states_told_are_those_of_the_run(
    opened: Callable[..., Page], new_graph: Callable[[], rg.Graph]
) -> None:
    g = new_graph()
    x, w, _, y = model(g)
    gradient = rg.grad(rg.tanh(w), w)
    g.forward(y, gradient)
    page = opened(g)
    for var, value in ((x, 5.0), (w, 7.0), (x, -1.0)):
        before = len(page.runs())
        page.set(var, value)
        page.until(lambda before=before: len(page.runs()) > before)
        run, last = page.runs()[-1], g.last_run
        assert run["ran"] == keys(g, last.ran)
        assert run["cut_off"] == keys(g, last.cut_off)
        assert run["skipped"] == keys(g, last.skipped)
        shown = {key for key, state in page.states.items() if state[1] in ("ran", "cut_off")}
        assert shown == set(run["ran"])
        assert var.value == value
    assert page.states[key_of(g, y)][4] == "-21"
    assert not [key for key, state in page.states.items() if state[0] == "stale"]


def test_what_others_do_shows(opened: Callable[..., Page]) -> None:
    g = rg.Graph()
    _, w, _, y = model(g)
    page = opened(g)
    y.value
    page.until(lambda: page.states[key_of(g, y)][0] == "clean")
    w.set(4.0)
    planned = set(keys(g, g.plan(y).nodes))
    page.until(lambda: page.states[key_of(g, w)][4] == "4")
    assert {key for key, state in page.states.items() if state[0] == "stale"} == planned
    assert page.states[key_of(g, w)][2] == w.value_version


def test_a_burst_of_sets_is_few_messages_and_the_last_value(opened: Callable[..., Page]) -> None:
    g = rg.Graph()
    x, _, _, y = model(g)
    page = opened(g, targets=[y])
    for n in range(1000):  # of the page
        page.set(x, float(n))
    page.until(lambda: page.states[key_of(g, x)][4] == "999")
    for n in range(1000):  # of a cell
        x.set(float(-n))
    page.until(lambda: page.states[key_of(g, x)][4] == "-999")
    # What came while one frame was made is told by the next one.
    assert sum(m["kind"] == "frame" for m in page.told) < 500
    assert g.last_run.ran, "looking is no read"


def test_computing_can_be_cancelled_and_nobody_waits(opened: Callable[..., Page]) -> None:
    g = rg.Graph()
    x = g.input(1.0, name="x")
    entered, leave = threading.Event(), threading.Event()

    def slow(value: float) -> float:
        if value != 1.0:
            entered.set()
            assert leave.wait(PATIENCE)
        return value

    first = rg.lift(slow)(x)
    last = rg.lift(lambda v: v + 1.0)(first)
    g.forward(last)
    page = opened(g)
    page.set(x, 2.0)
    assert entered.wait(PATIENCE)
    page.wait_for("busy", lambda m: m["busy"])
    page.session.receive({"kind": "cancel"})  # returns while the node runs
    leave.set()
    page.wait_for("problem", lambda m: "cancelled" in m["text"])
    page.until(lambda: bool(page.runs()))
    assert page.runs()[-1]["ran"] == keys(g, [first])
    assert last.is_stale
    page.until(lambda: page.states[key_of(g, last)][0] == "stale")
    page.set(x, 1.0)
    page.until(lambda: page.states[key_of(g, last)][0] == "clean")
    assert page.wait_for("problem")["text"] == ""


def test_the_end_of_a_computation_is_told_with_what_it_did(opened: Callable[..., Page]) -> None:
    g = rg.Graph()
    x, _, _, y = model(g)
    g.forward(y)
    page = opened(g)
    for value in (5.0, -1.0, 2.0):  # a page would draw each of both, and need a frame more
        before = len(page.runs())
        page.set(x, value)
        page.until(lambda before=before: len(page.runs()) > before)
        told = [m for m in page.told if m["kind"] != "running"]  # of a thread of its own
        frame = next(n for n, m in enumerate(told) if m["kind"] == "frame" and m["runs"])
        assert told[frame - 1] == {"kind": "busy", "busy": False}
        page.told.clear()


def test_what_is_being_computed_is_told_without_waiting_for_it(
    opened: Callable[..., Page],
) -> None:
    g = rg.Graph()
    x = g.input(1.0, name="x")
    leave = threading.Event()

    def slow(value: float) -> float:
        assert leave.wait(PATIENCE)
        return value

    first = rg.lift(lambda v: v + 1.0)(x)
    node = rg.lift(slow)(first)
    after = node * 2.0
    planned, running = keys(g, [first, node, after]), keys(g, [node])
    page = opened(g)
    page.set(x, 2.0)
    assert page.wait_for("busy", lambda m: m["busy"])["planned"] == planned
    page.wait_for("running", lambda m: m["keys"] == running)
    leave.set()
    page.wait_for("busy", lambda m: not m["busy"])
    page.until(lambda: page.wait_for("running")["keys"] == [])
    page.until(lambda: bool(page.runs()))
    assert page.runs()[-1]["ran"] == planned


def test_nodes_of_several_threads_are_found_while_they_are_computed() -> None:
    g = rg.Graph(executor=rg.Threads(2))
    x = g.input(1.0)
    entered, leave = threading.Barrier(3), threading.Event()

    def slow(value: float) -> float:
        entered.wait(PATIENCE)
        assert leave.wait(PATIENCE)
        return value

    nodes = [rg.lift(slow)(x) for _ in range(2)]
    numbers = keys(g, nodes)
    reader = threading.Thread(target=lambda: g.forward(*nodes))
    assert computing(g) == []
    reader.start()
    entered.wait(PATIENCE)
    assert sorted(computing(g)) == numbers
    leave.set()
    reader.join()
    assert computing(g) == []


def test_a_run_of_somebody_else_is_told_while_it_lasts(opened: Callable[..., Page]) -> None:
    g = rg.Graph()
    x = g.input(1.0, name="x")
    entered, leave = threading.Event(), threading.Event()

    def slow(value: float) -> float:
        entered.set()
        assert leave.wait(PATIENCE)
        return value

    y = rg.lift(slow)(x)
    key = key_of(g, y)
    page = opened(g)
    reader = threading.Thread(target=lambda: y.value)
    reader.start()
    assert entered.wait(PATIENCE)
    page.wait_for("running", lambda m: m["keys"] == [key])
    leave.set()
    reader.join()
    page.until(lambda: page.wait_for("running")["keys"] == [])
    page.until(lambda: page.states[key][0] == "clean")


def test_fields_are_told_what_others_set(opened: Callable[..., Page]) -> None:
    g = rg.Graph()
    x, w = g.input(1.0, name="x"), g.param(np.array([1.0, 2.0]), name="w")
    y = x * w
    page = opened(g, targets=[y])
    assert [c["value"] for c in page.graph["controls"]] == [1.0, [1.0, 2.0]]
    x.set(5.0)
    told = page.wait_for("frame", lambda m: "controls" in m)["controls"]
    assert [(c["key"], c["value"]) for c in told] == [(key_of(g, x), 5.0)]
    w.set([3.0, 4.0])
    told = page.wait_for("frame", lambda m: m.get("controls", [{}])[0].get("type") == "numbers")
    assert [c["value"] for c in told["controls"]] == [[3.0, 4.0]]


def test_a_second_page_is_told_all_and_the_first_nothing_twice(
    opened: Callable[..., Page],
) -> None:
    g = rg.Graph()
    _, w, _, y = model(g)
    page = opened(g)
    y.value
    w.set(4.0)
    page.session.receive({"kind": "open", "page": 2})
    second = page.wait_for("graph", lambda m: m["page"] == 2)
    assert second["states"][str(key_of(g, w))][4] == "4"
    page.wait_for("view", lambda m: m["page"] == 2)
    page.until(lambda: len(page.runs()) == 1)
    # What answers the first has no number of a page; frames are for all of them.
    assert [m["page"] for m in page.told if m["kind"] == "graph"] == [None, 2]
    assert not [m for m in page.told if m["kind"] == "frame" and m.get("page")]


def test_an_error_shows_on_its_node_and_the_page_lives(opened: Callable[..., Page]) -> None:
    g = rg.Graph()
    x = g.input(2.0, name="x")
    y = rg.lift(lambda v: 1.0 / v)(x)
    page = opened(g, targets=[y])
    page.set(x, 0.0)
    page.until(lambda: page.states[key_of(g, y)][0] == "error")
    assert page.states[key_of(g, y)][6] == "ZeroDivisionError: float division by zero"
    assert "ZeroDivisionError" in page.wait_for("problem", lambda m: m["text"] != "")["text"]
    page.until(lambda: bool(page.runs()))
    assert page.runs()[-1]["failed"] == keys(g, [y])
    page.set(x, 4.0)
    page.until(lambda: page.states[key_of(g, y)][4] == "0.25")


def test_values_that_do_not_fit_are_refused_in_words(opened: Callable[..., Page]) -> None:
    g = rg.Graph()
    x = g.input(np.array([1.0, 2.0]), name="x")
    y = x * 2.0
    y.value
    page = opened(g)
    page.set(x, [1.0, 2.0, 3.0])
    told = page.wait_for("problem", lambda m: m["text"] != "")["text"]
    assert "holds an array of as many numbers as before" in told
    page.set(x, [5.0, 6.0])
    page.until(lambda: page.states[key_of(g, y)][4] == "[10, 12]")


def test_why_is_what_the_graph_says(opened: Callable[..., Page]) -> None:
    g = rg.Graph()
    _, w, positive, y = model(g)
    loss = rg.tanh(w)
    slope = rg.grad(loss, w)
    g.forward(y, slope)
    page = opened(g)
    for var in (y, w, positive):
        page.session.receive({"kind": "why", "key": key_of(g, var)})
        told = page.wait_for("why", lambda m, var=var: m["key"] == key_of(g, var))
        assert told["text"] == str(g.why(var))
    assert told["cutoff"] == "equal"
    told = page.wait_for("why", lambda m: m["key"] == key_of(g, w))
    assert math.isclose(float(told["gradient"]), abs(float(slope.value)), rel_tol=1e-5)


def test_an_edit_is_shown_as_a_difference(opened: Callable[..., Page]) -> None:
    g = rg.Graph()
    x, w, *_ = model(g)
    old, new = w * 3.0, w * 5.0
    z = g.keep(old + x)
    z.value
    page = opened(g)
    z.replace_parent(0, new)
    del old
    page.wait_for("graph", lambda m: m["edit"])
    view = page.wait_for("view", lambda m: any(line["mark"] for line in m["lines"]))
    ends = [box["node"] for box in view["boxes"]]
    marked = {(line["mark"], ends[line["from"]], ends[line["to"]]) for line in view["lines"]}
    assert ("added", key_of(g, new), key_of(g, z)) in marked
    assert any(mark == "removed" and child == key_of(g, z) for mark, _, child in marked)
    fresh = rg.exp(z)
    page.wait_for(
        "view",
        lambda m: any(
            box["node"] == key_of(g, fresh) and box["mark"] == "added" for box in m["boxes"]
        ),
    )
    page.session.receive({"kind": "settle"})
    page.wait_for(
        "view", lambda m: not any(box["mark"] in ("added", "removed") for box in m["boxes"])
    )


def test_another_genome_is_shown_as_a_difference(opened: Callable[..., Page]) -> None:
    pytest.importorskip("neat", reason="brings a network to another genome")
    from reactgrad.neat import Network
    from tests.neat.mutations import add_gene, config, connect, new_genome

    settings, draw = config(inputs=1, outputs=1), Random(1)
    genome = new_genome(settings, draw)
    net = Network.create(genome, settings)
    net.activate(np.ones((2, 1)))
    page = opened(net.graph)
    before = {node.key for node in net.graph.snapshot().nodes}
    key = add_gene(genome, 7, draw).key
    connect(genome, -1, key, 0.5)
    connect(genome, key, 0, 0.5)
    net.update(genome)
    page.wait_for("graph", lambda m: m["edit"])
    view = page.wait_for(
        "view", lambda m: any(box["node"] == key_of(net.graph, net[key]) for box in m["boxes"])
    )
    added = {box["node"] for box in view["boxes"] if box["mark"] == "added"}
    assert key_of(net.graph, net[key]) in added
    assert added.isdisjoint(before)


def test_nothing_is_watched_while_no_page_is_open() -> None:
    g = rg.Graph()
    x, *_, y = model(g)
    page = Page(g)
    assert type(g._scheduler) is not Scheduler
    page.session.receive({"kind": "shut"})
    page.session.receive({"kind": "why", "key": key_of(g, y)})  # answered after it
    page.wait_for("why")
    assert type(g._scheduler) is Scheduler
    page.session.close()

    def calls(x: rg.Var, y: rg.Var) -> int:
        counted = 0

        def count(frame: Any, event: str, arg: Any) -> None:
            nonlocal counted
            counted += 1

        x.set(x.value + 1.0)
        sys.setprofile(count)
        try:
            x.set(x.value + 1.0)
            y.value
        finally:
            sys.setprofile(None)
        return counted

    twin = rg.Graph()
    a, *_, b = model(twin)
    least = min(calls(a, b) for _ in range(10))  # once plans are there
    assert min(calls(x, y) for _ in range(10)) == least


def test_the_page_keeps_no_node_alive(opened: Callable[..., Page]) -> None:
    g = rg.Graph()
    x, *others = model(g)
    opened(g)
    before = len(g)
    for _ in range(50):
        rg.tanh(x).value
    assert len(g) == before
    assert others[-1].is_stale, "these are held here"


@pytest.mark.slow
def test_ten_thousand_nodes_are_a_neighbourhood_or_refused(opened: Callable[..., Page]) -> None:
    g = rg.Graph()
    x = g.input(1.0, name="x")
    y = x
    for _ in range(10_000):
        y = y + 1.0
    page = opened(g)
    assert len(page.view["boxes"]) == 200
    assert page.view["hidden"] == page.view["total"] - 200 > 9000
    middle = g.nodes[5000]
    page.session.receive({"kind": "view", "layer": "values", "focus": f"#{key_of(g, middle)}"})
    view = page.wait_for("view", lambda m: m["focus"] != "")
    assert key_of(g, middle) in [box["node"] for box in view["boxes"]]


def test_folded_scopes_hold_all_and_open_one_by_one(opened: Callable[..., Page]) -> None:
    g = rg.Graph()
    x = g.input(1.0, name="x")
    ends = []
    for block in range(5):
        y = x
        for n in range(400):
            y = y + 1.0
            y.name = f"block{block}/part{n // 100}/{n}"
        ends.append(y)
    page = opened(g, layer="values")
    assert {box["key"] for box in page.view["boxes"]} >= {f"block{n}/" for n in range(5)}
    assert page.view["hidden"] == 0
    assert len(page.view["boxes"]) < 20
    assert {len(box["members"]) for box in page.view["boxes"] if box["node"] is None} == {401}
    page.session.receive({"kind": "view", "layer": "values", "focus": "block1/"})
    view = page.wait_for("view", lambda m: m["focus"] == "block1/")
    folded = {box["key"] for box in view["boxes"] if box["node"] is None}
    assert {f"block1/part{n}/" for n in range(4)} <= folded
    page.session.receive({"kind": "view", "layer": "values", "focus": "block1/part2/"})
    view = page.wait_for("view", lambda m: m["focus"] == "block1/part2/")
    assert sum(box["node"] is not None for box in view["boxes"]) >= 100


def test_without_the_package_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    g = rg.Graph()
    y = rg.tanh(g.input(1.0))
    with pytest.raises(rg.MissingExtraError, match="reactgrad\\[viz\\]") as caught:
        g.explore(y)
    assert "\n" not in str(caught.value)
    with pytest.raises(rg.MissingExtraError, match="reactgrad\\[viz\\]"):
        g.export_html(tmp_path / "page.html")


def test_a_widget_is_made_of_any_targets_and_bounds_and_closes() -> None:
    pytest.importorskip("anywidget", reason="widgets, extra jupyter")
    g = rg.Graph()
    x, *_, y = model(g)
    widget = g.explore("y", y, bounds={"x": (-2.0, 2.0)})
    widget._session.receive({"kind": "open"})
    widget.close()
    assert type(g._scheduler) is Scheduler
    with pytest.raises(rg.VizError, match="3,000|limit"):
        for _ in range(3001):
            x = x + 1.0
        g.explore(x, limit=20_000)
    with pytest.raises(rg.VizError, match="layer"):
        g.explore(layer="none")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "made"),
    [
        (2.0, {"type": "number", "value": 2.0, "low": 0.0, "high": 4.0}),
        (-2.0, {"type": "number", "value": -2.0, "low": -4.0, "high": 0.0}),
        (0.0, {"type": "number", "value": 0.0, "low": -1.0, "high": 1.0}),
        (3, {"type": "integer", "value": 3, "low": 0.0, "high": 6.0}),
        (True, {"type": "toggle", "value": True}),
        (np.array([1.0, 2.0]), {"type": "numbers", "value": [1.0, 2.0]}),
        (np.float32(0.5), {"type": "number", "value": 0.5, "low": 0.0, "high": 1.0}),
        (np.zeros(100), None),
        (float("nan"), None),
        (np.array([float("inf")]), None),
        ("text", None),
        (10**30, None),
        (10**400, None),
        (-(2**53), {"type": "integer", "value": -(2**53), "low": -(2.0**54), "high": 0.0}),
    ],
)
def test_inputs_get_the_fields_that_fit_them(value: Any, made: Any) -> None:
    g = rg.Graph()
    x = g.input(value)
    found = control(g, x, 1, None)
    assert found == (None if made is None else {"key": 1} | made)
    if found is not None:
        kind = type(x.value)
        x.set(wanted_value(g, json.loads(json.dumps(found["value"])), x))
        assert type(x.value) is kind
