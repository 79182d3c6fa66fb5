"""Blocks in which the same op on the same parents returns the node that exists already.

A loop that writes its model anew at every step then builds it once. A node computes its op of its
parents and nothing else, so two nodes of the same definition always have the same value. Only a
change of one of them could tell them apart. So a node that a caller has added something to (a hook,
a cutoff, a pin) is not returned to others.

Invariant: an entry of ``Reuse`` is only a hint. Each node is compared with what is asked for before it
is returned, so edits, rollbacks and removals need not know of this file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from reactgrad._errors import BlockError
from reactgrad.core._definition import NOTHING_CLOSED, is_defined
from reactgrad.core._handles import handle
from reactgrad.flow._checkpoint import in_checkpoint
from reactgrad.flow._mode import is_grad_enabled
from reactgrad.flow._saved import hooks_here, open_hooks
from reactgrad.nodes._lifted import Lifted, as_itself
from reactgrad.nodes._op import Attrs, Op, Output
from reactgrad.ops import ALIAS, DETACH

if TYPE_CHECKING:
    from reactgrad.core._core import Core
    from reactgrad.nodes._handle import Anchor, Handle

# Entries that the last so many blocks of a graph have built or used are kept, so that loops may
# alternate, for example between training and evaluation.
ROUNDS = 4

# Ops whose purpose is a node of its own.
_OWN = (ALIAS, DETACH)

# The open blocks of this task, each with the round in which it began. A task may outlive them.
_open: ContextVar[tuple[tuple[Reuse, int], ...]] = ContextVar("reactgrad_reuse", default=())


class _Anchored(NamedTuple):
    """A node inside of a checkpoint, kept alive without a handle, which would keep its value."""

    slot: int
    serial: int
    anchor: Anchor

    def var(self, graph: Core) -> Handle | None:
        """Return a handle of the node, ``None`` if the node is gone."""
        there = graph._scheduler.topology.serial[self.slot] == self.serial
        return handle(graph, self.slot) if there and self.slot not in graph._host.removed else None


class Reuse:
    """The nodes of one graph that its reuse blocks have built or used, in order of their last use."""

    __slots__ = ("_known", "_round", "blocks")

    def __init__(self) -> None:
        self.blocks: list[int] = []  # open blocks of all threads, by the round in which each began
        self._round = 0
        # By key: the node, the round of its last use, references that keep the nodes of its outputs,
        # and its attributes by identity, since an equal object may be another one.
        self._known: dict[Any, tuple[Handle | _Anchored, int, list[Any], Attrs]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def key(
        self,
        graph: Core,
        op: Op | Lifted,
        attrs: Attrs,
        slots: Sequence[int],
        detached: Sequence[int],
        cutoff: Any = None,
    ) -> Any:
        """Return the key of such a node; ``None`` if it must be built anew in any case."""
        for one, began in _open.get():
            if one is self and began in self.blocks:
                break
        else:
            return None
        if op in _OWN or graph._programs.building is not None:
            return None
        if open_hooks and hooks_here() is not None:
            return None
        if graph._subgraphs is not None and graph._subgraphs.under_way:  # kept as a whole
            return None
        named = op if isinstance(op, Op) else op.definition()
        if named is None:
            return None
        closed = None
        if is_grad_enabled(graph):
            closed = frozenset(detached) if detached else NOTHING_CLOSED
        # 1, 1.0 and True are equal but different attributes: `repr` tells them apart.
        named_attrs = (attrs, repr(attrs)) if attrs else ()
        rule = None if cutoff is None else as_itself(cutoff)
        key = (named, tuple(slots), closed, named_attrs, in_checkpoint(), rule)
        if attrs or named is not op:
            try:
                hash(key)
            except TypeError:  # attributes that hold arrays, or a function that has no hash
                return None
        return key

    def find(self, graph: Core, key: Any) -> Handle | None:
        """Return the node that exists already, ``None`` if there is none, or if ``key`` is ``None``."""
        # Taken out, and put back as the last one if it is right: the dict is in order of last use.
        known = self._known.pop(key, None)
        if known is None:
            return None
        held, _, others, attrs = known
        var = held.var(graph) if isinstance(held, _Anchored) else held
        if var is None or not _intact(graph, var, key, attrs):
            return None
        self._known[key] = (held, self._round, others, attrs)
        return var

    def add(self, graph: Core, key: Any, var: Handle, outputs: Sequence[Handle] = ()) -> None:
        """Enter a node that was built, with those of its outputs; do nothing if ``key`` is ``None``."""
        if key is None:
            return
        held: Handle | _Anchored = var
        others: list[Any] = [*outputs]
        if in_checkpoint():  # anchored, since a handle would keep the value
            slot, serial = var._slot, graph._scheduler.topology.serial[var._slot]
            held = _Anchored(slot, serial, graph._host.anchor(slot))
            others = [graph._host.anchor(output._slot) for output in outputs]
        self._known[key] = (held, self._round, others, graph._host.attrs[var._slot])

    def make_way(self, graph: Core, slots: Iterable[int]) -> bool:
        """Drop these nodes, and nodes computed from them. Return whether there were any.

        A node that only this table keeps is then released, and blocks no change.
        """
        cone = graph._scheduler.topology.descendants(slots)
        going = [
            key
            for key, (held, *_) in self._known.items()
            if (held.slot if isinstance(held, _Anchored) else held._slot) in cone
        ]
        for key in going:
            del self._known[key]
        return bool(going)

    def begin(self) -> int:
        """Begin a block. Return its number, which ``end`` needs."""
        self._round += 1
        self.blocks.append(self._round)
        return self._round

    def end(self, began: int) -> None:
        """End a block: drop nodes that were used neither in an open block nor in the last rounds."""
        self.blocks.remove(began)
        known = self._known
        last = min([self._round - ROUNDS, *[began - 1 for began in self.blocks]])
        while known:
            key = next(iter(known))
            if known[key][1] > last:  # all that follow were used later
                break
            del known[key]


def _intact(graph: Core, var: Handle, key: Any, attrs: Attrs) -> bool:
    """Return whether a node is still what it was built as, and nothing was added to it."""
    if var._graph is not graph:  # it was removed
        return False
    named, slots, closed, _, inside, cutoff = key
    host, slot = graph._host, var._slot
    op = host.ops[slot]
    several = isinstance(op, Lifted) and op.outputs is not None
    shown = outputs_of(graph, slot) if several else (slot,)  # the nodes that callers were given
    if cutoff is not None or any(host.addable(host)):
        added = host.added((slot, *shown))
        rules = {at: as_itself(rule) for at, rule in added.pop("cutoffs", {}).items()}
        if added or rules != ({} if cutoff is None else dict.fromkeys(shown, cutoff)):
            return False
    # Outputs that are made again would have no cutoff.
    if several and cutoff is not None and len(shown) < len(op.outputs or ()):
        return False
    if slot in host.transient and not (inside and host.transient[slot].recomputed):
        return False
    return (op is named or (isinstance(op, Lifted) and op.definition() == named)) and is_defined(
        graph, slot, op, attrs, slots, closed
    )


def outputs_of(graph: Core, slot: int) -> list[int]:
    """Return the nodes of a function's outputs that still exist."""
    ops = graph._host.ops
    children = graph._scheduler.topology.children[slot]
    return [child for child in children if isinstance(ops[child], Output)]


