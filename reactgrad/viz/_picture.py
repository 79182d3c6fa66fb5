"""The content of a picture: its nodes and their states, what is folded, and how much is left out.

A picture is made of snapshots only. Where there is more than fits, it shows the neighbourhood of
what matters most, and says at each node how many neighbours it leaves out.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from reactgrad.explain._snapshot import EdgeSnapshot, NodeSnapshot, Snapshot
from reactgrad.viz._neurons import as_neurons
from reactgrad.viz._parts import parted

Layer = Literal["values", "gradients", "all"]
Look = Literal["clean", "stale", "running", "ran", "cut_off", "error", "unset"]
Mark = Literal["", "added", "removed", "changed"]
Scope = tuple[str, ...]


class Options(NamedTuple):
    """The options of a picture; see ``Graph.to_dot``. Made by ``viz._ask.checked``."""

    former: Snapshot | None
    layer: Layer
    fold: int | None
    limit: int


class Box(NamedTuple):
    """One thing drawn: a node, or a folded scope.

    Attributes
    ----------
    key : str
        Of the node, its number; of a scope, its path. A constant without a given name is drawn in each
        scope that uses it, and has a key for each of these boxes.
    node : NodeSnapshot or None
        ``None``: this is a scope.
    look : str
        ``"clean"``, ``"stale"``, ``"running"``, ``"ran"``, ``"cut_off"``, ``"error"`` or ``"unset"``;
        of a scope that of its most remarkable node.
    mark : str
        The change since the former snapshot: ``"added"``, ``"removed"``, ``"changed"`` or
        nothing.
    scope : tuple of str
        The scopes around it, outermost first.
    inside : tuple of (str, int)
        Of a scope: how many nodes it has of each look.
    members : tuple of int
        Keys of the nodes that it stands for.
    path : tuple of str
        Of a scope: its names, outermost first.
    part : int
        The number of this part of the scope, where it is drawn in several; else 0.
    """

    key: str
    node: NodeSnapshot | None
    look: Look
    mark: Mark = ""
    scope: tuple[str, ...] = ()
    inside: tuple[tuple[str, int], ...] = ()
    members: tuple[int, ...] = ()
    path: Scope = ()
    part: int = 0

    @property
    def label(self) -> str:
        """Its name, without the scopes that the frames around it show."""
        if self.node is None:
            return self.path[-1] + (f" ({self.part})" if self.part else "")
        if not self.node.named:
            return self.node.name.rpartition("/")[2]
        return self.node.name.removeprefix("/".join((*self.scope, "")))


class Line(NamedTuple):
    """An edge between two boxes.

    Attributes
    ----------
    parent, child : str
        Keys of the boxes.
    detached, read : bool
        True if no gradient passes any of the edges it stands for; true if functions have read all of
        these nodes while they ran.
    mark : str
        ``"added"``, ``"removed"`` or nothing.
    label : str
        The weight of the one edge that it stands for, if it has one.
    """

    parent: str
    child: str
    detached: bool = False
    read: bool = False
    mark: Mark = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """The boxes and lines to draw.

    Attributes
    ----------
    boxes, lines
        Parents first.
    more_parents, more_children : dict
        The number of neighbours of a box, by its key, that are not shown.
    total : int
        The number of nodes that there were to show.
    """

    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    more_parents: dict[str, int]
    more_children: dict[str, int]
    total: int

    @property
    def hidden(self) -> int:
        """The number of nodes that are in none of its boxes."""
        return self.total - len({key for box in self.boxes for key in box.members})


# From the least to the most remarkable look; a folded scope has the most remarkable one of its
# nodes.
ORDER: tuple[Look, ...] = ("clean", "unset", "cut_off", "ran", "stale", "running", "error")


def look(node: NodeSnapshot) -> Look:
    """Return the look of a node: its state, or for a clean one its outcome in the last run."""
    if node.state == "clean" and node.outcome in ("ran", "cut_off"):
        return node.outcome
    return node.state


def picture(
    snapshot: Snapshot,
    *,
    former: Snapshot | None = None,
    only: Collection[int] | None = None,
    layer: Layer = "values",
    fold: int | None = None,
    opened: Sequence[str] | None = None,
    limit: int = 500,
    one_way: bool = False,
    first: Collection[int] = (),
) -> Picture:
    """Return what to draw of a snapshot.

    Parameters
    ----------
    snapshot
        The present state of the graph.
    former
        Another snapshot to compare with: of the graph before, or of the graph it was forked from.
    only
        Keys of the nodes to show, with what they are computed from directly; ``None``: all.
    layer
        ``"values"``, ``"gradients"`` or ``"all"``: the nodes that are shown.
    fold
        Scopes at this depth become one box each; ``None``: none is folded.
    opened
        Every scope becomes one box, except this one and those around it.
    limit
        The most boxes that are shown.
    one_way
        True: a folded scope is drawn as several boxes, where one would have lines in both directions.
    first
        Keys of nodes that are shown, whatever is left out.
    """
    marks: dict[int, Mark] = {}
    nodes, edges, edge_marks = snapshot.nodes, snapshot.edges, dict[EdgeSnapshot, Mark]()
    if former is not None:
        nodes, marks = _compared(snapshot, former)
        edges, edge_marks = _compared_edges(snapshot, former)
    shown = _wanted(nodes, edges, only, layer)
    nodes = [node for node in nodes if node.key in shown]
    edges = [edge for edge in edges if edge.parent in shown and edge.child in shown]
    total, weights = len(nodes), dict(snapshot.weights)
    members: dict[int, tuple[NodeSnapshot, ...]] = {}
    if layer == "values":
        nodes, edges, members, weights, edge_marks = as_neurons(nodes, edges, weights, edge_marks)
        total = len(nodes) + sum(map(len, members.values()))
        for whole, inner in members.items():
            if not marks.get(whole) and any(marks.get(one.key) for one in inner):
                marks[whole] = "changed"
    homes = _homes(nodes, edges)
    boxes, box_of = _folded(nodes, edges if one_way else None, homes, marks, fold, opened, members)
    lines = _lines(edges, homes, box_of, edge_marks, weights)
    if len(boxes) <= limit:
        return Picture(tuple(boxes), tuple(lines), {}, {}, total)
    return _neighbourhood(boxes, lines, limit, total, first)


def _wanted(
    nodes: Sequence[NodeSnapshot],
    edges: Iterable[EdgeSnapshot],
    only: Collection[int] | None,
    layer: Layer,
) -> set[int]:
    """Return the keys of the nodes to show."""
    shown = {node.key for node in nodes}
    if only is not None:
        near = set(only)
        near.update([edge.parent for edge in edges if edge.child in only])
        shown &= near
    if layer == "all":
        return shown
    gradients = _gradients(nodes, edges)
    of_layer = {node.key for node in nodes if (node.key in gradients) == (layer == "gradients")}
    if layer == "gradients":  # and the values that they are computed from directly
        of_layer.update([edge.parent for edge in edges if edge.child in of_layer])
    return shown & of_layer


def _gradients(nodes: Iterable[NodeSnapshot], edges: Iterable[EdgeSnapshot]) -> set[int]:
    """Return gradient nodes, and constants that only these use."""
    found = {node.key for node in nodes if node.gradient}
    used = {edge.parent for edge in edges if edge.child in found}
    used.difference_update([edge.parent for edge in edges if edge.child not in found])
    return found | {node.key for node in nodes if node.kind == "const" and node.key in used}


def _compared(snapshot: Snapshot, former: Snapshot) -> tuple[list[NodeSnapshot], dict[int, Mark]]:
    """Return all nodes of both snapshots, parents first, and the change of each."""
    marks: dict[int, Mark] = {}
    for node in snapshot.nodes:
        before = former.by_key.get(node.key)
        if before is None:
            marks[node.key] = "added"
        elif (before.op, before.version, before.state) != (node.op, node.version, node.state):
            marks[node.key] = "changed"
    gone = [node for node in former.nodes if node.key not in snapshot.by_key]
    marks.update({node.key: "removed" for node in gone})
    return [*gone, *snapshot.nodes], marks


def _compared_edges(
    snapshot: Snapshot, former: Snapshot
) -> tuple[list[EdgeSnapshot], dict[EdgeSnapshot, Mark]]:
    """Return all edges of both snapshots, and the change of each."""
    now, before = dict.fromkeys(snapshot.edges), dict.fromkeys(former.edges)
    marks: dict[EdgeSnapshot, Mark] = {edge: "added" for edge in now if edge not in before}
    gone = [edge for edge in before if edge not in now]
    marks.update(dict.fromkeys(gone, "removed"))
    return [*now, *gone], marks


def _homes(nodes: Iterable[NodeSnapshot], edges: Iterable[EdgeSnapshot]) -> dict[int, list[Scope]]:
    """Return the scopes in which each node is drawn: its own, or for a constant without a given
    name those that use it.

    The 2.0 of ``2.0 * x`` is one node wherever it is written. Drawn as one box, it would join
    scopes that have nothing to do with each other.
    """
    homes = {node.key: [node.scope] for node in nodes}
    users: dict[int, dict[Scope, None]] = {
        node.key: {} for node in nodes if node.kind == "const" and not node.named
    }
    for edge in edges:
        if edge.parent in users:
            users[edge.parent][homes[edge.child][0]] = None
    homes.update({key: [*scopes] for key, scopes in users.items() if scopes})
    return homes


def _folded(
    nodes: Iterable[NodeSnapshot],
    edges: Iterable[EdgeSnapshot] | None,
    homes: dict[int, list[Scope]],
    marks: dict[int, Mark],
    fold: int | None,
    opened: Sequence[str] | None,
    members_of: dict[int, tuple[NodeSnapshot, ...]],
) -> tuple[list[Box], dict[tuple[int, Scope], str]]:
    """Return a box for each node, or for each scope at the depth where scopes are folded, and the
    box of each node.
    """
    box_of: dict[tuple[int, Scope], str] = {}
    boxes: dict[str, Box] = {}
    inside: dict[str, dict[int, NodeSnapshot]] = {}
    depths = {
        scope: fold if opened is None else _shared(scope, opened) + 1
        for scopes in homes.values()
        for scope in scopes
    }
    parts = parted(homes, edges, depths)
    last: dict[Scope, int] = {}
    for path, part in parts.values():
        last[path] = max(part, last.get(path, 0))
    for node in nodes:
        for number, scope in enumerate(homes[node.key]):
            if (node.key, scope) not in parts:
                key = f"{node.key}.{number}" if number else str(node.key)
                mark, inner = marks.get(node.key, ""), members_of.get(node.key, ())
                seen: Look = max([look(one) for one in (node, *inner)], key=ORDER.index)
                all_ = (node.key, *[one.key for one in inner])
                boxes[key] = Box(key, node, seen, mark, scope, members=all_)
            else:
                path, part = parts[node.key, scope]
                key = "/".join(path) + "/" + (f"({part})" if part > 1 else "")
                if key not in boxes:  # only to keep its place; the loop below fills it
                    part = part if last[path] > 1 else 0
                    boxes[key] = Box(key, None, "clean", scope=path[:-1], path=path, part=part)
                for one in (node, *members_of.get(node.key, ())):
                    inside.setdefault(key, {})[one.key] = one
            box_of[node.key, scope] = key
    for key, members in inside.items():
        looks: Counter[Look] = Counter([look(node) for node in members.values()])
        found: set[Mark] = {marks.get(member, "") for member in members}
        boxes[key] = Box(
            key,
            None,
            max(looks, key=ORDER.index),
            found.pop() if len(found) == 1 else "changed",
            boxes[key].scope,
            tuple(looks.items()),
            tuple(members),
            boxes[key].path,
            boxes[key].part,
        )
    return [*boxes.values()], box_of


def _shared(scope: Sequence[str], other: Sequence[str]) -> int:
    """Return how many of their outermost scopes are the same."""
    same = 0
    while same < min(len(scope), len(other)) and scope[same] == other[same]:
        same += 1
    return same


def _lines(
    edges: Iterable[EdgeSnapshot],
    homes: dict[int, list[Scope]],
    box_of: dict[tuple[int, Scope], str],
    marks: dict[EdgeSnapshot, Mark],
    weights: dict[tuple[int, int], str],
) -> list[Line]:
    """Return a line for each pair of boxes with edges between them."""
    lines: dict[tuple[str, str], Line] = {}
    for edge in edges:
        (home,), scopes = homes[edge.child], homes[edge.parent]
        from_ = box_of[edge.parent, scopes[0] if len(scopes) == 1 else home]
        ends = from_, box_of[edge.child, home]
        if ends[0] == ends[1]:
            continue
        line, mark = lines.get(ends), marks.get(edge, "")
        if line is None:
            label = weights.get((edge.parent, edge.child), "")
            lines[ends] = Line(*ends, edge.detached, edge.read, mark, label)
        else:
            lines[ends] = Line(
                *ends,
                line.detached and edge.detached,
                line.read and edge.read,
                mark if mark == line.mark else "",
            )
    return [*lines.values()]


def _neighbourhood(
    boxes: list[Box], lines: list[Line], limit: int, total: int, first: Collection[int]
) -> Picture:
    """Return the most remarkable boxes with those around them, nearest first, up to the limit."""
    near: dict[str, list[str]] = {box.key: [] for box in boxes}
    for line in lines:
        near[line.parent].append(line.child)
        near[line.child].append(line.parent)
    # At most half of the room, so that what surrounds them is seen, too.
    asked = [box.key for box in boxes if not set(first).isdisjoint(box.members)]
    seeds = _seeds(boxes)
    if asked:  # where nearly all is stale, say, the answers matter more than the first of these
        seeds = [*asked, *(seeds if len(seeds) <= limit else ())]
    shown = dict.fromkeys(seeds[: max(limit // 2, 1)])
    queue = deque(shown)
    others = reversed(boxes)  # the next one, when these are connected to nothing else
    while len(shown) < limit:
        if not queue:
            queue.append(next(box.key for box in others if box.key not in shown))
            shown[queue[0]] = None
        for key in near[queue.popleft()]:
            if key not in shown and len(shown) < limit:
                shown[key] = None
                queue.append(key)
    more_parents: Counter[str] = Counter()
    more_children: Counter[str] = Counter()
    for line in lines:
        if line.child in shown and line.parent not in shown:
            more_parents[line.child] += 1
        elif line.parent in shown and line.child not in shown:
            more_children[line.parent] += 1
    return Picture(
        tuple([box for box in boxes if box.key in shown]),
        tuple([line for line in lines if line.parent in shown and line.child in shown]),
        dict(more_parents),
        dict(more_children),
        total,
    )


def _seeds(boxes: list[Box]) -> list[str]:
    """Return the boxes that matter most.

    These are boxes that changed or are not clean; else those that ran; else the last one.
    """
    for looks in (("error", "running", "stale"), ("ran", "cut_off")):
        found = [box for box in boxes if box.mark or box.look in looks]
        if found:
            found.sort(key=lambda box: ORDER.index(box.look), reverse=True)
            return [box.key for box in found]
    return [boxes[-1].key]
