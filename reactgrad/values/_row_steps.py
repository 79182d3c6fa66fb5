"""Steps that compute some rows of a node's value.

Which nodes are computed in part, and why that gives the bits of a full run, is decided in
``reactgrad_scheduler.dirty``; which rows follow from which, in ``_row_rules``. A step for some rows is the step of
the same kernel, bound to these rows of its operands and of its result.

`store` is the storage, ``Steps``, which calls these functions and loads this module when rows are set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from reactgrad.backend import Reduction
from reactgrad.nodes._op import Op
from reactgrad.scheduler import SHARE, Rows, Step, count
from reactgrad.values._row_rules import CUT, Rule, plain, reached, rows_of_view, rule_of


def rows_of(store: Any, slot: int, changed: Sequence[Rows | None]) -> Rows | None:
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
    rows: Mapping[int, Rows],
    read: Mapping[int, Rows],
) -> tuple[list[Step], list[int]]:
    """Return the calls that compute only these rows of the nodes in ``rows``; see ``Host``."""
    calls: list[Step] = []
    first_slots: list[int] = []
    for slot, step in zip(slots, steps, strict=True):
        part = rows.get(slot)
        if part is not None:
            new = [_bind_rows(store, slot, *one) for one in part]
        elif type(step) is Reduction and slot in read:
            new = [partial(step.update, read[slot])]
            store.reductions[slot] = step
        else:
            new = [step]
        calls += new
        first_slots += [slot] * len(new)
    return calls, first_slots


def _bind_rows(store: Any, slot: int, begin: int, end: int) -> Step:
    """Return the step that computes these rows of a node's value."""
    op, found, parents = store.ops[slot], store.specs[slot], store.scheduler.topology.parents[slot]
    rule = _row_rule(store, slot)
    assert rule is not None
    assert found is not None
    inputs = [store.data[parent] for parent in parents]
    inputs = [one[begin:end] if kind is CUT else one for kind, one in zip(rule, inputs)]
    out = store.data[slot][begin:end]
    return store._bind_inputs(
        store._find_binder(op, found), op, found, parents, inputs, out, store.attrs[slot]
    )
