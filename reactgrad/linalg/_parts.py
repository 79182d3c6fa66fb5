"""Results of one kernel that has several: an array that holds them side by side, and a view for each.

The kernel runs once for all. Each result is a node with a version, consumers and a derivative rule of its
own, by the matrix itself; no gradient passes the array between.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

from reactgrad.backend import Spec, add_kernels, spec
from reactgrad.backend._registry import register_kernel
from reactgrad.backend.array_api._on_host import on_host
from reactgrad.backend.numpy import _decompose as kernels
from reactgrad.linalg._matrices import real_dtype
from reactgrad.nodes._op import Attrs, Infer, Jvp, Op, Vjp
from reactgrad.ops._shapes import common_device

Shape = tuple[int | None, ...]


class Piece(NamedTuple):
    """The place of one result: its shape for one matrix, and whether it is real where others are not."""

    shape: Shape
    real: bool = False


# layout(*shapes of the operands, *attrs): the pieces, in the order in which the kernel writes them
Layout = Callable[..., tuple[Piece, ...]]


def least(m: int | None, n: int | None) -> int | None:
    """Return the smaller of two lengths, ``None`` if that is not known."""
    return None if m is None or n is None else min(m, n)


def packed_op(name: str, check: Callable[..., Any], layout: Layout, operands: int = 1) -> Op:
    """Return the op that computes all results at once.

    ``check(specs, attrs)`` returns the shape of the batch and the dtype, or raises.
    """

    def infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
        batch, dtype = check(specs, attrs)
        shapes = [piece.shape for piece in layout(*[one.shape for one in specs], *attrs)]
        known = all(None not in shape for shape in shapes)
        length = sum([prod(shape) for shape in shapes]) if known else None  # type: ignore[arg-type]
        return spec((*batch, length), dtype, common_device(name, specs))

    return Op(name, infer, (None,) * operands, (None,) * operands)


def part_op(
    name: str,
    layout: Layout,
    index: int,
    vjps: tuple[Vjp | None, ...] | None = None,
    jvps: tuple[Jvp | None, ...] | None = None,
    operands: int = 1,
    **variadic: Any,
) -> Op:
    """Return the op of one result; its operands are the packed array and those of the packed op.

    Rules are those by the operands of the packed op; `variadic` ones count the packed array, too.
    """

    def view(packed: Any, *rest: Any) -> Any:
        pieces = layout(*rest)
        start = sum([prod(piece.shape) for piece in pieces[:index]])  # type: ignore[arg-type]
        shape, real = pieces[index]
        flat = packed[..., start : start + prod(shape)]  # type: ignore[arg-type]
        found = flat.reshape((*flat.shape[:-1], *shape))
        return found.real if real else found

    def kernel(packed: Any, *rest: Any) -> None:
        given, out, attrs = rest[:operands], rest[operands], rest[operands + 1 :]
        out[...] = view(packed, *[one.shape for one in given], *attrs)

    def register(xp: Any, kind: str) -> None:
        register_kernel(name, kind, kernel)

    add_kernels(register, on_host((name,)))
    first = None if vjps is None else (None, *vjps)
    second = None if jvps is None else (None, *jvps)
    return Op(name, _infer(layout, index), first, second, view=view, **variadic)


def _infer(layout: Layout, index: int) -> Infer:
    def infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
        packed, *given = specs
        shape, real = layout(*[one.shape for one in given], *attrs)[index]
        dtype = real_dtype(packed.dtype) if real else packed.dtype
        return spec((*packed.shape[:-1], *shape), dtype, packed.device)

    return infer


add_kernels(kernels.register, on_host(kernels.NAMES))
