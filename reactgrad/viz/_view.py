"""The part of a graph that a page shows at a time: everything with scopes folded, a scope, or one
node.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from reactgrad.explain._snapshot import Snapshot
from reactgrad.viz._layout import arranged
from reactgrad.viz._picture import Layer, Picture, picture
from reactgrad.viz._text import key_of_scope

AROUND, MOST_ENDS = 40, 8  # boxes around the answers, where there are too many and no scopes
BROAD = 5  # boxes side by side, on average, from which on nobody can follow the lines
NEAR = 80  # the number of nodes shown around the one that was asked for


def view_message(now: Snapshot, *, layer: Layer, focus: str = "", **options: Any) -> dict[str, Any]:
    """Return a part of a graph with its layout, for the page; see ``part`` for what is in it."""
    found, layer = part(now, layer=layer, focus=focus, **options)
    return {
        "kind": "view",
        "layer": layer,
        "focus": focus,
        **arranged(found),
        "hidden": found.hidden,
    }


def part(
    now: Snapshot,
    *,
    layer: Layer,
    focus: str = "",
    targets: Collection[int] = (),
    former: Snapshot | None = None,
    fold: int | None = None,
    limit: int,
) -> tuple[Picture, Layer]:
    """Return a part of a graph, and the layer that it is of.

    Parameters
    ----------
    layer
        ``"values"``, ``"gradients"`` or ``"all"``.
    focus
        An empty string: everything; a path of scopes that ends in a slash: what is in there, with
        its
        neighbours, and scopes inside and outside folded; ``"#12"``: the node with the key 12 and
        what
        is around it.
    targets
        Keys of the nodes that are to be in sight, where not all are; by default those that nothing is
        computed from.
    former
        A snapshot; parts that were added or removed since are marked.
    fold
        Scopes at this depth are one box each; ``None``: none, if all fits so, else the outermost.
    limit
        The most boxes.
    """
    options: dict[str, Any] = {"former": former, "layer": layer, "limit": limit, "one_way": True}
    if focus.startswith("#"):
        key = int(focus[1:])
        options["only"] = _around(now, key)
        if now.by_key[key].gradient and layer == "values":
            options["layer"] = "all"
        found = picture(now, **options)
    elif focus:
        path = _path(now, focus)
        inside = {node.key for node in now.nodes if node.scope[: len(path)] == path}
        beside = {child for key in inside for child in now.children[key]}
        found = picture(now, only=inside | beside, opened=path, **options)
    else:
        found = picture(now, fold=fold, **options)
        if fold is None and found.hidden and any(node.scope for node in now.nodes):
            found = picture(now, opened=(), first=list(targets) or now.ends, **options)
        elif found.hidden and fold is None:  # nothing to fold: what is around the answer
            answers = (list(targets) or now.ends)[-MOST_ENDS:]
            found = picture(now, first=answers, **options)
            if len(found.boxes) > BROAD * _depth(found):
                options["limit"] = min(limit, AROUND)
                found = picture(now, first=answers, **options)
    return found, options["layer"]


def _depth(found: Picture) -> int:
    """Return the number of boxes on the longest way."""
    depth = {box.key: 1 for box in found.boxes}
    order = {box.key: position for position, box in enumerate(found.boxes)}
    for line in sorted(found.lines, key=lambda line: order[line.parent]):
        if order[line.parent] < order[line.child]:
            depth[line.child] = max(depth[line.child], depth[line.parent] + 1)
    return max(depth.values(), default=1)


def _path(now: Snapshot, focus: str) -> tuple[str, ...]:
    """Return the scope with this key."""
    scopes = dict.fromkeys([node.scope for node in now.nodes])
    inner = dict.fromkeys([path[: n + 1] for path in scopes for n in range(len(path))])
    return next((path for path in inner if key_of_scope(path) == focus), ("",))


def _around(now: Snapshot, key: int) -> set[int]:
    """Return the nodes nearest to one, over edges in both directions."""
    near = {key: None}
    queue = [key]
    for one in queue:
        for other in (*now.parents[one], *now.children[one]):
            if len(near) >= NEAR:
                return set(near)
            if other not in near:
                near[other] = None
                queue.append(other)
    return set(near)
