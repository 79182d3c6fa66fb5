"""Kernels of recurrent layers: all steps of a sequence in one call, and the way back through them.

A *tape* holds for each step what the way back needs: the gates, then the states, side by side along the last
axis. What does not depend on the step before is computed for all steps at once.

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


def _gates(xp: Any, e: Any) -> Any:
    found = e + 1
    return xp.reciprocal(found, found)


def _gate_slopes(xp: Any, e: Any) -> Any:
    found = xp.reciprocal(e)
    found += e
    found += 2
    return xp.reciprocal(found, found)


def _tanh_slopes(xp: Any, x: Any, out: Any = None) -> Any:
    found = xp.cosh(x, out)
    xp.multiply(found, found, found)
    return xp.reciprocal(found, found)


# --- tanh or relu of one sum -------------------------------------------------------------------


def _bind_rnn(xp: Any, inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
    gx, first, weight = inputs
    relu, width = attrs[0] == "relu", weight.shape[1]
    steps = [(gx[t], out[t, ..., :width], out[t, ..., width:]) for t in range(len(gx))]

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
        sums = tape[..., : tape.shape[-1] // 2]
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
    carried, held = xp.empty((*batch, width), out.dtype), xp.empty((*batch, width), out.dtype)
    step = xp.empty((*batch, width), out.dtype)

    def part(x: Any, i: int) -> Any:
        return x[..., i * width : (i + 1) * width]

    def back() -> None:
        gates = out[:-1]
        e, total, c = tape[..., : 3 * width], part(tape, 3), part(tape, 4)
        opened, slopes = _gates(xp, e), _gate_slopes(xp, e)
        i, f, o = (part(opened, k) for k in range(3))
        bent = xp.tanh(c)
        former = xp.concatenate([xp.broadcast_to(cell, (*batch, width))[None], c[:-1]])
        # How each gate's sum moves the cell, and how the state does: for all steps at once.
        xp.multiply(xp.tanh(total), part(slopes, 0), part(gates, 0))
        xp.multiply(former, part(slopes, 1), part(gates, 1))
        xp.multiply(i, _tanh_slopes(xp, total), part(gates, 2))
        xp.multiply(bent, part(slopes, 2), part(gates, 3))
        through = _tanh_slopes(xp, c)
        through *= o
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
    carried, own = xp.empty((*batch, width), out.dtype), xp.empty((*batch, 3 * width), out.dtype)
    scratch = xp.empty((*batch, width), out.dtype)

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
        opened, slopes = _gates(xp, e), _gate_slopes(xp, e)
        r, z, n = part(opened, 0), part(opened, 1), xp.tanh(total)
        former = xp.concatenate([xp.broadcast_to(first, (*batch, width))[None], h[:-1]])
        by_new = _tanh_slopes(xp, total)
        by_new *= _gates(xp, xp.reciprocal(part(e, 1)))  # 1 - z
        by_reset = hidden * part(slopes, 0)
        by_update = (former - n) * part(slopes, 1)
        carried.fill(0)
        for t in range(len(gates) - 1, -1, -1):
            now = gates[t]
            xp.add(carried, g[t], carried)
            new = now[..., 2 * width : 3 * width]
            xp.multiply(carried, by_new[t], new)
            xp.multiply(new, by_reset[t], now[..., :width])
            xp.multiply(carried, by_update[t], now[..., width : 2 * width])
            xp.multiply(new, r[t], now[..., 3 * width :])
            own[..., : 2 * width] = now[..., : 2 * width]
            own[..., 2 * width :] = now[..., 3 * width :]
            xp.multiply(carried, z[t], scratch)
            xp.matmul(own, weight, carried)
            xp.add(carried, scratch, carried)
        last = out[-1]
        last.fill(0)
        last[..., :width] = carried

    return back
