"""The messages to the explorer's page: snapshots as JSON, and for each next one the differences.

Every message is a dict with ``kind``; ``page/explorer.js`` lists what it does with each.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from itertools import compress
from operator import attrgetter, is_not
from typing import Any, get_args

import numpy as np

from reactgrad._errors import DTypeError
from reactgrad.core._core import Core
from reactgrad.explain._passage import passage
from reactgrad.explain._search import explain
from reactgrad.explain._snapshot import NodeSnapshot, RunSnapshot, Snapshot, adjoint_of, present
from reactgrad.nodes._cutoff import Tolerance
from reactgrad.nodes._handle import Handle
from reactgrad.scheduler import safe_repr
from reactgrad.viz._figures import figures, table
from reactgrad.viz._html import abbreviated
from reactgrad.viz._picture import Layer
from reactgrad.viz._text import key_of_scope, sent

Message = dict[str, Any]

MOST_ANSWERS = 3  # that the title names

VALUE, ERROR = 4, 6  # positions in the state of a node, as the page gets it


def heading(now: Snapshot, targets: Iterable[int]) -> str:
    """Return the title of a page that was given none: what the graph answers, and from what.

    Parameters
    ----------
    now
        A snapshot of the graph.
    targets
        Keys of the nodes that the page brings up to date.
    """
    known = [now.by_key[key] for key in targets if key in now.by_key]
    answers = [node.name for node in known if node.named and not node.gradient]
    more = len(answers) - MOST_ANSWERS
    kinds = Counter(node.kind for node in now.nodes if not node.gradient)
    leaves = [_counted(kind, kinds[kind]) for kind in ("input", "param") if kinds[kind]]
    named = ", ".join(answers[:MOST_ANSWERS] or ["Graph"]) + (
        f" and {more:,} more" if more > 0 else ""
    )
    return named + (f" from {' and '.join(leaves)}" if leaves else "")


def _counted(noun: str, number: int) -> str:
    """Return a number of things.

    >>> _counted("node", 1), _counted("param", 1200)
    ('1 node', '1,200 params')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def graph_message(
    now: Snapshot,
    *,
    targets: Iterable[int],
    title: str,
    gone: Iterable[NodeSnapshot] = (),
    controls: Iterable[Message] = (),
    begin: Snapshot | None = None,
    last: RunSnapshot | None = None,
    live: bool,
) -> Message:
    """Return everything that changes only by edits of the graph, and the states to begin with.

    Parameters
    ----------
    targets
        Keys of the nodes that a read is to bring up to date.
    title
        The text above the page.
    gone
        Nodes of a former snapshot that are shown as removed.
    controls
        The results of ``control`` for inputs.
    begin
        The snapshot with the states to begin with; by default `now`.
    last
        The run from before that left the states to begin with, if there was one.
    live
        True if a graph answers; else the page replays what was recorded.
    """
    lines: dict[str, int] = {}  # many nodes may be built by one line
    scopes: dict[tuple[str, ...], int] = {}
    nodes = [_fixed(node, lines, scopes, gone=True) for node in gone]
    nodes += [_fixed(node, lines, scopes) for node in now.nodes]
    parts = dict.fromkeys(path[: n + 1] for path in scopes for n in range(len(path)))
    return {
        "kind": "graph",
        "title": sent(title),
        "live": live,
        "nodes": nodes,
        "lines": [sent(line) for line in lines],
        "scopes": [[sent(part) for part in path] for path in scopes],
        "parts": [[key_of_scope(path), [sent(part) for part in path]] for path in parts],
        "edges": [[e.parent, e.child, e.detached, e.read] for e in now.edges],
        "targets": [*targets],
        "last": None if last is None else _run(last, (begin or now)._computed),
        "controls": [*controls],
        "states": {
            str(node.key): _state(node) for node in (begin or now).nodes if node.key in now.by_key
        },
    }


def frame_message(before: Snapshot, now: Snapshot, runs: Iterable[RunSnapshot]) -> Message:
    """Return the differences from the snapshot that was sent before, and the runs in between."""
    former = [*map(before.by_key.get, now.by_key)]
    states: Message = {}
    # Most nodes are taken from there.
    for earlier, node in compress(
        zip(former, now.nodes, strict=True), map(is_not, former, now.nodes)
    ):
        if earlier is None or _told(earlier) != _told(node):
            states[str(node.key)] = _state(node)
    told = [_run(run, now._computed) for run in runs]
    return {"kind": "frame", "states": states, "runs": told}


