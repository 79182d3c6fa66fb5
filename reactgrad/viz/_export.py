"""The explorer as one file: recorded runs, their layouts, and the page, with nothing to load."""

from __future__ import annotations

import gzip
import json
import os
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from itertools import pairwise
from typing import Any

from reactgrad._errors import VizError
from reactgrad._files import write_whole
from reactgrad.core._arguments import var_of
from reactgrad.core._core import Core
from reactgrad.core._names import by_name
from reactgrad.explain._record import Recording
from reactgrad.explain._snapshot import (
    NodeSnapshot,
    RunSnapshot,
    Snapshot,
    key_of,
    slots_of,
    snapshot,
    snapshot_of_run,
)
from reactgrad.nodes._handle import Handle
from reactgrad.viz._dot import dot_text
from reactgrad.viz._draw import svg
from reactgrad.viz._glance import glances
from reactgrad.viz._messages import (
    ERROR,
    VALUE,
    Message,
    flow_message,
    frame_message,
    graph_message,
    heading,
    why_message,
)
from reactgrad.viz._page import program, read, style
from reactgrad.viz._paths import WithoutFolders
from reactgrad.viz._picture import ORDER, Layer, Options, look
from reactgrad.viz._svg import inline
from reactgrad.viz._text import shown
from reactgrad.viz._view import part, view_message

MOST_PLAIN = 2**18  # letters of data that are written as they are; more are compressed
MOST_FACTS = 500  # the most nodes with an explanation in words
MOST_GLANCES = 8000  # the most nodes whose arrays can be drawn

