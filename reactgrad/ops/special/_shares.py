"""Shares of powers of two in their sum: the slopes of ``logaddexp2``."""

from __future__ import annotations

from typing import Any, Final

from reactgrad.backend.numpy import _shares
from reactgrad.nodes._handle import apply
from reactgrad.ops._chain import times
from reactgrad.ops._elementwise import LN_2
from reactgrad.ops.special._form import smooth, with_kernels


def share_by_twos(a: Any, b: Any) -> Any:
    """Return ``2**a / (2**a + 2**b)``, which is accurate where it is nearly 0 or 1, and so are its derivatives."""
    return apply(SHARE_BY_TWOS, (a, b))


SHARE_BY_TWOS: Final = smooth(
    "share_by_twos",
    lambda g, ans, a, b: times(g, ans * share_by_twos(b, a)) * LN_2,
    lambda g, ans, a, b: -times(g, ans * share_by_twos(b, a)) * LN_2,
)
with_kernels(_shares.register, 40.0, SHARE_BY_TWOS)
