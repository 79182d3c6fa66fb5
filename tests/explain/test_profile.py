"""Profiles: which ops and nodes ran, how often, for how long, and what memory they computed."""

from __future__ import annotations

import dataclasses
import gc
import json
import threading
import weakref
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.reading._blocks import open_blocks
from tests.explain.models import named


def model(g: rg.Graph) -> tuple[Any, Any, Any]:
    """Input, weights and loss: two matmuls, two tanhs, a sum."""
    x = g.input(np.full((4, 3), 0.1), name="x")
    w = g.param(np.full((3, 3), 0.2), name="w")
    loss = rg.tanh(rg.tanh(x @ w) @ w).sum()
    loss.name = "loss"
    return x, w, loss


def calls(table: Any) -> dict[str, int]:
    return {row.name: row.calls for row in table.rows}


def test_by_op_and_by_node(g: rg.Graph) -> None:
    x, _, loss = model(g)
    with rg.profile() as prof:
        for _ in range(3):
            x.touch()
            loss.value
    assert calls(prof.table()) == {"matmul": 6, "tanh": 6, "sum": 3}
    assert calls(prof.table(by="node")) == {
        "matmul_3": 3,
        "tanh_4": 3,
        "matmul_5": 3,
        "tanh_6": 3,
        "loss": 3,
    }
    of = {row.name: row for row in prof.rows}
    assert of["tanh"].bytes == 6 * 4 * 3 * 8
    assert of["sum"].bytes == 3 * 8
    assert sum(row.share for row in prof.rows) == pytest.approx(1.0)
    assert prof.rows == prof.table().rows


def test_rows_agree_with_the_runs(g: rg.Graph) -> None:
    x, w, loss = model(g)
    with rg.profile() as prof, g.record() as log:
        loss.backward()
        w.set(w.value * 2.0)
        loss.backward()
        x.touch()
        loss.value
    assert calls(prof.table()) == dict(Counter(call.op for call in log.calls))
    assert calls(prof.table(by="node")) == dict(Counter(call.node for call in log.calls))
    ran = Counter(var.name for run in log.runs for var in run.ran)
    assert calls(prof.table(by="node")) == dict(ran)


def test_what_is_clean_has_no_row(g: rg.Graph) -> None:
    _, _, loss = model(g)
    loss.value
    with rg.profile() as prof:
        loss.value
        g.forward(loss)
    assert prof.rows == ()
    assert "0 nodes called" in str(prof)


def test_a_function_that_reads_has_less_time_of_its_own(g: rg.Graph) -> None:
    x = g.input(1.0)
    inner = named(rg.tanh(x), "inner")
    with g:
        outer = named(rg.lift(lambda: float(inner.value))(), "outer")
    with rg.profile() as prof:
        outer.value
    of = {row.name: row for row in prof.table(by="node").rows}
    assert of["outer"].self_seconds == pytest.approx(of["outer"].seconds - of["inner"].seconds)
    assert of["inner"].self_seconds == of["inner"].seconds
    assert of["inner"].seconds < of["outer"].seconds


def test_a_view_has_no_bytes(g: rg.Graph) -> None:
    x = g.input(np.zeros((2, 3)))
    y, z = x.T, rg.lift(lambda a: np.ones(5))(x)
    with rg.profile() as prof:
        g.forward(y, z)
    assert {row.op: row.bytes for row in prof.rows} == {"transpose": 0, "lambda": 40}


def test_what_was_released_since_counts(g: rg.Graph) -> None:
    x = g.param(np.full(10, 0.5))
    y = rg.checkpoint(lambda x: rg.tanh(rg.tanh(rg.tanh(x))), x)
    with rg.profile() as prof:
        y.value
    assert [(row.name, row.bytes) for row in prof.rows] == [("tanh", 240)]


@pytest.mark.parametrize("sort", ["self_seconds", "seconds", "bytes", "calls"])
def test_sorted_largest_first(g: rg.Graph, sort: Any) -> None:
    _, _, loss = model(g)
    with rg.profile() as prof:
        loss.backward()
    for by in ("op", "node"):
        found = [getattr(row, sort) for row in prof.table(by=by, sort=sort).rows]
        assert found == sorted(found, reverse=True)
        assert len(found) > 3
        names = [row.name for row in prof.table(by=by, sort="name").rows]
        assert names == sorted(names)


def test_rows_cannot_be_changed(g: rg.Graph) -> None:
    _, _, loss = model(g)
    with rg.profile() as prof:
        loss.value
    assert isinstance(prof.rows, tuple)
    with pytest.raises(dataclasses.FrozenInstanceError):
        prof.rows[0].calls = 7  # type: ignore[misc]


