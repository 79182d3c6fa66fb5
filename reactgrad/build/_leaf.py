"""Leaves: inputs, params and consts, checked and stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reactgrad._errors import DeviceError, DTypeError, ImplicitValueError
from reactgrad.backend import Spec, own_copy, own_object, read_device, read_dtype, spec
from reactgrad.core._handles import new_var, tidy
from reactgrad.core._names import check_name, set_name
from reactgrad.nodes._cutoff import read_cutoff
from reactgrad.nodes._handle import Handle
from reactgrad.nodes._op import CONST, PARAM, Leaf
from reactgrad.nodes._scope import open_scopes, path_here
from reactgrad.nodes._site import user_site
from reactgrad.scheduler import safe_repr
from reactgrad.values._columns import MISSING
from reactgrad.values._fitting import check_pattern, not_float, read_as, read_pattern

if TYPE_CHECKING:
    from reactgrad.core._core import Core, V


def new_leaf(
    graph: Core[V],
    kind: Leaf,
    value: Any,
    name: str | None,
    shape: Any,
    dtype: Any,
    cutoff: Any,
    device: str | None = None,
) -> V:
    """Return a new leaf of this kind; see ``Graph.input`` for the arguments."""
    what = f"{kind.name} {safe_repr(name)}" if name is not None else f"this {kind.name}"
    wanted = None if dtype is None else read_dtype(what, dtype)
    where = graph.device if device is None else read_device(what, device)
    pattern = None if shape is None else read_pattern(what, shape, wanted, where)
    rule = read_cutoff(cutoff)
    if value is MISSING:
        if pattern is None and kind is PARAM:
            raise DTypeError(f"{what} needs a value, or shape= and dtype=.")
        found: Spec | None = pattern
        if kind is PARAM and pattern is not None and pattern.dtype.kind != "f":
            raise not_float(what, pattern)
        if device is not None and pattern is None:
            raise DeviceError(
                f"{what}: device={safe_repr(device)} without a value needs shape= and dtype=, too."
            )
    else:
        if isinstance(value, Handle):
            raise ImplicitValueError(
                f"{what} was given a Var. A leaf holds a value of its own: pass v.value, or "
                "v.snapshot() for a constant; to compute from v, just use v."
            )
        found, value = read_as(what, value, wanted, None if device is None else where)
        if kind is PARAM:
            if found is None or found.dtype.kind != "f":
                raise not_float(what, found or type(value).__name__)
            found = spec(found.shape, found.dtype, found.device)
        if found is not None and found.weak is None and found.device == "cpu":
            found = spec(found.shape, found.dtype, where)  # without `device`, that of the graph
        if pattern is not None:
            check_pattern(what, pattern, found)
    if open_scopes and isinstance(name, str) and name and (path := path_here(graph)):
        name = f"{path}/{name}"
    with graph._lock:
        # A constant without a name changes nothing, as an op does not.
        if kind is not CONST or name is not None:
            graph._scheduler.check_idle()
        check_name(graph, name, None)
        tidy(graph)
        data: Any = MISSING
        if value is not MISSING:
            if found is None:
                data = own_object(value)
            else:
                data = value if found.weak is not None else own_copy(found, value)
        # An orphan until it has its Var: if an error comes first, it is released.
        valued = value is not MISSING
        graph._scheduler.orphans.append(slot := graph._scheduler.add((), leaf=True, valued=valued))
        graph._host.add_node(slot, kind, (), found, data, user_site())
        if pattern is not None:
            graph._host.patterns[slot] = pattern
        elif wanted is not None and value is MISSING:
            graph._host.dtypes[slot] = wanted
        if rule is not None:
            graph._host.cutoffs[slot] = rule
        var = new_var(graph, slot)
        if name is not None:
            set_name(graph, slot, name)
        return var
