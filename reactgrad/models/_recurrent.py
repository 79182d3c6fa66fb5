"""RNN, GRU and LSTM, step by step: any activations, lengths, peepholes, both directions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

import reactgrad as rg
from reactgrad.models._call import Call, checked, converts

MAX_STEPS: Final = 10_000
MAX_STATES: Final = 1 << 24

Function = Callable[[Any], Any]
# From ONNX's names to functions of a value, alpha and beta; the defaults of alpha and beta.
_ACTIVATIONS: Final[dict[str, tuple[Callable[[Any, float, float], Any], float, float]]] = {
    "relu": (lambda x, a, b: rg.relu(x), 0.0, 0.0),
    "tanh": (lambda x, a, b: rg.tanh(x), 0.0, 0.0),
    "sigmoid": (lambda x, a, b: rg.sigmoid(x), 0.0, 0.0),
    "affine": (lambda x, a, b: x * a + b, 1.0, 0.0),
    "leakyrelu": (lambda x, a, b: rg.leaky_relu(x, a), 0.01, 0.0),
    "thresholdedrelu": (lambda x, a, b: rg.where(rg.greater(x, a), x, x * 0), 1.0, 0.0),
    "scaledtanh": (lambda x, a, b: rg.tanh(x * b) * a, 1.0, 1.0),
    "hardsigmoid": (lambda x, a, b: rg.clip(x * a + b, 0.0, 1.0), 0.2, 0.5),
    "elu": (lambda x, a, b: rg.elu(x, a), 1.0, 0.0),
    "softsign": (lambda x, a, b: rg.softsign(x), 0.0, 0.0),
    "softplus": (lambda x, a, b: rg.softplus(x), 0.0, 0.0),
}


def _activations(call: Call, default: list[str], directions: int) -> list[list[Function]]:
    """Return the functions of each direction."""
    names = call.attr("activations") or default * directions
    alphas, betas = (
        list(call.attr("activation_alpha") or []),
        list(call.attr("activation_beta") or []),
    )
    clip, found = call.attr("clip"), list[Function]()
    for name in names:
        if name.lower() not in _ACTIVATIONS:
            raise call.refuse(f"activation {name!r}")
        function, alpha, beta = _ACTIVATIONS[name.lower()]
        takes_alpha = name.lower() in (
            "affine",
            "leakyrelu",
            "thresholdedrelu",
            "scaledtanh",
            "hardsigmoid",
            "elu",
        )
        takes_beta = name.lower() in ("affine", "scaledtanh", "hardsigmoid")
        alpha = alphas.pop(0) if takes_alpha and alphas else alpha
        beta = betas.pop(0) if takes_beta and betas else beta
        found.append(
            lambda x, f=function, a=alpha, b=beta: f(
                x if clip is None else rg.clip(x, -clip, clip), a, b
            )
        )
    each = len(default)
    return [found[i * each : (i + 1) * each] for i in range(directions)]


class _Layer:
    """The directions, layout, lengths and first states of a layer."""

    def __init__(self, call: Call, gates: int, default: list[str]) -> None:
        self.call = call
        direction = call.attr("direction", "forward")
        self.backward = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[
            direction
        ]
        self.functions = _activations(call, default, len(self.backward))
        self.x = rg.transpose(call[0], (1, 0, 2)) if call.attr("layout", 0) else call[0]
        time, samples = (1, 0) if call.attr("layout", 0) else (0, 1)
        self.steps = call.length(0, time)
        self.batch = (
            call.told(0)[samples] if None in call.shape_or_none(0) else call.length(0, samples)
        )
        self.size = call.shape(2)[-1]
        self.gates = gates
        self.lengths = call.static(4).reshape(-1) if call.has(4) else None
        checked(
            self.steps <= MAX_STEPS, f"{call} takes {self.steps} steps, each with nodes of its own."
        )
        checked(
            not isinstance(self.batch, int) or self.batch * self.size <= MAX_STATES,
            f"{call} begins with {self.batch} states of {self.size} numbers: at most {MAX_STATES} numbers are made.",
        )

    def first(self, i: int, direction: int) -> Any:
        """Return the first state of a direction."""
        if not self.call.has(i):
            if not isinstance(self.batch, int):
                zero = np.zeros((), self.call.dtype(0))
                return rg.where(self.call.mask([self.batch, self.size]), zero, zero)
            return np.zeros((self.batch, self.size), self.call.dtype(0))
        state = self.call[i]
        return state[:, direction] if self.call.attr("layout", 0) else state[direction]

    def bias(self, direction: int) -> tuple[Any, Any]:
        """Return the biases of the input's and of the state's part."""
        if not self.call.has(3):
            return 0.0, 0.0
        b, n = self.call[3][direction], self.gates * self.size
        return b[:n], b[n:]

    def run(
        self,
        cell: Callable[[int], Callable[..., tuple[Any, ...]]],
        states: Callable[[int], tuple[Any, ...]],
    ) -> Any:
        """Run the steps of all directions; return the states of all steps and the last ones."""
        all_steps, all_last = [], []
        for d, backward in enumerate(self.backward):
            step, state, rows = cell(d), states(d), [None] * self.steps
            order = range(self.steps - 1, -1, -1) if backward else range(self.steps)
            for t in order:
                new = step(self.x[t], *state)
                out = new[0]
                if self.lengths is not None and (self.lengths <= t).any():
                    live = (t < self.lengths)[:, None]
                    state = tuple(rg.where(live, n, s) for n, s in zip(new, state, strict=True))
                    out = rg.where(live, out, np.zeros((), self.call.dtype(0)))
                else:
                    state = new
                rows[t] = out
            all_steps.append(rg.stack(rows, axis=0))
            all_last.append(state)
        y = rg.stack(all_steps, axis=1)  # steps, directions, batch, features
        last = [rg.stack(list(v), axis=0) for v in zip(*all_last, strict=True)]
        if self.call.attr("layout", 0):
            y, last = rg.transpose(y, (2, 0, 1, 3)), [rg.transpose(v, (1, 0, 2)) for v in last]
        return (y, *last)


@converts("RNN")
def _rnn(call: Call) -> Any:
    layer = _Layer(call, 1, ["Tanh"])

    def cell(d: int) -> Any:
        w, r, (wb, rb), (f,) = (
            rg.transpose(call[1][d]),
            rg.transpose(call[2][d]),
            layer.bias(d),
            layer.functions[d],
        )
        return lambda x, h: (f(rg.matmul(x, w) + wb + rg.matmul(h, r) + rb),)

    return layer.run(cell, lambda d: (layer.first(5, d),))


@converts("GRU")
def _gru(call: Call) -> Any:
    layer, n = _Layer(call, 3, ["Sigmoid", "Tanh"]), call.shape(2)[-1]
    late = bool(call.attr("linear_before_reset", 0))

    def cell(d: int) -> Any:
        w, r, (wb, rb), (f, g) = (
            rg.transpose(call[1][d]),
            rg.transpose(call[2][d]),
            layer.bias(d),
            layer.functions[d],
        )
        rb = rb if call.has(3) else np.zeros(3 * n, call.dtype(0))

        def step(x: Any, h: Any) -> tuple[Any, ...]:
            of_x = rg.matmul(x, w) + wb
            of_h = rg.matmul(h, r[:, : 2 * n]) + rb[: 2 * n]
            z = f(of_x[:, :n] + of_h[:, :n])
            reset = f(of_x[:, n : 2 * n] + of_h[:, n:])
            if late:
                inner = reset * (rg.matmul(h, r[:, 2 * n :]) + rb[2 * n :])
            else:
                inner = rg.matmul(reset * h, r[:, 2 * n :]) + rb[2 * n :]
            return ((1 - z) * g(of_x[:, 2 * n :] + inner) + z * h,)

        return step

    return layer.run(cell, lambda d: (layer.first(5, d),))


@converts("LSTM")
def _lstm(call: Call) -> Any:
    layer, n = _Layer(call, 4, ["Sigmoid", "Tanh", "Tanh"]), call.shape(2)[-1]
    coupled = bool(call.attr("input_forget", 0))

    def cell(d: int) -> Any:
        w, r, (wb, rb) = rg.transpose(call[1][d]), rg.transpose(call[2][d]), layer.bias(d)
        f, g, h_of = layer.functions[d]
        peep = call[7][d] if call.has(7) else None
        p = [peep[i * n : (i + 1) * n] if peep is not None else 0.0 for i in range(3)]

        def step(x: Any, h: Any, c: Any) -> tuple[Any, ...]:
            gates = rg.matmul(x, w) + rg.matmul(h, r) + wb + rb
            i, o, forget, new = (gates[:, k * n : (k + 1) * n] for k in range(4))
            i = f(i + p[0] * c if peep is not None else i)
            forget = 1 - i if coupled else f(forget + p[2] * c if peep is not None else forget)
            c = forget * c + i * g(new)
            o = f(o + p[1] * c if peep is not None else o)
            return o * h_of(c), c

        return step

    return layer.run(cell, lambda d: (layer.first(5, d), layer.first(6, d)))
