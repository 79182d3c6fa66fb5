"""Decay of weights, and climbing in place of descending."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad.optim._arrays import Arrays


def coupled(at: Arrays, decay: float, maximize: bool) -> Any:
    """Return the gradient of the loss with a penalty on the squares of the params; may lie in ``at.a``."""
    g = at.g
    if maximize:
        g = np.negative(g, at.a)
    if decay:
        g = np.add(g, np.multiply(at.p, decay, at.b), at.a)
    return g


def decoupled(at: Arrays, decay: float, lr: float) -> Any:
    """Return the params after decay by themselves (Loshchilov and Hutter, 2019); may lie in ``at.out``."""
    return np.multiply(at.p, 1.0 - lr * decay, at.out) if decay else at.p
