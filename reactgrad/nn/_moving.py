"""Modules in another dtype or on another device: params and buffers are made anew."""

from __future__ import annotations

import operator
from typing import Any, TypeVar

import numpy as np

from reactgrad.core._moved import replaced
from reactgrad.graph._var import Var
from reactgrad.nn._parameter import dtype_of
from reactgrad.nn._registry import is_param, named_by_hand, parts_of

M = TypeVar("M")


def to(module: M, /, *args: Any, dtype: Any = None, device: str | None = None) -> M:
    """Give the module params and floating buffers of another dtype, or on another device; return it.

    They are new leaves: results that are there keep the former ones. Optimisers go on with the new ones.

    Parameters
    ----------
    *args : dtype_like or str
        A dtype or a device such as ``"cuda:0"``, in any order.
    dtype : dtype_like, optional
    device : str, optional

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     net = rg.nn.Linear(2, 1).to("float32")
    >>> net.weight.dtype
    dtype('float32')
    """
    for one in args:
        if isinstance(one, str) and one.partition(":")[0] in ("cpu", "cuda"):
            device = one
        else:
            dtype = one
    wanted = None if dtype is None else dtype_of("to: ", dtype)
    whole: Any = module
    next(whole.parameters(), None)  # says so where params wait for a first input
    made: dict[tuple[int, int], Var] = {}
    for owner in [one for _, one in parts_of(module).modules]:
        for name, value in list(owner._attributes()):
            owner._replace(name, _moved(value, owner, name, wanted, device, made))
    for graph in {id(new.graph): new.graph for new in made.values()}.values():
        replaced(graph, {old: new for (of, old), new in made.items() if of == id(graph)})
    return module


def _moved(value: Any, owner: Any, name: str, dtype: Any, device: Any, made: Any) -> Any:
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        found: Any = type(value)([_moved(one, owner, name, dtype, device, made) for one in value])
        return value if all(map(operator.is_, found, value)) else found
    if type(value) is dict:
        found = {key: _moved(one, owner, name, dtype, device, made) for key, one in value.items()}
        return value if all(map(operator.is_, found.values(), value.values())) else found
    if not isinstance(value, Var) or not (is_param(value) or name in owner._record.buffers):
        return value
    key = (id(value._graph), value._slot)
    if key not in made:
        made[key] = _again(value, dtype, device)
    return made[key]


def _again(var: Var, dtype: Any, device: str | None) -> Var:
    """Return a new leaf of the same kind, value and name."""
    dtype = var.dtype if dtype is None or var.dtype.kind != "f" else dtype
    device = var.device if device is None else device
    if dtype == var.dtype and device == var.device:
        return var
    graph, name, frozen, param = var.graph, var.name, var.frozen, is_param(var)
    value = var.numpy().astype(dtype)
    add = graph.param if param else graph.input
    named = named_by_hand(var)
    new = add(value, device=device)
    if named:
        var.name = None  # type: ignore[assignment]
        new.name = name
    if frozen:
        new.freeze()
    return new


def to_cpu(module: M, /) -> M:
    """Return the module with params and buffers in the memory of the host; see ``to``."""
    return to(module, device="cpu")


def to_cuda(module: M, /, device: int | str | None = None) -> M:
    """Return the module with params and buffers on a GPU, the first one by default; see ``to``."""
    where = str(0 if device is None else device)
    return to(module, device=where if where.startswith("cuda") else f"cuda:{where}")


def to_float32(module: M, /) -> M:
    """Return the module with params and floating buffers in float32; see ``to``."""
    return to(module, np.float32)


def to_float64(module: M, /) -> M:
    """Return the module with params and floating buffers in float64; see ``to``."""
    return to(module, np.float64)


def to_float16(module: M, /) -> M:
    """Return the module with params and floating buffers in float16; see ``to``."""
    return to(module, np.float16)
