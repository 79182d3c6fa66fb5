"""Graphs there and back, compared in everything; and files made to measure."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad.io._capture import capture
from reactgrad.io._load import read
from reactgrad.io._save import pack, write
from reactgrad.io._state import State


def there_and_back(graph: rg.Graph, **options: Any) -> rg.Graph:
    """The graph, saved and loaded."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.safetensors"
        graph.save(path)
        loaded = rg.load(path, **options)
        assert [p.name for p in Path(folder).iterdir()] == [path.name], "something was left over"
    loaded.check_invariants()
    return loaded


def same(a: Any, b: Any) -> bool:
    """The same type and the same bits."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray | np.generic):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same([*a], [*b]) and same([*a.values()], [*b.values()])
    if isinstance(a, float | complex):
        return np.array(a).tobytes() == np.array(b).tobytes()
    return bool(a == b)


def assert_same_state(a: State, b: State) -> None:
    """All of it, but that named nodes are kept in what was loaded."""
    assert (a.seed, a.next_serial, a.max_bytes) == (b.seed, b.next_serial, b.max_bytes)
    for name in ("serial", "rank", "version", "parents", "parent_count", "records", "record_count"):
        assert getattr(a, name).tolist() == getattr(b, name).tolist(), name
    for node in range(len(a)):
        assert a.specs[a.spec[node]] is b.specs[b.spec[node]]
        mine, its = a.definitions[a.definition[node]], b.definitions[b.definition[node]]
        assert type(mine) is type(its)
        assert same_definition(mine, its), (mine, its)
        assert same(a.values[node], b.values[node]), (a.label(node), a.values[node], b.values[node])
    for name in (
        "names",
        "forced",
        "frozen",
        "retained",
        "numbers",
        "closed",
        "patterns",
        "dtypes",
        "pins",
        "former_cutoffs",
    ):
        assert getattr(a, name) == getattr(b, name), name
    assert (a.choices, a.dynamic) == (b.choices, b.dynamic)
    assert set(b.kept) == {*a.kept, *(node for node, _ in a.names)}
    assert [node for node, _ in a.cutoffs] == [node for node, _ in b.cutoffs]
    for (_, mine), (_, its) in zip(a.cutoffs, b.cutoffs, strict=True):
        assert mine is its or repr(mine) == repr(its)


def same_definition(a: Any, b: Any) -> bool:
    if hasattr(a, "op"):
        return a.op is b.op and repr(a.attrs) == repr(b.attrs)
    if hasattr(a, "function"):
        return (
            a.function is b.function
            and a.vjp is b.vjp
            and a.jvp is b.jvp
            and a.outputs == b.outputs
            and a.declared is b.declared
            and a.keywords == b.keywords
            and same(a.layout, b.layout)
        )
    return a is b


def assert_same_graph(a: rg.Graph, b: rg.Graph) -> None:
    """As the user sees it, and below."""
    # First, since gradients that only a look at all nodes holds would seem to be held.
    assert_same_state(capture(a), capture(b))
    mine, its = {v.name: v for v in a.nodes}, {v.name: v for v in b.nodes}
    for name, var in its.items():
        other = mine[name]
        assert (var.value_version, var.parent_versions) == (
            other.value_version,
            other.parent_versions,
        )
        assert var.is_stale == other.is_stale, name
        assert (var.frozen, var.pinned, var.requires_grad) == (
            other.frozen,
            other.pinned,
            other.requires_grad,
        )
        assert [p.name for p in var.parents] == [p.name for p in other.parents]


def packed(graph: rg.Graph) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """Manifest and tensors as a file holds them, to be tampered with."""
    manifest, tensors = pack(capture(graph))
    return json.loads(json.dumps(manifest)), {name: a.copy() for name, a in tensors.items()}


def forged(path: Path, manifest: Any, tensors: dict[str, Any]) -> Path:
    """A file with this content whose checksum is right."""
    write(path, manifest, tensors)
    return path


__all__ = [
    "assert_same_graph",
    "assert_same_state",
    "forged",
    "packed",
    "read",
    "same",
    "there_and_back",
]
