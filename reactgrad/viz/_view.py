"""The part of a graph that a page shows at a time: everything with scopes folded, a scope, or one
node.
"""

from __future__ import annotations

from typing import Any

from reactgrad.explain._snapshot import Snapshot
from reactgrad.viz._layout import arranged
from reactgrad.viz._picture import Layer, picture
from reactgrad.viz._text import key_of_scope

NEAR = 80  # the number of nodes shown around the one that was asked for


def view_message(
    now: Snapshot,
    *,
    layer: Layer,
    focus: str = "",
    former: Snapshot | None = None,
    fold: int | None = None,
    limit: int,
) -> dict[str, Any]:
    """Return a part of a graph with its layout, for the page.

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
            found = picture(now, opened=(), **options)
    return {
        "kind": "view",
        "layer": options["layer"],
        "focus": focus,
        **arranged(found),
        "hidden": found.hidden,
    }


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