MOST_WIDE = 38  # letters of a line of an array in the panel


def why_message(graph: Core, key: int, var: Any) -> Message:
    """Return the details of one node that a page asks for; runs nothing."""
    adjoint = adjoint_of(graph, var)
    gradient = var.grad
    if gradient is None and adjoint is not None:
        gradient = present(graph, adjoint)
    value = present(graph, var)
    return {
        "kind": "why",
        "key": key,
        "text": sent(str(explain(graph, var))),
        "value": "" if value is None else sent(abbreviated(value, MOST_WIDE)),
        "figures": figures(value),
        "cutoff": _cutoff_text(var.cutoff),
        "gradient": _norm_text(gradient),
        "parents": [[sent(name), version] for name, version in _parents(var)],
    }


def table_message(graph: Core, key: int, var: Any, start: int, left: int) -> Message:
    """Return a page of the value of one node as a table."""
    return {"kind": "table", "key": key, "table": table(present(graph, var), start, left)}


def flow_message(graph: Core) -> Message:
    """Return where gradients pass, as nodes whose values say how much, and where they stop."""
    return {"kind": "flow", **passage(graph)._asdict()}


def control(
    graph: Core, var: Handle, key: int, bounds: tuple[float, float] | None
) -> Message | None:
    """Return how the page may set a leaf; ``None`` if that takes more than a number or a switch."""
    value = present(graph, var)
    if isinstance(value, np.ndarray):
        if not (
            0 < value.size <= MOST_FIELDS and value.dtype.kind == "f" and np.isfinite(value).all()
        ):
            return None
        return {"key": key, "type": "numbers", "value": value.ravel().tolist()}
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, bool):
        return {"key": key, "type": "toggle", "value": plain}
    if isinstance(plain, int):
        if abs(plain) > MOST_INTEGER:
            return None
    elif not isinstance(plain, float) or not math.isfinite(plain):
        return None
    low, high = bounds or _around(float(plain))
    return {
        "key": key,
        "type": "integer" if isinstance(plain, int) else "number",
        "value": plain,
        "low": low,
        "high": high,
    }


MOST_FIELDS = 6  # a larger array can only be set in code
MOST_INTEGER = 2**53  # JavaScript does not tell larger ones apart


def wanted_value(graph: Core, value: Any, var: Handle) -> Any:
    """Return a value that the page has sent in the type of the leaf: JSON does not tell 1 from 1.0.

    Raises
    ------
    DTypeError
        If the leaf has no control, or the value is none that its control sends.
    """
    now, found = present(graph, var), control(graph, var, 0, None)
    kind = "" if found is None else found["type"]
    fits = {
        "toggle": lambda: isinstance(value, bool),
        "number": lambda: _is_number(value),
        "integer": lambda: _is_number(value) and float(value).is_integer(),
        "numbers": lambda: (
            isinstance(value, list) and len(value) == now.size and all(map(_is_number, value))
        ),
    }
    if kind not in fits:
        raise DTypeError(
            f"{var.label!r} has no control on the page: set it in code, {var.label}.set(new)."
        )
    if not fits[kind]():
        raise DTypeError(
            f"{var.label!r} holds {_KINDS[kind]} and was given {safe_repr(value):.60} by the page. Nothing was set."
        )
    if isinstance(now, np.ndarray):
        return np.array(value, now.dtype).reshape(now.shape)
    return now.dtype.type(value) if isinstance(now, np.generic) else type(now)(value)


KINDS = (
    *("set", "why", "view", "cancel", "open", "shut", "settle", "mode", "compute", "table"),
    *("sight", "flow"),
)
MODES = ("once", "asked")  # what a change does: compute at once, or when that is asked for

