"""Checks that a state read from a file is consistent, before anything is built from it.

The file itself (header, checksum, version, manifest) is checked before that, in ``_load``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import fields

import numpy as np

from reactgrad._errors import LoadError
from reactgrad.autodiff._record import KINDS, Record
from reactgrad.io._state import Choice, Column, State
from reactgrad.nodes._lifted import Lifted as Lifted
from reactgrad.nodes._op import Leaf as Leaf
from reactgrad.scheduler import RANK_GAP, listed, safe_repr

# Serials and versions stay far below the limit of 64 bits, also multiplied by the gap of ranks.
MOST_SERIAL = 1 << 42


MOST_VERSION = 1 << 62


def check(state: State) -> None:
    """Raise ``LoadError`` if the columns of `state` contradict each other."""
    n = len(state)
    for name in ("definition", "spec", "rank", "version", "parent_count", "record_count"):
        if len(getattr(state, name)) != n:
            raise LoadError(f"column {name!r} has not one row for each node")
    if len(state.values) != n:
        raise LoadError("there is not one value for each node")
    if state.seed < 0:
        raise LoadError("the seed is negative")
    if state.max_bytes is not None and state.max_bytes < 0:
        raise LoadError("the memory budget is negative")
    if not 0 < state.next_serial <= MOST_SERIAL:
        raise LoadError("the number of the next node is out of range")
    _check_range("serial", state.serial, 1, state.next_serial - 1)
    if np.any(state.serial[1:] <= state.serial[:-1]):
        raise LoadError("its nodes do not stand in order of creation")
    _check_range("definition", state.definition, 0, len(state.definitions) - 1)
    _check_range("spec", state.spec, 0, len(state.specs) - 1)
    _check_range("version", state.version, 0, MOST_VERSION)
    _check_range("records", state.records, 0, MOST_VERSION)
    _check_range("rank", state.rank, 1, state.next_serial * RANK_GAP - 1)
    _check_range("parents", state.parents, 0, n - 1)
    for name, counts, least, total in (
        ("parents", state.parent_count, 0, len(state.parents)),
        ("records", state.record_count, -1, len(state.records)),
    ):
        _check_range(f"{name} of a node", counts, least, total)
        if int(np.maximum(counts, 0).sum()) != total:
            raise LoadError(f"column {name!r} does not have as many entries as its nodes want")
    child = np.repeat(np.arange(n), state.parent_count)
    wrong = np.flatnonzero(state.rank[state.parents] >= state.rank[child])
    if len(wrong):
        cycle = _cycle(n, state.parents.tolist(), child.tolist())
        if cycle:
            raise LoadError(f"its nodes form a cycle: {listed(map(state.label, cycle), ' -> ')}")
        raise LoadError(
            f"the rank of {state.label(int(child[wrong[0]]))!r} contradicts its parents"
        )
    _check_some(state)


def _check_range(name: str, numbers: Column, least: int, most: int) -> None:
    if len(numbers) and not (least <= numbers.min() and numbers.max() <= most):
        at = numbers.min() if numbers.min() < least else numbers.max()
        raise LoadError(f"column {name!r} holds {at}, which is not from {least} to {most}")


def _cycle(n: int, parents: list[int], child: list[int]) -> list[int]:
    """Return some cycle along the data, with its first node repeated at the end, or an empty list."""
    above: list[list[int]] = [[] for _ in range(n)]
    below: list[list[int]] = [[] for _ in range(n)]
    for p, c in zip(parents, child, strict=True):
        above[c].append(p)
        below[p].append(c)
    missing = [len(one) for one in above]
    ready = [node for node in range(n) if not missing[node]]
    while ready:
        for c in below[ready.pop()]:
            missing[c] -= 1
            if not missing[c]:
                ready.append(c)
    node = next((node for node in range(n) if missing[node]), None)
    if node is None:
        return []
    walk: dict[int, None] = {}
    while node not in walk:
        walk[node] = None
        node = next(p for p in above[node] if missing[p])
    steps = list(walk)
    return [node, *reversed(steps[steps.index(node) :])]


def _check_some(state: State) -> None:
    """Check that entries for some nodes belong to existing nodes, once each, and fit them."""
    n = len(state)
    listed = {
        one.name: [
            entry[0] if isinstance(entry, tuple) else entry for entry in getattr(state, one.name)
        ]
        for one in fields(State)
        if one.default == () and one.name != "gradients"
    }
    for what, nodes in listed.items():
        if not all(0 <= node < n for node in nodes):
            raise LoadError(f"{what!r} speaks of a node that is not there")
        if len(set(nodes)) != len(nodes):
            raise LoadError(f"{what!r} speaks of a node twice")
    for name, times in Counter(name for _, name in state.names).items():
        if times > 1 or not name:
            raise LoadError(f"the name {name!r} is empty or that of two nodes")
    operands = state.parent_count.tolist()
    for node, parents, fixed in state.pins:
        if operands[node] or not all(0 <= parent < n for parent in parents):
            raise LoadError(f"the pinned node {state.label(node)!r} has parents that cannot be")
        if fixed is not None and not 0 <= fixed < len(parents):
            raise LoadError(f"the pinned node {state.label(node)!r} has fewer arguments than that")
        operands[node] = len(parents)
    choosing = [
        node for node, i in enumerate(state.definition) if type(state.definitions[i]) is Choice
    ]
    if choosing != sorted(listed["choices"]):
        raise LoadError("a node chooses between others that are not named")
    for node, chosen in state.choices:
        if len(chosen) != 3 or not all(0 <= one < n for one in chosen):
            raise LoadError(f"{state.label(node)!r} does not choose by one node between two others")
        operands[node] = max(operands[node], 3)
    for node, positions in state.closed:
        if positions is not None and not (
            len(set(positions)) == len(positions)
            and all(0 <= position < operands[node] for position in positions)
        ):
            raise LoadError(f"{state.label(node)!r} has no such operand to be detached")
    for node, count in state.dynamic:
        lifted = isinstance(state.definitions[state.definition[node]], Lifted | Choice)
        if not lifted or not 0 <= count < state.parent_count[node]:
            raise LoadError(f"{state.label(node)!r} cannot have read other nodes while it ran")
    for record in state.gradients:
        _check_gradient(record, state)


def _check_gradient(record: Record, state: State) -> None:
    """Check the record of a gradient program by itself and against the nodes that it speaks of."""
    n, kind = len(state), record.kind
    if kind not in KINDS:
        raise LoadError(f"{safe_repr(kind):.60} is no kind of gradient")
    sources = [at for at, _ in record.seeds]
    fits = {
        "reverse": sources == [record.output] and not record.about,
        "products": sources == [record.output],
        "forward": len({*sources}) == len(sources) > 0 and not record.about,
        "jacobian": len(record.about) == 1
        and (sources == [record.output] or sources == [*record.about]),
    }
    seen = {*record.needs(), *record.nodes, *(at for at, _ in record.observed)}
    if not fits[kind] or not all(0 <= node < n for node in seen):
        raise LoadError("a gradient is not that of a node along given derivatives")
    for node in (one for _, one in record.given):
        if isinstance(state.definitions[state.definition[node]], Leaf):
            raise LoadError(f"{state.label(node)!r} is a leaf, and listed as a gradient")
