"""Numbers of places in an array, flat or by axis; bits in bytes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from reactgrad._errors import DTypeError, ParameterError, ShapeError
from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend._registry import register_kernel
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Attrs, Op
from reactgrad.ops._layout import shape_attr
from reactgrad.ops._lengths import DIAGONAL
from reactgrad.ops._operand import nodes_of
from reactgrad.ops._shapes import broadcast, normal_axis
from reactgrad.scheduler import safe_repr


def _register(xp: Any, kind: str) -> None:
    def flat(*operands: Any) -> None:
        *places, out, lengths, modes, order = operands
        out[...] = xp.ravel_multi_index(tuple(places), lengths, modes, order)

    def unpacked(x: Any, out: Any, axis: Any, count: Any, order: str) -> None:
        out[...] = xp.unpackbits(x, axis, count, order)

    def packed(x: Any, out: Any, axis: Any, order: str) -> None:
        out[...] = xp.packbits(x, axis, order)

    def places(x: Any, out: Any, lengths: Any, order: str) -> None:
        for i, one in enumerate(xp.unravel_index(x, lengths, order)):
            out[i] = one

    register_kernel("ravel_multi_index", kind, flat)
    register_kernel("unravel_index", kind, places)
    register_kernel("packbits", kind, packed)
    register_kernel("unpackbits", kind, unpacked)


add_kernels(_register)

_INDEX = np.dtype(np.int64)


def _integers(name: str, one: Spec) -> None:
    if one.dtype.kind not in "iu":
        raise DTypeError(f"{name} of {one!r}: places are integers; convert with .astype('int64').")


def _infer_flat(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    for one in specs:
        _integers("ravel_multi_index", one)
    if len(specs) != len(attrs[0]):
        raise ShapeError(
            f"ravel_multi_index has {len(specs)} arrays of places for the {len(attrs[0])} axes of shape {attrs[0]}."
        )
    return spec(broadcast("ravel_multi_index", specs), _INDEX, specs[0].device)


FLAT = Op("ravel_multi_index", _infer_flat)


def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Any:
    """Return flat places for places by axis; see ``np.ravel_multi_index``.

    Raises
    ------
    ShapeError
        If there is not one array of places for each axis. Places outside are an error when values are read.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.ravel_multi_index(([1, 2], [0, 3]), (3, 4))
    >>> y.value
    array([ 4, 11])
    """
    places = tuple(multi_index)
    dims = shape_attr("ravel_multi_index", dims)
    modes = mode if isinstance(mode, str) or not isinstance(mode, Iterable) else tuple(mode)
    for one in modes if isinstance(modes, tuple) else (modes,):
        _one_of("ravel_multi_index", "mode", one, ("raise", "wrap", "clip"))
    _one_of("ravel_multi_index", "order", order, ("C", "F"))
    return apply(FLAT, places, (dims, modes, order))


def _one_of(name: str, what: str, given: Any, words: tuple[str, ...]) -> None:
    if given not in words:
        raise ParameterError(
            f"{name}({what}={safe_repr(given):.60}): write one of {', '.join(words)}."
        )


def _infer_places(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    _integers("unravel_index", specs[0])
    return spec((len(attrs[0]), *specs[0].shape), _INDEX, specs[0].device)


PLACES = Op("unravel_index", _infer_places)


def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Any, ...]:
    """Return places by axis, an array for each, for flat places; see ``np.unravel_index``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     rows, columns = rg.unravel_index([4, 11], (3, 4))
    >>> rows.value, columns.value
    (array([1, 2]), array([0, 3]))
    """
    shape = shape_attr("unravel_index", shape)
    _one_of("unravel_index", "order", order, ("C", "F"))
    both = apply(PLACES, (indices,), (shape, order))
    return tuple(both[i] for i in range(len(shape)))


def diag_indices_from(arr: Any) -> tuple[Any, ...]:
    """Return the indices of the main diagonal of an array with equal lengths, an array for each axis.

    Raises
    ------
    ShapeError
        If the lengths differ, or there are fewer than two.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.diag_indices_from(rg.input([[1.0, 2.0], [3.0, 4.0]]))[0]
    >>> y.value
    array([0, 1])
    """
    (arr,) = nodes_of(arr)
    return (apply(DIAGONAL, (arr,)),) * arr.ndim


def _infer_packed(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one,), axis = specs, attrs[0]
    if one.dtype.kind not in "iub":
        raise DTypeError(
            f"packbits of {one!r}: it packs booleans and integers; write packbits(x != 0)."
        )
    if axis is None:
        total = None if None in one.shape else math.prod(one.shape)  # type: ignore[arg-type]
        shape: tuple[int | None, ...] = (None if total is None else -(-total // 8),)
    else:
        at = normal_axis("packbits", axis, len(one.shape))
        n = one.shape[at]
        shape = (*one.shape[:at], None if n is None else -(-n // 8), *one.shape[at + 1 :])
    return spec(shape, np.dtype(np.uint8), one.device)


PACKED = Op("packbits", _infer_packed)


def packbits(a: Any, /, axis: int | None = None, bitorder: str = "big") -> Any:
    """Return booleans as the bits of bytes; see ``np.packbits``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.packbits([True, False, True])
    >>> y.value
    array([160], dtype=uint8)
    """
    return apply(PACKED, (a,), (axis, bitorder))


def _infer_unpacked(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    (one,), (axis, count, _) = specs, attrs
    if one.dtype != np.uint8:
        raise DTypeError(f"unpackbits of {one!r}: it takes bytes (uint8).")

    def bits(n: int | None) -> int | None:
        if count is None or n is None:
            return n if n is None else 8 * n if count is None else count
        return count if count >= 0 else 8 * n + count

    if axis is None:
        total = None if None in one.shape else math.prod(one.shape)  # type: ignore[arg-type]
        shape: tuple[int | None, ...] = (bits(total),)
    else:
        at = normal_axis("unpackbits", axis, len(one.shape))
        shape = (*one.shape[:at], bits(one.shape[at]), *one.shape[at + 1 :])
    return spec(shape, one.dtype, one.device)


UNPACKED = Op("unpackbits", _infer_unpacked)


def unpackbits(
    a: Any, /, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Any:
    """Return the bits of bytes as numbers 0 and 1; see ``np.unpackbits``.

    Examples
    --------
    >>> import numpy as np
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     y = rg.unpackbits(np.array([160], np.uint8), count=3)
    >>> y.value
    array([1, 0, 1], dtype=uint8)
    """
    return apply(UNPACKED, (a,), (axis, None if count is None else int(count), bitorder))