# Content security: no request can leave the page, whatever text it contains.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
{style}
html {{ color-scheme: light dark; }}
body {{ margin: 0; background: light-dark(#fff, #16181d); color: light-dark(#1b1d21, #e6e8ec); }}
.rg-explorer {{ height: 100vh; min-height: 100vh; border: 0; border-radius: 0; }}
.rg-still {{ margin: 14px; overflow: auto; font: 14px/1.4 system-ui, sans-serif; }}
</style>
<div id="page"><figure class="rg-still">
<figcaption><b>{title}</b><noscript>: a picture, since scripts may not run here</noscript></figcaption>
{picture}
</figure></div>
<script type="{type}" id="recorded">{recorded}</script>
<script type="module">
{module}
{replay}
</script>
</html>
"""


def export_html(
    graph: Core,
    path: str | os.PathLike[str],
    log: Recording | None,
    targets: Sequence[Handle | str],
    title: str,
    options: Options,
) -> None:
    """Write the page of recorded runs; see ``Graph.export_html``."""
    recorded = replayed(graph, log, targets, title, **options._asdict())
    write_whole(path, page(recorded, recorded["graph"]["title"]))


def replayed(
    graph: Core,
    log: Recording | None,
    targets: Sequence[Handle | str],
    title: str,
    *,
    former: Snapshot | None,
    layer: Layer,
    fold: int | None,
    limit: int,
) -> Message:
    """Return all messages that the page will get: ``graph``, ``frames``, ``views``, ``glances``,
    ``flow``, and ``why`` by key; and ``picture``, which stands there until the page has them.
    """
    now = snapshot(graph, None, True)
    snapshots, runs = _recorded(graph, log, now)
    asked_for = _targets(graph, targets, now)
    graph_told = graph_message(
        now,
        targets=asked_for,
        title=title or heading(now, asked_for),
        gone=[] if former is None else [n for n in former.nodes if n.key not in now.by_key],
        begin=snapshots[0],
        live=False,
    )
    frames: list[Message] = []
    for (before, after), run in zip(pairwise(snapshots), runs, strict=True):
        frames.append(_kept(frame_message(before, after, [run]), now))
    frames.append(_kept(frame_message(snapshots[-1], now, []), now))
    options: Message = {"former": former, "fold": fold, "limit": limit}
    options["targets"] = graph_told["targets"]
    views = _views(now, options, layer)
    keys = {box["node"] for view in views for box in view["boxes"]} & now.by_key.keys()
    shown = [now.by_key[key] for key in keys]
    shown.sort(key=lambda node: (ORDER.index(look(node)), -node.key), reverse=True)
    why: Message = {}
    for node in shown[:MOST_FACTS]:
        key, name = node.key, node.name
        if by_name(graph, name) is not None:
            why[str(key)] = why_message(graph, key, var_of(graph, name))
    short = WithoutFolders(node.line for node in now.nodes)
    for message in (graph_told, *frames):
        _shorten(message, short)
    for facts in why.values():
        facts |= {"text": short(facts["text"]), "value": short(facts["value"])}
    # Nodes in the views come first: of a very large graph the others stay without a drawing.
    drawn = [*keys, *(node.key for node in now.nodes if node.key not in keys)][:MOST_GLANCES]
    found = glances(graph, slots_of(graph, drawn))
    return {
        "graph": graph_told,
        "frames": frames,
        "views": views,
        "why": why,
        "glances": {"kind": "glances", "found": found},
        "flow": flow_message(graph),
        "picture": _picture(now, layer, options, short),
    }


def _picture(now: Snapshot, layer: Layer, options: Message, short: WithoutFolders) -> str:
    """Return the first view as SVG, for readers whose program runs no scripts."""
    found, _ = part(now, layer=layer, **options)
    boxes = [
        box if box.node is None else box._replace(node=_short(box.node, short))
        for box in found.boxes
    ]
    return inline(svg(dot_text(replace(found, boxes=tuple(boxes))), len(boxes)))


def _short(node: NodeSnapshot, short: WithoutFolders) -> NodeSnapshot:
    told = {what: short(getattr(node, what)) for what in ("value", "error", "line")}
    return node._replace(**told)


def _shorten(message: Message, short: WithoutFolders) -> None:
    """Cut the author's folders from the places, values and errors of a message."""
    if "lines" in message:
        message["lines"] = [short(line) for line in message["lines"]]
    for state in message["states"].values():
        state[VALUE], state[ERROR] = short(state[VALUE]), short(state[ERROR])


def page(recorded: Message, title: str) -> str:
    """Return the file: style, data and program in one."""
    module = program()
    # A module inside of a page cannot export, so the export becomes a variable for the script after
    # it.
    assert module.count("export default {") == 1
    messages = {what: told for what, told in recorded.items() if what != "picture"}
    data, kind = as_script(messages), "application/json"
    if len(data) > MOST_PLAIN:
        packed = gzip.compress(data.encode("ascii"), mtime=0)
        data, kind = b64encode(packed).decode("ascii"), "application/gzip"
    return PAGE.format(
        type=kind,
        policy=POLICY,
        title=escape(shown(title, 200)),
        style=style(),
        picture=recorded["picture"],
        recorded=data,
        module=module.replace("export default {", "const explorer = {"),
        replay=read("replay.js"),
    )


def as_script(data: Any) -> str:
    """Return data as JSON for a script element: nothing in it can end the element or open a
    comment.
    """
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _recorded(
    graph: Core, log: Recording | None, now: Snapshot
) -> tuple[Sequence[Snapshot], Sequence[RunSnapshot]]:
    """Return the snapshots and runs of a recording; without one, those of the present."""
    if log is None:
        return (now, now), (snapshot_of_run(graph, graph._scheduler.last_run),)
    if not isinstance(log, Recording) or log._graph is not graph:
        raise VizError(
            f"export_html(path, {log!r:.60}): the second argument is what this graph's "
            "`with g.record(snapshots=True) as log` gave."
        )
    if not log.snapshots:
        raise VizError(
            "export_html: this recording has kept no snapshots to show. Write "
            "`with g.record(snapshots=True) as log`."
        )
    return log.snapshots, log.run_snapshots


def _targets(graph: Core, targets: Sequence[Handle | str], now: Snapshot) -> list[int]:
    if targets:
        return [key_of(graph, var_of(graph, one)) for one in targets]
    return now.ends


def _kept(frame: Message, now: Snapshot) -> Message:
    """Remove nodes that no longer exist from a message: the page has only the present ones."""
    frame["states"] = {key: s for key, s in frame["states"].items() if int(key) in now.by_key}
    return frame


def _views(now: Snapshot, options: Message, first: Layer) -> list[Message]:
    """Return a view of each layer as a whole. The page itself lays out parts that are opened."""
    gradients = any(node.gradient for node in now.nodes)
    layers: list[Layer] = ["values", "gradients", "all"] if gradients else ["values"]
    layers.sort(key=lambda layer: layer != first)
    return [view_message(now, layer=layer, **options) for layer in layers]
