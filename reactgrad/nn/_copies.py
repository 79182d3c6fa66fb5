"""Copies of modules: with params of their own, or with the twins of params in a fork."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from reactgrad.graph._var import Var
from reactgrad.nn._registry import Registered, is_param

M = TypeVar("M")


def deep_copy(module: M, memo: dict[int, Any]) -> M:
    """Return the same layers with leaves of their own, in the same graph, of the present values."""

    def leaf(var: Var) -> Var:
        made = (var.graph.param if is_param(var) else var.graph.input)(var.numpy())
        if var.frozen:
            made.freeze()
        return made

    return _copy(module, memo, leaf)


def twin(module: M, graph: Any, /) -> M:
    """Return the same layers for a fork: their params are the twins of these.

    Parameters
    ----------
    graph : Graph
        A fork of the module's graph, ``g.fork()``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph() as g:
    ...     net = rg.nn.Linear(2, 1, rng=0)
    >>> other = net.twin(g.fork())
    >>> other.bias.set([10.0])
    >>> bool(abs(other([1.0, 1.0]).item() - net([1.0, 1.0]).item()) > 5.0)
    True
    """
    return _copy(module, {}, lambda var: graph[var])


def _copy(value: Any, memo: dict[int, Any], leaf: Callable[[Var], Var]) -> Any:
    """Return a copy of what registers; other objects are shared."""
    if isinstance(value, Registered):
        return _of_module(value, memo, leaf)
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return type(value)([_copy(one, memo, leaf) for one in value])
    if type(value) is dict:
        return {key: _copy(one, memo, leaf) for key, one in value.items()}
    var: Any = value
    return _of_leaf(var, memo, leaf) if is_param(var) else var


def _of_leaf(var: Var, memo: dict[int, Any], leaf: Callable[[Var], Var]) -> Var:
    if id(var) not in memo:
        memo[id(var)] = leaf(var)
    return memo[id(var)]


def _of_module(module: Any, memo: dict[int, Any], leaf: Callable[[Var], Var]) -> Any:
    if id(module) in memo:
        return memo[id(module)]
    kind: Any = type(module)
    made = kind.__new__(kind)
    memo[id(module)] = made
    record = module._record
    made._record.buffers = dict(record.buffers)
    made._record.training = record.training
    for name, value in vars(module).items():
        if name == "_record":
            continue
        if name in record.buffers and isinstance(value, Var):
            vars(made)[name] = _of_leaf(value, memo, leaf)
        else:
            vars(made)[name] = _copy(value, memo, leaf)
    return made
