"""Graphs as bytes, for other processes: the format of files, without a file and without a package."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from typing import Any

from reactgrad._errors import DTypeError, LoadError, SaveError
from reactgrad.core._core import C
from reactgrad.core._handles import handle
from reactgrad.io._capture import capture, capture_part
from reactgrad.io._format import write_tensors
from reactgrad.io._json import record
from reactgrad.io._load import checked, unpack
from reactgrad.io._restore import restore
from reactgrad.io._save import pack, seal
from reactgrad.io._tensor_file import read_open


def to_bytes(graph: Any, cloudpickle: bool = False) -> bytes:
    """Return a graph as bytes; see ``Graph.to_bytes``."""
    try:
        metadata, tensors = seal(*pack(capture(graph), cloudpickle))
    except SaveError as error:
        if cloudpickle or "function" not in str(error):
            raise
        raise SaveError(
            f"{error} Or let it travel as code, to receivers that trust you: "
            "g.to_bytes(cloudpickle=True)."
        ) from None
    file = io.BytesIO()
    write_tensors(file, tensors, metadata)
    return file.getvalue()


def part_to_bytes(graph: Any, slots: list[int]) -> bytes:
    """Return some nodes of a graph, with all that they are computed from, as bytes.

    Parameters
    ----------
    slots : list of int
        In order of creation, the ancestors of each node among them.
    """
    with graph._lock:
        metadata, tensors = seal(*pack(capture_part(graph, slots)))
    file = io.BytesIO()
    write_tensors(file, tensors, metadata)
    return file.getvalue()


def from_bytes(data: Any, trust: str | Iterable[str], make: Callable[[int], C]) -> C:
    """Return the graph in these bytes; see ``from_bytes`` of ``graph``."""
    manifest, tensors = _read(data)
    trusted = (trust,) if isinstance(trust, str) else tuple(trust)
    try:
        return restore(unpack(manifest, tensors, trusted), make, adopt=True)
    except LoadError as error:
        reason = (
            str(error).rstrip(".").replace("rg.load(path, trust=", "rg.from_bytes(data, trust=")
        )
        raise LoadError(
            f"these bytes are no graph that can be used: {reason}."
        ) from error.__cause__


def _read(data: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    if not isinstance(data, bytes | bytearray | memoryview):
        raise DTypeError(
            f"rg.from_bytes takes what g.to_bytes() returned, not {type(data).__name__}. Files are read by "
            "rg.load(path)."
        )
    try:
        tensors, metadata = read_open(io.BytesIO(data), len(data))
        return checked(metadata, tensors)
    except LoadError as error:
        reason = str(error).rstrip(".")
        raise LoadError(
            f"these bytes are no graph that can be used: {reason}."
        ) from error.__cause__


def unpickled(data: bytes, make: Callable[[int], C]) -> C:
    """Return the graph in a pickle. A pickle is code, so the functions that it names are trusted."""
    manifest, tensors = _read(data)
    trusted = {"cloudpickle"}
    for definition in manifest.get("definitions", ()):
        for word in ("function", "vjp", "jvp"):
            _trust(definition.get(word), trusted)
    for _, rule in manifest.get("cutoffs", ()):
        if isinstance(rule, dict):
            _trust(rule.get("function"), trusted)
    return restore(
        unpack(record(manifest, "the manifest"), tensors, tuple(trusted)), make, adopt=True
    )


def _trust(form: Any, trusted: set[str]) -> None:
    if isinstance(form, list) and form and isinstance(form[0], str):
        trusted.add(form[0].partition(":")[0])


def number_of(var: Any) -> int:
    """Return the number by which a node is found again in a copy of its graph."""
    with var._graph._lock:
        return var._graph._scheduler.topology.number(var._slot)


def var_of(graph: Any, number: int) -> Any:
    """Return the node with this number.

    Raises
    ------
    LoadError
        If it is gone.
    """
    with graph._lock:
        slot = graph._scheduler.topology.find(number)
        if slot is None:
            raise LoadError(f"the graph has no node number {number}: it is gone.")
        return handle(graph, slot)
