"""Leaves made by a line that runs again: the leaf of that name, set anew."""

from __future__ import annotations

from typing import Any

from reactgrad._errors import GraphError
from reactgrad.backend import read_device, read_dtype, read_value
from reactgrad.change._set import set_value
from reactgrad.core._core import Core
from reactgrad.core._handles import handle, tidy
from reactgrad.nodes._cutoff import equal, read_cutoff
from reactgrad.nodes._op import CONST, Leaf
from reactgrad.nodes._scope import path_here
from reactgrad.scheduler import safe_repr
from reactgrad.values._columns import MISSING
from reactgrad.values._fitting import read_pattern


def leaf_again(
    graph: Core,
    kind: Leaf,
    value: Any,
    name: str | None,
    shape: Any,
    dtype: Any,
    cutoff: Any,
    device: str | None = None,
) -> Any:
    """Return the leaf of this name, set to the value; ``None`` if no node has the name.

    Raises
    ------
    GraphError
        If no name is given, or the node with the name is none of this kind, or was declared with
        another shape, dtype or device, or is a const of another value. Nothing has changed then.
    ReactgradError
        If the value does not fit, as with ``Var.set``.
    """
    call = f"g.{kind.name}(..., exist_ok=True)"
    if not isinstance(name, str) or not name:
        raise GraphError(f"{call} finds the {kind.name} by its name: write name='x' beside it.")
    if path := path_here(graph):
        name = f"{path}/{name}"
    with graph._lock:
        tidy(graph)
        host = graph._host
        slot = host.named.get(name)
        if slot is None:
            return None
        what, op = f"{kind.name} {name!r}", host.ops[slot]
        if op is not kind:
            raise GraphError(
                f"{call}: {name!r} is no {kind.name} of this graph but {host.describe_op(slot)}. "
                f"Choose another name, or take that node's away first: g[{name!r}].name = None."
            )
        wanted = None if dtype is None else read_dtype(what, dtype)
        where = None if device is None else read_device(what, device)
        _check_declared(graph, slot, call, name, shape, wanted, where)
        rule, var = read_cutoff(cutoff), handle(graph, slot)
        if kind is CONST:
            if not equal(host.hand_out(slot), _as_held(value, what)):
                raise GraphError(
                    f"{call}: the const {name!r} has another value, and a const never changes. Make "
                    f"it an input, g.input(value, name={name!r}, exist_ok=True)."
                )
        elif value is not MISSING:
            set_value(var, value)
        if rule is not None:
            var.cutoff = rule  # type: ignore[attr-defined]
        return var


def _check_declared(
    graph: Core, slot: int, call: str, name: str, shape: Any, wanted: Any, device: str | None
) -> None:
    """Raise ``GraphError`` unless the leaf has this shape, dtype and device; ``None`` stands for any."""
    host = graph._host
    found, pattern = host.specs[slot], host.patterns.get(slot)
    if shape is not None:
        asked = read_pattern(f"{call}: {name!r}", shape, wanted)
        if pattern is None or pattern.shape != asked.shape:
            raise GraphError(_other(call, name, f"shape={safe_repr(shape)}"))
    has = host.dtypes.get(slot) if found is None else found.dtype
    if wanted is not None and has != wanted:
        raise GraphError(_other(call, name, f"dtype='{wanted}'"))
    if device is not None and device != (found.device if found is not None else "cpu"):
        raise GraphError(_other(call, name, f"device={safe_repr(device)}"))


def _other(call: str, name: str, declared: str) -> str:
    return (
        f"{call}: {name!r} exists and was not made with {declared}. Choose another name, or take "
        f"that leaf's away first: g[{name!r}].name = None."
    )


def _as_held(value: Any, what: str) -> Any:
    """Return a value in the form in which a leaf would hand it out."""
    found, value = read_value(value, what)
    return value[()] if found is not None and found.weak is None and found.kind == "cpu" else value
