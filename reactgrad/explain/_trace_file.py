"""Recorded runs as a trace file that Chrome and Perfetto open."""

from __future__ import annotations

import os
from typing import Any

from reactgrad._files import write_whole
from reactgrad.explain._calls import Seen


def write_trace(path: str | os.PathLike[str], seen: Seen) -> None:
    """Write what was seen as a trace; see ``Recording.to_chrome_trace``."""
    with seen.lock:
        calls, spans, threads = tuple(seen.calls), tuple(seen.spans), dict(seen.threads)
    process = os.getpid()
    named: list[dict[str, Any]] = [
        _metadata("process_name", "reactgrad", process, 0),
        *[_metadata("thread_name", name, process, tid) for tid, name in threads.items()],
    ]
    slices: list[dict[str, Any]] = [
        _slice(span.title, "run", span.began, span.seconds, process, span.thread, {})
        for span in spans
    ]
    for call in calls:
        args = {
            "op": call.op,
            "outcome": call.outcome,
            "version": call.version,
            "shape": call.shape,
            "operands": list(call.operands),
            "run": call.run,
        }
        thread = spans[call.run].thread
        slices.append(_slice(call.node, call.op, call.began, call.seconds, process, thread, args))
    # Outer slices before those inside of them, as viewers nest them.
    slices.sort(key=lambda one: (one["ts"], -one["dur"]))
    import json  # here, since json is a part of the cost of `import reactgrad` that only files need

    write_whole(path, json.dumps({"traceEvents": [*named, *slices], "displayTimeUnit": "ms"}))


def _slice(
    name: str,
    kind: str,
    began: float,
    seconds: float,
    process: int,
    thread: int,
    args: dict[str, Any],
) -> dict[str, Any]:
    """Return a complete event of the trace."""
    return {
        "name": name,
        "cat": kind,
        "ph": "X",
        "ts": began * 1e6,
        "dur": seconds * 1e6,
        "pid": process,
        "tid": thread,
        "args": args,
    }


def _metadata(what: str, name: str, process: int, thread: int) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}
