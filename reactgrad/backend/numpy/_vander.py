"""The kernel for matrices of powers, and of their derivatives of any order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import perm
from typing import Any

from reactgrad.backend._registry import register_binder
from reactgrad.backend.numpy._in_turn import InTurn


def register(xp: Any, kind: str) -> None:
    """Register the kernel for a namespace whose functions take ``out`` as NumPy's do."""

    def bind(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Callable[[], object]:
        (x,), (_, increasing, order) = inputs, attrs
        powers = out if increasing else out[:, ::-1]
        rest = powers[:, order:]
        calls: list[Callable[[], object]] = [partial(rest[:, :1].fill, 1)]
        if rest.shape[1] > 1:
            calls += [
                partial(xp.copyto, rest[:, 1:], x[:, None]),
                partial(xp.multiply.accumulate, rest[:, 1:], 1, None, rest[:, 1:]),
            ]
        if order:
            factors = [perm(power, order) for power in range(order, out.shape[1])]
            calls += [
                partial(powers[:, :order].fill, 0),
                partial(xp.multiply, rest, xp.asarray(factors, out.dtype), rest),
            ]
        return InTurn(*calls)

    register_binder("vander", kind, bind)