class ReuseBlock:
    """A block of ``Graph.reuse``; may be nested and entered again."""

    __slots__ = ("_graph",)

    def __init__(self, graph: Core) -> None:
        self._graph = graph

    def __enter__(self) -> None:
        graph = self._graph
        with graph._lock:
            if graph._reuse is None:
                graph._reuse = Reuse()
            _open.set((*_open.get(), (graph._reuse, graph._reuse.begin())))

    def __exit__(self, *exc: object) -> None:
        graph = self._graph
        with graph._lock:
            blocks = [*_open.get()]
            found = [one for one in blocks if one[0] is graph._reuse]
            if not found:
                raise BlockError(
                    "this g.reuse() block is not open here: it was left before, or entered in another thread or "
                    "task, and can only be left there."
                )
            reuse, began = found[-1]
            blocks.remove((reuse, began))
            _open.set(tuple(blocks))
            reuse.end(began)


def built_anew(build: Callable[[Any], Any], parent: Any) -> Any:
    """Return what ``build`` makes of ``parent``, without nodes of open reuse blocks."""
    token = _open.set(())
    try:
        return build(parent)
    finally:
        _open.reset(token)


def reuse(graph: Core, /) -> ReuseBlock:
    """Return a block in which the same op on the same operands returns the node that exists already.

    This is for loops that write their model anew at every step: the second step, and its ``backward``,
    build nothing, and the graph does not grow. Inside the block, in its thread, an op with the same
    attributes on the same nodes, detached in the same places and in the same grad mode, returns the
    node that the same call has returned in this block or in one of the last four blocks of the graph,
    whose nodes are kept for that. Such nodes are shared: to edit, hook or pin one changes it for all
    code that built it. A node that was given a hook, a cutoff, a pin, ``retain_grad`` or ``keep`` is
    not returned to other calls any more; they build a new one.

    Leaves are always new, and so are nodes built on new leaves: make inputs before the loop and set
    them in it. Python numbers do not count as leaves here. An array that is written into an expression
    does, so make it a const before the loop. Never shared are: nodes of indices that hold arrays,
    nodes of functions that were given a list or an array, nodes of ``detach_node``, nodes that a
    subgraph or ``insert`` builds, and the nodes of gradients. A node that only these blocks keep does
    not block any change: its name is free, and its shape does not matter.

    Returns
    -------
    context manager

    Raises
    ------
    BlockError
        If the block is left in another thread or task than it was entered in.

    See Also
    --------
    subgraph : Does the same for functions that are called with other nodes each time.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x, w = g.input([1.0, 2.0]), g.param(0.5)
    >>> for batch in ([1.0, 2.0], [3.0, 4.0], [5.0, 6.0]):
    ...     x.set(batch)
    ...     with g.reuse():
    ...         loss = ((x * w) ** 2).sum()
    ...         run = loss.backward()
    ...     print(len(g), loss.value, w.grad)
    11 1.25 5.0
    11 6.25 30.0
    11 15.25 91.0
    """
    return ReuseBlock(graph)
