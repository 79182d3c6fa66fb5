"""Derivatives inside of rules: an op whose derivative is that of an expression which its rule builds."""

from __future__ import annotations

from typing import Any

from reactgrad.core._core import Core


def gradient_of(graph: Core, y: Any, xs: Any, g: Any) -> Any:
    """Return the gradients of what a rule has built, by its operands; see ``grad``."""
    from reactgrad.autodiff._grad import grad  # imported late: few rules differentiate

    return grad(y, xs, gradient=g, allow_unused=True)


def tangent_of(graph: Core, y: Any, x: Any, t: Any) -> Any:
    """Return the tangent of what a rule has built, when one operand moves along `t`."""
    from reactgrad.autodiff._transforms import jvp

    return jvp(y, [x], [t], allow_unused=True)
