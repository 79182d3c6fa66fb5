"""The params that an optimiser is given: checked, named, and in groups."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from reactgrad._errors import DeviceError, DTypeError, GradientError, GraphError
from reactgrad.graph._detached import DetachedVar
from reactgrad.nodes._handle import Handle
from reactgrad.nodes._op import PARAM, Leaf
from reactgrad.scheduler import safe_repr

_COUNTED = re.compile(r"(.*/)?param_\d+")

# A name that must be the only one, or a path that may be that of another module's param, too; and the param.
Named = list[tuple[str | None, str | None, Any]]


def read_groups(who: str, params: Any) -> list[dict[str, Any]]:
    """Return groups, each a dict with ``"params"``: one for an iterable of params, or those given as dicts.

    Raises
    ------
    DTypeError
        If this is neither.
    GradientError
        If there is no param.
    """
    if isinstance(params, Handle | str) or not isinstance(params, Iterable):
        given = params.label if isinstance(params, Handle) else safe_repr(params)
        raise DTypeError(
            f"{who}({given:.60}): params is an iterable of params, of (name, param) pairs or of dicts. Write "
            f"{who}([w, b]) or {who}(g.params)."
        )
    if isinstance(params, Mapping):
        params = params.items() if "params" not in params else [params]
    given = list(_with_paths(params))
    if not given:
        raise GradientError(
            f"{who}([]): an optimiser needs at least one param. Is this a list of params made before the model, or "
            "an iterator that was used up? Write list(g.params)."
        )
    if any(isinstance(one, Mapping) for one in given):
        if not all(isinstance(one, Mapping) for one in given):
            raise DTypeError(
                f"{who}: params are given all in dicts, [{{'params': [w]}}, {{'params': [b], 'lr': 0.1}}], or "
                "none in dicts, [w, b]."
            )
        return [dict(one) for one in given]
    return [{"params": given}]


class _Path(str):
    """The path of a param in its module; another module may have a param of this path."""

    __slots__ = ()


def _with_paths(params: Any) -> Any:
    """Return pairs of paths and params in place of what ``Module.parameters`` returned."""
    named = getattr(params, "named", None)
    return params if named is None else [(_Path(path), param) for path, param in named]


def read_params(who: str, params: Any) -> Named:
    """Return the params of one group with the names that they were given.

    Raises
    ------
    DTypeError, GradientError
        If something in there is no param of a graph.
    """
    given = [params] if isinstance(params, Handle) else list(_with_paths(params))
    if not given:
        raise GradientError(f"{who}: a group without params. Leave it out, or give it one.")
    found: Named = []
    for one in given:
        name, param = one if isinstance(one, tuple) and len(one) == 2 else (None, one)
        if name is not None and not isinstance(name, str):
            raise DTypeError(
                f'{who}: {safe_repr(name):.60} is no name. Pairs are written ("layer.w", w).'
            )
        check_param(who, param)
        path = str(name) if type(name) is _Path else None
        found.append((None if path is not None else name, path, param))
    return found


def check_param(who: str, param: Any) -> None:
    """Raise an error for what is no param, or not one that an optimiser can work on."""
    if not isinstance(param, Handle):
        raise DTypeError(
            f"{who} was given {type(param).__name__} ({safe_repr(param):.60}) as a param. Params are leaves of a "
            "graph: w = g.param([1.0, 2.0])."
        )
    if isinstance(param, DetachedVar):
        raise GradientError(
            f"{who}: {param.label!r} is detached. Give the param itself, and detach where it is used."
        )
    op = param._graph._host.ops[param._slot]
    if op is not PARAM:
        kind = f"an {op.name}" if isinstance(op, Leaf) else "computed"
        raise GradientError(
            f"{who}: {param.label!r} is {kind}, and only params are trained. Give the params that it is computed "
            "from, or make it with g.param(value)."
        )
    found = param._graph._host.specs[param._slot]
    if found is not None and found.kind != "cpu":
        raise DeviceError(
            f"{who}: {param.label!r} lives on {found.device}, and optimisers work in the memory of the host. Make "
            "the param there, and move it by a node: w.to(device)."
        )


def check_one_graph(who: str, graph: Any, params: Iterable[Any]) -> None:
    """Raise ``GraphError`` for a param of another graph."""
    for param in params:
        if param._graph is not graph:
            raise GraphError(
                f"{who}: {param.label!r} belongs to another graph than the params before it. Make one optimiser "
                "for each graph; several may work on one."
            )


def check_once(who: str, params: Iterable[Any]) -> None:
    """Raise ``GradientError`` for a param that is there twice."""
    seen: set[int] = set()
    for param in params:
        if id(param) in seen:
            raise GradientError(
                f"{who}: {param.label!r} is there twice, so that each step would move it twice. A param that two "
                "layers share belongs into one group once: list(dict.fromkeys(params))."
            )
        seen.add(id(param))


def unique_names(who: str, named: Named, taken: Iterable[str]) -> list[str]:
    """Return a name for each param: the given one, or its path, name, label or place.

    Those that were not given have a number where they are taken.

    Raises
    ------
    GraphError
        If two params were given the same name.
    """
    used = set(taken)
    names: list[str] = []
    for name, path, param in named:
        if name is None:
            base = name = path or _own_name(param) or str(len(used))
            count = 1
            while name in used:
                count += 1
                name = f"{base}_{count}"
        elif name in used:
            raise GraphError(
                f"{who}: two params are called {name!r}; state is saved by name. Give each its own."
            )
        used.add(name)
        names.append(name)
    return names


def _own_name(param: Any) -> str | None:
    """Return the name of a param, or the variable that its line assigns it to; ``None`` if it has neither.

    What it is called otherwise depends on how many nodes were made before.
    """
    label = param._graph._host.name_of.get(param._slot) or param.label
    return None if _COUNTED.fullmatch(label) else label
