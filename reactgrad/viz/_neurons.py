"""Neurons in a picture: the nodes that make one up as one box, and its weights at the lines to it.

See ``rg.extend.draw_as_neuron``. All of it is found in a snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from reactgrad.explain._snapshot import EdgeSnapshot, NodeSnapshot
from reactgrad.nodes._units import WEIGHTED, WHOLE

Pair = tuple[int, int]


class Neurons(NamedTuple):
    """Nodes and edges in which each neuron is one node.

    Attributes
    ----------
    members : dict
        By the key of a neuron: its inner nodes.
    weights : dict
        The weights of edges, by their two ends, as text.
    marks : dict
        The changes of edges.
    """

    nodes: list[NodeSnapshot]
    edges: list[EdgeSnapshot]
    members: dict[int, tuple[NodeSnapshot, ...]]
    weights: dict[Pair, str]
    marks: dict[EdgeSnapshot, Any]


def as_neurons(
    nodes: Sequence[NodeSnapshot],
    edges: Sequence[EdgeSnapshot],
    weights: Mapping[Pair, str],
    marks: Mapping[EdgeSnapshot, Any],
) -> Neurons:
    """Return nodes and edges with each neuron as one node."""
    by_key = {node.key: node for node in nodes}
    parents: dict[int, list[int]] = {key: [] for key in by_key}
    children: dict[int, list[int]] = {key: [] for key in by_key}
    for edge in edges:
        parents[edge.child].append(edge.parent)
        children[edge.parent].append(edge.child)
    whole_of: dict[int, int] = {}  # from an inner node to the neuron that it is drawn as
    found = dict(weights)
    for node in nodes:
        if node.op in WEIGHTED:
            _weighted(node.key, by_key, parents, children, whole_of)
    neurons = {*whole_of.values()}
    for node in nodes:
        if node.op in WHOLE and node.key not in neurons and node.key not in whole_of:
            _whole(node.key, by_key, parents, children, whole_of, found)
    if not whole_of:
        return Neurons(list(nodes), list(edges), {}, found, dict(marks))
    members: dict[int, tuple[NodeSnapshot, ...]] = {}
    for inner, whole in whole_of.items():
        members[whole] = (*members.get(whole, ()), by_key[inner])
    labels: dict[Pair, str] = {}
    for (source, target), text in found.items():
        labels[whole_of.get(source, source), whole_of.get(target, target)] = text
    joined, kept = _joined(edges, whole_of, marks)
    left = [
        node for node in nodes if node.key not in whole_of and not _is_note(node, parents, children)
    ]
    return Neurons(left, joined, members, labels, kept)


def _is_note(
    node: NodeSnapshot, parents: Mapping[int, list[int]], children: Mapping[int, list[int]]
) -> bool:
    """Return whether this is an input that holds an object, of which nothing is computed."""
    alone = not parents[node.key] and not children[node.key]
    return alone and node.kind == "input" and node.shape == "dict"


def _joined(
    edges: Iterable[EdgeSnapshot], whole_of: Mapping[int, int], marks: Mapping[EdgeSnapshot, Any]
) -> tuple[list[EdgeSnapshot], dict[EdgeSnapshot, Any]]:
    """Return the edges between neurons, each pair once, and their marks."""
    found: dict[Pair, EdgeSnapshot] = {}
    kept: dict[EdgeSnapshot, Any] = {}
    for edge in edges:
        ends = whole_of.get(edge.parent, edge.parent), whole_of.get(edge.child, edge.child)
        if ends[0] == ends[1]:
            continue
        mark = marks.get(edge)
        if ends not in found:
            one = found[ends] = edge._replace(parent=ends[0], child=ends[1])
            if mark:
                kept[one] = mark
        elif mark != kept.get(found[ends]):  # it is there before and after
            kept.pop(found[ends], None)
    return [*found.values()], kept


def _weighted(
    key: int,
    by_key: Mapping[int, NodeSnapshot],
    parents: Mapping[int, list[int]],
    children: Mapping[int, list[int]],
    whole_of: dict[int, int],
) -> None:
    """Take a weighted sum, its weights and what is applied to it as one."""
    users = {*children[key]}
    whole = key
    if len(users) == 1:
        (user,) = users
        others = [one for one in parents[user] if one != key and by_key[one].kind != "const"]
        if not others and by_key[user].kind == "op" and by_key[user].op not in WEIGHTED:
            whole = user
            whole_of[key] = whole
    for genes in parents[key][:1]:
        if {*children[genes]} == {key} and by_key[genes].kind in ("param", "op"):
            whole_of[genes] = whole


def _whole(
    key: int,
    by_key: Mapping[int, NodeSnapshot],
    parents: Mapping[int, list[int]],
    children: Mapping[int, list[int]],
    whole_of: dict[int, int],
    weights: dict[Pair, str],
) -> None:
    """Take a node as one with everything that only it is computed from."""
    inner: set[int] = set()
    pending = [key]
    while pending:
        for one in parents[pending.pop()]:
            node = by_key[one]
            if one in inner or one in whole_of or node.kind == "input" or node.op in WHOLE:
                continue
            if all(child == key or child in inner for child in children[one]):
                inner.add(one)
                pending.append(one)
                # Its users may have waited for it.
                pending += [child for child in children[one] if child in inner]
    for one in inner:
        whole_of[one] = key
        factors = [by_key[factor] for factor in parents[one]]
        if by_key[one].op == "multiply" and len(factors) == 2:
            source, weight = factors
            if source.key not in inner and weight.key in inner and weight.value:
                weights[source.key, one] = weight.value
