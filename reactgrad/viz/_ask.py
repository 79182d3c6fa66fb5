"""From what users ask to see to the picture of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reactgrad._errors import VizError
from reactgrad.core._arguments import var_of
from reactgrad.core._core import Core
from reactgrad.explain._snapshot import Snapshot, key_of, snapshot
from reactgrad.nodes._reached import reached
from reactgrad.reading._run import Plan, Run
from reactgrad.viz._dot import dot_text
from reactgrad.viz._draw import size
from reactgrad.viz._picture import Layer, Options, Picture, picture

LAYERS = ("values", "gradients", "all")
MOST_ENDS = 6  # answers that a picture shows, whatever it leaves out
MOST_QUIET = 1000  # boxes that Graphviz lays out without a warning
LEAST_BOXES, MOST_TRIED = 12, 400  # of pictures that are made narrower


def asked(graph: Core, of: Any, options: Options, *, values: bool = False) -> tuple[Picture, str]:
    """Return the picture of a graph or of a part of it, and its title; see ``Graph.to_dot``.

    Parameters
    ----------
    values
        True if boxes show the values of nodes.
    """
    now = snapshot(graph, of._run if isinstance(of, Run) else None, values)
    only, title = _part(graph, now, of)
    # For a node its own kind decides the layer; a plan or a run is shown whole.
    meant = {key_of(graph, of)} if only is not None and not isinstance(of, Plan | Run) else only
    if options.layer == "values" and any(now.by_key[key].gradient for key in meant or ()):
        options = options._replace(layer="all")
    first = now.ends[-MOST_ENDS:] if values and only is None else ()
    return picture(now, only=only, one_way=True, first=first, **options._asdict()), title


def drawn(
    graph: Core, of: Any, options: Options, wide: float, high: float | None = None
) -> tuple[Picture, str, str]:
    """Return a picture that is at most so many points wide, with values, its DOT text, and its title.

    Where the one that was asked for is wider, its scopes are folded, and then fewer boxes are shown;
    the title says so. With ``high`` it lies across where only that is high enough; a picture that is too
    high either way stays as it is.
    """
    for tried in _narrower(options):
        found, title = asked(graph, of, tried, values=True)
        text, boxes = dot_text(found, title), len(found.boxes)
        # With a stub for each box that has more neighbours, Graphviz would warn that it takes long.
        many = boxes + len(found.more_parents) + len(found.more_children) > MOST_QUIET
        if boxes > MOST_QUIET:
            break
        if many:
            continue
        width, height = size(text, boxes)
        if high is not None and height > high:
            across = dot_text(found, title, across=True)
            if _fits(size(across, boxes), wide, high):
                return found, across, title
        if width <= wide:
            break
    return found, text, title


def _fits(size: tuple[float, float], wide: float, high: float) -> bool:
    return size[0] <= wide and size[1] <= high


def _narrower(options: Options) -> Iterator[Options]:
    """Yield options that make a picture narrower and narrower."""
    yield options
    if options.fold is None:
        options = options._replace(fold=1)
        yield options
    while options.limit > LEAST_BOXES:
        options = options._replace(limit=max(LEAST_BOXES, min(options.limit, MOST_TRIED) // 2))
        yield options


def checked(since: Core | Snapshot | None, layer: Layer, fold: int | None, limit: int) -> Options:
    """Return the options of a picture, with a snapshot of the graph to compare with.

    Raises
    ------
    VizError
        If there is no such layer, depth or number of nodes.
    """
    if layer not in LAYERS:
        raise VizError(f"layer={layer!r}: there are {', '.join(map(repr, LAYERS))}.")
    if type(limit) is not int or limit < 1:
        raise VizError(
            f"limit={limit!r:.60}: it is how many nodes a picture shows at most, 500 say."
        )
    if fold is not None and (type(fold) is not int or fold < 1):
        raise VizError(f"fold={fold!r:.60}: it is a depth of scopes, 1 or more, or None.")
    former = since if since is None or isinstance(since, Snapshot) else snapshot(since)
    return Options(former, layer, fold, limit)


def _part(graph: Core, now: Snapshot, of: Any) -> tuple[set[int] | None, str]:
    """Return the keys of the part that a user asks for (``None``: everything), and its title."""
    if of is None:
        return None, ""
    if isinstance(of, str):
        of = var_of(graph, of)
    if isinstance(of, Plan):
        return {key_of(graph, var) for var in of.nodes}, f"plan: {len(of):,} to run"
    if isinstance(of, Run):
        vars_of = (of.ran, of.skipped, of.rebuilt, of.failed)
        return {key_of(graph, var) for variables in vars_of for var in variables}, repr(of)[1:-1]
    if not hasattr(of, "value_version"):
        raise VizError(
            f"a picture of {of!r:.60}: give a Var or its name for all that depends on it, g.plan(y) "
            "or a run for what they hold, or nothing for the whole graph."
        )
    key = key_of(graph, of)
    cone, shown = reached([key], now.children.__getitem__), now.by_key
    if all(shown[one].gradient > shown[key].gradient for one in cone if one != key):  # an answer
        behind = reached([key], now.parents.__getitem__)
        if len(behind) > 1:
            return set(behind), f"what {of.label} is computed from: {len(behind) - 1:,} nodes"
    return set(cone), f"what depends on {of.label}: {len(cone) - 1:,} nodes"
