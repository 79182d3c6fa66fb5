"""Functions that transforms are tried with."""

from __future__ import annotations

from typing import Any

import numpy as np

import reactgrad as rg

W, X = np.array([[0.5, -1.0], [2.0, 0.25]]), np.array([[1.0, 2.0], [0.5, -0.5], [3.0, 0.0]])


def cube(x: Any) -> Any:
    return rg.tanh(x[1:] * x[:-1]) * x.sum() + x[0] ** 3
