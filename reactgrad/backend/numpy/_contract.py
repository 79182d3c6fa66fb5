"""Kernels for the product of two arrays, summed over some of their axes.

The axes fall into four groups: those of both operands and the result (a batch), those of one operand and
the result (rows, columns), and those that are summed (inner). With these in order a product is a batch of
matrix products. An operand that no view brings into this form is copied first, as ``np.tensordot`` does.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any, Final

import numpy as np

from reactgrad.backend._registry import find_binder, register_binder
from reactgrad.backend.numpy._in_turn import InTurn

# On rows shorter than this a loop of NumPy's einsum is faster than a call of BLAS for each of them.
SHORT: Final = 32

# With fewer products `matmul` of integers costs less than the start of einsum.
FEW: Final = 4096


def register(xp: Any, kind: str) -> None:
    """Register the kernels for a namespace whose functions take ``out`` as NumPy's do."""

    def loop(a: Any, b: Any, out: Any, subscripts: str) -> Callable[[], object]:
        if xp is np:
            # `Any`: NumPy's stubs have no `out` of this kind.
            einsum: Any = np.einsum
            return partial(einsum, subscripts, a, b, out=out)
        return lambda: xp.copyto(out, xp.einsum(subscripts, a, b))

    def bind(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Callable[[], object]:
        a, b = inputs
        first, _, rest = attrs[0].partition(",")
        second, _, result = rest.partition("->")
        a, first = _narrow(a, first, b, second, out, result)
        b, second = _narrow(b, second, a, first, out, result)
        batch = [one for one in result if one in first and one in second]
        inner = [one for one in first if one not in result]
        if set(inner) != {one for one in second if one not in result}:
            return loop(a, b, out, f"{first},{second}->{result}")
        if not inner:
            return partial(
                xp.multiply, _spread(xp, a, first, result), _spread(xp, b, second, result), out
            )
        rows = [one for one in result if one in first and one not in batch]
        columns = [one for one in result if one in second and one not in batch]
        count = prod([a.shape[first.index(one)] for one in inner])
        if out.dtype.kind not in "fc":
            if out.size * count > FEW:
                return loop(a, b, out, f"{first},{second}->{result}")
        elif batch and not rows and not columns and (out.dtype.kind == "c" or count < SHORT):
            return loop(a, b, out, f"{first},{second}->{result}")
        calls: list[Callable[[], object]] = []
        inner.sort(key=(first if a.size >= b.size else second).index)
        left = _matrices(xp, a, first, batch, rows, inner, out.dtype, calls)
        right = _matrices(xp, b, second, batch, inner, columns, out.dtype, calls)
        target = _merged(
            out.transpose([result.index(one) for one in (*batch, *rows, *columns)]),
            len(batch),
            len(rows),
        )
        if target is None or not (target.dtype.kind not in "fc" or _in_rows(target)):
            shape = [out.shape[result.index(one)] for one in (*batch, *rows, *columns)]
            product = xp.empty(shape, out.dtype)
            place = out.transpose([result.index(one) for one in (*batch, *rows, *columns)])
            target = _merged(product, len(batch), len(rows))
            after = [partial(xp.copyto, place, product)]
        else:
            after = []
        return _in_turn(*calls, _product(xp, kind, left, right, target), *after)

    register_binder("einsum", kind, bind)


def _narrow(x: Any, term: str, y: Any, other: str, out: Any, result: str) -> tuple[Any, str]:
    """Return an operand without axes of length 1 that are longer in the other operand or the result."""
    lengths = {
        **dict(zip(other, y.shape, strict=True)),
        **dict(zip(result, out.shape, strict=True)),
    }
    wide = [i for i, n in enumerate(x.shape) if n == 1 and lengths.get(term[i], 1) != 1]
    if not wide:
        return x, term
    index = tuple([0 if i in wide else slice(None) for i in range(x.ndim)])
    # The dots keep a view where no axis is left: without them it would be a number, which does not follow.
    return x[(*index, ...)], "".join([one for i, one in enumerate(term) if i not in wide])


def _spread(xp: Any, x: Any, term: str, result: str) -> Any:
    """Return an operand with its axes in the order of the result, and of length 1 where it has none."""
    x = x.transpose([term.index(one) for one in result if one in term])
    return x[(..., *[slice(None) if one in term else None for one in result])]


def _matrices(
    xp: Any,
    x: Any,
    term: str,
    batch: list[str],
    rows: list[str],
    columns: list[str],
    dtype: Any,
    calls: list[Callable[[], object]],
) -> Any:
    """Return an operand as a batch of matrices, with the calls that copy it there, where it takes one."""
    x = x.transpose([term.index(one) for one in (*batch, *rows, *columns)])
    found = _merged(x, len(batch), len(rows))
    if found is not None and found.dtype == dtype and (dtype.kind not in "fc" or _in_rows(found)):
        return found
    copy = xp.empty(x.shape, dtype)
    calls.append(partial(xp.copyto, copy, x))
    return _merged(copy, len(batch), len(rows))


def _merged(x: Any, lead: int, rows: int) -> Any:
    """Return a view whose axes behind the first `lead` are two: the next `rows` ones, and the others."""
    first, second = range(lead, lead + rows), range(lead + rows, x.ndim)
    if not (_follow(x, first) and _follow(x, second)):
        return None
    shape = x.shape
    return x.reshape(
        (*shape[:lead], prod([shape[i] for i in first]), prod([shape[i] for i in second]))
    )


def _follow(x: Any, axes: Sequence[int]) -> bool:
    """Return whether these axes lie in memory as one axis does."""
    if not x.size:
        return True
    long = [i for i in axes if x.shape[i] != 1]
    return all(x.strides[i] == x.strides[j] * x.shape[j] for i, j in itertools.pairwise(long))


def _in_rows(x: Any) -> bool:
    """Return whether BLAS reads the matrices as they lie: one of the two axes in steps of one element."""
    (m, n), (down, along) = x.shape[-2:], x.strides[-2:]
    size = x.itemsize
    across = along == size or n == 1
    upright = down == size or m == 1
    return bool(
        not x.size
        or (across and (m == 1 or (down % size == 0 and down >= n * size)))
        or (upright and (n == 1 or (along % size == 0 and along >= m * size)))
    )


def _product(xp: Any, kind: str, left: Any, right: Any, out: Any) -> Callable[[], object]:
    """Return the call of a batch of matrix products."""
    m, n = out.shape[-2:]
    if m == n == 1 and out.ndim > 2 and xp is np and out.dtype.kind == "f":
        return partial(np.vecdot, left[..., 0, :], right[..., 0], out[..., 0, 0])
    return find_binder("matmul", kind)((left, right), out, ())


def _in_turn(*calls: Callable[[], object]) -> Callable[[], object]:
    return calls[0] if len(calls) == 1 else InTurn(*calls)
