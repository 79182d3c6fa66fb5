"""Kernels for the product of two arrays, summed over some of their axes.

The axes fall into four groups: those of both operands and the result (a batch), those of one operand and
the result (rows, columns), and those that are summed (inner). With these in order a product is a batch of
matrix products. An operand that no view brings into this form is copied first, as ``np.tensordot`` does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from math import prod
from typing import Any, Final

import numpy as np

from reactgrad.backend._registry import find_binder, register_binder
from reactgrad.backend.numpy._in_turn import InTurn
from reactgrad.backend.numpy._sums import ALONE, WIDER

Call = Callable[[], object]

# On rows shorter than this a loop of NumPy's einsum is faster than a call of BLAS for each of them.
SHORT: Final = 32

# With fewer products `matmul` of integers costs less than the start of einsum.
FEW: Final = 4096

# Several axes of rows stay apart if the last one has so many rows, and the other matrix so few elements: BLAS then
# finds that matrix in a fast cache for each of the small products.
ROWS: Final = 4
SMALL: Final = 16384


class _Groups:
    """Two operands, and the labels of their axes by group."""

    __slots__ = ("a", "b", "batch", "columns", "first", "inner", "result", "rows", "second")

    def __init__(self, a: Any, b: Any, out: Any, subscripts: str) -> None:
        first, _, rest = subscripts.partition(",")
        second, _, result = rest.partition("->")
        self.a, self.first = _narrow(a, first, b, second, out, result)
        self.b, self.second = _narrow(b, second, self.a, self.first, out, result)
        self.result = result
        self.batch = [one for one in result if one in self.first and one in self.second]
        self.rows = [one for one in result if one in self.first and one not in self.batch]
        self.columns = [one for one in result if one in self.second and one not in self.batch]
        longer = self.first if a.size >= b.size else self.second
        self.inner = [one for one in longer if one not in result]

    @property
    def balanced(self) -> bool:
        """True if both operands have each of the axes that are summed."""
        summed = set(self.first + self.second) - set(self.result)
        return summed <= set(self.first) & set(self.second)

    @property
    def vectors(self) -> bool:
        """True for one sum of products for each element of a batch."""
        return bool(self.batch and not self.rows and not self.columns)

    @property
    def count(self) -> int:
        """The number of products in each sum."""
        return prod([self.a.shape[self.first.index(one)] for one in self.inner])

    def of_a(self) -> Any:
        """Return the first operand with its axes in order: batch, rows, inner."""
        order = (*self.batch, *self.rows, *self.inner)
        return self.a.transpose([self.first.index(one) for one in order])

    def of_b(self) -> Any:
        """Return the second operand with its axes in order: batch, inner, columns."""
        order = (*self.batch, *self.inner, *self.columns)
        return self.b.transpose([self.second.index(one) for one in order])

    def of_out(self, out: Any) -> Any:
        """Return the result with its axes in order: batch, rows, columns."""
        order = (*self.batch, *self.rows, *self.columns)
        return out.transpose([self.result.index(one) for one in order])

    def broadcast(self) -> tuple[Any, Any]:
        """Return both operands with the axes of the result, and the inner ones behind them."""
        order = (*self.result, *self.inner)
        return _spread(self.a, self.first, order), _spread(self.b, self.second, order)


def register(xp: Any, kind: str) -> None:
    """Register the kernels for a namespace whose functions take ``out`` as NumPy's do."""

    def loop(groups: _Groups, out: Any) -> Call:
        subscripts = f"{groups.first},{groups.second}->{groups.result}"
        if xp is np:
            einsum: Any = np.einsum  # NumPy's stubs have no `out` for all dtypes
            return partial(einsum, subscripts, groups.a, groups.b, out=out)
        return lambda: xp.copyto(out, xp.einsum(subscripts, groups.a, groups.b))

    def of_vectors(groups: _Groups, out: Any, conjugated: bool) -> Call | None:
        """Return a call of BLAS for each element of a batch, or ``None`` where it would be slow."""
        wanted = out.dtype.kind == ("c" if conjugated else "f")
        if not (wanted and xp is np and groups.balanced and groups.vectors):
            return None
        if groups.count < SHORT or not groups.a.dtype == groups.b.dtype == out.dtype:
            return None
        x, y = (_merged(one, out.ndim, 0) for one in (groups.of_a(), groups.of_b()))
        if x is None or y is None or not x.strides[-1] == y.strides[-1] == out.itemsize:
            return None
        vecdot: Any = np.vecdot  # NumPy's stubs take no `out` by position
        return partial(vecdot, x[..., 0, :], y[..., 0, :], out)

    def summed(groups: _Groups, out: Any) -> list[Call]:
        """Return the calls for one sum of products for each element of a batch."""
        if out.dtype.char not in WIDER or groups.count <= ALONE:
            return [loop(groups, out)]
        # The loop would add up so many short floats one by one that errors could be seen.
        x, y = groups.broadcast()
        product = xp.empty(np.broadcast_shapes(x.shape, y.shape), out.dtype)
        total = find_binder("sum", kind)
        axes = tuple(range(out.ndim, product.ndim))
        return [partial(xp.multiply, x, y, product), total((product,), out, (axes, False))]

    def copied(x: Any, dtype: Any, calls: list[Call]) -> Any:
        copy = xp.empty(x.shape, dtype)
        calls.append(partial(xp.copyto, copy, x))
        return copy

    def matrices(x: Any, lead: int, rows: int, dtype: Any, calls: list[Call]) -> Any:
        """Return an operand as matrices; the calls that copy it, where it takes one, are added."""
        found = _merged(x, lead, rows)
        if found is None or found.dtype != dtype or not _readable(found):
            found = _merged(copied(x, dtype, calls), lead, rows)
        return found

    def products(groups: _Groups, out: Any) -> list[Call]:
        """Return the calls for a batch of matrix products."""
        calls: list[Call] = []
        lead, rows, place = len(groups.batch), len(groups.rows), groups.of_out(out)
        right = matrices(groups.of_b(), lead, len(groups.inner), out.dtype, calls)
        few = right.shape[-2] * right.shape[-1] <= SMALL
        if rows > 1 and groups.columns and few and place.shape[lead + rows - 1] >= ROWS:
            right = right[(..., *(None,) * (rows - 1), slice(None), slice(None))]
            lead, rows = lead + rows - 1, 1
        left = matrices(groups.of_a(), lead, rows, out.dtype, calls)
        target, after = _merged(place, lead, rows), []
        if target is None or not _readable(target):
            product = xp.empty(place.shape, out.dtype)
            target, after = _merged(product, lead, rows), [partial(xp.copyto, place, product)]
        return [*calls, find_binder("matmul", kind)((left, right), target, ()), *after]

    def computed(groups: _Groups, out: Any) -> list[Call]:
        if not groups.balanced:
            return [loop(groups, out)]
        if not groups.inner:
            return [partial(xp.multiply, *groups.broadcast(), out)]
        if out.dtype.kind not in "fc":
            many = out.size * groups.count > FEW
            return [loop(groups, out)] if many else products(groups, out)
        return summed(groups, out) if groups.vectors else products(groups, out)

    def bind(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        (a, b), (subscripts, conjugated, _) = inputs, attrs
        groups = _Groups(a, b, out, subscripts)
        found = of_vectors(groups, out, conjugated)
        if found is not None:
            return found
        calls: list[Call] = []
        if conjugated:
            copy = xp.empty(groups.a.shape, groups.a.dtype)
            calls.append(partial(xp.conjugate, groups.a, copy))
            groups.a = copy
        calls += computed(groups, out)
        return calls[0] if len(calls) == 1 else InTurn(*calls)

    register_binder("einsum", kind, bind)


def _narrow(x: Any, term: str, y: Any, other: str, out: Any, result: str) -> tuple[Any, str]:
    """Return an operand without axes of length 1 that are longer in the other operand or the result."""
    lengths = dict(zip(other + result, (*y.shape, *out.shape), strict=True))
    wide = [i for i, n in enumerate(x.shape) if n == 1 and lengths.get(term[i], 1) != 1]
    if not wide:
        return x, term
    index = [0 if i in wide else slice(None) for i in range(x.ndim)]
    # The dots keep a view where no axis is left: without them it would be a number, which does not follow.
    return x[(*index, ...)], "".join([one for i, one in enumerate(term) if i not in wide])


def _spread(x: Any, term: str, order: Sequence[str]) -> Any:
    """Return an operand with its axes in an order of labels, and of length 1 where it has none."""
    x = x.transpose([term.index(one) for one in order if one in term])
    return x[(..., *[slice(None) if one in term else None for one in order])]


def _merged(x: Any, lead: int, rows: int) -> Any:
    """Return a view whose axes behind the first `lead` are two, the next `rows` ones and the others, or ``None``."""
    first, second = range(lead, lead + rows), range(lead + rows, x.ndim)
    if not (_follow(x, first) and _follow(x, second)):
        return None
    down, along = (prod([x.shape[i] for i in axes]) for axes in (first, second))
    return x.reshape((*x.shape[:lead], down, along))


def _follow(x: Any, axes: Sequence[int]) -> bool:
    """Return whether these axes lie in memory as one axis does."""
    if not x.size:
        return True
    long = [i for i in axes if x.shape[i] != 1]
    return all(x.strides[i] == x.strides[j] * x.shape[j] for i, j in pairwise(long))


def _readable(x: Any) -> bool:
    """Return whether ``matmul`` reads or writes matrices as they lie, without a slow loop."""
    if x.dtype.kind not in "fc" or not x.size:
        return True
    (m, n), (down, along), size = x.shape[-2:], x.strides[-2:], x.itemsize
    rows = (along == size or n == 1) and (m == 1 or (down % size == 0 and down >= n * size))
    columns = (down == size or m == 1) and (n == 1 or (along % size == 0 and along >= m * size))
    return bool(rows or columns)
