"""Kernels that find distinct elements; each returns an array as long as they are many."""

from __future__ import annotations

from typing import Any

from reactgrad.backend._registry import register_kernel

NAMES = (
    *("unique", "unique_places", "unique_part"),
    *("common_places", "missing_places", "single_places"),
)


def register(xp: Any, kind: str) -> None:
    """Register these kernels for a namespace that mirrors NumPy."""

    def unique(x: Any, out: Any, axis: int | None, equal_nan: bool) -> Any:
        return xp.unique(x, axis=axis, equal_nan=equal_nan)

    def places(x: Any, out: Any, axis: int | None, equal_nan: bool) -> None:
        _, first, inverse, counts = xp.unique(x, True, True, True, axis, equal_nan=equal_nan)
        many = first.shape[0]
        out[0, :many], out[0, many:] = first, -1
        out[1, :many], out[1, many:] = counts, 0
        out[2] = inverse.reshape(-1)

    def part(found: Any, out: Any, name: str) -> Any:
        return found[0][found[0] >= 0] if name == "index" else found[1][found[1] > 0]

    def common(x: Any, y: Any, out: Any, assume_unique: bool) -> Any:
        return xp.stack(xp.intersect1d(x, y, assume_unique, True)[1:])

    def missing(x: Any, y: Any, out: Any, assume_unique: bool) -> Any:
        if assume_unique:
            return xp.flatnonzero(xp.isin(x, y, assume_unique=True, invert=True))
        values, first = xp.unique(x, return_index=True)
        return first[xp.isin(values, xp.unique(y), assume_unique=True, invert=True)]

    def single(x: Any, y: Any, out: Any, assume_unique: bool) -> Any:
        if assume_unique:
            at = xp.arange(x.size + y.size)
        else:
            first, second = (xp.unique(one, return_index=True)[1] for one in (x, y))
            at = xp.concatenate((first, second + x.size))
        both = xp.concatenate((x, y))[at]
        order = both.argsort(kind="stable")
        ordered = both[order]
        new = xp.ones(ordered.size + 1, bool)
        xp.not_equal(ordered[1:], ordered[:-1], new[1:-1])
        return at[order[new[1:] & new[:-1]]]

    register_kernel("unique", kind, unique)
    register_kernel("unique_places", kind, places)
    register_kernel("unique_part", kind, part)
    register_kernel("common_places", kind, common)
    register_kernel("missing_places", kind, missing)
    register_kernel("single_places", kind, single)
