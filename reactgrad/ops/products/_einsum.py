"""einsum: sums of products of any number of arrays, two by two in a cheap order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from reactgrad._errors import DTypeError, ShapeError
from reactgrad.backend import read_dtype
from reactgrad.nodes._handle import Handle
from reactgrad.ops._astype import astype
from reactgrad.ops._deferred import deferred
from reactgrad.ops._layout import alias, known_shape
from reactgrad.ops.products._contract import alone, contract, ordered
from reactgrad.ops.products._operands import variables
from reactgrad.ops.products._subscripts import LETTERS, Subscripts, parsed, written
from reactgrad.scheduler import safe_repr

# The length that counts for the order of products where an axis has none yet.
_LENGTH_UNKNOWN = 64

# One step of a path: the places of the operands that are taken away and become one, at the end of the list.
Path = tuple[tuple[int, ...], ...]


@deferred
def einsum(
    *operands: Any, optimize: Any = "greedy", dtype: Any = None, casting: str = "safe"
) -> Any:
    """Return a sum of products by Einstein's rule: one letter for each axis, equal letters go together.

    Parameters
    ----------
    *operands
        The subscripts and the arrays, ``einsum("ij,jk->ik", a, b)``, or each array and the list of its axes,
        ``einsum(a, [0, 1], b, [1, 2], [0, 2])``. ``...`` stands for axes without a letter, which broadcast.
        Without ``->`` the result has the letters that stand once, in alphabetical order.
    optimize : bool, str, tuple or list
        The order of the products, as ``np.einsum_path`` takes it, which is asked when the node is built;
        ``True`` and ``False`` mean ``"greedy"``.
    dtype : dtype_like, optional
        The dtype in which to compute.
    casting : str
        Which conversions to `dtype` are allowed, see ``np.can_cast``.

    Returns
    -------
    Var
        Of the common dtype. A product of more than two operands has a node for every two of them, so
        that a change of one recomputes only what follows from it.

    Raises
    ------
    ShapeError
        If the subscripts do not fit the operands, or axes with one letter have different lengths.
    DTypeError
        If an operand cannot be converted to `dtype`, or the arguments have another form.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.einsum("ij,j->i", [[1.0, 2.0], [3.0, 4.0]], [1.0, 10.0])
    >>> y.value
    array([21., 43.])
    """
    text, arrays = written(operands)
    if not arrays:
        raise ShapeError(f"einsum({text!r}) has no operands.")
    arrays = variables(*arrays)
    if dtype is not None:
        arrays = [_converted(one, read_dtype("einsum", dtype), casting) for one in arrays]
    terms, result = parsed(text, _ndims(text, arrays))
    if len(arrays) == 1:
        return _single(arrays[0], terms[0], result)
    if len(arrays) == 2:
        (a, b), (first, second) = arrays, terms
        return contract(a, b, first, second, result)
    _check_lengths(text, terms, arrays)
    return _by_path(arrays, Subscripts(terms, result), _path_for(terms, result, arrays, optimize))


def _ndims(text: str, arrays: Sequence[Any]) -> tuple[int | None, ...]:
    """Return the number of axes of each operand; ``None`` for one that is not known and need not be."""
    if "." in text:
        return tuple([one.ndim for one in arrays])
    shapes = [known_shape(one) for one in arrays]
    return tuple([None if one is None else len(one) for one in shapes])


def _check_lengths(text: str, terms: Sequence[str], arrays: Sequence[Any]) -> None:
    lengths: dict[str, int] = {}
    for term, x in zip(terms, arrays, strict=True):
        for label, n in zip(term, known_shape(x) or (), strict=False):
            m = lengths.setdefault(label, n or 1)
            if m == 1:
                lengths[label] = n or 1
            elif n not in (1, None, m):
                raise ShapeError(
                    f"einsum({text!r}): an axis with label {label!r} has length {m} in one operand, and {n} in "
                    "another one. Axes with one label have one length, or length 1."
                )


def _converted(x: Any, dtype: Any, casting: Any) -> Any:
    if not np.can_cast(x.dtype, dtype, casting):
        raise DTypeError(
            f"einsum: {x.dtype} is not converted to dtype={dtype} with casting={safe_repr(casting)}; write "
            "casting='unsafe' if that is meant."
        )
    return x if x.dtype == dtype else astype(x, dtype)


def _single(x: Any, term: str, result: str) -> Any:
    found, left = alone(x, term, result)
    found = ordered(found, left, result)
    return alias(x) if found is x else found


def _path_for(terms: tuple[str, ...], result: str, arrays: Sequence[Any], optimize: Any) -> Path:
    if optimize is True or optimize is False or optimize is None:
        optimize = "greedy"
    if isinstance(optimize, list | tuple) and optimize and optimize[0] == "einsum_path":
        path = tuple([tuple(sorted(map(int, step))) for step in optimize[1:]])
        _check_path(path, len(arrays))
        return path
    known: dict[str, int] = {}
    given = [
        known_shape(one) or (None,) * len(term) for one, term in zip(arrays, terms, strict=True)
    ]
    for shape, term in zip(given, terms, strict=True):
        known |= {label: n for label, n in zip(term, shape, strict=True) if n not in (None, 1)}
    shapes = tuple(
        [
            tuple(
                [
                    known.get(label, _LENGTH_UNKNOWN) if n is None else n
                    for n, label in zip(shape, term, strict=True)
                ]
            )
            for shape, term in zip(given, terms, strict=True)
        ]
    )
    return _found_path(
        terms, result, shapes, tuple(optimize) if isinstance(optimize, list) else optimize
    )


def _check_path(path: Path, count: int) -> None:
    left = count
    for step in path:
        if not step or len(set(step)) < len(step) or step[0] < 0 or step[-1] >= left:
            raise ShapeError(
                f"einsum: step {step} of the path names operands that are not there; {left} are left."
            )
        left -= len(step) - 1
    if left != 1:
        raise ShapeError(f"einsum: the path leaves {left} operands of {count}; it must leave one.")


@lru_cache(maxsize=1024)
def _found_path(
    terms: tuple[str, ...], result: str, shapes: tuple[tuple[int, ...], ...], optimize: Any
) -> Path:
    samples = [np.broadcast_to(np.float64(0.0), shape) for shape in shapes]
    text = f"{','.join(terms)}->{result}"
    others = dict.fromkeys([one for one in text if one not in ",->"])
    letters = dict(zip(others, LETTERS, strict=False))  # axes without a letter get one
    try:
        path, _ = np.einsum_path(
            "".join([letters.get(one, one) for one in text]), *samples, optimize=optimize
        )
    except (TypeError, KeyError, ValueError, IndexError, RuntimeError) as error:
        raise ShapeError(f"einsum with optimize={safe_repr(optimize):.60}: {error}.") from None
    return tuple([tuple(sorted(step)) for step in path[1:]])


def _by_path(arrays: Sequence[Any], subscripts: Subscripts, path: Path) -> Any:
    """Return the node of a product of many operands, two by two in the order of a path."""
    left = list(zip(arrays, subscripts.terms, strict=True))
    for step in path:
        chosen = [left[i] for i in step]
        left = [one for i, one in enumerate(left) if i not in step]
        while len(chosen) > 1:
            (a, first), (b, second), *chosen = chosen
            others = "".join([term for _, term in (*chosen, *left)])
            last = not chosen and not left
            kept = subscripts.result if last else _kept(first, second, others + subscripts.result)
            chosen.insert(0, (contract(a, b, first, second, kept), kept))
        left.append(chosen[0])
    (found, term), *_ = left
    return _single(found, term, subscripts.result) if term != subscripts.result else found


def _kept(first: str, second: str, wanted: str) -> str:
    """Return the labels of a product that are wanted later: a batch, then rows, then columns."""
    batch = [one for one in first if one in second]
    order = dict.fromkeys((*batch, *first, *second))
    return "".join([one for one in order if one in wanted])


def einsum_path(*operands: Any, optimize: Any = "greedy") -> tuple[list[Any], str]:
    """Return the order of products in which ``einsum`` computes, and a text about its cost.

    Parameters
    ----------
    *operands
        As for ``rg.einsum``; only shapes count.
    optimize : bool, str or tuple
        As for ``np.einsum_path``.

    Returns
    -------
    list, str
        ``["einsum_path", (0, 1), ...]``, which ``einsum(..., optimize=path)`` takes, and the text.

    Raises
    ------
    ShapeError
        If a length is not known yet.

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> a, b = np.ones((2, 9)), np.ones((9, 3))
    >>> rg.einsum_path("ij,jk,kl->il", a, b, b.T)[0]
    ['einsum_path', (0, 1), (0, 1)]
    """
    text, arrays = written(operands)
    samples = [
        np.broadcast_to(np.float64(0.0), _lengths(one)) if isinstance(one, Handle) else one
        for one in arrays
    ]
    try:
        return np.einsum_path(text, *samples, optimize=optimize)
    except (TypeError, KeyError, ValueError, IndexError, RuntimeError) as error:
        raise ShapeError(f"einsum_path with optimize={safe_repr(optimize):.60}: {error}.") from None


def _lengths(x: Any) -> tuple[int, ...]:
    shape = x.shape
    if None in shape:
        raise ShapeError(f"einsum_path of a value of shape {shape}: set the input first.")
    return shape
