"""Sets of leaves, ``Var.set`` and ``Graph.set``: on a fast path where only numbers change, else all or none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Never

import numpy as np

from reactgrad._errors import DeviceError, DTypeError, ImplicitValueError, SetError
from reactgrad.backend import (
    Spec,
    device_of,
    lasts,
    own_copy,
    own_object,
    read_value,
    spec,
)
from reactgrad.change import _shape_check
from reactgrad.change._make_way import respec
from reactgrad.core._arguments import own_each
from reactgrad.core._handles import handle, tidy
from reactgrad.core._held import announce
from reactgrad.core._notes import former_leaves, note
from reactgrad.core._observers import Sets
from reactgrad.core._read_together import FEW
from reactgrad.nodes._cutoff import unchanged
from reactgrad.nodes._handle import Handle
from reactgrad.nodes._op import CONST, INPUT, MODE, PARAM, Leaf
from reactgrad.scheduler import Leaves, add_note, is_interrupt, safe_repr
from reactgrad.values._columns import MISSING, frozen_copy
from reactgrad.values._fitting import (
    _castable,
    cast,
    check_pattern,
    fits_pattern,
    read_as,
    read_number,
)
from reactgrad.values._quiet import quietly

if TYPE_CHECKING:
    from reactgrad.core._core import Core

Ready = tuple[Spec | None, Any]  # spec and value, checked


def write_together(graph: Core, values: Mapping[Any, Any]) -> bool:
    """Set leaves that one ``set`` has set together before.

    Return ``False``, with nothing done, where that does not apply.
    """
    host, scheduler = graph._host, graph._scheduler
    if scheduler.notes or scheduler.computing or graph._observers.calling is not None:
        return False
    # First, so that the handle of a dead node is not mistaken for a new one at the same address.
    tidy(graph)
    first, given = next(iter(values)), list(values.values())
    together = host.together.get(id(first))
    if host.dropped or together is None or not together.takes(host, values, given):
        return False
    slots = together.leaves.slots
    try:
        # Marks before values: readers without the lock must see too much stale, never too little.
        scheduler.changed_again(together.leaves)
        host.overwrite(together.members)
        together.write(host, given)
    except BaseException:  # without a call, see `Host.finish_writes`
        host.cut_slots = slots
        host.cut_values = given
        graph._lock.acquire = graph._lock.mending
        take_back(host, slots)
        raise
    if graph._observed:
        announce(graph, slots)
    return True


def write_plainly(
    graph: Core, slots: Sequence[int], values: Collection[Any], leaves: Leaves | None = None
) -> bool:
    """Set leaves where neither shape nor dtype changes and no block is open.

    Return ``False``, with nothing done, where that does not apply. `leaves` are the slots, where they are set
    together again and again.
    """
    if graph._noted or graph._computing or graph._edits or graph._observers.calling is not None:
        return False
    host = graph._host
    members = set(slots) if leaves is None else leaves.slots
    if len(members) < len(slots) or not host.plain_writes(slots, values):
        return False
    data = host.data
    try:
        if leaves is None:
            graph._scheduler.changed_together(tuple(slots))
        else:
            graph._scheduler.changed_again(leaves)
        host.overwrite(members)
        for slot, value in zip(slots, values):
            buffer = data[slot]
            if type(buffer) is np.ndarray:
                buffer[...] = value
            else:
                host.write_plainly(slot, value)
    except BaseException:  # without a call, see `Host.finish_writes`
        host.cut_slots = slots
        host.cut_values = values
        graph._lock.acquire = graph._lock.mending
        take_back(host, slots)
        raise
    if graph._observed:
        announce(graph, slots)
    return True


def write_one_plainly(graph: Core, slot: int, value: Any, adopt: bool) -> bool:
    """Set one leaf as ``write_plainly`` does, for ``Var.set``.

    Takes the lock, and returns ``False`` if it is not free.
    """
    lock = graph._lock
    if not lock.acquire(False):
        return False
    try:
        host, one, given = graph._host, (slot,), (value,)
        if (
            graph._noted
            or graph._computing
            or graph._edits
            or lock.gates  # a gate is open while an observer is called, too
            or not host.plain_write(slot, value)
        ):
            return False
        found = host.specs[slot]
        try:
            graph._scheduler.changed(slot)
            if not adopt or found is None or not host.adopt(slot, found, value):
                host.write_plainly(slot, value)
        except BaseException:  # without a call, see `Host.finish_writes`
            host.cut_slots = one
            host.cut_values = given
            lock.acquire = lock.mending
            take_back(host, one)
            raise
        if graph._observed:
            announce(graph, one)
        return True
    finally:
        lock.release()


def take_back(host: Any, slots: Collection[int]) -> None:
    """Let the next read of these leaves, which needs no lock where a value was handed out, mend first."""
    for slot in slots:
        host.handed.pop(slot, None)


def set_many(graph: Core, values: Sequence[tuple[int, Any]], *, adopt: bool = False) -> None:
    """Set leaves to values of any kind, all of them or none."""
    graph._scheduler.check_idle()
    _check_once(graph, [slot for slot, _ in values])
    if graph._observers.calling is not None and not graph._noted:
        _queue_sets(graph, values)
        return
    ready: list[tuple[int, Spec | None, Any]] = []
    for slot, value in values:
        found, new = read_set(graph, slot, value)
        if not _cut_off(graph, slot, found, new):
            ready.append((slot, found, new if found or adopt else own_object(new)))
    if not ready:
        return
    specs = graph._host.specs
    reshaped = {slot: found for slot, found, _ in ready if found is not specs[slot]}
    if (reshaped or graph._edits) and _wait(graph, ready):
        return
    former = former_leaves(graph, [slot for slot, _, _ in ready])
    host = graph._host
    if reshaped:
        beside = {slot: host.found(slot) for slot, _, _ in ready if slot not in reshaped}
        respec(graph, reshaped, partial(write_new, graph, ready, beside, former, adopt))
    else:
        slots, news = [slot for slot, _, _ in ready], [new for _, _, new in ready]
        try:
            _write(graph, ready, former, adopt)
        except BaseException:  # without a call, see `Host.finish_writes`
            host.cut_slots = slots
            host.cut_values = news
            graph._lock.acquire = graph._lock.mending
            take_back(host, slots)
            raise
    if graph._observed:
        announce(graph, [slot for slot, _, _ in ready])


def _wait(graph: Core, ready: list[tuple[int, Spec | None, Any]]) -> bool:
    """Hand sets to the block of edits of this task, if it is to make them with its edits."""
    block = next((one for one in reversed(graph._edits) if one.is_here()), None)
    return block is not None and block.wait(ready)


def write_new(
    graph: Core,
    ready: Sequence[tuple[int, Spec | None, Any]],
    beside: Mapping[int, Any],
    former: Mapping[int, Any],
    adopt: bool,
    counted: Collection[int],
    undone_by: Callable[[Callable[[], object]], object],
) -> None:
    """Write leaves of which some have new specs, the others into new memory, too, so that it can be undone."""
    undone_by(partial(_give_back, graph, beside))
    for slot in beside:
        graph._host.discard(slot)
    _write(graph, ready, former, adopt, counted)


def _give_back(graph: Core, values: Mapping[int, Any]) -> None:
    """Restore values of leaves that were discarded, or replaced since."""
    for slot, value in values.items():
        graph._host.give_back(slot, value)
        graph._host.moved(slot)


def _write(
    graph: Core,
    ready: Sequence[tuple[int, Spec | None, Any]],
    former: Mapping[int, Any],
    adopt: bool,
    counted: Collection[int] = (),
) -> None:
    """Write leaves whose specs fit the values by now.

    For those `counted` the scheduler knows the change already.
    """
    for slot, before in former.items():
        note(graph, "leaf", slot, before)
    mark, write = graph._scheduler.staleness.mark, graph._host.write_leaf
    # First the leaves without a value: those count as set once the value is written.
    for slot, found, new in [one for one in ready if mark[one[0]]]:
        write(slot, found, new, adopt=adopt)
    later = [one for one in ready if not mark[one[0]]]
    graph._scheduler.changed_together(tuple([slot for slot, _, _ in ready if slot not in counted]))
    for slot, found, new in later:
        write(slot, found, new, adopt=adopt)


def _check_once(graph: Core, slots: Sequence[int]) -> None:
    """Raise if one leaf was given two values."""
    if len(set(slots)) == len(slots):
        return
    twice = next(slot for i, slot in enumerate(slots) if slot in slots[:i])
    name = graph._host.label(twice)
    raise SetError(
        f"g.set was given two values for {name!r}: by its Var and by its name. Write it once."
    )


def _queue_sets(graph: Core, values: Sequence[tuple[int, Any]]) -> None:
    """Check the sets that an observer asks for, and queue them until its callback has returned."""
    observers, specs = graph._observers, graph._host.specs
    ready = [(slot, *read_set(graph, slot, value)) for slot, value in values]
    reshaped = {slot: found for slot, found, _ in ready if found is not specs[slot]}
    sets: Sets = []
    for slot, found, new in ready:
        if found is not None and found.weak is None:
            new = own_copy(found, new)
            if not found.shape:
                new = device_of(found.device).reshape(new, ())
        elif found is None:
            new = own_object(new)
        sets.append((handle(graph, slot), new))
    if reshaped:
        tidy(graph)
        _shape_check.check(
            graph, reshaped, doubtful={}
        )  # errors behind gradients show when these follow
    assert observers.calling is not None
    graph._followed[observers] = None
    observers.queue.append((observers.calling, sets))


def make_waiting_sets(graph: Core) -> tuple[Exception, ...]:
    """Make the sets that observers have asked for, in order. Return the errors of those that fit no
    more.
    """
    observers = graph._observers
    calling, observers.calling = observers.calling, None  # else they would be queued again
    problems: list[Exception] = []
    try:
        while observers.queue:
            observer, sets = observers.queue.pop(0)
            # A Var may have been removed since: its graph is a ``Grave``.
            values = {var._slot: value for var, value in sets if var._graph is graph}
            try:
                set_many(graph, list(values.items()))
            except Exception as error:  # it fitted when it was asked for
                if is_interrupt(error):
                    raise
                observer.blame(error)
                problems.append(error)
        graph._followed.pop(observers, None)
        return tuple(problems)
    finally:
        observers.calling = calling
        problems.clear()  # the tracebacks hold this frame


def _cut_off(graph: Core, slot: int, found: Spec | None, new: Any) -> bool:
    """Return whether the cutoff of a leaf calls the new value unchanged."""
    rule = graph._host.cutoffs.get(slot)
    if rule is None or graph._host.data[slot] is MISSING:
        return False
    if found is not None and found.weak is None and found.kind == "cpu":
        new = np.asarray(new, found.dtype)[()]
    old = graph._host.hand_out(slot)
    if old is new and found is None and not lasts(new):
        return False  # of this object there is no copy: it may have changed in place
    try:
        return unchanged(rule, old, new)
    except Exception as error:  # no run adds the note about the node
        add_note(error, graph._host.explain(slot))
        raise


def set_cutoff(graph: Core, slot: int, rule: Any) -> None:
    """Set or remove the cutoff of a node, and mark what depends on the answer."""
    graph._scheduler.attend()
    if rule is None:
        lost = graph._host.cutoffs.pop(slot, None) is not None
        if lost and not graph._scheduler.leaf[slot]:
            graph._host.former_cutoffs[slot] = graph._scheduler.version(slot)
    else:
        graph._host.own_view(slot)
        if not graph._scheduler.version(slot):  # a bound buffer was never written
            graph._host.discard(slot)
        graph._host.cutoffs[slot] = rule
    graph._host.moved(slot)
    if not graph._scheduler.leaf[slot]:
        graph._scheduler.cutoff_changed(slot, rule is not None)
    if slot in graph._scheduler.errors:  # the cutoff may be what raised
        graph._scheduler.invalidate(slot)


def read_set(graph: Core, slot: int, value: Any) -> tuple[Spec | None, Any]:
    """Return the spec and the value that a leaf would have after a set, checked and in the leaf's
    dtype.
    """
    host = graph._host
    kind, old = host.ops[slot], host.specs[slot]
    if host.plain_write(slot, value):
        return old, value
    if (
        type(value) is np.ndarray
        and (kind is INPUT or kind is PARAM)
        and old is not None
        and value.dtype is old.dtype
        and old.kind == "cpu"
        and old.weak is None
    ):
        # Another shape: no label is needed for messages, which would take as long as all the rest.
        found = spec(value.shape, old.dtype)
        pattern = host.patterns.get(slot)
        if pattern is None or fits_pattern(pattern, found):
            return found, value
    name = host.label(slot)
    if kind is CONST:
        raise SetError(
            f"{name!r} is a constant and cannot be set. Make it an input, g.input(value), if "
            "it changes."
        )
    if not isinstance(kind, Leaf):
        raise SetError(
            f"{name!r} is computed by {host.describe_op(slot)} and cannot be set: its value "
            "follows its parents'. Set one of the inputs it depends on, or let it have a given value "
            f"with {name}.pin(value), in a what-if with w[{name}].pin(value)."
        )
    what = f"{kind.name} {name!r}"
    if kind is MODE and type(value) is not bool:
        raise SetError(f"{what} was given {safe_repr(value):.60}: write g.train() or g.eval().")
    if isinstance(value, Handle):
        raise ImplicitValueError(
            f"{what} was given a Var. Write {name}.set(v.value) to copy its present value."
        )
    if host.data[slot] is MISSING and old is None:
        found, new = read_as(what, value, host.dtypes.get(slot))
        if found is not None and found.weak is None and found.device == "cpu" != graph.device:
            found = spec(found.shape, found.dtype, graph.device)
        return found, new
    pattern = host.patterns.get(slot)
    if old is not None and old.weak is not None and pattern is None:
        found, new = read_number(what, old.weak, value)
    else:
        found, new = read_value(value, what)
    if old is None:  # an input that holds any object
        return None, new if found is None or found.weak is not None else frozen_copy(new)
    if found is None:
        raise DTypeError(
            f"{what} holds {old!r} and was given {type(value).__name__} ({safe_repr(value):.60}), "
            "which is no number or array. Make another input for such objects."
        )
    if old.weak is not None and pattern is None:
        return found, new
    if found.weak is int and abs(new) > 1 << 1023 and old.dtype.kind in "fc":
        raise DTypeError(
            f"{what} holds {old.dtype}, into which an integer of that size does not fit."
        )
    if not np.can_cast(_castable(found, new), old.dtype, "same_kind"):
        raise DTypeError(
            f"{what} holds {old.dtype} and was given {found!r}: that would lose what the dtype "
            f"cannot hold. Convert it first, value.astype('{old.dtype}'), or make the "
            f"{kind.name} with dtype='{found.dtype}'."
        )
    if old.dtype.kind in "iu" and found.kind == "cpu":
        new = cast(what, new, old.dtype)
    if found.device not in (old.device, "cpu"):
        raise DeviceError(
            f"{what} lives on {old.device} and was given a value on {found.device}. Make a leaf of the "
            f"value and move it by a node, g.input(value).to({old.device!r}), or make the {kind.name} "
            f"with device={found.device!r}."
        )
    if old.kind != "cpu" and (found.kind != "cpu" or slot in graph._host.cutoffs):
        new = device_of(old.device).asarray(new, old.dtype)
    elif found.dtype != old.dtype:
        # Cast here, where nothing has changed yet; an overflow to infinity is no error.
        new = quietly(np.asarray(new).astype, old.dtype)
    found = spec(found.shape, old.dtype, old.device)
    if pattern is not None:
        check_pattern(what, pattern, found)
    return found, new


def set_values(
    graph: Core, /, values: Mapping[Any, Any] | None = None, *more: Never, **names: Never
) -> None:
    """Set several leaves at once: all of them, or none if one value does not fit.

    Parameters
    ----------
    values : mapping from Var or name to array_like
        New values, copied. Shapes are checked together.

    Raises
    ------
    SetError, ShapeError, DTypeError
        As ``Var.set``; nothing has changed then.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> a, b = g.input(1.0), g.input(2.0)
    >>> g.set({a: 3.0, b: 4.0})
    >>> (a + b).value
    np.float64(7.0)
    """
    with graph._lock:
        if (type(values) is not dict and not isinstance(values, Mapping)) or more or names:
            raise no_mapping("g.set", values, more, names)
        many = len(values) > FEW
        if many and graph._host.together and write_together(graph, values):
            return
        slots, given = own_each(graph, values, "set"), list(values.values())
        if graph._detached_var in map(type, values):
            next(var for var in values if type(var) is graph._detached_var).set(
                None
            )  # says why not
        if not slots or not write_plainly(graph, slots, given):
            set_many(graph, [*zip(slots, given, strict=True)])
        elif many:
            graph._host.remember(values, slots)


def no_mapping(call: str, values: Any, more: Sequence[Any], names: Mapping[str, Any]) -> DTypeError:
    """Return the error for new values of leaves that are not given by one mapping."""
    if names:
        name, value = next(iter(names.items()))
        written, key, new = f"{name}={safe_repr(value):.60}", repr(name), safe_repr(value)
        which = f"{call}({{{name}: {new:.60}}}) with the Var, or {call}({{{key}: {new:.60}}}) with its name"
    elif more and isinstance(values, Handle | str):
        written = f"{getattr(values, 'name', values)}, {safe_repr(more[0]):.60}"
        key = values.name if isinstance(values, Handle) else repr(values)
        which = f"{call}({{{key}: {safe_repr(more[0]):.60}}})"
    else:
        written = type(values).__name__ if values is not None or more else ""
        which = f"{call}({{x: 1.0, y: 2.0}})"
    one = ", or x.set(value) for one leaf" if call == "g.set" else ""
    return DTypeError(
        f"{call}({written}): new values are one mapping from leaves. Write {which}{one}."
    )


def set_value(var: Handle, /, value: Any, copy: bool = True) -> None:
    """Replace the value of an input or param.

    Parameters
    ----------
    value : array_like or object
        Cast to the leaf's dtype if nothing but precision can be lost. A leaf that was made with a
        Python float holds floats: ``x.set(2)`` stores 2.0. One made with an int holds ints, and
        floats from the first float that is set.
        Another shape is checked against all that depends on the leaf before anything changes. What
        followed from the last shapes, four to sixteen of them, gradients and plans included, is kept
        for when they come again, until nodes are built, edited, or listed (``len(g)``, ``g.nodes``,
        a picture).
    copy : bool
        ``False`` adopts a contiguous array of the leaf's dtype that owns its memory, which
        becomes read-only, instead of copying it; others are copied. Views of it that were made
        before remain writable, which NumPy cannot change: write to none of them.

    Raises
    ------
    SetError
        If this is a constant or a computed node.
    ShapeError, DTypeError
        If the value does not fit the leaf or what depends on it; nothing has changed then.
    BusyError
        If a node of the graph is being computed.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input([1.0, 2.0])
    >>> x.set([3.0, 4.0])
    >>> x.value, x.value_version
    (array([3., 4.]), 2)
    """
    if type(copy) is not bool:
        raise DTypeError(
            f"{var.label}.set(..., {safe_repr(copy):.60}): a leaf is set to one value; copy= is True or False."
        )
    graph = var._graph
    if not write_one_plainly(graph, var._slot, value, not copy):
        with graph._lock:
            set_many(graph, ((var._slot, value),), adopt=not copy)
