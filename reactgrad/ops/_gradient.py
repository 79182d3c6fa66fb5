"""Ops that pass their operand's value on and change only its gradient; kernels as ``alias``."""

from __future__ import annotations

from typing import Final

from reactgrad.nodes._op import Op
from reactgrad.ops._layout import ALIAS

DETACH: Final = Op("detach", ALIAS.infer, (None,), jvps=(None,), view=lambda x: x[...])
SCALE_GRAD: Final = Op(
    "scale_grad",
    ALIAS.infer,
    (lambda g, ans, x, factor: g * factor,),
    jvps=(lambda t, ans, x, factor: t * factor,),
    view=lambda x, factor: x[...],
)
