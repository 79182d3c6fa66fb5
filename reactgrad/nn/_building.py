"""Calls of modules: built once for each structure of module and arguments, and fed afterwards."""

from __future__ import annotations

import weakref
from array import array
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as np

from reactgrad._errors import GraphError, UnsetError
from reactgrad.graph._detached import DetachedVar
from reactgrad.graph._var import Var
from reactgrad.nn import _forward_hooks
from reactgrad.nn._registry import named_by_hand, parts_of
from reactgrad.nodes._handle import Handle, entered, graph_of
from reactgrad.nodes._nested import mapped
from reactgrad.ops import astype
from reactgrad.subgraphs._sharing import Sharing
from reactgrad.subgraphs._subgraph import Subgraph

# The labels that are taken in each graph, with the modules that have them.
_labels: weakref.WeakKeyDictionary[Any, dict[str, Any]] = weakref.WeakKeyDictionary()


class Building:
    """The call of an outermost module that is being built.

    Attributes
    ----------
    graph : Graph
        Where its nodes are built.
    paths : dict
        From the id of a module to its path.
    at : list of str
        The paths of the modules that are being called, the innermost last.
    moments : list
        What layers of batch normalisation measure in this call: a weak reference to the layer, mean,
        variance, and how many numbers they are of.
    heard : list
        What hooks of modules are called with; see ``_forward_hooks``.
    """

    __slots__ = ("at", "graph", "heard", "moments", "paths")

    def __init__(self, graph: Any, module: Any) -> None:
        self.graph = graph
        self.paths = {id(one): path for path, one in parts_of(module).modules}
        self.at = [""]
        self.moments: list[tuple[Any, ...]] = []
        self.heard: _forward_hooks.Calls = []

    def inner(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a module inside of the one that is being built, in a scope of its own."""
        path = self.paths.get(id(module), type(module).__name__)
        outer = f"{self.at[-1]}."
        name = path.removeprefix(outer) if self.at[-1] else path
        self.at.append(path)
        try:
            with self.graph.scope(name.replace(".", "/") or type(module).__name__):
                args, kwargs = _narrowed(parts_of(module).dtype, args, kwargs)
                return _forward_hooks.forward(module, args, kwargs, self.heard)
        finally:
            self.at.pop()


_building: ContextVar[Building | None] = ContextVar("reactgrad_nn_building", default=None)


def building() -> Building | None:
    """Return the call that is being built in this thread or task."""
    return _building.get()


class ModuleCall(Subgraph[..., Any]):
    """The nodes of one module's calls. It refers to the module weakly: the nodes must not keep it."""

    def __init__(self, module: Any, sharing: Sharing) -> None:
        super().__init__(_forward_of(module))
        self._sharing = sharing

    def result(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the module's result for these arguments."""
        parts = parts_of(module)
        graph = next((var._graph for _, var, _ in parts.entries), None)
        if graph is None:
            graph = graph_of((args, kwargs))
        if module._record.label is None:
            _name(graph, module)
        if _has_views(args) or _has_views(kwargs):
            args, kwargs = mapped((args, kwargs), lambda one: self._carried(graph, one))
        with entered(graph):
            result, moments, heard = self(_edition(parts), *args, **kwargs)
        if heard and not graph._subgraphs.under_way:
            _forward_hooks.call_again(heard)
        if moments:
            follow(moments)
            module._record.moments = moments
        return result

    def _carried(self, graph: Any, one: Any) -> Any:
        """Return an argument as it is given on: the value of one that is state of this module's loop.

        A node that followed it would keep all steps before, and recompute them after each change of a param.
        """
        if not isinstance(one, DetachedVar) or one._graph is not graph:
            return one
        pool = graph._subgraphs
        return one.base.value if pool is not None and pool.carried(graph, self, one._slot) else one


def inputs_of_modules(graph: Any) -> list[Var]:
    """Return the buffers, and the switches of train mode, of all modules that have been called in a graph."""
    found: list[Var] = []
    for of in _labels.get(graph, {}).values():
        if (module := of()) is not None:
            parts = parts_of(module)
            found += [var for _, var, kind in parts.entries if kind != "param"]
            switches = [one._record.switch for _, one in parts.modules]
            found += [one for one in switches if one is not None and one._graph is graph]
    return found


def _has_views(value: Any) -> bool:
    """Return whether there is a detached Var in a nest of arguments."""
    if isinstance(value, tuple) or type(value) is list:
        return any(map(_has_views, value))
    if type(value) is dict:
        return any(map(_has_views, value.values()))
    return isinstance(value, DetachedVar)


def _edition(parts: Any) -> bytes:
    """Return a key of all that a call builds: the numbers of what the tree consists of."""
    numbers = [one._record.edition for _, one in parts.modules]
    numbers += [one.training for _, one in parts.modules if one._record.looked]
    if parts.open:
        numbers += [var._slot for _, var, _ in parts.entries]
    return array("q", numbers).tobytes()


def _forward_of(module: Any) -> Callable[..., Any]:
    """Return the function of nodes that a module is, with an argument for its edition."""
    of = weakref.ref(module)

    def forward(edition: bytes, /, *args: Any, **kwargs: Any) -> Any:
        module: Any = of()
        graph = next((var._graph for _, var, _ in parts_of(module).entries), None)
        graph = graph_of((args, kwargs)) if graph is None else graph
        token = _building.set(call := Building(graph, module))
        try:
            with graph.scope(module._record.label):
                args, kwargs = _narrowed(parts_of(module).dtype, args, kwargs)
                result = _forward_hooks.forward(module, args, kwargs, call.heard)
                return result, call.moments, call.heard
        finally:
            _building.reset(token)

    forward.__name__ = type(module).__name__
    return forward


def _narrowed(dtype: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Return arguments whose floats are no wider than the params, in whose dtype a module computes."""
    if dtype is None or dtype.itemsize >= 8:
        return args, kwargs

    def narrow(one: Any) -> Any:
        if isinstance(one, Handle):
            found = one._graph._host.specs[one._slot]
            given = None if found is None or found.weak is not None else found.dtype
        else:
            given = one.dtype if isinstance(one, np.ndarray) else None
        wide = given is not None and given.kind == "f" and given.itemsize > dtype.itemsize
        return astype(one, dtype) if wide else one

    return mapped((args, kwargs), narrow)


def _name(graph: Any, module: Any) -> None:
    """Give a module that is called itself a scope, and its params and buffers names in that scope."""
    taken = _labels.setdefault(graph, {})
    base = label = type(module).__name__.strip("_") or "Module"
    count = 1
    while label in taken and taken[label]() is not None:
        count += 1
        label = f"{base}_{count}"
    taken[label] = weakref.ref(module)
    module._record.label = label
    for path, var, _ in parts_of(module).entries:
        if not named_by_hand(var):
            try:
                var.name = f"{label}/{path.replace('.', '/')}"
            except GraphError:  # a node of the user has that name
                pass


def follow(moments: list[tuple[Any, ...]]) -> None:
    """Mix the moments of a call into the running ones of the layers that are in train mode."""
    sets: dict[Any, Any] = {}
    for of, *measured in moments:
        layer = of()
        if layer is not None and layer.training:
            try:
                layer._mix(*measured, sets)
            except UnsetError:  # a call with an input that has no value yet measures nothing
                return
    if sets:
        first: Handle = next(iter(sets))
        first._graph.set(sets)  # type: ignore[attr-defined]
