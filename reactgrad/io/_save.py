"""From a snapshot of a graph to a file, which appears whole or not at all."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from reactgrad._errors import SaveError
from reactgrad._files import named_as
from reactgrad.functions._function import Applied
from reactgrad.io import _format
from reactgrad.io._capture import capture
from reactgrad.io._format import (
    FORMAT,
    VERSION,
    checksum,
    import_safetensors,
    tensor_name,
    to_tensor,
    write_tensors,
)
from reactgrad.io._json import UnwritableError, Writer, axes_in_memory
from reactgrad.io._state import Absent, Choice, Computation, State
from reactgrad.io._whole_file import write_whole
from reactgrad.nodes._op import OPS, Leaf, Op, Output
from reactgrad.scheduler import safe_repr

Tensors = dict[str, np.ndarray[Any, Any]]


def save(graph: Any, path: str | os.PathLike[str]) -> None:
    """Write `graph` to a file; see ``Graph.save``."""
    import_safetensors()
    manifest, tensors = pack(capture(graph))
    write(path, manifest, tensors)


# --- what the file holds -------------------------------------------------------------------------


def pack(state: State, code: bool = False) -> tuple[dict[str, Any], Tensors]:
    """Return a state as a manifest and tensors.

    `code`: functions without a name are written as code, by cloudpickle.
    """
    return _Packing(state, code).packed()


class _Packing:
    """One packing of a state."""

    def __init__(self, state: State, code: bool = False) -> None:
        self.state = state
        self.writer = Writer(code)
        self.names = dict(state.names)
        self.tensors: Tensors = {}
        self.pools: dict[str, list[np.ndarray[Any, Any]]] = defaultdict(list)
        self.forms: dict[tuple[Any, ...], int] = {}
        self.objects: list[Any] = []

    def packed(self) -> tuple[dict[str, Any], Tensors]:
        """Return the manifest and the tensors."""
        state, writer, tensors = self.state, self.writer, self.tensors
        definitions, definition = self.definitions()
        pinned = {node for node, _, _ in state.pins}
        given = pinned | {
            node
            for node, place in enumerate(state.definition.tolist())
            if isinstance(state.definitions[place], Leaf)
        }
        form = [self.value(node, value, node in given) for node, value in enumerate(state.values)]
        # A value that a cutoff may have kept cannot be computed again at its version: the node has
        # to run.
        missing = self.form("missing")
        lost = [
            node
            for node in {*(node for node, _ in state.cutoffs), *state.former_cutoffs}
            if form[node] == missing and not isinstance(state.values[node], Absent)
        ]
        manifest = {
            "seed": state.seed,
            "next_serial": state.next_serial,
            "max_bytes": state.max_bytes,
            **({} if state.device == "cpu" else {"device": state.device}),
            "definitions": definitions,
            "specs": [self.tried(writer.spec, found, "a value") for found in state.specs],
            "forms": list(self.forms),
            "objects": self.objects,
            "names": state.names,
            "scopes": [(path, nodes) for path, nodes in _by_scope(state).items()],
            "kept": state.kept,
            "forced": sorted({*state.forced, *lost}),
            "frozen": state.frozen,
            "retained": state.retained,
            "numbers": state.numbers,
            "closed": state.closed,
            "cutoffs": [[node, self.cutoff(node, rule)] for node, rule in state.cutoffs],
            "former_cutoffs": state.former_cutoffs,
            "patterns": [[node, writer.spec(found)] for node, found in state.patterns],
            "dtypes": [[node, writer.dtype(dtype)] for node, dtype in state.dtypes],
            "pins": state.pins,
            "choices": state.choices,
            "dynamic": state.dynamic,
            **({"gradients": state.gradients} if state.gradients else {}),
        }
        for name in _format.COLUMNS:
            column = {"definition": definition, "form": form}.get(name)
            numbers = getattr(state, name) if column is None else np.array(column, np.int64)
            tensors[f"graph/{name}"] = _narrow(numbers)
        for dtype, parts in self.pools.items():
            tensors[f"pool/{dtype}"] = np.concatenate(parts)
        for place, array in enumerate(writer.arrays):
            tensors[f"arrays/{place}"] = array
        return manifest, tensors

    def tried(self, write: Any, thing: Any, what: str) -> Any:
        try:
            return write(thing)
        except UnwritableError as error:
            raise SaveError(f"{what} cannot be saved: {error}.") from None

    def definitions(self) -> tuple[list[Any], list[int]]:
        """Return the definitions, each once, and for each node the place of its definition."""
        places: dict[str, int] = {}
        column: list[int] = []
        place_of: dict[int, int] = {}
        for node, number in enumerate(self.state.definition.tolist()):
            place = place_of.get(number)
            if place is None:
                text = json.dumps(self.definition(node, self.state.definitions[number]))
                place = place_of[number] = places.setdefault(text, len(places))
            column.append(place)
        return [json.loads(text) for text in places], column

    def definition(self, node: int, definition: Any) -> dict[str, Any]:
        """Return the form of one definition; raise if it has none."""
        writer, label = self.writer, f"node {self.state.label(node)!r}"
        if isinstance(definition, Leaf):
            return {"leaf": definition.name}
        if isinstance(definition, Choice):
            return {"choice": definition.value}
        if isinstance(definition, Output):
            return {
                "output": [definition.of, definition.index],
                "declared": self.tried(writer.spec, definition.declared, label),
            }
        if isinstance(definition, Computation):
            op: Op = definition.op
            if OPS.get(op.name) is not op:
                raise SaveError(
                    f"{label} cannot be saved: it computes an op {op.name!r} which is not the one "
                    "known by that name. Give each op a name of its own."
                )
            what = (
                f"{label}, op {op.name!r}, with the attributes {safe_repr(definition.attrs):.200}"
            )
            return {"op": op.name, "attrs": self.tried(writer.value, [*definition.attrs], what)}
        what = f"{label}, function {definition.name!r},"
        if definition.UNSAVED:
            raise SaveError(f"{label} cannot be saved: {definition.UNSAVED}")
        layout = definition.layout
        if layout is not None:
            layout = [
                self.tried(
                    writer.value, fixed, f"{what} with the fixed argument {safe_repr(fixed):.80}"
                )
                for fixed in layout
            ]
        form = {
            "function": self.tried(writer.function, definition.function, what),
            "layout": layout,
            "keywords": [*definition.keywords],
        }
        if isinstance(definition, Applied):  # its class says the rest
            return form
        for rule in ("vjp", "jvp"):
            function = getattr(definition, rule)
            form[rule] = None
            if function is not None:
                form[rule] = self.tried(writer.function, function, f"{what} with its {rule}")
        form["declared"] = self.tried(writer.spec, definition.declared, what)
        outputs = definition.outputs
        form["outputs"] = outputs and [self.tried(writer.spec, one, what) for one in outputs]
        return form

    def cutoff(self, node: int, rule: Any) -> Any:
        label = f"node {self.state.label(node)!r} with the cutoff {safe_repr(rule):.80}"
        return self.tried(self.writer.cutoff, rule, label)

    # --- values

    def value(self, node: int, value: Any, given: bool) -> int:
        """Store a value and return the place of its form.

        Values that can be computed again may be left out.
        """
        if value is Absent.MISSING:
            return self.form("missing")
        if value is Absent.VIEW:
            return self.form("view")
        if type(value) is np.ndarray and value.dtype in _format.NAMES:
            axes = axes_in_memory(value)
            if axes is None and not given:
                # Not a copy in another layout, which might add up to other bits: the function makes
                # the same value again.
                return self.form("missing")
            if axes is None:
                value, axes = np.ascontiguousarray(value), tuple(range(value.ndim))
            return self.array(node, value, axes)
        try:
            form = self.writer.value(value)
        except UnwritableError as error:
            if not given:
                return self.form("missing")
            raise SaveError(
                f"node {self.state.label(node)!r} holds {safe_repr(value):.80} and cannot be saved: "
                f"{error}. Numbers, strings, arrays and lists, tuples and dicts of them can be."
            ) from None
        self.objects.append(form)
        return self.form("object")

    def array(self, node: int, value: np.ndarray[Any, Any], axes: tuple[int, ...]) -> int:
        """Store an array in a tensor of its own or in a pool. Return the place of its form."""
        dtype, straight = _format.NAMES[value.dtype], axes == tuple(range(value.ndim))
        ordered = value if straight else value.transpose(axes)
        stored = to_tensor(ordered)
        name = self.names.get(node) if len(self.names) <= _format.MOST_NAMED else None
        own = name is not None or stored.nbytes > _format.POOLED_BYTES
        if own:
            self.tensors[tensor_name(int(self.state.serial[node]), name)] = stored
        else:
            self.pools[_format.NAMES[stored.dtype]].append(stored.reshape(-1))
        return self.form(
            "own" if own else "pooled", dtype, ordered.shape, None if straight else axes
        )

    def form(self, *form: Any) -> int:
        return self.forms.setdefault(form, len(self.forms))


def _narrow(numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return integers in 32 bits if they fit."""
    fits = not len(numbers) or (numbers.min() >= -(1 << 31) and numbers.max() < 1 << 31)
    return numbers.astype(np.int32 if fits else np.int64)


def seal(manifest: dict[str, Any], tensors: Tensors) -> tuple[dict[str, str], Tensors]:
    """Return metadata and tensors of the file, with their checksum."""
    text = json.dumps(manifest, separators=(",", ":"))
    metadata = {
        "format": FORMAT,
        "format_version": str(VERSION),
        "checksum": checksum(text.encode(), tensors),
    }
    if len(text) <= _format.MOST_MANIFEST:
        return {**metadata, "manifest": text}, tensors
    return metadata, {**tensors, "manifest": np.frombuffer(text.encode(), np.uint8)}


# --- the file ------------------------------------------------------------------------------------


def write(path: str | os.PathLike[str], manifest: dict[str, Any], tensors: Tensors) -> None:
    """Replace the file at `path` by a new one.

    At every moment the old one or the new one is there, whole.
    """
    metadata, tensors = seal(manifest, tensors)
    with named_as(path):
        write_whole(
            Path(os.path.realpath(path)), partial(write_tensors, tensors=tensors, metadata=metadata)
        )


def _by_scope(state: State) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for node, path in state.scopes:
        found.setdefault(path, []).append(node)
    return found
