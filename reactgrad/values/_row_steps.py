"""Steps that compute some rows of a node's value.

Which nodes are computed in part, and why that gives the bits of a full run, is decided in
``reactgrad_scheduler.dirty``; which rows follow from which, in ``_row_rules``. A step for some rows is the step of
the same kernel, bound to these rows of its operands and of its result.

`store` is the storage, ``Steps``, which calls these functions and loads this module when rows are set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from reactgrad.backend import Reduction, find_binder
from reactgrad.backend.machine._row_program import Part, RowProgram
from reactgrad.nodes._op import Op
from reactgrad.scheduler import SHARE, Ranges, Step, count
from reactgrad.values._row_rules import CUT, Rule, plain, reached, rows_of_view, rule_of

# So many ranges are remembered of a step that is bound for each.
MOST_PLACES = 1024


def rows_of(store: Any, slot: int, changed: Sequence[Ranges | None]) -> Ranges | None:
    """Return the rows of a node that these rows of its operands reach; see ``Host``."""
    if all(rows == () for rows in changed):
        return ()
    data = store.data
    if slot in store._view_of:
        view, base = data[slot], store._view_of[slot]  # the parent may lie elsewhere by now
        rows = None
        if changed[0] is not None and type(view) is np.ndarray is type(base):
            rows = rows_of_view(view, base, changed[0])
    else:
        rule = _row_rule(store, slot)
        if rule is None or len(rule) != len(changed):
            return None
        rows = reached(rule, changed)
    if rows is None or count(rows) * SHARE > store.specs[slot].shape[0]:
        return None
    return rows


def _row_rule(store: Any, slot: int) -> Rule | None:
    """Return the row rule of a node whose value lies in a buffer of its own, all of it, as of its record."""
    op, found, data = store.ops[slot], store.specs[slot], store.data
    if (
        type(op) is not Op
        or found is None
        or found.kind != "cpu"
        or not (found.known and found.shape)
        or store.policy is not None
        or slot in store.cutoffs
        or slot in store.former_cutoffs  # it may have kept an old value
        or slot in store.transient
    ):
        return None
    parents = store.scheduler.topology.parents[slot]
    specs: list[Any] = [store.specs[parent] for parent in parents]
    if any(one is None or one.kind != "cpu" or not one.known for one in specs):
        return None
    try:
        rule = rule_of(op, found, tuple(specs), store.attrs[slot])
    except TypeError:  # attributes that cannot be hashed
        return None
    if rule is None or not plain(data[slot], rows_only=True):
        return None
    strict = not op.elementwise
    for kind, parent in zip(rule, parents):
        if kind is CUT and not plain(data[parent], rows_only=strict):
            return None
    return rule


def calls_in_part(
    store: Any,
    slots: Sequence[int],
    steps: Sequence[Step],
    rows: Mapping[int, Ranges],
    read: Mapping[int, Ranges],
    span: Ranges,
) -> tuple[list[Step], list[int], Callable[[Ranges], object] | None]:
    """Return the calls that compute only these rows of the nodes in ``rows``; see ``Host``."""
    if (
        span
        and store.registers is not None
        and _of_one_length(store, rows, read)
        and not store._any_lends(slots)
    ):
        return Moving(store, slots, steps, rows, read, span).result()
    calls: list[Step] = []
    first_slots: list[int] = []
    for slot, step in zip(slots, steps, strict=True):
        part = rows.get(slot)
        if part is not None:
            new = [_bind_rows(store, slot, *one) for one in part]
        elif type(step) is Reduction and slot in read:
            new = [partial(step.update, read[slot])]
            _keep(store, slot, step)
        else:
            new = [step]
        calls += new
        first_slots += [slot] * len(new)
    return calls, first_slots, None


def _keep(store: Any, slot: int, step: Any) -> None:
    """Note that a reduction keeps what it finds in blocks."""
    if store.reductions is None:
        store.reductions = {}
    store.reductions[slot] = step


def _of_one_length(store: Any, rows: Iterable[int], read: Iterable[int]) -> bool:
    """Return whether all nodes, and all that read rows, have as many rows, so that any range reaches the same nodes.

    A view that begins at another row of what it shows would not have the same rows.
    """
    parents = store.scheduler.topology.parents
    specs = [store.specs[slot] for slot in rows]
    specs += [store.specs[parents[slot][0]] for slot in read]
    return len({one.shape[0] for one in specs}) == 1


class Moving:
    """Calls that compute a range of rows, and can be moved to another range of the same length.

    Steps that the register machine can do become programs of it. All others are bound for each range, and kept.
    """

    def __init__(
        self,
        store: Any,
        slots: Sequence[int],
        steps: Sequence[Step],
        rows: Mapping[int, Ranges],
        read: Mapping[int, Ranges],
        span: Ranges,
    ) -> None:
        ((begin, end),) = span
        self.calls: list[Step] = []
        self.slots: list[int] = []
        self._sliced: list[Sliced] = []
        self._span = span
        self._program = RowProgram()
        pieces: list[tuple[int, int, int]] = []  # place among the calls, first and last word
        for slot, step in zip(slots, steps, strict=True):
            if slot in rows:
                words = self._program.add(_first_rows(store, slot, end - begin))
                call: Any = step
                if words is None:
                    call = Sliced(partial(_bind_rows, store, slot), end - begin)
                    self._sliced.append(call)
            elif type(step) is Reduction and slot in read:
                words, call = None, partial(self._update, step)
                _keep(store, slot, step)
            else:
                words, call = self._program.add(Part(step)), step
            if words is not None and pieces and pieces[-1][0] == len(self.calls) - 1:
                at, first, _ = pieces.pop()
                pieces.append((at, first, words[1]))
                continue
            if words is not None:
                pieces.append((len(self.calls), *words))
            self.calls.append(call)
            self.slots.append(slot)
        self._program.finish()
        for at, first, last in pieces:
            self.calls[at] = self._program.call(store.registers.machine, first, last)
        self.move(span)

    def move(self, span: Ranges) -> None:
        """Let the calls compute this range."""
        begin = span[0][0]
        self._program.move(begin)
        for one in self._sliced:
            one.move(begin)
        self._span = span

    def _update(self, step: Any) -> None:
        step.update(self._span)

    def result(self) -> tuple[list[Step], list[int], Callable[[Ranges], object]]:
        """Return the calls, the first slot of each, and the function that moves them."""
        calls, self.calls = self.calls, []  # else there would be a cycle of references
        return calls, self.slots, self.move


class Sliced:
    """A step that is bound for each range of rows."""

    __slots__ = ("_bind", "_known", "_length", "_step")

    def __init__(self, bind: Callable[[int, int], Step], length: int) -> None:
        self._bind, self._length = bind, length
        self._known: dict[int, Step] = {}
        self._step: Step

    def move(self, begin: int) -> None:
        """Let it compute the rows from ``begin`` on."""
        step = self._known.get(begin)
        if step is None:
            if len(self._known) >= MOST_PLACES:
                self._known.clear()
            step = self._known[begin] = self._bind(begin, begin + self._length)
        self._step = step

    def __call__(self) -> object:
        return self._step()


def _first_rows(store: Any, slot: int, length: int) -> Part:
    """Return the step for the first rows of a node, with the arrays that it takes rows of."""
    rule = _row_rule(store, slot)
    assert rule is not None
    parents = store.scheduler.topology.parents[slot]
    cut = [store.data[parent] for parent, kind in zip(parents, rule) if kind is CUT]
    rest = [store.data[parent] for parent, kind in zip(parents, rule) if kind is not CUT]
    cut.append(store.data[slot])
    step = _bind_rows(store, slot, 0, length)
    apart = [one for one in rest if type(one) is np.ndarray]
    if any(np.may_share_memory(one, other) for one in apart for other in cut) or any(
        one.strides[0] != other.strides[0] and np.may_share_memory(one, other)
        for one, other in combinations(cut, 2)
    ):
        return Part(lambda: step())  # without instructions: an address would not tell what moves
    return Part(step, cut)


def _bind_rows(store: Any, slot: int, begin: int, end: int) -> Step:
    """Return the step that computes these rows of a node's value."""
    op, found, parents = store.ops[slot], store.specs[slot], store.scheduler.topology.parents[slot]
    rule = _row_rule(store, slot)
    assert rule is not None
    assert found is not None
    inputs = [store.data[parent] for parent in parents]
    inputs = [one[begin:end] if kind is CUT else one for kind, one in zip(rule, inputs)]
    out = store.data[slot][begin:end]
    binder = find_binder(op.name, found.device, store.registers is not None)
    return store._bind_inputs(binder, op, found, parents, inputs, out, store.attrs[slot])
