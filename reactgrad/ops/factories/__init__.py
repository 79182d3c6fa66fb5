"""Values made from a shape, a range or another value: constants, and nodes that follow a shape.

- ``_filled``: zeros, ones, full, empty, and the same in the shape of another value.
- ``_ranges``: arange, linspace, logspace, geomspace. ``_identity``: eye, identity.
"""

from collections.abc import Callable
from typing import Any

from reactgrad._calls import memory_order as _memory_order
from reactgrad.ops.factories._filled import empty as empty
from reactgrad.ops.factories._filled import empty_like as empty_like
from reactgrad.ops.factories._filled import full as full
from reactgrad.ops.factories._filled import full_like as full_like
from reactgrad.ops.factories._filled import ones as ones
from reactgrad.ops.factories._filled import ones_like as ones_like
from reactgrad.ops.factories._filled import zeros as zeros
from reactgrad.ops.factories._filled import zeros_like as zeros_like
from reactgrad.ops.factories._identity import eye as eye
from reactgrad.ops.factories._identity import identity as identity
from reactgrad.ops.factories._ranges import arange as arange
from reactgrad.ops.factories._ranges import geomspace as geomspace
from reactgrad.ops.factories._ranges import linspace as linspace
from reactgrad.ops.factories._ranges import logspace as logspace


def _without_layout(make: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with NumPy's arguments that say how an array lies in memory, which says nothing here."""

    def like(
        a: Any,
        dtype: Any = None,
        order: str = "K",
        subok: bool = True,
        shape: Any = None,
        *,
        device: str | None = None,
    ) -> Any:
        _memory_order(make.__name__, order)
        return make(a, dtype, shape=shape, device=device)

    return like


def _full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: str | None = None,
) -> Any:
    _memory_order("full_like", order)
    return full_like(a, fill_value, dtype, shape=shape, device=device)


_FOR_NUMPY = {
    "empty_like": _without_layout(empty_like),
    "ones_like": _without_layout(ones_like),
    "zeros_like": _without_layout(zeros_like),
    "full_like": _full_like,
}