def test_wrong_words(g: rg.Graph) -> None:
    prof = rg.profile()
    with pytest.raises(rg.DTypeError, match=r"by='nodes'.*one of 'op', 'node'"):
        prof.table(by="nodes")  # type: ignore[arg-type]
    with pytest.raises(rg.DTypeError, match=r"sort='time'.*'self_seconds'"):
        prof.table(sort="time")  # type: ignore[arg-type]


def test_the_text_is_a_table(g: rg.Graph) -> None:
    _, _, loss = model(g)
    with rg.profile() as prof:
        loss.value
    lines = str(prof).splitlines()
    assert lines[0].startswith("5 nodes called, ")
    assert " ".join(lines[1].split()) == "op calls self ms share total ms us a call bytes"
    assert len({len(line) for line in lines[1:]}) == 1, "columns are aligned"
    assert {line.split()[0] for line in lines[2:]} == {"matmul", "tanh", "sum"}
    by_node = str(prof.table(by="node"))
    assert "loss (sum)" in by_node
    assert repr(prof) == "<Profile: 1 runs, 5 nodes called>"


def test_all_graphs_of_the_thread(g: rg.Graph) -> None:
    other = rg.Graph()
    here, there = rg.tanh(g.input(1.0)), rg.tanh(other.input(1.0))
    with rg.profile() as prof:
        here.value
        there.value
        with g.whatif() as fork:
            twin = rg.tanh(fork[here])
            twin.value
    assert calls(prof.table()) == {"tanh": 3}
    assert len(prof.table(by="node").rows) == 3, "nodes of the same name in other graphs are others"


def test_other_threads_are_not_seen(g: rg.Graph) -> None:
    x = g.input(1.0)
    y = rg.tanh(x)
    with rg.profile() as prof:
        thread = threading.Thread(target=lambda: y.value)
        thread.start()
        thread.join()
    assert prof.rows == ()
    assert y.value == np.tanh(1.0)


def test_it_goes_on_when_entered_again_and_nests(g: rg.Graph) -> None:
    x = g.input(1.0)
    y = rg.tanh(x)
    outer = rg.profile()
    with outer:
        y.value
        with pytest.raises(rg.GraphError, match="under way already"), outer:
            pass
    x.touch()
    y.value
    with outer, rg.profile() as inner:
        x.touch()
        y.value
    assert calls(outer.table(by="node")) == {"y": 2}
    assert calls(inner.table()) == {"tanh": 1}
    assert not open_blocks


def test_decorator_adds_up_all_calls_also_of_itself(g: rg.Graph) -> None:
    x, _, loss = model(g)
    prof = rg.profile()

    @prof
    def step(times: int) -> float:
        x.touch()
        value = float(loss.value)
        return value if times == 1 else step(times - 1)

    assert step(2) == step(1)
    assert calls(prof.table()) == {"matmul": 6, "tanh": 6, "sum": 3}
    x.touch()
    loss.value
    assert sum(calls(prof.table()).values()) == 15
    assert not open_blocks


def test_failed_nodes_count_and_the_error_passes(g: rg.Graph) -> None:
    bad = rg.lift(lambda v: 1 / v)(g.input(0))
    with rg.profile() as prof, pytest.raises(ZeroDivisionError):
        bad.value
    assert calls(prof.table()) == {"lambda": 1}
    assert not open_blocks


def test_together_with_anomaly_mode(g: rg.Graph) -> None:
    y = rg.log(g.input(-1.0)) + 1.0
    with rg.profile() as prof, rg.detect_anomaly(), pytest.raises(rg.AnomalyError):
        y.value
    assert calls(prof.table()) == {"log": 1}


def test_it_keeps_no_graph_alive() -> None:
    prof = rg.profile()
    g = rg.Graph()
    y = rg.tanh(g.input(1.0))
    with prof:
        y.value
    gone = weakref.ref(g)
    del g, y
    gc.collect()
    assert gone() is None
    assert calls(prof.table()) == {"tanh": 1}


def test_a_trace(g: rg.Graph, tmp_path: Path) -> None:
    other = rg.Graph()
    _, _, loss = model(g)
    with rg.profile() as prof:
        loss.backward()
        rg.tanh(other.input(1.0)).value
    path = tmp_path / "trace.json"
    prof.to_chrome_trace(path)
    events = json.loads(path.read_text())["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    assert len([one for one in slices if one["cat"] == "run"]) == 2
    assert len(slices) == 2 + sum(row.calls for row in prof.rows)
