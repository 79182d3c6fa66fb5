"""The kernel for spectra with the frequency 0 in the middle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

from reactgrad.backend._registry import register_binder
from reactgrad.backend.numpy._in_turn import InTurn


def register(xp: Any, kind: str) -> None:
    """Register the kernel for a namespace whose functions take ``out`` as NumPy's do."""

    def bind(inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Callable[[], object]:
        (x,), (axes, back) = inputs, attrs
        along = range(x.ndim) if axes is None else {axis % x.ndim for axis in axes}
        # Both halves of each axis, in the operand and in the result.
        halves = [
            _halves(n, back) if i in along else [(slice(None), slice(None))]
            for i, n in enumerate(x.shape)
        ]
        calls = []
        for parts in product(*halves):
            source, target = tuple([one for one, _ in parts]), tuple([one for _, one in parts])
            calls.append(partial(xp.copyto, out[(*target, ...)], x[(*source, ...)]))
        return calls[0] if len(calls) == 1 else InTurn(*calls)

    register_binder("fftshift", kind, bind)


def _halves(n: int, back: bool) -> list[tuple[slice, slice]]:
    shift = n - n // 2 if back else n // 2
    return [(slice(0, n - shift), slice(shift, n)), (slice(n - shift, n), slice(0, shift))]
