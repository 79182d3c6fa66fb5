"""Kernels of recurrent layers: all steps of a sequence in one call, and the way back through them.

A *tape* holds for each step what the way back needs: the gates, then the states, side by side along the last
axis. What does not depend on the step before is computed for all steps at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from reactgrad.backend._registry import register_binder

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


def _on(binder: Any, xp: Any, inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
    return binder(xp, inputs, out, attrs)


def _halved(xp: Any, width: int, gates: str, dtype: Any) -> tuple[Any, Any]:
    """Return factors and offsets of gates: the sigmoid of x is ``0.5 * tanh(0.5 * x) + 0.5``.

    So one call of tanh computes all gates of a step. `gates` has an "s" for each sigmoid.
    """
    scale, offset = xp.ones(len(gates) * width, dtype), xp.zeros(len(gates) * width, dtype)
    for i, one in enumerate(gates):
        if one == "s":
            scale[i * width : (i + 1) * width] = offset[i * width : (i + 1) * width] = 0.5
    return scale, offset


# --- tanh or relu of one sum -------------------------------------------------------------------


def _bind_rnn(xp: Any, inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
    gx, first, weight = inputs
    relu = attrs[0] == "relu"

    def scan() -> None:
        before, turned = first, xp.ascontiguousarray(weight.T)  # of use to all steps
        for t in range(len(gx)):
            now = out[t]
            xp.matmul(before, turned, now)
            xp.add(now, gx[t], now)
            if relu:
                xp.maximum(now, 0, out=now)
            else:
                xp.tanh(now, now)
            before = now

    return scan


def _bind_rnn_back(xp: Any, inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
    g, tape, _, _, weight = inputs
    relu = attrs[0] == "relu"
    carried = xp.empty_like(out[0])

    def back() -> None:
        gates = out[:-1]
        gates[...] = tape > 0 if relu else 1 - tape * tape
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
    gates = xp.empty((*batch, 4 * width), out.dtype)
    scratch, kept = xp.empty((2, *batch, width), out.dtype)
    scale, offset = _halved(xp, width, "ssts", out.dtype)

    def scan() -> None:
        before, held = first, cell
        turned = xp.ascontiguousarray(weight.T * scale)
        given = gx * scale
        for t in range(len(gx)):
            xp.matmul(before, turned, gates)
            xp.add(gates, given[t], gates)
            xp.tanh(gates, gates)
            row = out[t]
            xp.multiply(gates, scale, gates)
            xp.add(gates, offset, row[..., : 4 * width])
            xp.multiply(row[..., :width], row[..., 2 * width : 3 * width], scratch)
            xp.multiply(row[..., width : 2 * width], held, kept)
            xp.add(kept, scratch, kept)
            held = row[..., 4 * width : 5 * width]
            held[...] = kept
            xp.tanh(kept, scratch)
            before = row[..., 5 * width :]
            xp.multiply(row[..., 3 * width : 4 * width], scratch, before)

    return scan


def _bind_lstm_back(xp: Any, inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
    g, g_cell, tape, _, _, cell, weight = inputs
    width = weight.shape[1]
    batch = out.shape[1:-1]
    carried, held = xp.empty((*batch, width), out.dtype), xp.empty((*batch, width), out.dtype)
    step = xp.empty((*batch, width), out.dtype)

    def part(i: int) -> Any:
        return tape[..., i * width : (i + 1) * width]

    def back() -> None:
        gates = out[:-1]
        i, f, a, o, c = map(part, range(5))
        bent = xp.tanh(c)
        former = xp.concatenate([xp.broadcast_to(cell, (*batch, width))[None], c[:-1]])
        # How each gate's sum moves the cell, and how the state does: for all steps at once.
        xp.multiply(a * i, 1 - i, gates[..., :width])
        xp.multiply(former * f, 1 - f, gates[..., width : 2 * width])
        xp.multiply(i, 1 - a * a, gates[..., 2 * width : 3 * width])
        xp.multiply(bent * o, 1 - o, gates[..., 3 * width :])
        through = o * (1 - bent * bent)
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
    scratch = xp.empty((*batch, width), out.dtype)
    both = xp.empty((*batch, 2 * width), out.dtype)
    scale, _ = _halved(xp, width, "sst", out.dtype)

    def scan() -> None:
        before = first
        turned, shift = xp.ascontiguousarray(weight.T * scale), bias * scale
        given = gx * scale
        for t in range(len(gx)):
            xp.matmul(before, turned, own)
            xp.add(own, shift, own)
            row, added = out[t], given[t]
            gates, new = row[..., : 2 * width], row[..., 2 * width : 3 * width]
            hidden, now = row[..., 3 * width : 4 * width], row[..., 4 * width :]
            xp.add(own[..., : 2 * width], added[..., : 2 * width], both)
            xp.tanh(both, both)
            xp.multiply(both, 0.5, both)
            xp.add(both, 0.5, gates)
            hidden[...] = own[..., 2 * width :]
            xp.multiply(row[..., :width], hidden, scratch)
            xp.add(scratch, added[..., 2 * width :], scratch)
            xp.tanh(scratch, scratch)
            new[...] = scratch
            xp.subtract(before, new, scratch)
            xp.multiply(scratch, row[..., width : 2 * width], scratch)
            xp.add(scratch, new, now)
            before = now

    return scan


def _bind_gru_back(xp: Any, inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]) -> Call:
    g, tape, _, first, weight, _ = inputs
    width = weight.shape[1]
    batch = out.shape[1:-1]
    carried, own = xp.empty((*batch, width), out.dtype), xp.empty((*batch, 3 * width), out.dtype)
    scratch = xp.empty((*batch, width), out.dtype)

    def part(i: int) -> Any:
        return tape[..., i * width : (i + 1) * width]

    def back() -> None:
        gates = out[:-1]
        r, z, n, hidden, h = map(part, range(5))
        former = xp.concatenate([xp.broadcast_to(first, (*batch, width))[None], h[:-1]])
        by_new = (1 - z) * (1 - n * n)
        by_reset = hidden * r * (1 - r)
        by_update = (former - n) * z * (1 - z)
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
