"""Recordings: what ran, in order, with durations; the trace file."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

import reactgrad as rg
from tests.explain.models import chain_of_three, named, row_of_tanh


def outcomes(log: rg.Recording) -> list[tuple[int, str, str]]:
    return [(call.run, call.node, call.outcome) for call in log.calls]


@pytest.mark.parametrize("turns", [0, 5], ids=["first read", "replayed plan"])
def test_every_node_of_every_run_is_seen_in_order(g: rg.Graph, turns: int) -> None:
    x, _, y = chain_of_three(g)
    for turn in range(turns):
        x.set(float(turn))
        y.value
    with g.record() as log:
        for turn in (5.0, 6.0):
            x.set(turn)
            g.forward(y)
    assert outcomes(log) == [(0, "a", "ran"), (0, "y", "ran"), (1, "a", "ran"), (1, "y", "ran")]
    assert [list(run.ran) for run in log.runs] == [[g["a"], g["y"]]] * 2
    first = log.calls[0]
    assert (first.op, first.version, first.shape) == ("multiply", turns + 1, "float64[]")
    assert first.operands == ("a Python float", "a Python float")


def test_durations_add_up_and_lie_inside_of_their_run(g: rg.Graph) -> None:
    x, _, y = chain_of_three(g)
    with g.record() as log:
        y.value
        x.set(2.0)
        y.value
    ends = [0.0]
    for call in log.calls:
        assert call.seconds >= 0.0
        assert call.began >= ends[-1], "one after the other"
        ends.append(call.began + call.seconds)
    assert sum(call.seconds for call in log.calls) <= ends[-1]


def test_outcomes(g: rg.Graph) -> None:
    x = g.input(1.2, name="x")
    f = named(rg.floor(x), "f")
    f.cutoff = "equal"
    y = named(f + 2.0, "y")
    bad = named(rg.lift(lambda v: 1 / (v - 2.0))(x), "bad")
    after = named(bad + 1.0, "after")
    g.forward(y, after)
    with g.record() as log:
        x.set(1.4)
        g.forward(y)
        x.set(2.0)
        with pytest.raises(ZeroDivisionError):
            g.forward(y, after)
        with pytest.raises(ZeroDivisionError):
            after.value
    assert ("f", "cut_off") in [(c.node, c.outcome) for c in log.calls if c.run == 0]
    assert ("bad", "failed") in [(c.node, c.outcome) for c in log.calls if c.run == 1]
    assert not [c for c in log.calls if c.run == 2], "a stored error is raised again, not run again"
    assert [c.node for c in log.calls if c.outcome == "ran" and c.run == 1] == ["f", "y"]


def test_rebuilt_nodes(g: rg.Graph) -> None:
    w = g.param(2.0, name="w")
    square = named(w * w, "square")
    loss = named(rg.tanh(square), "loss")
    loss.backward(retain_graph=False)
    version = square.value_version
    with g.record() as log:
        square.value
    assert outcomes(log) == [(0, "square", "rebuilt")]
    assert log.calls[0].version == version
    assert list(log.runs[0].rebuilt) == [square]


def test_views_are_seen_and_take_no_time(g: rg.Graph) -> None:
    x = g.input([[1.0, 2.0]], name="x")
    view = named(x.T, "view")
    y = named(view + 1.0, "y")
    for turn in range(4):
        x.set([[1.0, float(turn)]])
        y.value
    with g.record() as log:
        x.set([[5.0, 6.0]])
        y.value
    assert [c.node for c in log.calls] == ["view", "y"]
    assert list(log.runs[0].ran) == [view, y]


def test_a_read_inside_a_node_belongs_to_the_run_of_the_node(g: rg.Graph) -> None:
    x = g.input(1.0, name="x")
    inner = named(x * 2.0, "inner")
    outer = named(rg.lift(lambda v: v + inner.value)(x), "outer")
    with g.record() as log:
        outer.value
    assert len(log.runs) == 1
    assert [c.node for c in log.calls] == ["inner", "outer"]
    first, second = log.calls
    assert second.began <= first.began
    assert first.began + first.seconds <= second.began + second.seconds


def test_a_first_read_in_the_middle_of_a_replayed_plan(g: rg.Graph) -> None:
    """The rest of the plan runs otherwise then, and is still seen once."""
    asks = False
    x = g.input([[1.0, 2.0]], name="x")
    inner = named(x * 2.0, "inner")
    f = named(rg.lift(lambda v: inner.value if asks else v * 2.0, shape=(1, 2))(x), "f")
    view = named(f.T, "view")
    last = named(view + 1.0, "last")
    for turn in range(5):
        x.set([[1.0, float(turn)]])
        last.value
    asks = True
    x.set([[5.0, 6.0]])
    with g.record() as log:
        last.value
    assert [c.node for c in log.calls] == ["inner", "f", "view", "last"]
    assert len(log.runs) == 1


def test_nothing_is_seen_before_or_after(g: rg.Graph) -> None:
    x, _, y = chain_of_three(g)
    y.value
    with g.record() as log:
        pass
    x.set(2.0)
    y.value
    assert log.runs == log.calls == ()
    assert str(log).startswith("0 runs, 0 nodes called")
    assert g.last_run.ran


def test_nested_recordings_each_see_their_own(g: rg.Graph) -> None:
    x, _, y = chain_of_three(g)
    with g.record() as outer:
        y.value
        with g.record() as inner:
            x.set(2.0)
            y.value
        x.set(3.0)
        y.value
    assert (len(outer.runs), len(inner.runs)) == (3, 1)
    assert [c.node for c in inner.calls] == ["a", "y"]


def test_recordings_that_overlap_without_nesting(g: rg.Graph) -> None:
    x, _, y = chain_of_three(g)
    one, two = g.record(), g.record()
    one.__enter__()
    y.value
    two.__enter__()
    x.set(2.0)
    y.value
    one.__exit__()
    x.set(3.0)
    y.value
    two.__exit__()
    assert (len(one.runs), len(two.runs)) == (2, 2)


def test_a_recording_may_go_on_but_not_run_twice_at_a_time(g: rg.Graph) -> None:
    x, _, y = chain_of_three(g)
    log = g.record()
    with log:
        y.value
        with pytest.raises(rg.GraphError, match="under way"), log:
            pass
    with log:
        x.set(2.0)
        y.value
    assert len(log.runs) == 2
    assert log.calls[2].began > log.calls[1].began


def test_two_threads_record_at_the_same_time(g: rg.Graph) -> None:
    x, _, y = chain_of_three(g)
    barrier = threading.Barrier(2)
    logs: list[rg.Recording] = []

    def work() -> None:
        with g.record() as log:
            barrier.wait()
            for turn in range(50):
                x.set(float(turn))
                y.value
            barrier.wait()
        logs.append(log)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    first, second = logs
    assert outcomes(first) == outcomes(second), "both saw all runs of the graph"
    called = [c for c in first.calls if c.node == "y"]
    assert len(called) == y.value_version
    g.check_invariants()


def test_a_recording_that_ends_inside_a_node(g: rg.Graph) -> None:
    x = g.input(1.0, name="x")
    log = g.record()

    def end(v: float) -> float:
        if log._listening:
            log.__exit__()
        return v

    y = rg.lift(end)(x) + 1.0
    for turn in range(4):
        log.__enter__()
        x.set(float(turn))
        y.value
        assert not log._listening
    g.check_invariants()
    assert y.value == 4.0


def test_an_interrupt_leaves_what_had_run(g: rg.Graph) -> None:
    stop = False

    def interrupted(v: float) -> float:
        if stop:
            raise KeyboardInterrupt
        return v

    x = g.input(1.0, name="x")
    a = named(x * 2.0, "a")
    y = named(rg.lift(interrupted)(a), "y")
    for turn in range(4):
        x.set(float(turn))
        y.value
    stop = True
    x.set(9.0)
    with g.record() as log, pytest.raises(KeyboardInterrupt):
        y.value
    assert outcomes(log) == [(0, "a", "ran"), (0, "y", "interrupted")]
    stop = False
    assert y.value == 18.0
    g.check_invariants()


def test_table_and_text(g: rg.Graph) -> None:
    x = g.input(1.0)
    y = row_of_tanh(x, 3) + 1.0
    with g.record() as log:
        y.value
    rows = {row.op: row for row in log.table()}
    assert {op: row.calls for op, row in rows.items()} == {"tanh": 3, "add": 1}
    for op, row in rows.items():
        assert row.seconds == pytest.approx(sum(c.seconds for c in log.calls if c.op == op))
    seconds = [row.seconds for row in log.table()]
    assert seconds == sorted(seconds, reverse=True)
    text = str(log)
    assert text.startswith("1 runs, 4 nodes called")
    assert any(line.split()[:2] == ["tanh", "3"] for line in text.splitlines())


# --- the trace -----------------------------------------------------------------------------------


def trace_of(log: rg.Recording, path: Path) -> list[dict[str, Any]]:
    log.to_chrome_trace(path)
    loaded = json.loads(path.read_text(encoding="utf-8"))
    return loaded["traceEvents"]


def test_the_trace_has_the_fields_that_viewers_need(g: rg.Graph, tmp_path: Path) -> None:
    x = g.input([1.0, 2.0], name="x")
    y = named(rg.tanh(x * 2.0), "y")
    with g.record() as log:
        y.value
        x.set([3.0, 4.0])
        y.value
    events = trace_of(log, tmp_path / "trace.json")
    slices = [event for event in events if event["ph"] == "X"]
    assert {event["ph"] for event in events} == {"X", "M"}
    for one in slices:
        assert {"name", "cat", "ts", "dur", "pid", "tid", "args"} <= one.keys()
        assert one["ts"] >= 0
        assert one["dur"] >= 0
    nodes = [event for event in slices if event["cat"] != "run"]
    assert [n["name"] for n in nodes] == ["multiply_3", "y", "multiply_3", "y"]
    assert [(n["args"]["op"], n["args"]["version"]) for n in nodes[1::2]] == [
        ("tanh", 1),
        ("tanh", 2),
    ]
    assert nodes[1]["args"]["shape"] == "float64[2]"
    assert nodes[1]["args"]["operands"] == ["float64[2]"]
    for call, node in zip(log.calls, nodes, strict=True):
        assert node["ts"] == pytest.approx(call.began * 1e6), "microseconds"
        assert node["dur"] == pytest.approx(call.seconds * 1e6)


def test_slices_of_one_thread_nest(g: rg.Graph, tmp_path: Path) -> None:
    x = g.input(1.0, name="x")
    inner = named(x * 2.0, "inner")
    outer = named(rg.lift(lambda v: v + inner.value)(x), "outer")
    last = outer * 3.0
    with g.record() as log:
        for turn in range(5):
            x.set(float(turn))
            last.value
    stack: list[tuple[float, float]] = []
    for one in [e for e in trace_of(log, tmp_path / "t.json") if e["ph"] == "X"]:
        begin, end = one["ts"], one["ts"] + one["dur"]
        while stack and stack[-1][1] <= begin:
            stack.pop()
        for _, until in stack:
            assert end <= until + 1e-3, "a slice lies inside of what is open, or after it"
        stack.append((begin, end))


def test_each_thread_has_its_track(g: rg.Graph, tmp_path: Path) -> None:
    x, _, y = chain_of_three(g)
    with g.record() as log:
        y.value

        def work() -> None:
            x.set(2.0)
            y.value

        thread = threading.Thread(target=work, name="worker")
        thread.start()
        thread.join()
    events = trace_of(log, tmp_path / "t.json")
    tracks = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert "worker" in tracks.values()
    runs = [e for e in events if e.get("cat") == "run"]
    assert [tracks[e["tid"]] for e in runs] == [threading.current_thread().name, "worker"]


def test_names_of_any_text_are_written(g: rg.Graph, tmp_path: Path) -> None:
    y = named(g.input(1.0) + 1.0, 'price "β"\n\udcff')
    with g.record() as log:
        y.value
    names = [e["name"] for e in trace_of(log, tmp_path / "t.json")]
    assert 'price "β"\n\udcff' in names


def test_a_trace_appears_whole_or_not_at_all(
    g: rg.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, _, y = chain_of_three(g)
    with g.record() as log:
        y.value
    path = tmp_path / "trace.json"
    path.write_text("before")

    def full(*args: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="no space"):
        log.to_chrome_trace(path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path], "nothing is left behind"
    monkeypatch.undo()
    log.to_chrome_trace(str(path))
    assert json.loads(path.read_text())["traceEvents"]


def test_an_empty_recording_is_a_valid_trace(g: rg.Graph, tmp_path: Path) -> None:
    with g.record() as log:
        pass
    assert all(event["ph"] == "M" for event in trace_of(log, tmp_path / "t.json"))


def test_a_recording_keeps_no_node(g: rg.Graph) -> None:
    x = g.input(1.0)
    y = x + 1.0
    with g.record() as log:
        y.value
    before = len(g)
    del y
    assert len(g) == before - 2
    assert len(log.calls) == 1
    assert list(log.runs[0].ran) == []


def test_a_trace_that_cannot_be_written_names_the_path_that_was_given(tmp_path: Path) -> None:
    g = rg.Graph()
    with g.record() as log:
        g.input(1.0).value
    for path in (tmp_path / "absent" / "trace.json", tmp_path):
        with pytest.raises(OSError, match="directory|denied") as caught:
            log.to_chrome_trace(path)
        assert caught.value.filename == str(path)
        assert caught.value.filename2 is None
    assert not [*tmp_path.iterdir()]
