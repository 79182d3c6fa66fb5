"""The kernel of the array API standard for the product of two arrays, summed over some of their axes."""

from __future__ import annotations

from typing import Any

from reactgrad.backend._registry import register_kernel


def register(device: Any) -> None:
    """Register the kernel for a device of the standard."""
    xp, kind = device.xp, device.kind

    def einsum(
        a: Any, b: Any, out: Any, subscripts: str, conjugated: bool, stretches: bool
    ) -> None:
        operands, _, result = subscripts.partition("->")
        first, _, second = operands.partition(",")
        batch = [one for one in result if one in first and one in second]
        inner = [one for one in first if one in second and one not in result]
        rows, columns = (
            [one for one in term if one not in batch + inner] for term in (first, second)
        )
        if out.dtype == xp.bool:  # the standard has no products of booleans
            a, b = xp.astype(a, xp.int64), xp.astype(b, xp.int64)
        else:
            a, b = xp.astype(a, out.dtype), xp.astype(b, out.dtype)
        if conjugated:
            a = xp.conj(a)
        left = xp.permute_dims(a, tuple([first.index(one) for one in (*batch, *rows, *inner)]))
        right = xp.permute_dims(b, tuple([second.index(one) for one in (*batch, *inner, *columns)]))
        lead, across = len(batch), len(inner)
        depth = [
            max(left.shape[lead + len(rows) + i], right.shape[lead + i]) for i in range(across)
        ]
        left = xp.broadcast_to(left, (*left.shape[: lead + len(rows)], *depth))
        right = xp.broadcast_to(right, (*right.shape[:lead], *depth, *right.shape[lead + across :]))
        m, n = left.shape[lead : lead + len(rows)], right.shape[lead + across :]
        left = xp.reshape(left, (*left.shape[:lead], _size(m), _size(depth)))
        right = xp.reshape(right, (*right.shape[:lead], _size(depth), _size(n)))
        product = xp.matmul(left, right)
        product = xp.reshape(product, (*product.shape[:lead], *m, *n))
        order = [*batch, *rows, *columns]
        out[...] = xp.astype(
            xp.permute_dims(product, tuple([order.index(one) for one in result])), out.dtype
        )

    register_kernel("einsum", kind, einsum)


def _size(shape: Any) -> int:
    size = 1
    for n in shape:
        size *= n
    return size
