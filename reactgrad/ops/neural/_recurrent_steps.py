"""Recurrent layers step by step: the formulas of which all derivatives but the first gradient are made."""

from __future__ import annotations

from typing import Any

from reactgrad._errors import ShapeError
from reactgrad.ops._elementwise import relu, sigmoid, tanh
from reactgrad.ops._join import stack
from reactgrad.ops._layout import transpose
from reactgrad.ops._matmul import matmul


def _each(gx: Any) -> list[Any]:
    """Return what the input adds to the gates, step by step."""
    count = gx.shape[0]
    if count is None:
        raise ShapeError(
            "derivatives of a recurrent layer beyond the first gradient need a known number of steps; set the "
            "input before they are built."
        )
    return [gx[t] for t in range(count)]


def rnn_steps(gx: Any, h: Any, w: Any, kind: str) -> tuple[Any, Any]:
    act = relu if kind == "relu" else tanh
    states = []
    for added in _each(gx):
        h = act(added + matmul(h, turned(w)))
        states.append(h)
    return stack(states), None


def lstm_steps(gx: Any, h: Any, c: Any, w: Any) -> tuple[Any, Any]:
    states, width = [], w.shape[1]
    for added in _each(gx):
        a = added + matmul(h, turned(w))
        i, f, o = (sigmoid(a[..., k * width : (k + 1) * width]) for k in (0, 1, 3))
        c = f * c + i * tanh(a[..., 2 * width : 3 * width])
        h = o * tanh(c)
        states.append(h)
    return stack(states), c


def gru_steps(gx: Any, h: Any, w: Any, b: Any, more: Any = None) -> tuple[Any, Any]:
    """Return the states; `more` is added to what the reset gate multiplies, for a derivative by it."""
    states, width = [], w.shape[1]
    for t, added in enumerate(_each(gx)):
        own = matmul(h, turned(w)) + b
        r, z = (
            sigmoid(added[..., k * width : (k + 1) * width] + own[..., k * width : (k + 1) * width])
            for k in (0, 1)
        )
        hidden = own[..., 2 * width :]
        hidden = hidden if more is None else hidden + more[t]
        n = tanh(added[..., 2 * width :] + r * hidden)
        h = n + z * (h - n)
        states.append(h)
    return stack(states), None


def turned(w: Any) -> Any:
    return transpose(w, (1, 0))
