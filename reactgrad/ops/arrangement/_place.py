"""``x.at[i].set(v)``: values with a part changed, written as in JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reactgrad.ops._elementwise import negative
from reactgrad.ops._index import index_of, part_at
from reactgrad.ops._operand import node
from reactgrad.ops.arrangement._put import put_at


class At:
    """The places of a value, by index: ``x.at[1:3]``; see ``Place``."""

    __slots__ = ("_x",)

    def __init__(self, x: Any) -> None:
        self._x = x

    def __getitem__(self, key: Any) -> Place:
        return Place(self._x, key)


class Place:
    """The part of a value at an index. Its methods return the whole value with that part changed.

    Each makes one node; nothing is written into the value itself. Indices are those of ``x[...]``: integers,
    slices, ``...``, ``None``, arrays of integers or booleans, Vars of these. Values broadcast to the part; the
    result keeps the dtype of the whole.

    Where an index has a place twice, ``add``, ``subtract``, ``multiply``, ``divide``, ``power``, ``min`` and
    ``max`` do all, in order; of several values that are set, the last one stays, and gets the gradient. Ties of
    ``min`` and ``max`` share the gradient evenly. The gradient of ``multiply`` and ``power`` needs an index that
    has no place twice.

    ``unique_indices=True`` promises that it has none; then work is saved that else finds out.

    Examples
    --------
    >>> import reactgrad as rg
    >>> x = rg.Graph().input([1.0, 2.0, 3.0])
    >>> x.at[0].set(10.0).value
    array([10.,  2.,  3.])
    >>> x.at[[0, 0, 2]].add(1.0).value
    array([3., 2., 4.])
    >>> x.at[x > 1.5].multiply(2.0).value
    array([1., 4., 6.])
    """

    __slots__ = ("_index", "_operands", "_x")

    def __init__(self, x: Any, key: Any) -> None:
        self._x = x
        self._index, self._operands = index_of(key)

    def _put(self, values: Any, how: str, distinct: bool) -> Any:
        return put_at(self._x, self._index, self._operands, values, how, distinct)

    def get(self) -> Any:
        """Return the part: ``x[...]``."""
        return part_at(self._x, self._index, self._operands)

    def set(self, values: Any, *, unique_indices: bool = False) -> Any:
        """Return the whole with `values` in the place of the part."""
        return self._put(values, "set", unique_indices)

    def apply(self, function: Callable[[Any], Any], *, unique_indices: bool = False) -> Any:
        """Return the whole with ``function(part)`` in the place of the part."""
        return self._put(function(self.get()), "set", unique_indices)

    def add(self, values: Any, *, unique_indices: bool = False) -> Any:
        """Return the whole with `values` added to the part."""
        return self._put(values, "add", unique_indices)

    def subtract(self, values: Any, *, unique_indices: bool = False) -> Any:
        """Return the whole with `values` subtracted from the part."""
        return self._put(negative(node(values, self._x)), "add", unique_indices)

    def multiply(self, values: Any, *, unique_indices: bool = False) -> Any:
        """Return the whole with the part multiplied by `values`."""
        return self._put(values, "multiply", unique_indices)

    def divide(self, values: Any, *, unique_indices: bool = False) -> Any:
        """Return the whole with the part divided by `values`."""
        return self._put(values, "divide", unique_indices)

    def power(self, values: Any, *, unique_indices: bool = False) -> Any:
        """Return the whole with the part raised to the power `values`."""
        return self._put(values, "power", unique_indices)

    def min(self, values: Any, *, unique_indices: bool = False) -> Any:
        """Return the whole with the smaller of part and `values` in the place of the part."""
        return self._put(values, "min", unique_indices)

    def max(self, values: Any, *, unique_indices: bool = False) -> Any:
        """Return the whole with the larger of part and `values` in the place of the part."""
        return self._put(values, "max", unique_indices)
