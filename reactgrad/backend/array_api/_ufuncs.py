"""The less used ufuncs on devices of the array API standard; those that the standard lacks run on the host."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from reactgrad.backend._registry import register_kernel
from reactgrad.backend.array_api._on_host import on_host

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


def standard(names: Iterable[str]) -> Callable[[Any], None]:
    """Return the call that registers the kernels of these ops for a device."""
    hosts = on_host([name for name in names if name not in _NAMES and name not in _QUESTIONS])

    def register(device: Any) -> None:
        hosts(device)
        for name, other in _NAMES.items():
            register_kernel(name, device.kind, _converted(device.xp, getattr(device.xp, other)))
        for name, other in _QUESTIONS.items():
            register_kernel(name, device.kind, _question(getattr(device.xp, other)))

    return register


def _converted(xp: Any, function: Callable[..., Any]) -> Callable[..., None]:
    def kernel(*arrays: Any) -> None:
        *inputs, out = arrays
        out[...] = function(*[xp.astype(one, out.dtype) for one in inputs])

    return kernel


def _question(function: Callable[..., Any]) -> Callable[..., None]:
    def kernel(x: Any, out: Any) -> None:
        out[...] = function(x)

    return kernel
