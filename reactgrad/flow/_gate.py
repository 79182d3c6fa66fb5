"""Gates: nodes with the value of their operand that change only what gradients pass."""

from __future__ import annotations

import math
from contextvars import copy_context
from numbers import Real
from typing import Any

from reactgrad._errors import DTypeError, ParameterError
from reactgrad.flow._mode import no_grad
from reactgrad.nodes._handle import Handle, apply
from reactgrad.ops import DETACH, SCALE_GRAD
from reactgrad.scheduler import safe_repr


def detach_node(x: Any) -> Any:
    """Return a node with the value of ``x`` that no gradient passes; see ``Var.detach_node``."""
    # In a context of its own, which ends with the call wherever an error comes.
    return copy_context().run(_closed, x)


def _closed(x: Any) -> Any:
    # Closed as a whole, not edge by edge, so that it stays closed when an edit replaces its operand.
    with no_grad():
        return apply(DETACH, (x,))


def scale_grad(x: Any, factor: float) -> Any:
    """Return a node with the value of ``x`` and ``factor`` times its gradient; see ``Var.scale_grad``."""
    if isinstance(factor, Handle):
        raise DTypeError(
            f"scale_grad: the factor is a Var, whose changes would make the value "
            f"stale, which they do not touch. Write {x.label}.register_hook(lambda g: g * factor)."
        )
    if isinstance(factor, bool) or not isinstance(factor, Real) or not math.isfinite(factor):
        raise ParameterError(
            f"scale_grad({safe_repr(factor):.60}): the factor is one finite number, such as 0.5, or -1.0 to "
            "reverse the gradient. To scale element by element write "
            f"{x.label}.register_hook(lambda g: g * factors)."
        )
    return apply(SCALE_GRAD, (x,), (float(factor),))
