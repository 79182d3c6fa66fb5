"""The kernel for matrices of powers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from reactgrad.backend._registry import register_binder
from reactgrad.backend.numpy._in_turn import InTurn


def register(xp: Any, kind: str) -> None:
    """Register the kernel for a namespace whose functions take ``out`` as NumPy's do."""

    def bind(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Callable[[], object]:
        powers = out if attrs[1] else out[:, ::-1]
        calls: list[Callable[[], object]] = [partial(powers[:, :1].fill, 1)]
        if out.shape[1] > 1:
            rest = powers[:, 1:]
            calls += [
                partial(xp.copyto, rest, inputs[0][:, None]),
                partial(xp.multiply.accumulate, rest, 1, None, rest),
            ]
        return InTurn(*calls)

    register_binder("vander", kind, bind)
