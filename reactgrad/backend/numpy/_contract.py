"""Kernels for the product of two arrays, summed over some of their axes.

The axes fall into four groups: those of both operands and the result (a batch), those of one operand and
the result (rows, columns), and those that are summed (inner). With these in order a product is a batch of
matrix products. An operand that no view brings into this form is copied first, as ``np.tensordot`` does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from reactgrad.backend._registry import find_binder, register_binder
from reactgrad.backend.numpy._in_turn import InTurn
from reactgrad.backend.numpy._sums import ALONE, WIDER

Call = Callable[[], object]
Shape = tuple[int, ...]

# On rows shorter than this a loop of NumPy's einsum is faster than a call of BLAS for each of them.
SHORT: Final = 32

# With fewer products `matmul` of integers costs less than the start of einsum.
FEW: Final = 4096

# Several axes of rows stay apart if the last one has so many rows, and the other matrix so few elements: BLAS then
# finds that matrix in a fast cache for each of the small products.
ROWS: Final = 4
SMALL: Final = 16384


class _Plan(NamedTuple):
    """The axes of a product by group, for operands of certain shapes."""

    parts: tuple[
        Any, Any
    ]  # the indices that leave out axes of length 1 beside longer ones, or None
    terms: tuple[str, str]  # the labels of the axes that are left
    result: str
    batch: int  # the number of axes in each group
    rows: int
    columns: int
    inner: str
    balanced: bool  # both operands have each of the axes that are summed
    count: int  # of products in each sum
    orders: tuple[
        Any, Any, Any
    ]  # of axes: batch, rows, inner; batch, inner, columns; batch, rows, columns

    @property
    def vectors(self) -> bool:
        """True for one sum of products for each element of a batch."""
        return bool(self.batch and not self.rows and not self.columns)


@lru_cache(maxsize=4096)
def _plan(subscripts: str, a: Shape, b: Shape, out: Shape) -> _Plan:
    first, _, rest = subscripts.partition(",")
    second, _, result = rest.partition("->")
    part_a, first, a = _narrow(a, first, b, second, out, result)
    part_b, second, b = _narrow(b, second, a, first, out, result)
    batch = [one for one in result if one in first and one in second]
    rows = [one for one in result if one in first and one not in batch]
    columns = [one for one in result if one in second and one not in batch]
    longer = first if prod(a) >= prod(b) else second
    inner = [one for one in longer if one not in result]
    return _Plan(
        (part_a, part_b),
        (first, second),
        result,
        len(batch),
        len(rows),
        len(columns),
        "".join(inner),
        set(first + second) - set(result) <= set(first) & set(second),
        prod([n for n, one in zip(a, first, strict=True) if one in inner]),
        (
            _places(first, (*batch, *rows, *inner)),
            _places(second, (*batch, *inner, *columns)),
            _places(result, (*batch, *rows, *columns)),
        ),
    )


def _places(term: str, order: Sequence[str]) -> tuple[int, ...]:
    return tuple([term.index(one) for one in order if one in term])


def _narrow(
    shape: Shape, term: str, beside: Shape, other: str, out: Shape, result: str
) -> tuple[Any, str, Shape]:
    """Return the index, labels and shape without axes of length 1 that are longer elsewhere."""
    lengths = dict(zip(other + result, (*beside, *out), strict=True))
    wide = [i for i, n in enumerate(shape) if n == 1 and lengths.get(term[i], 1) != 1]
    if not wide:
        return None, term, shape
    # The dots keep a view where no axis is left: without them it would be a number, which does not follow.
    index = (*[0 if i in wide else slice(None) for i in range(len(shape))], ...)
    kept = [i for i in range(len(shape)) if i not in wide]
    return index, "".join([term[i] for i in kept]), tuple([shape[i] for i in kept])


class _Product:
    """Two operands with the plan of their product."""

    __slots__ = ("a", "b", "plan")

    def __init__(self, a: Any, b: Any, out: Any, subscripts: str) -> None:
        self.plan = _plan(subscripts, a.shape, b.shape, out.shape)
        part_a, part_b = self.plan.parts
        self.a = a if part_a is None else a[part_a]
        self.b = b if part_b is None else b[part_b]

    def ordered(self) -> tuple[Any, Any]:
        """Return both operands with their axes in order of groups."""
        left, right, _ = self.plan.orders
        return self.a.transpose(left), self.b.transpose(right)

    def broadcast(self) -> tuple[Any, Any]:
        """Return both operands with the axes of the result, and the inner ones behind them."""
        order = self.plan.result + self.plan.inner
        found = []
        for x, term in zip((self.a, self.b), self.plan.terms, strict=True):
            wide = [slice(None) if one in term else None for one in order]
            found.append(x.transpose(_places(term, order))[(..., *wide)])
        return found[0], found[1]


def register(xp: Any, kind: str) -> None:
    """Register the kernels for a namespace whose functions take ``out`` as NumPy's do."""

    def loop(both: _Product, out: Any) -> Call:
        subscripts = f"{','.join(both.plan.terms)}->{both.plan.result}"
        if xp is np:
            einsum: Any = np.einsum  # NumPy's stubs have no `out` for all dtypes
            return partial(einsum, subscripts, both.a, both.b, out=out)
        return lambda: xp.copyto(out, xp.einsum(subscripts, both.a, both.b))

    def of_vectors(both: _Product, out: Any, conjugated: bool) -> Call | None:
        """Return a call of BLAS for each element of a batch, or ``None`` where it would be slow."""
        wanted = out.dtype.kind == ("c" if conjugated else "f")
        if not (wanted and xp is np and both.plan.balanced and both.plan.vectors):
            return None
        if both.plan.count < SHORT or not both.a.dtype == both.b.dtype == out.dtype:
            return None
        x, y = (_merged(one, out.ndim, 0) for one in both.ordered())
        if x is None or y is None or not x.strides[-1] == y.strides[-1] == out.itemsize:
            return None
        vecdot: Any = np.vecdot  # NumPy's stubs take no `out` by position
        return partial(vecdot, x[..., 0, :], y[..., 0, :], out)

    def summed(both: _Product, out: Any) -> list[Call]:
        """Return the calls for one sum of products for each element of a batch."""
        if out.dtype.char not in WIDER or both.plan.count <= ALONE:
            return [loop(both, out)]
        # The loop would add up so many short floats one by one that errors could be seen.
        x, y = both.broadcast()
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

    def products(both: _Product, out: Any) -> list[Call]:
        """Return the calls for a batch of matrix products."""
        calls: list[Call] = []
        lead, rows, place = both.plan.batch, both.plan.rows, out.transpose(both.plan.orders[2])
        a, b = both.ordered()
        right = matrices(b, lead, len(both.plan.inner), out.dtype, calls)
        few = right.shape[-2] * right.shape[-1] <= SMALL
        if rows > 1 and both.plan.columns and few and place.shape[lead + rows - 1] >= ROWS:
            right = right[(..., *(None,) * (rows - 1), slice(None), slice(None))]
            lead, rows = lead + rows - 1, 1
        left = matrices(a, lead, rows, out.dtype, calls)
        target, after = _merged(place, lead, rows), []
        if target is None or not _readable(target):
            product = xp.empty(place.shape, out.dtype)
            target, after = _merged(product, lead, rows), [partial(xp.copyto, place, product)]
        return [*calls, find_binder("matmul", kind)((left, right), target, ()), *after]

    def computed(both: _Product, out: Any) -> list[Call]:
        if not both.plan.balanced:
            return [loop(both, out)]
        if not both.plan.inner:
            return [partial(xp.multiply, *both.broadcast(), out)]
        if out.dtype.kind not in "fc":
            many = out.size * both.plan.count > FEW
            return [loop(both, out)] if many else products(both, out)
        return summed(both, out) if both.plan.vectors else products(both, out)

    def bind(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
        (a, b), (subscripts, conjugated, _) = inputs, attrs
        both = _Product(a, b, out, subscripts)
        found = of_vectors(both, out, conjugated)
        if found is not None:
            return found
        calls: list[Call] = []
        if conjugated:
            copy = xp.empty(both.a.shape, both.a.dtype)
            calls.append(partial(xp.conjugate, both.a, copy))
            both.a = copy
        calls += computed(both, out)
        return calls[0] if len(calls) == 1 else InTurn(*calls)

    register_binder("einsum", kind, bind)


def _merged(x: Any, lead: int, rows: int) -> Any:
    """Return a view whose axes behind the first `lead` are two, the next `rows` ones and the others, or ``None``."""
    shape = _merged_shape(x.shape, x.strides, lead, rows)
    return None if shape is None else x.reshape(shape)


@lru_cache(maxsize=4096)
def _merged_shape(shape: Shape, strides: Shape, lead: int, rows: int) -> Shape | None:
    first, second = range(lead, lead + rows), range(lead + rows, len(shape))
    # Axes that lie in memory as one axis does.
    for axes in (first, second):
        long = [i for i in axes if shape[i] != 1]
        if prod(shape) and any(strides[i] != strides[j] * shape[j] for i, j in pairwise(long)):
            return None
    return (*shape[:lead], *[prod([shape[i] for i in axes]) for axes in (first, second)])


def _readable(x: Any) -> bool:
    """Return whether ``matmul`` reads or writes matrices as they lie, without a slow loop."""
    return x.dtype.kind not in "fc" or _in_lines(x.shape[-2:], x.strides[-2:], x.itemsize)


@lru_cache(maxsize=4096)
def _in_lines(shape: Shape, strides: Shape, size: int) -> bool:
    """Return whether one axis of a matrix lies in steps of one element, and the other one does not overlap."""
    (m, n), (down, along) = shape, strides
    rows = (along == size or n == 1) and (m == 1 or (down % size == 0 and down >= n * size))
    columns = (down == size or m == 1) and (n == 1 or (along % size == 0 and along >= m * size))
    return not m or not n or rows or columns
