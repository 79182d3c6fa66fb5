"""If, Loop and Scan: graphs inside of nodes; and sequences and optionals, which are Python lists here."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

import reactgrad as rg
from reactgrad.models._call import Call, checked, constant, converts
from reactgrad.models._layout import cut

MAX_STEPS: Final = 5_000


def _body(call: Call, name: str, given: list[Any]) -> list[Any]:
    """Build one of the graphs of a node; return its outputs."""
    graph = call.attr(name)
    call.build.steps += 1
    checked(
        call.build.steps <= MAX_STEPS,
        f"{call}: the loops of this model take more than {MAX_STEPS} steps, each of which has nodes of its own.",
    )
    values = dict(call.outer)
    values.update({v.name: g for v, g in zip(graph.input, given, strict=True)})
    return call.build.run(graph, values)


@converts("If")
def _if(call: Call) -> Any:
    known = call.values[0]
    if not constant(known):
        known = call.build.lengths.integers(call.node.input[0])
    if known is not None:
        taken = bool(np.asarray(known).reshape(-1)[0])
        return tuple(_body(call, "then_branch" if taken else "else_branch", []))
    first, second = (
        [call.build.operand(v) for v in _body(call, name, [])]
        for name in ("then_branch", "else_branch")
    )
    if any(isinstance(v, list) or v is None for v in (*first, *second)):
        call.static(0)  # sequences and optionals have no node: the condition must be known
    return tuple(rg.switch(call[0], a, b) for a, b in zip(first, second, strict=True))


@converts("Loop")
def _loop(call: Call) -> Any:
    most = int(call.number(0)) if call.has(0) else None
    going = bool(call.number(1)) if call.has(1) else True
    body = call.attr("body")
    carried, rows = (
        call.values[2:],
        [[] for _ in range(len(body.output) - 1 - len(call.values[2:]))],
    )
    step = 0
    while going and (most is None or step < most):
        going_on, *found = _body(call, "body", [np.array(step, "i8"), np.array(True), *carried])
        if not constant(going_on):
            name = body.output[0].name
            needs = tuple(
                dict.fromkeys(n for s in call.node.input if s for n in call.build.inputs_of(s))
            )
            raise call.unknown(
                f"whether it goes on ({name!r}) follows from values that change", needs
            )
        going = bool(np.asarray(going_on).reshape(-1)[0])
        carried = found[: len(carried)]
        for row, value in zip(rows, found[len(carried) :], strict=True):
            row.append(call.build.operand(value))
        step += 1
    return (*carried, *(_stacked(row) for row in rows))


def _stacked(row: list[Any], axis: int = 0) -> Any:
    return rg.stack(row, axis=axis) if row else np.zeros((0,), "f4")


@converts("Scan")
def _scan(call: Call) -> Any:
    body, n = call.attr("body"), call.attr("num_scan_inputs")
    values = call.values
    if call.version < 9:
        return _scan_of_batches(call, n)
    states, scanned = (
        values[: len(values) - n],
        [call.build.operand(v) for v in values[len(values) - n :]],
    )
    axes = call.attr("scan_input_axes") or [0] * n
    backward = call.attr("scan_input_directions") or [0] * n
    first = len(values) - n
    count = call.shape(first)[axes[0]] if n else 0
    return _steps(call, states, scanned, axes, backward, count, len(body.output) - len(states))


def _steps(
    call: Call, states: Any, scanned: Any, axes: Any, backward: Any, count: int, outputs: int
) -> Any:
    checked(
        count <= MAX_STEPS,
        f"{call} takes {count} steps, each of which has nodes of its own: at most {MAX_STEPS}.",
    )
    rows: list[list[Any]] = [[] for _ in range(outputs)]
    for step in range(count):
        slices = [
            rg.take(x, count - 1 - step if back else step, axis=axis)
            for x, axis, back in zip(scanned, axes, backward, strict=True)
        ]
        found = _body(call, "body", [*states, *slices])
        states = found[: len(states)]
        for row, value in zip(rows, found[len(states) :], strict=True):
            row.append(call.build.operand(value))
    out_axes = call.attr("scan_output_axes") or [0] * outputs
    reverse = call.attr("scan_output_directions") or [0] * outputs
    stacked = [
        _stacked(row[::-1] if back else row, axis)
        for row, axis, back in zip(rows, out_axes, reverse, strict=True)
    ]
    return (*states, *stacked)


def _scan_of_batches(call: Call, n: int) -> Any:
    """Return the outputs of version 8, which has a batch axis in front, and lengths that may differ."""
    if call.has(0):
        raise call.refuse("lengths of sequences in version 8")
    values = call.values[1:]
    first = len(values) - n
    operands = [call.build.operand(v) for v in values]
    batch, count = call.shape(1 + first)[:2]
    found = []
    for b in range(batch):
        one = [rg.take(v, b, axis=0) for v in operands]
        outputs = len(call.attr("body").output) - first
        found.append(_steps(call, one[:first], one[first:], [0] * n, [0] * n, count, outputs))
    return tuple(rg.stack(list(row), axis=0) for row in zip(*found, strict=True))


@converts("SequenceConstruct")
def _construct(call: Call) -> Any:
    return call.all()


@converts("SequenceEmpty")
def _empty(call: Call) -> Any:
    return []


def _sequence(call: Call) -> list[Any]:
    found = call.values[0]
    return list(found) if isinstance(found, list) else call.static(0).tolist()


def _place(call: Call, i: int, default: int, count: int) -> int:
    place = int(call.number(i)) if call.has(i) else default
    checked(-count <= place <= count, f"{call} asks for element {place} of {count}.")
    return place


@converts("SequenceAt")
def _at(call: Call) -> Any:
    found = _sequence(call)
    return found[_place(call, 1, 0, len(found))]


@converts("SequenceInsert")
def _insert(call: Call) -> Any:
    found = _sequence(call)
    found.insert(_place(call, 2, len(found), len(found)), call[1])
    return found


@converts("SequenceErase")
def _erase(call: Call) -> Any:
    found = _sequence(call)
    del found[_place(call, 1, -1, len(found))]
    return found


@converts("SequenceLength")
def _length(call: Call) -> Any:
    return np.array(len(_sequence(call)), "i8")


@converts("ConcatFromSequence")
def _concat_from_sequence(call: Call) -> Any:
    join = rg.stack if call.attr("new_axis", 0) else rg.concatenate
    return join(_sequence(call), axis=call.attr("axis"))


@converts("SplitToSequence")
def _split_to_sequence(call: Call) -> Any:
    axis = call.axis(call.attr("axis", 0))
    length = call.shape(0)[axis]
    single = not call.has(1)
    if single:
        each, parts = 1, [1] * length
    elif call.static(1).ndim == 0:
        each = int(call.number(1))
        checked(each > 0, f"{call} cuts an axis into parts of length {each}.")
        parts = [min(each, length - i) for i in range(0, length, each)]
    else:
        parts = list(call.ints(1))
    found = cut(call, axis, parts)
    return (
        [rg.squeeze(v, axis) for v in found] if single and not call.attr("keepdims", 1) else found
    )


@converts("Optional")
def _optional(call: Call) -> Any:
    return call[0] if call.has(0) else None


@converts("OptionalHasElement")
def _has_element(call: Call) -> Any:
    return np.array(call.has(0))


@converts("OptionalGetElement")
def _get_element(call: Call) -> Any:
    checked(call.has(0), f"{call} asks for the element of an optional that is empty.")
    return call.values[0]
