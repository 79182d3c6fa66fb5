"""The less used ufuncs on devices of the array API standard; those that the standard lacks run on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from reactgrad.backend._registry import register_kernel
from reactgrad.backend.array_api._on_host import on_host
from reactgrad.backend.numpy._ufuncs import UFUNCS

# By NumPy's name: the standard's name. Operands are converted to the dtype of the result.
_NAMES: Final = {
    "arccosh": "acosh",
    "arcsinh": "asinh",
    "arctanh": "atanh",
    "bitwise_and": "bitwise_and",
    "bitwise_or": "bitwise_or",
    "bitwise_xor": "bitwise_xor",
    "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift",
    "right_shift": "bitwise_right_shift",
    "logical_xor": "logical_xor",
    "positive": "positive",
    "trunc": "trunc",
    "rint": "round",
}
# Questions about floats; integers are not infinite.
_QUESTIONS: Final = {"isinf": "isinf"}
_ON_HOST: Final = (
    *(name for name in UFUNCS if name not in _NAMES and name not in _QUESTIONS),
    *("modf_fraction", "modf_whole", "frexp_mantissa", "frexp_exponent"),
)


def standard(device: Any) -> None:
    """Register these kernels for a device."""
    xp = device.xp
    on_host(_ON_HOST)(device)
    for name, other in _NAMES.items():
        register_kernel(name, device.kind, _converted(xp, getattr(xp, other)))
    for name, other in _QUESTIONS.items():
        register_kernel(name, device.kind, _question(getattr(xp, other)))


def _converted(xp: Any, function: Callable[..., Any]) -> Callable[..., None]:
    def kernel(*arrays: Any) -> None:
        *inputs, out = arrays
        out[...] = function(*[xp.astype(one, out.dtype) for one in inputs])

    return kernel


def _question(function: Callable[..., Any]) -> Callable[..., None]:
    def kernel(x: Any, out: Any) -> None:
        out[...] = function(x)

    return kernel
