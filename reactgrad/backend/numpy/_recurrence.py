"""Kernels of recurrent layers: all steps of a sequence in one call, and the way back through them.

A *tape* holds for each step what the way back needs: the gates, then the states, side by side along the last
axis; that of a plain layer holds all sums, then all states. What does not depend on the step before is
computed for all steps at once.

A sigmoid gate stands on the tape as ``e = exp(-x)``, of which the gate ``1 / (1 + e)``, what it lets not pass,
``1 / (1 + 1 / e)``, and the slope ``1 / (2 + e + 1 / e)`` are exact in both tails, where ``1 - gate`` is not. A
hyperbolic tangent stands there as its operand, since its slope is ``1 / cosh(x)**2``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from reactgrad.backend._registry import register_binder, register_kernel

Call = Callable[[], object]


def register(xp: Any, kind: str) -> None:
    """Register the kernels of recurrent layers."""
    for name, binder in (
        ("rnn_tape", _bind_rnn),
        ("rnn_back", _bind_rnn_back),
        ("lstm_tape", _bind_lstm),
        ("lstm_back", _bind_lstm_back),
        ("gru_tape", _bind_gru),
        ("gru_back", _bind_gru_back),
    ):
        register_binder(name, kind, partial(_on, binder, xp))
    register_kernel("recurrent_zeros", kind, lambda x, weight, out, *attrs: out.fill(0))


def _on(binder: Any, xp: Any, inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
    return binder(xp, inputs, out, attrs)


def _arranged(xp: Any, x: Any, width: int, order: str, dtype: Any) -> Any:
    """Return a copy of `x` with the parts of its last axis in this order, all but the last negated."""
    found = xp.empty(x.shape, dtype)
    for to, at in enumerate(map(int, order)):
        part = found[..., to * width : (to + 1) * width]
        taken = x[..., at * width : (at + 1) * width]
        if to < len(order) - 1:
            xp.negative(taken, part)
        else:
            part[...] = taken
    return found


def _gates(xp: Any, e: Any, out: Any) -> None:
    """Write ``1 / (1 + e)``."""
    xp.add(e, 1, out)
    xp.reciprocal(out, out)


def _gate_slopes(xp: Any, e: Any, out: Any) -> None:
    """Write ``1 / (2 + e + 1 / e)``."""
    xp.reciprocal(e, out)
    xp.add(out, e, out)
    xp.add(out, 2, out)
    xp.reciprocal(out, out)


def _tanh_slopes(xp: Any, x: Any, out: Any, e: Any = None) -> None:
    """Write ``1 / cosh(x)**2``, divided by ``1 + e``: times the gate of `e`."""
    xp.cosh(x, out)
    xp.multiply(out, out, out)
    if e is not None:
        xp.multiply(out, e + 1, out)
    xp.reciprocal(out, out)


# --- tanh or relu of one sum -------------------------------------------------------------------


def _bind_rnn(xp: Any, inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
    gx, first, weight = inputs
    relu, count = attrs[0] == "relu", len(gx)
    steps = [(gx[t], out[t], out[count + t]) for t in range(count)]

    def scan() -> None:
        before, turned = first, xp.ascontiguousarray(weight.T)  # of use to all steps
        for added, total, now in steps:
            xp.matmul(before, turned, total)
            xp.add(total, added, total)
            if relu:
                xp.maximum(total, 0, out=now)
            else:
                xp.tanh(total, now)
            before = now

    return scan


def _bind_rnn_back(xp: Any, inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
    g, tape, _, _, weight = inputs
    relu = attrs[0] == "relu"
    carried = xp.empty_like(out[0])

    def back() -> None:
        gates = out[:-1]
        sums = tape[: len(gates)]
        if relu:
            gates[...] = xp.logical_not(sums <= 0)  # NaN passes
        else:
            _tanh_slopes(xp, sums, gates)
        carried.fill(0)
        for t in range(len(gates) - 1, -1, -1):
            now = gates[t]
            xp.add(carried, g[t], carried)
            xp.multiply(now, carried, now)
            xp.matmul(now, weight, carried)
        out[-1] = carried

    return back


# --- long short-term memory --------------------------------------------------------------------


def _bind_lstm(xp: Any, inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
    gx, first, cell, weight = inputs
    width, batch = weight.shape[1], out.shape[1:-1]
    product = xp.empty((*batch, 4 * width), out.dtype)
    gates = xp.empty((*batch, 3 * width), out.dtype)
    i, f, o = (gates[..., k * width : (k + 1) * width] for k in range(3))
    new, kept = xp.empty((2, *batch, width), out.dtype)
    one = xp.ones((), out.dtype)

    def scan() -> None:
        before, held = first, cell
        turned = _arranged(xp, weight.T, width, "0132", out.dtype)
        given = _arranged(xp, gx, width, "0132", out.dtype)
        for t in range(len(gx)):
            row = out[t]
            e, total = row[..., : 3 * width], row[..., 3 * width : 4 * width]
            xp.matmul(before, turned, product)
            xp.add(product, given[t], row[..., : 4 * width])
            xp.exp(e, e)
            xp.add(e, one, gates)
            xp.reciprocal(gates, gates)
            xp.tanh(total, new)
            xp.multiply(i, new, new)
            xp.multiply(f, held, kept)
            held = row[..., 4 * width : 5 * width]
            xp.add(kept, new, held)
            xp.tanh(held, new)
            before = row[..., 5 * width :]
            xp.multiply(o, new, before)

    return scan


def _bind_lstm_back(xp: Any, inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
    g, g_cell, tape, _, _, cell, weight = inputs
    width = weight.shape[1]
    batch = out.shape[1:-1]
    carried, held, step = xp.empty((3, *batch, width), out.dtype)
    through, f, bent = xp.empty((3, len(tape), *batch, width), out.dtype)

    def part(x: Any, i: int) -> Any:
        return x[..., i * width : (i + 1) * width]

    def back() -> None:
        gates = out[:-1]
        total, c = part(tape, 3), part(tape, 4)
        # How each gate's sum moves the cell, and how the state does: for all steps at once.
        _gate_slopes(xp, tape[..., : 2 * width], gates[..., : 2 * width])
        by_input, by_forget, by_new, by_output = (part(gates, k) for k in range(4))
        xp.multiply(by_input, xp.tanh(total, bent), by_input)
        xp.multiply(by_forget[0], cell, by_forget[0])
        xp.multiply(by_forget[1:], c[:-1], by_forget[1:])
        _tanh_slopes(xp, total, by_new, part(tape, 0))
        _gate_slopes(xp, part(tape, 2), by_output)
        xp.multiply(by_output, xp.tanh(c, bent), by_output)
        _tanh_slopes(xp, c, through, part(tape, 2))
        _gates(xp, part(tape, 1), f)
        carried.fill(0)
        held[...] = g_cell
        for t in range(len(gates) - 1, -1, -1):
            now = gates[t]
            xp.add(carried, g[t] if g.ndim else g, carried)
            xp.multiply(carried, through[t], step)
            xp.add(held, step, held)
            three = now[..., : 3 * width].reshape((*batch, 3, width))
            xp.multiply(three, held[..., None, :], three)
            xp.multiply(now[..., 3 * width :], carried, now[..., 3 * width :])
            now[..., : 3 * width] = three.reshape((*batch, 3 * width))
            xp.multiply(held, f[t], held)
            xp.matmul(now, weight, carried)
        last = out[-1]
        last.fill(0)
        last[..., :width] = carried
        last[..., width : 2 * width] = held

    return back


# --- gated recurrent unit ----------------------------------------------------------------------


def _bind_gru(xp: Any, inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
    gx, first, weight, bias = inputs
    width, batch = weight.shape[1], out.shape[1:-1]
    own = xp.empty((*batch, 3 * width), out.dtype)
    both = xp.empty((*batch, 2 * width), out.dtype)
    reset, update, hidden = both[..., :width], both[..., width:], own[..., 2 * width :]
    scratch, new = xp.empty((2, *batch, width), out.dtype)
    one = xp.ones((), out.dtype)

    def scan() -> None:
        before = first
        turned, shift, given = (
            _arranged(xp, x, width, "012", out.dtype) for x in (weight.T, bias, gx)
        )
        for t in range(len(gx)):
            xp.matmul(before, turned, own)
            xp.add(own, shift, own)
            row, added = out[t], given[t]
            e, total = row[..., : 2 * width], row[..., 2 * width : 3 * width]
            xp.add(own[..., : 2 * width], added[..., : 2 * width], e)
            xp.exp(e, e)
            xp.add(e, one, both)
            xp.reciprocal(both, both)
            row[..., 3 * width : 4 * width] = hidden
            xp.multiply(reset, hidden, scratch)
            xp.add(scratch, added[..., 2 * width :], total)
            xp.tanh(total, new)
            xp.subtract(before, new, scratch)
            xp.multiply(scratch, update, scratch)
            before = row[..., 4 * width :]
            xp.add(scratch, new, before)

    return scan


def _bind_gru_back(xp: Any, inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
    g, tape, _, first, weight, _ = inputs
    width = weight.shape[1]
    batch = out.shape[1:-1]
    own = xp.empty((*batch, 3 * width), out.dtype)
    carried, scratch = xp.empty((2, *batch, width), out.dtype)
    z, n = xp.empty((2, len(tape), *batch, width), out.dtype)

    def part(x: Any, i: int) -> Any:
        return x[..., i * width : (i + 1) * width]

    def back() -> None:
        gates = out[:-1]
        e, total, hidden, h = (
            tape[..., : 2 * width],
            part(tape, 2),
            part(tape, 3),
            tape[..., 4 * width :],
        )
        by_reset, by_update, by_new, r = (part(gates, k) for k in range(4))
        _gate_slopes(xp, e, gates[..., : 2 * width])
        xp.multiply(by_reset, hidden, by_reset)
        xp.tanh(total, n)
        xp.subtract(first, n[0], z[0])
        xp.subtract(h[:-1], n[1:], z[1:])
        xp.multiply(by_update, z, by_update)
        _tanh_slopes(xp, total, by_new, xp.reciprocal(part(e, 1), n))  # times 1 - z
        _gates(xp, part(e, 0), r)
        _gates(xp, part(e, 1), z)
        carried.fill(0)
        for t in range(len(gates) - 1, -1, -1):
            now = gates[t]
            xp.add(carried, g[t], carried)
            new = part(now, 2)
            xp.multiply(new, carried, new)
            for i, by in ((0, new), (1, carried), (3, new)):
                one = part(now, i)
                xp.multiply(one, by, one)
            own[..., : 2 * width] = now[..., : 2 * width]
            own[..., 2 * width :] = now[..., 3 * width :]
            xp.multiply(carried, z[t], scratch)
            xp.matmul(own, weight, carried)
            xp.add(carried, scratch, carried)
        last = out[-1]
        last.fill(0)
        last[..., :width] = carried

    return back
