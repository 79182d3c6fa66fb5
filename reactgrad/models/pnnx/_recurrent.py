"""Recurrent layers: stacked, in both directions, with PyTorch's weights."""

from __future__ import annotations

from typing import Any

import reactgrad as rg
from reactgrad.models.pnnx._call import Call, converts, rank


@converts("nn.LSTM", "nn.GRU", "nn.RNN")
def _recurrent(call: Call) -> Any:
    kind = call.op[3:].lower()
    if call.integer("proj_size", 0):
        raise call.refuse("proj_size")
    x, given = call[0], call.values[1:]
    first, layers = bool(call("batch_first", False)), call.integer("num_layers", 1)
    directions = 2 if call("bidirectional", False) else 1
    alone = rank(x) == 2
    if alone:
        x = rg.expand_dims(x, 0 if first else 1)
        given = [rg.expand_dims(one, 1) for one in given]
    if first:
        x = rg.swapaxes(x, 0, 1)
    options: dict[str, Any] = (
        {"nonlinearity": call("nonlinearity", "tanh")} if kind == "rnn" else {}
    )
    lasts: list[list[Any]] = [[], []]
    for layer in range(layers):
        rows: list[Any] = []
        for way in range(directions):
            end = f"_l{layer}" + ("_reverse" if way else "")
            names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            at = layer * directions + way
            state: Any = [one[at] for one in given] or None
            if state is not None and kind != "lstm":
                (state,) = state
            elif state is not None:
                state = tuple(state)
            y, last = getattr(rg, kind)(
                x, state, *(call.weight(name + end) for name in names), reverse=bool(way), **options
            )
            rows.append(y)
            for one, part in zip(lasts, last if kind == "lstm" else (last,), strict=False):
                one.append(part)
        x = rows[0] if directions == 1 else rg.concatenate(rows, axis=-1)
    if first:
        x = rg.swapaxes(x, 0, 1)
    found = [x, *(rg.stack(one, axis=0) for one in lasts if one)]
    if alone:
        found = [
            rg.squeeze(found[0], 0 if first else 1),
            *(rg.squeeze(one, 1) for one in found[1:]),
        ]
    count = len(call.one.outputs)
    return found[0] if count == 1 else tuple(found[:count])
