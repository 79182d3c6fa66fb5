"""Kernels of the ufuncs that few programs use: one call of NumPy each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from reactgrad.backend._registry import register_binder, register_kernel

UFUNCS = (
    *("arccosh", "arcsinh", "arctanh", "cbrt", "copysign", "deg2rad", "rad2deg", "fabs", "fmax", "fmin"),
    *("fmod", "gcd", "lcm", "heaviside", "invert", "isinf", "ldexp", "logaddexp2", "logical_xor"),
    *("nextafter", "positive", "rint", "signbit", "spacing", "trunc", "bitwise_and", "bitwise_or"),
    *("bitwise_xor", "left_shift", "right_shift", "bitwise_count"),
)  # fmt: skip
# Ops of one of the two results of a ufunc: the ufunc, and which result.
PARTS = {
    "modf_fraction": ("modf", 0),
    "modf_whole": ("modf", 1),
    "frexp_mantissa": ("frexp", 0),
    "frexp_exponent": ("frexp", 1),
}


def register(xp: Any, kind: str) -> None:
    """Register them for a namespace whose functions take ``out`` as NumPy's do, as far as it has them."""

    def bind_by_keyword(name: str) -> Callable[..., Callable[[], object]]:
        ufunc = getattr(xp, name)
        # NumPy deprecates a positional `out` for these.
        return lambda inputs, out, attrs: partial(ufunc, *inputs, out=out)

    def bind_part(ufunc: Any, part: int) -> Callable[..., Callable[[], object]]:
        """Return the binder of one of the two results of a ufunc."""

        def bind(inputs: Sequence[Any], out: Any, attrs: Any) -> Callable[[], object]:
            results = [None, None]
            results[part] = out
            return partial(ufunc, *inputs, *results)

        return bind

    for name in UFUNCS:
        if not hasattr(xp, name):
            continue
        if name in ("fmax", "fmin"):
            register_binder(name, kind, bind_by_keyword(name))
        else:
            register_kernel(name, kind, getattr(xp, name))
    for name, (ufunc, part) in PARTS.items():
        register_binder(name, kind, bind_part(getattr(xp, ufunc), part))
