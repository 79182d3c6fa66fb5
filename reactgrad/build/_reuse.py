"""Blocks in which the same op on the same parents gives the node that is there already.

A loop that writes its model anew at every step then builds it once. A node computes nothing but its
op of its parents, so two nodes of the same definition have the same value at any time; that they
are one node shows only to who changes it. A node that somebody has added something to (a hook, a
cutoff, a pin) is therefore not given to others.

Invariant: what ``Reuse`` says of a node is only where to look; each node is compared with what is
asked for before it is given out, so edits, rollbacks and removals need not know of this file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from reactgrad._errors import BlockError
from reactgrad.core._handles import handle
from reactgrad.flow import hooks_here, in_checkpoint, is_grad_enabled, open_hooks
from reactgrad.nodes._lifted import Lifted, as_itself
from reactgrad.nodes._op import Attrs, Op
from reactgrad.nodes._output import Output
from reactgrad.ops import ALIAS, DETACH

if TYPE_CHECKING:
    from reactgrad.core._core import Core
    from reactgrad.nodes._handle import Anchor, Handle

# What the last so many blocks of a graph have built or used is kept, so that loops may alternate,
# as between training and evaluation.
ROUNDS = 4

_NO_EDGES: frozenset[int] = frozenset()

# Nodes that are asked for to be nodes of their own.
_OWN = (ALIAS, DETACH)

# The blocks around, each with the round in which it began; a task may outlive those it was made in.
_open: ContextVar[tuple[tuple[Reuse, int], ...]] = ContextVar("reactgrad_reuse", default=())


class _Anchored(NamedTuple):
    """A node of a checkpoint, kept without a handle."""

    slot: int
    serial: int
    anchor: Anchor

    def var(self, graph: Core) -> Handle | None:
        """A handle to it, if it is there."""
        there = graph._scheduler.topology.serial[self.slot] == self.serial
        return handle(graph, self.slot) if there and self.slot not in graph._host.removed else None


class Reuse:
    """The nodes of one graph that its reuse blocks have built or used, the latest used last."""

    __slots__ = ("_known", "_round", "blocks")

    def __init__(self) -> None:
        self.blocks: list[int] = []  # those that are open, in all threads: the round each began
        self._round = 0
        # With the round of the last use, what keeps the nodes of its outputs, and the attributes as they
        # were: others may be equal to them.
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
        """What such a node is found by; ``None``: it is built anew in any case."""
        for one, began in _open.get():
            if one is self and began in self.blocks:
                break
        else:
            return None
        if op in _OWN or graph._programs.building is not None:
            return None
        if open_hooks and hooks_here() is not None:
            return None
        if graph._subgraphs is not None and graph._subgraphs.under_way:  # which is kept whole
            return None
        named = op if isinstance(op, Op) else op.definition()
        if named is None:
            return None
        closed = None
        if is_grad_enabled(graph):
            closed = frozenset(detached) if detached else _NO_EDGES
        # 1, 1.0 and True are equal, and not the same attribute.
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
        """The node that is there already; none for a key of ``None``."""
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
        """A node was built, and those of its outputs; nothing for a key of ``None``."""
        if key is None:
            return
        held: Handle | _Anchored = var
        others: list[Any] = [*outputs]
        if in_checkpoint():  # a handle would keep its value
            slot, serial = var._slot, graph._scheduler.topology.serial[var._slot]
            held = _Anchored(slot, serial, graph._host.anchor(slot))
            others = [graph._host.anchor(output._slot) for output in outputs]
        self._known[key] = (held, self._round, others, graph._host.attrs[var._slot])

    def make_way(self, graph: Core, slots: Iterable[int]) -> bool:
        """Forget what is computed from these nodes, and themselves: they shall refuse nothing if only this
        keeps them. Whether there were any."""
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
        """A block begins; returns what ``end`` is to be given."""
        self._round += 1
        self.blocks.append(self._round)
        return self._round

    def end(self, began: int) -> None:
        """A block ends: forget what was used neither in one that is open nor lately."""
        self.blocks.remove(began)
        known = self._known
        last = min([self._round - ROUNDS, *[began - 1 for began in self.blocks]])
        while known:
            key = next(iter(known))
            if known[key][1] > last:
                break
            del known[key]


def _intact(graph: Core, var: Handle, key: Any, attrs: Attrs) -> bool:
    """Whether a node is still what it was built as, and nothing was added to it."""
    if var._graph is not graph:  # it was removed
        return False
    named, slots, closed, _, inside, cutoff = key
    host, slot = graph._host, var._slot
    op = host.ops[slot]
    several = isinstance(op, Lifted) and op.outputs is not None
    shown = outputs_of(graph, slot) if several else (slot,)  # what callers were given
    for at in (slot, *shown) if several else shown:
        if at in host.hooks or at in host.pins or at in host.retained or at in host.kept:
            return False
    for at in shown:
        rule = host.cutoffs.get(at)
        if (rule is not None or cutoff is not None) and as_itself(rule) != cutoff:
            return False
        if at in host.former_cutoffs:  # which may have kept a value of before
            return False
    if (
        several and cutoff is not None and len(shown) < len(op.outputs or ())
    ):  # others would have none
        return False
    if slot in host.transient and not (inside and host.transient[slot].recomputed):
        return False
    operands = host.branches[slot] if slot in host.branches else graph._scheduler.operands(slot)
    return (
        (op is named or (isinstance(op, Lifted) and op.definition() == named))
        and operands == slots
        and host.closed.get(slot, _NO_EDGES) == closed
        and host.attrs[slot] is attrs
    )


def outputs_of(graph: Core, slot: int) -> list[int]:
    """The nodes of those outputs of a function that somebody holds."""
    ops = graph._host.ops
    children = graph._scheduler.topology.children[slot]
    return [child for child in children if isinstance(ops[child], Output)]


class ReuseBlock:
    """What ``Graph.reuse`` returns; may be nested and entered again."""

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
    """What `build` makes of `parent`, without nodes that are there already."""
    token = _open.set(())
    try:
        return build(parent)
    finally:
        _open.reset(token)


def reuse(graph: Core) -> ReuseBlock:
    """Let the same op on the same operands give the node that is there already, in a block.

    For loops that write their model anew at every step: the second step builds nothing, and so
    does its ``backward``, and the graph does not grow. In the block of one thread, an op with
    the same attributes on the same nodes, detached in the same places and in the same grad
    mode, returns the node that the same call has returned in this block or in one of the last
    four of the graph, which are kept for that. Such nodes are shared: to edit, hook or pin one
    means all who built it; one that was given a hook, a cutoff, a pin, ``retain_grad`` or
    ``keep`` is not given to others any more, and is built anew.

    Leaves are always new, and what is built on them, too: make inputs before the loop and set
    them in it. Python numbers are no leaves in this sense; an array that is written into an
    expression is one, so make it a const before the loop. Nodes of indices that hold arrays, of
    functions that were given a list or an array, and of ``detach_node``, what a subgraph or
    ``insert`` builds, and what gradients are built of, are never shared. What nobody but these blocks
    keeps any more refuses nothing: its name is free, and its shapes are nobody's.

    Returns
    -------
    context manager

    Raises
    ------
    BlockError
        If the block is left in another thread or task than it was entered in.

    See Also
    --------
    subgraph : Does the same for functions whose arguments are other nodes at each call.

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
