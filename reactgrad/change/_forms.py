"""Forms: the states of a graph while its leaves have certain shapes, and the exchange of one for another.

What differs between forms is kept in *blocks*, nodes whose specs differ between the same forms. A block that is put
aside is a list for each column of the tables, so that it comes back by writing slices. Steps are kept for each form:
they are bound to memory in several blocks.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from reactgrad.backend import Spec
from reactgrad.core._core import Core
from reactgrad.core._definition import Definition
from reactgrad.nodes._op import Op
from reactgrad.values._aside import (
    Aside,
    Slots,
    bind_as_before,
    of_all,
    of_each,
    put_back,
    steps_of,
    values_of,
)
from reactgrad.values._columns import MISSING
from reactgrad.values._lending import Found

Values = dict[tuple[int, Any], Found]  # by node and spec, while the node has another spec


class Form:
    """The state of a graph while its leaves have certain shapes.

    Attributes
    ----------
    salt
        Distinguishes the plans of this form from those of others.
    specs, definitions
        Those of all nodes that differ between forms.
    tables
        The tables of each program, by its number.
    anchors
        Keep gradient nodes alive while the form is put aside.
    built
        The gradient nodes.
    steps
        The bound steps of the nodes in ``Blocks.bound``, while the form is put aside; ``None`` if they must be bound
        again.
    moves
        How many moves of memory these steps follow.
    """

    __slots__ = ("anchors", "built", "definitions", "moves", "salt", "specs", "steps", "tables")

    def __init__(self, salt: int) -> None:
        self.salt = salt
        self.specs: dict[int, Spec | None] = {}
        self.definitions: dict[int, Definition] = {}
        self.tables: dict[int, dict[str, Any]] = {}
        self.anchors: list[Any] = []
        self.built: frozenset[int] = frozenset()  # the nodes of gradients
        self.steps: list[Any] | None = None
        self.moves = 0


class Block:
    """Nodes whose specs differ between the same forms: their values are put aside and put back together.

    Attributes
    ----------
    states
        A number for each form, by its salt. Forms with one number have the same specs here, and share the values.
    lying
        The number whose values are in the tables; ``None`` while they are exchanged.
    aside
        By number, what is put aside, and which of these nodes were released then.
    """

    __slots__ = ("_specs", "aside", "lying", "nodes", "states")

    def __init__(self, slots: Sequence[int], forms: Sequence[Form], states: Sequence[int]) -> None:
        self.nodes = Slots(slots)
        self.states = {form.salt: state for form, state in zip(forms, states, strict=True)}
        self._specs = {
            state: [form.specs[slot] for slot in self.nodes.slots]
            for form, state in zip(forms, states, strict=True)
        }
        self.lying: int | None = None
        self.aside: dict[int, tuple[Aside, frozenset[int]]] = {}

    def begin(self, now: Form, values: Values) -> None:
        """Put these values aside; those of the form `now` are in the tables."""
        self.lying = self.states[now.salt]
        for state, specs in self._specs.items():
            if state != self.lying:
                pairs = zip(self.nodes.slots, specs, strict=True)
                found = {pair[0]: values[pair] for pair in pairs if pair in values}
                gone = [slot for slot, one in found.items() if one.data is MISSING]
                dropped = self.nodes.members.difference(found).union(gone)
                self.aside[state] = of_all(self.nodes, found), dropped

    def values(self, views: Collection[int]) -> Values:
        """Return what is put aside by node, but for views, which are made again."""
        return {
            (slot, spec): found
            for state, (aside, _) in self.aside.items()
            for (slot, found), spec in zip(
                of_each(self.nodes, aside).items(), self._specs[state], strict=True
            )
            if slot not in views
        }

    def exchange(self, graph: Core, form: Form) -> None:
        """Put the present values aside and those of `form` back.

        A call after an interrupt finishes what the interrupted one began.
        """
        host, staleness, state = graph._host, graph._scheduler.staleness, self.states[form.salt]
        if self.lying == state:
            return
        nodes, released = self.nodes, staleness.dropped
        if self.lying is not None:
            self.aside[self.lying] = values_of(host, nodes), nodes.members & released
            self.lying = None
        aside, dropped = self.aside[state]
        specs = self._specs[state]
        if host.gradients.alone or host.gradients.blocks:
            for slot, was, found in zip(nodes.slots, nodes.rows(host.specs), specs, strict=True):
                if was is not found:
                    host.drop_grad(slot)
        # First: after an interrupt the former specs must not stand without values.
        nodes.write(host.specs, specs)
        put_back(host, nodes, aside)
        for slot in (nodes.members & released) - dropped:
            staleness.restore(slot)
        for slot in dropped:
            if not graph._scheduler.leaf[slot]:
                staleness.drop(slot)
        self.lying = state
        del self.aside[state]


class Blocks:
    """All nodes in which forms differ, in blocks; made anew when there is another form.

    Parameters
    ----------
    forms, now
        All of them, and the current one.
    values
        What is put aside.

    Attributes
    ----------
    bound
        These nodes, and those that read them: their steps differ between forms.
    """

    __slots__ = ("_beside", "_blocks", "_serials", "_views", "bound")

    def __init__(self, graph: Core, forms: Sequence[Form], now: Form, values: Values) -> None:
        host, topology = graph._host, graph._scheduler.topology
        rank, parents, children = topology.rank, topology.parents, topology.children
        # A view lies in its parent's memory, so it moves with that even where its spec stays. A node with a cutoff has
        # memory of its own, and what it compares with is its last value, whatever the form was.
        slots, stack = set(now.specs), [*now.specs]
        self._views: set[int] = set()
        while stack:
            for child in children[stack.pop()]:
                if (
                    _may_be_view(host.ops[child])
                    and child not in self._views
                    and child not in host.cutoffs
                ):
                    self._views.add(child)
                    stack.append(child)
                    for form in forms:
                        form.specs.setdefault(child, host.specs[child])
        slots |= self._views
        states: dict[int, tuple[int, ...]] = {}
        for slot in sorted(slots, key=rank.__getitem__):
            differ: list[Sequence[Any]] = [[form.specs[slot] for form in forms]]
            if slot in self._views:
                differ += [states[one] for one in parents[slot] if one in states]
            known: dict[Any, int] = {}
            states[slot] = tuple(
                [known.setdefault(each, len(known)) for each in zip(*differ, strict=True)]
            )
        alike: dict[tuple[int, ...], list[int]] = {}
        for slot, one in states.items():
            alike.setdefault(one, []).append(slot)
        self._blocks = [Block(members, forms, one) for one, members in alike.items()]
        own = {pair: one for pair, one in values.items() if pair[0] not in self._views}
        for block in self._blocks:
            block.begin(now, own)
        changing = slots.union(now.definitions)
        self.bound = Slots([*changing.union(*[children[slot] for slot in changing])])
        self._serials = self.bound.rows(topology.serial)
        self._beside: dict[tuple[Any, ...], tuple[list[int], bool]] = {}

    def all_live(self, graph: Core) -> bool:
        """Return whether all these nodes are still there, and views may still be views."""
        return self.bound.rows(
            graph._scheduler.topology.serial
        ) == self._serials and graph._host.cutoffs.keys().isdisjoint(self._views)

    def values(self) -> Values:
        """Return what is put aside, by node."""
        found: Values = {}
        for block in self._blocks:
            found |= block.values(self._views)
        return found

    def arrays(self) -> list[Any]:
        """Return the values that are put aside."""
        asides = [aside for block in self._blocks for aside, _ in block.aside.values()]
        return [value for aside in asides for value in aside.data]

    def exchange(self, graph: Core, form: Form) -> None:
        """Put present values aside, and those of a form back."""
        for block in self._blocks:
            block.exchange(graph, form)

    def beside(
        self, graph: Core, form: Form, leaves: Collection[int], slots: Collection[int]
    ) -> tuple[list[int], bool]:
        """Return those of these nodes that leaves do not reach, and whether leaves reach all below them.

        All nodes have the operands that they have in this form.
        """
        scheduler = graph._scheduler
        if scheduler.staleness.cutoffs:
            return list(slots), False
        key = form.salt, tuple(leaves), tuple(slots)
        known = self._beside.get(key)
        if known is None:
            descendants = scheduler.topology.descendants
            below = descendants(leaves)
            beside = [slot for slot in slots if slot not in below]
            known = self._beside[key] = beside, descendants(beside) - {*beside} <= below
        return known

    def keep_steps(self, graph: Core, form: Form) -> None:
        """Keep the present steps as those of a form that is about to be put aside."""
        form.steps = steps_of(graph._host, self.bound)
        form.moves = graph._scheduler.moves_in_all()

    def bind(self, graph: Core, form: Form) -> None:
        """Bind all nodes as they were bound in a form when it was put aside."""
        moved = graph._scheduler.moves_since(form.moves)
        steps, form.steps = form.steps, None
        bind_as_before(graph._host, self.bound, None if moved is None else steps, moved or ())


def _may_be_view(op: Any) -> bool:
    return type(op) is Op and op.view is not None
