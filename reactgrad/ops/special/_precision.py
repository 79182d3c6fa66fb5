"""Values rounded to what a shorter float can hold."""

from __future__ import annotations

from typing import Any

from reactgrad._errors import DTypeError
from reactgrad.backend import Spec, add_kernels
from reactgrad.backend.blocks._blockwise import in_blocks
from reactgrad.backend.numpy import _precision
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Attrs, Op


def _infer(specs: tuple[Spec, ...], attrs: Attrs) -> Spec:
    if specs[0].dtype.char != "f":
        raise DTypeError(f"round_to({attrs[0]!r}) takes float32, not {specs[0]!r}.")
    return specs[0]


# The gradient passes as it is: rounding has slope 0 almost everywhere, and stands for the identity.
ROUND_TO = Op(
    "round_to",
    _infer,
    (lambda g, ans, x, dtype: g,),
    (lambda t, ans, x, dtype: t,),
    elementwise=True,
)
add_kernels(_precision.register, _precision.register_standard)
in_blocks(["round_to"], 4.0)


def round_to(x: Any, dtype: str) -> Any:
    """Return float32 rounded to the nearest numbers of ``"bfloat16"`` or ``"float16"``, ties to even.

    The result is of float32. Gradients pass as through the identity.
    """
    return apply(ROUND_TO, (x,), (dtype,))
