"""The kernel for the Kronecker product."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from reactgrad.backend._registry import register_binder


def register(xp: Any, kind: str) -> None:
    """Register the kernel for a namespace whose functions take ``out`` as NumPy's do."""

    def bind_kron(inputs: Sequence[Any], out: Any, attrs: Any) -> Callable[[], object]:
        a, b = (one.reshape((1,) * (out.ndim - one.ndim) + one.shape) for one in inputs)
        both = [n for pair in zip(a.shape, b.shape, strict=True) for n in pair]
        left = a[(*(slice(None), None) * out.ndim, ...)]
        right = b[(*(None, slice(None)) * out.ndim, ...)]
        return partial(xp.multiply, left, right, out.reshape(both))

    register_binder("kron", kind, bind_kron)