_KINDS = {
    "toggle": "true or false",
    "number": "a number",
    "integer": "a whole number",
    "numbers": "an array of as many numbers as before",
}


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def flaw(message: Any) -> str | None:
    """Return the reason why no page sends this message; ``None`` if a page may send it."""
    if not isinstance(message, dict):
        return f"a message is an object, not {safe_repr(message):.60}"
    kind = message.get("kind")
    if kind in ("set", "why", "table") and _key(message.get("key")) is None:
        return f"{kind!r} needs the key of a node, not {safe_repr(message.get('key')):.60}"
    if kind == "set" and "value" not in message:
        return "'set' needs a value"
    if kind == "view":
        layer, focus = message.get("layer", "values"), message.get("focus", "")
        if layer not in get_args(Layer):
            return f"there is no layer {safe_repr(layer):.60}"
        if not isinstance(focus, str) or (focus.startswith("#") and _key(focus[1:]) is None):
            return f"there is no part {safe_repr(focus):.60}"
    if kind == "mode" and message.get("mode") not in MODES:
        return f"there is no mode {safe_repr(message.get('mode')):.60}"
    if kind in ("compute", "sight"):
        keys = message.get("keys")
        if (keys is not None or kind == "sight") and not (
            isinstance(keys, list) and keys and all(_key(one) is not None for one in keys)
        ):
            return f"{kind!r} needs the keys of nodes, not {safe_repr(keys):.60}"
    for which, what in (("start", "row"), ("left", "column")):
        if kind == "table" and _key(message.get(which)) is None:
            return f"'table' needs the number of a {what}, not {safe_repr(message.get(which)):.60}"
    if kind not in KINDS:
        return f"there is no message of the kind {safe_repr(kind):.60}"
    return None


def _key(text: Any) -> int | None:
    """Return the key of a node as a number; ``None`` if it is none."""
    if type(text) is int:
        return text
    short = isinstance(text, str) and len(text) < 19
    return int(text) if short and text.isascii() and text.isdecimal() else None


def _around(value: float) -> tuple[float, float]:
    if value == 0.0:
        return -1.0, 1.0
    return min(0.0, 2.0 * value), max(0.0, 2.0 * value)


def _fixed(
    node: NodeSnapshot,
    lines: dict[str, int],
    scopes: dict[tuple[str, ...], int],
    *,
    gone: bool = False,
) -> list[Any]:
    """Return key, name, kind, op, whether it is of a gradient, marks, whether it has a cutoff,
    line, whether it is gone, scope, and whether its name was given.
    """
    return [
        node.key,
        sent(node.name),
        node.kind,
        sent(node.op),
        node.gradient,
        [mark for mark in ("frozen", "pinned", "kept") if getattr(node, mark)],
        node.cutoff,
        lines.setdefault(node.line, len(lines)),
        gone,
        scopes.setdefault(node.scope, len(scopes)),
        node.named,
    ]


_told = attrgetter("state", "outcome", "version", "shape", "value", "seconds", "error")


def _state(node: NodeSnapshot) -> list[Any]:
    """Return state, outcome, version, shape, value, milliseconds and error."""
    state, outcome, version, shape, value, seconds, error = _told(node)
    spent = None if seconds is None else round(seconds * 1e3, 6)
    return [state, outcome, version, sent(shape, 200), sent(value, 200), spent, sent(error)]


def _run(run: RunSnapshot, computed: int) -> Message:
    """Return a run for the page, with the number of computed nodes that the page knows.

    During the run there may have been others, which nobody has kept.
    """
    return {
        "ran": run.ran,
        "cut_off": run.cut_off,
        "skipped": run.skipped,
        "rebuilt": run.rebuilt,
        "failed": run.failed,
        "seconds": run.seconds,
        "nodes": computed,
        # As two lists: a page gets thousands with each step of a slider.
        "timed": [*run.times],
        "nanoseconds": [int(1e9 * seconds) for seconds in run.times.values()],
    }


def _parents(var: Any) -> Iterable[tuple[str, int]]:
    return list(zip([parent.label for parent in var.parents], var.parent_versions, strict=False))


def _cutoff_text(rule: Any) -> str:
    if rule is None:
        return ""
    if isinstance(rule, str | Tolerance):
        return str(rule)
    return sent(getattr(rule, "__qualname__", type(rule).__name__), 200)


def _norm_text(gradient: Any) -> str:
    """Return the Euclidean norm of a gradient as text."""
    if gradient is None:
        return ""
    try:
        return f"{float(np.linalg.norm(np.asarray(gradient, dtype=float).ravel())):.6g}"
    except (TypeError, ValueError):
        return ""
