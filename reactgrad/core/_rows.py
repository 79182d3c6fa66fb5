"""The tables of nodes, one row each: values, handles, names, places in user code."""

from __future__ import annotations

import sys
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from reactgrad.backend import Spec
from reactgrad.core._gradients import NO_BLOCKS, GradientBlocks, Gradients
from reactgrad.nodes._handle import Anchor, HandleRef
from reactgrad.nodes._op import Attrs, Leaf, Output
from reactgrad.nodes._references import holders
from reactgrad.nodes._scope import made_name, open_scopes, path_here
from reactgrad.nodes._site import Site, in_scope, is_ours, scope_of, site_text
from reactgrad.scheduler import Column, add_note, listed, shortened
from reactgrad.values._columns import MISSING
from reactgrad.values._facts import column, table
from reactgrad.values._steps import Steps

if TYPE_CHECKING:
    from reactgrad.core._programs import Program
    from reactgrad.nodes._handle import Handle


class Pin:
    """The former operands of a pinned node, kept alive for ``unpin``."""

    __slots__ = ("fixed", "parents")

    def __init__(self, parents: list[Any], fixed: int | None) -> None:
        self.parents = parents
        self.fixed = fixed


class Rows(Steps):
    """The owner of all that a graph knows of its nodes; also the host that the scheduler asks.

    It refers to the graph only weakly, so that both are freed as soon as the last Var dies.
    """

    handles: Column[HandleRef | None] = column(None, forked=False)
    sites: Column[Site | None] = column(None)
    kept: dict[int, Handle] = table(dict, forked=False, added=True)
    name_of: dict[int, str] = table(dict)
    named: dict[str, int] = table(dict, cleared=False)
    # What pictures and messages call nodes without a name, with the slots and serials of these nodes.
    labels: dict[str, tuple[int, int]] = table(dict, cleared=False)
    # Of nodes that changed in another way than by a set or a run: the version then, and the way, for `Graph.why`.
    manners: dict[int, tuple[int, str]] = table(dict)
    closed: dict[int, frozenset[int] | None] = table(dict)  # detached edges; None: all of them
    retained: set[int] = table(set, added=True)
    spared: set[int] = table(set)  # nodes whose values the memory budget may not release
    frozen: set[int] = table(set)
    dtypes: dict[int, Any] = table(dict)  # of inputs that were declared by dtype alone
    # Constants by number: equal literals share one node.
    numbers: dict[Any, int] = table(dict, cleared=False)
    pins: dict[int, Pin] = table(dict, forked=False, added=True)
    # Nodes that were removed and whose row is still needed.
    removed: set[int] = table(set, added=True)
    twin_programs: dict[int, dict[Any, Any]] = table(dict, forked=False)
    # For nodes that choose: the nodes that gradients take as their operands; and the way back.
    branches: dict[int, tuple[int, ...]] = table(dict, forked=False)
    branch_users: dict[int, set[int]] = table(dict, forked=False)
    givers: dict[int, set[Program]] = table(dict, forked=False)  # programs that a node keeps alive
    shared: dict[int, Any] = table(dict, forked=False)  # see ``subgraphs/_shared_result``
    # Functions that the gradient of a node passes, in order; functions called after backward has
    # written its `.grad`.
    hooks: dict[int, tuple[Any, ...]] = table(dict, added=True)
    after_grad: dict[int, tuple[Any, ...]] = table(dict, forked=False)

    def __init__(self, graph: Any) -> None:
        super().__init__()
        self._graph: weakref.ref[Any] = weakref.ref(graph)  # a ``Core``, which knows these rows
        # The anchors that hold a node, each by the id of its reference; an empty dict is none.
        self.anchors: dict[int, dict[int, HandleRef]] = {}
        # Handles that have died and wait for `tidy`. A weakref callback may run between any two lines
        # and in any thread, so it only appends, which is atomic.
        self.dropped: deque[HandleRef] = deque()
        self.on_death = self.dropped.append
        # In a fork: nodes up to this serial are kept, since `fork[var]` may ask for any of them.
        self.forked_serial = 0
        self.most_labels = 4096  # before those of nodes that are gone are removed
        self.restored_serial = 0  # nodes up to this one come from a file, not from a line of code
        # The gradient program that built a node. A fork may share the dict: see `owners_to_write`.
        self.owners: dict[int, int] = {}
        self._owners_lent = False  # True while a fork has the same dict: copy it before a write
        # Another object after each backward, which writes all gradients by one assignment.
        self.gradients = Gradients({}, NO_BLOCKS)
        self.gradient_blocks = GradientBlocks()
        self.mode: int | None = None  # the leaf that holds train or eval mode; None if never used
        self._mode_anchor: Anchor | None = None

    @property
    def grads(self) -> dict[int, Any]:
        """The gradients by slot, each with an array of its own from now on."""
        if self.gradients.blocks:
            self.gradients = self.gradients.apart()
        return self.gradients.alone

    def put_gradients(self, found: Gradients) -> None:
        """Let these be the gradients from now on: in one step, wherever an error comes (rule D5)."""
        former, self.gradients = self.gradients, found
        if (former.alone or former.blocks) and not holders(former):
            self.gradients = found.at_home(former)

    def drop_grad(self, slot: int) -> None:
        """Remove the gradient of a node, if it has one."""
        if self.gradients.holds(slot):
            self.gradients = self.gradients.apart()
        self.gradients.alone.pop(slot, None)

    def replace_grad(self, slot: int) -> None:
        """Let the next ``backward`` that gives this node a gradient replace the present one."""
        now = self.gradients
        self.gradients = Gradients(now.alone, now.blocks, now.between, now.replaced | {slot})

    @property
    def limit(self) -> int | None:
        """The number of bytes that values may take; ``None``: no limit."""
        return None if self.policy is None else self.policy.limit

    def add_node(
        self, slot: int, op: Any, attrs: Attrs, found: Spec | None, value: Any, site: Site | None
    ) -> None:
        """Fill the rows of a new node."""
        self.ops[slot] = op
        if attrs:
            self.attrs[slot] = attrs
        self.specs[slot] = found
        if value is not MISSING:
            self.data[slot] = value
            self.footprint.add(value)
            if self.policy is not None:
                self.policy.given(slot)
        self.sites[slot] = self.in_scope(site) if open_scopes else site

    def in_scope(self, site: Site | None) -> Site | None:
        """Return the place of a node that is built now, with the open scope. Gradients have no scope."""
        graph = self._graph()
        path = "" if graph is None or graph._programs.building is not None else path_here(graph)
        return in_scope(site, path) if path else site

    def own(self, slot: int, program: int) -> None:
        """Note that a gradient program has built this node."""
        self.owners_to_write()[slot] = program

    def lend_owners(self, twin: Rows) -> None:
        """Share ``owners`` with a fork until one of the two writes to it."""
        twin.owners = self.owners
        self._owners_lent = twin._owners_lent = True

    def owners_to_write(self) -> dict[int, int]:
        if self._owners_lent:
            self.owners, self._owners_lent = self.owners.copy(), False
        return self.owners

    def anchor(self, slot: int) -> Anchor:
        """Return an object that keeps the node alive as long as the object lives."""
        anchor = Anchor()
        (ref := HandleRef(anchor, self.on_death)).slot = slot
        self.anchors.setdefault(slot, {})[id(ref)] = ref
        return anchor

    def keep_mode(self, slot: int) -> None:
        """Make `slot` the leaf that holds the mode, and keep it as long as the graph."""
        self.mode = slot
        self._mode_anchor = self.anchor(slot)

    # --- as the scheduler's host ---------------------------------------------------------------

    def holds(self, slot: int) -> bool:
        """Return whether an anchor, a handle or ``keep`` holds the node."""
        return bool(self.anchors.get(slot)) or self.in_sight(slot)

    def in_sight(self, slot: int) -> bool:
        """Return whether the user can reach the node: by its handle, ``keep`` or ``fork[var]``.

        A node that only an anchor holds lives, but the user cannot reach it.
        """
        ref = self.handles[slot]
        if (
            self.forked_serial
            and self.scheduler.topology.serial[slot] <= self.forked_serial
            and slot not in self.removed
        ):
            return True
        return slot in self.kept or (ref is not None and ref() is not None)

    def is_observed(self, slot: int) -> bool:
        """Return whether the node has observers that are called after a change."""
        graph = self._graph()
        return graph is not None and slot in graph._observed

    def released(self, slot: int) -> None:
        """Clear the rows of a node that is gone."""
        # A shared constant must not be found any more once its row is free.
        value = self.data[slot]
        if type(value) in (int, float, complex, bool):
            key = number_key(value)
            if self.numbers.get(key) == slot:
                del self.numbers[key]
        if slot in self.name_of:
            self.named.pop(self.name_of[slot], None)
        generations = self.generations
        if (generations.of or generations.going) and (graph := self._graph()) is not None:
            generations.released(graph, slot)
        self.drop_grad(slot)
        if slot in self.owners:
            self.owners_to_write().pop(slot)
        for branch in self.branches.get(slot, ()):
            self.branch_users.get(branch, set()).discard(slot)
        self.remove(slot)

    def is_inside(self) -> bool:
        """Return whether the running code was called by reactgrad, from further up the stack."""
        frame, by_users = sys._getframe(1), False
        while frame is not None:
            if not is_ours(frame.f_code):
                by_users = True
            elif by_users:
                return True
            frame = frame.f_back
        return False

    def is_building(self) -> bool:
        """Return whether gradients are being built."""
        graph = self._graph()
        return graph is not None and bool(graph._programs.under_way)

    def rest(self) -> None:
        """End what was being built, and forget all that is kept for nodes which may take over parked rows."""
        graph = self._graph()
        if graph is not None:
            graph._programs.rest()  # those that are being built would not follow what is taken back
        self.generations.forget()

    def mend(self) -> None:
        """Put right what a stray error may have left in these tables; all computed nodes are in doubt."""
        graph = self._graph()
        if graph is not None:
            graph._adopt(self.scheduler)  # a fork may have replaced tables whose aliases are kept
        self.finish_writes()
        self.unbind()  # the error may have come between a move of storage and the note of it
        for one in (self.reductions or {}).values():
            one.forget()
        self.reductions = None
        self.distrust()

    def name(self, slot: int) -> str:
        """Return the name that was set, or one made of the op and the node's serial."""
        name = self.name_of.get(slot)
        if name is None:
            scope = scope_of(self.sites[slot])
            name = made_name(self.ops[slot], self.scheduler.topology.number(slot), scope)
            while name in self.named:  # the user has given it to another node
                name += "_"
        return name

    def label(self, slot: int) -> str:
        """Return the name that was set, or what the node's line assigns it to; see ``_labels``."""
        from reactgrad.core._labels import (
            label,  # imported late: only messages and pictures need labels
        )

        return label(self, slot)

    def refuse(self, slot: int, error: Exception, *, met: bool) -> None:
        """Note that ``pack`` failed for the node's value; any next run tries again.

        If the run under way has met the failure (``met``), its read raises the error.
        """
        self.refused.add(slot)
        self.scheduler.renew()
        if met:
            add_note(error, f"raised when this node's value was put away: {self.explain(slot)}")
            if self.refusal is None:
                self.refusal = error

    def let_go(self, slot: int) -> None:
        """Note that the value of a transient node was dropped. A subclass may act on it."""

    def wrapped(self, slot: int, dtype: Any) -> None:
        from reactgrad.core._wrapped import warn_of  # imported late: few programs count so far

        warn_of(self, slot, dtype)

    def explain(self, slot: int) -> str:
        """Return a note for an error: the node, its operands, and the line that built it."""
        note = f"node {shortened(self.label(slot), 100)!r}, {self.describe_op(slot)}"
        if not isinstance(self.ops[slot], Leaf):
            parents = self.scheduler.topology.parents[slot]
            operands = listed(f"{self.label(p)}: {self.describe_value(p)}" for p in parents)
            note += f", of ({operands})"
        return f"{note}\nbuilt at {site_text(self.sites[slot])}"

    def describe_op(self, slot: int) -> str:
        """Return ``op 'tanh'``, ``function 'f'`` or ``output 'f[0]'``."""
        op = self.ops[slot]
        if isinstance(op, Leaf):
            return op.name
        if isinstance(op, Output):
            return f"output {op.name!r}"
        return f"{'op' if hasattr(op, 'infer') else 'function'} {op.name!r}"

    def describe_value(self, slot: int) -> str:
        """Return shape and dtype of a node's value, or the type of an object."""
        found = self.specs[slot]
        if found is not None:
            return repr(found)
        value = self.data[slot]
        if value is MISSING:
            return "unknown"
        if isinstance(value, np.ndarray):
            return f"{value.dtype}[{', '.join(map(str, value.shape))}]"
        return type(value).__name__


def number_key(value: Any) -> tuple[type, Any]:
    """Return a key that is equal for two Python numbers if they are the same constant.

    The type counts, and so does the sign of zero; all NaNs of a type are one constant.
    """
    kind = type(value)
    if kind is complex or not value or value != value:
        return kind, repr(value)
    return kind, value
