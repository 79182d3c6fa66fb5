"""``Parameter``: a trainable leaf of the graph that is current when it is made."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._errors import DTypeError
from reactgrad.graph._var import Var
from reactgrad.nn._registry import is_param
from reactgrad.nodes._handle import current_graph
from reactgrad.scheduler import safe_repr


class _IsParam(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return is_param(instance)


class Parameter(metaclass=_IsParam):
    """A trainable leaf, made by ``rg.nn.Parameter(value)``: what ``rg.param`` returns.

    ``isinstance(one, rg.nn.Parameter)`` is true for every param, frozen ones included.

    Parameters
    ----------
    data : array_like
        Floats; copied.
    requires_grad : bool
        ``False`` for a frozen one.
    name, dtype
        As for ``rg.param``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph() as g:
    ...     w = rg.nn.Parameter([1.0, 2.0])
    >>> isinstance(w, rg.nn.Parameter), g.params[0] is w
    (True, True)
    """

    def __new__(  # type: ignore[misc]
        cls, data: Any, requires_grad: bool = True, *, name: str | None = None, dtype: Any = None
    ) -> Var:
        var: Var = current_graph().param(data, name, dtype=dtype)
        if not requires_grad:
            var.freeze()
        return var


def real(dtype: Any) -> np.dtype[Any]:
    """Return the dtype of a layer's params: float64 for ``None``, as of ``rg.zeros``."""
    return dtype_of("dtype=", np.float64 if dtype is None else dtype)


def dtype_of(what: str, dtype: Any) -> np.dtype[Any]:
    """Return a dtype of params, or raise ``DTypeError`` for what is none."""
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = None
    if found is None or found.kind not in "fc":
        raise DTypeError(
            f"{what}{safe_repr(dtype):.60}: params are floats. Write 'float32' or 'float64'."
        )
    return found
