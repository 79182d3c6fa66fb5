"""The sweep: from the output down, the rule of each node, and the sums of their contributions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from heapq import heapify, heappop, heappush
from typing import Any, Protocol

from reactgrad._errors import OutdatedRuleError
from reactgrad.autodiff._custom import custom_gradients
from reactgrad.autodiff._edges import operand_vars
from reactgrad.autodiff._paths import WIDE
from reactgrad.autodiff._repeated import gathered, is_many
from reactgrad.autodiff._rules import Rules
from reactgrad.autodiff._tables import ABSENT, ZERO, Part
from reactgrad.autodiff._templates import MOST, build, key_of, match, record
from reactgrad.backend import Spec
from reactgrad.build._constants import zeros_like
from reactgrad.build._functions import copy_of
from reactgrad.core._handles import handle
from reactgrad.flow._checkpoint import follow_segment
from reactgrad.nodes._handle import apply
from reactgrad.nodes._op import Attrs, Op, Output
from reactgrad.ops import (
    ACCUMULATE,
    ALIAS,
    FAN_IN,
    SUM_LIKE,
    Placed,
    Share,
    accumulate,
    accumulated,
    astype,
    real,
    sum_of_product,
    sum_to,
    to_device,
)


class Redefine(Protocol):
    """Gives a node of a program another op, operands, attributes and, where given, spec."""

    def __call__(
        self,
        slot: int,
        op: Op,
        operands: tuple[int, ...],
        attrs: Attrs,
        found: Spec | None = None,
    ) -> None: ...


class Sweep(Rules):
    """The part of a program that builds adjoints, in one sweep from the output down."""

    __slots__ = ()

    def _zero(self, slot: int) -> Any:
        """Return the Var that callers get for a node whose derivative is zero everywhere."""
        try:
            return zeros_like(self._graph, handle(self._graph, slot))
        # The node belongs to a former rule, so its shape will never be known.
        except OutdatedRuleError:
            programs = self._graph._programs
            if programs.reshaping or programs.changing:
                raise
            return self._graph.const(0.0)

    def _sweep(
        self, totals: set[int], anew: set[int], redefine: Redefine | None
    ) -> dict[int, None]:
        """Walk from the output down: add up contributions, and ask rules for those that are
        missing.

        Parameters
        ----------
        totals
            Nodes whose contributions are to be added up (again).
        anew
            Nodes whose rules are to be asked again for all their contributions.
        redefine
            ``None`` where no existing adjoint changes.

        Returns
        -------
        dict
            The nodes whose adjoint is another node than before.

        Raises
        ------
        CycleError
            If adjoints depend on each other through branches that no choice takes now.
        """
        rank = self._graph._scheduler.topology.rank
        self.site = None
        host = self._graph._host
        if not (self.adjoint or anew or host.branch_users or host.hooks):
            self._first_sweep(totals)
            return {}
        # By negated rank: the output first, then its operands.
        queue = [(-rank[slot], slot) for slot in totals | anew]
        heapify(queue)
        rules, moved = set(anew), dict[int, None]()
        # The consumers that each node waits for. Usually consumers come first by rank, but a branch
        # that a choice does not take has no rank relative to the choice.
        waiting: dict[int, set[int]] = {}
        wide: dict[int, dict[int, list[int]]] = {}
        while queue:
            slot = heappop(queue)[1]
            more: Iterable[int] = ()
            if slot in totals:
                parts, silent = self._gather(slot, wide)
                if silent and waiting.get(slot) == silent:
                    continue  # none of these consumers has been asked since
                if silent:
                    unknown = self._needed(c for c in silent if self.known(c) is None)
                    totals |= unknown
                    rules |= silent
                    waiting[slot] = silent
                    more = (*silent, *unknown)
                else:
                    totals.discard(slot)
                    waiting.pop(slot, None)
                    known = self.known(slot) is not None
                    if self._total(slot, parts, redefine):
                        moved[slot] = None
                        rules.add(slot)
                        if known:
                            anew.add(slot)
            if slot in rules and slot not in totals:
                rules.discard(slot)
                refit = slot in anew and self._refit(slot, totals, redefine)
                asked = () if refit else self._ask(slot, totals, slot in anew)
                more = [s for s in asked if s not in totals]
                totals.update(more)
                more += [source for _, source in self._edges[slot] if source in waiting]
            for other in more:
                heappush(queue, (-rank[other], other))
        if waiting:
            path = [next(iter(waiting))]
            while path.count(path[-1]) == 1:
                path.append(next(child for child in waiting[path[-1]] if child in waiting))
            raise self._graph._scheduler.cycle_error(path[path.index(path[-1]) :], "gradient")
        return moved

    def _first_sweep(self, totals: set[int]) -> None:
        """Do the same where nothing was built yet: each node comes once, behind all its consumers."""
        scheduler = self._graph._scheduler
        rank, serial = scheduler.topology.rank, scheduler.topology.serial
        numbers, leaf = scheduler.topology.numbers, scheduler.leaf
        edges, parts, adjoint = self._edges, self._parts, self.adjoint
        serials, own = self._serials, self._own
        seed = self.seed._slot
        waiting: dict[int, list[tuple[int, int, int, Part]]] = {
            self._output: [(0, 0, self._output, Part(seed, serial[seed], None, None, (), False))]
        }
        for slot in sorted(totals, key=lambda one: (-rank[one], one)):
            found = waiting.pop(slot, [])
            if len(found) == 1 and (one := found[0][3]).kind is None:
                # `_total` written out for most nodes.
                adjoint[slot], serials[slot] = one.slot, one.serial
                if one.own and not leaf[one.slot]:
                    own[slot] = None
            else:
                # As in `_gather`: the bits of a sum depend on the order of its parts.
                self._total(slot, sorted(found), None)
            wanted = [edge for edge in edges[slot] if edge[1] in totals]
            if not wanted:
                continue
            made = {} if adjoint[slot] is ZERO else self._made(slot, wanted)
            at = numbers[slot] if slot in numbers else serial[slot]
            for i, source in wanted:
                part = parts[slot, i] = made.get(i)
                if part is not None:
                    waiting.setdefault(source, []).append((at, i, slot, part))

    def _gather(
        self, slot: int, wide: dict[int, dict[int, list[int]]]
    ) -> tuple[list[tuple[int, int, int, Part]], set[int]]:
        """Return the contributions to a node, ordered by the consumers' creation and position, and
        the consumers that were not asked yet.
        """
        topology = self._graph._scheduler.topology
        serial, numbers = topology.serial, topology.numbers
        if slot == self._output:
            seed = self.seed._slot
            return [(0, 0, slot, Part(seed, serial[seed], None, None, (), False))], set()
        found: list[tuple[int, int, int, Part]] = []
        silent: set[int] = set()
        for child in self._consumers(slot):
            edges = self._edges.get(child, ())
            if len(edges) <= WIDE:
                positions = [i for i, source in edges if source == slot]
            else:
                if child not in wide:
                    wide[child] = {}
                    for i, source in edges:
                        wide[child].setdefault(source, []).append(i)
                positions = wide[child].get(slot, [])
            for i in positions:
                part = self._parts.get((child, i), ABSENT)
                if part is None:
                    continue
                if isinstance(part, Part) and serial[part.slot] == part.serial:
                    number = numbers[child] if child in numbers else serial[child]
                    found.append((number, i, child, part))
                else:
                    silent.add(child)
        # A fixed order: the bits of a sum must not depend on the order in which nodes were visited.
        return sorted(found), silent

    def _total(
        self, slot: int, found: list[tuple[int, int, int, Part]], redefine: Redefine | None
    ) -> bool:
        """Add up the contributions to a node. Return whether its adjoint is another node now."""
        before: Any = self.known(slot)
        own = before is not None and slot in self._own
        hooks = self._hooks_of(slot)
        if hooks:
            self._put(self._hooks, slot, hooks)
        else:
            self._drop(self._hooks, slot)
        if len(found) == 1 and found[0][3].kind is None and not hooks:
            part = found[0][3]
            adjoint, alone = part.slot, part.own
            if adjoint == before:
                return False
        elif not found and not hooks:
            adjoint, alone = ZERO, False
            if before is ZERO:
                return False
        else:
            parts = [self._beside(before, own, *one) for one in found]
            if self._graph._host.specs[slot] is None and any(p.kind is Placed for p in parts):
                zeros = self._background(slot)
                serial = self._graph._scheduler.topology.serial[zeros._slot]
                parts.insert(0, Part(zeros._slot, serial, None, None, (), True))
            # Rules take a tuple apart while they build, so another tuple needs another node.
            several = bool(parts) and parts[0].kind is Share
            if own and not several and not hooks and self._sums(slot, before, parts, redefine):
                return False
            total = self._sum(slot, parts)
            for through in hooks:
                total = through(total, self._graph._host.specs[slot] is not None)
            return self._enter(slot, total._slot, True, own and not several, several, redefine)
        return self._enter(slot, adjoint, alone, own, False, redefine)

    def _beside(self, before: Any, own: bool, _: int, i: int, child: int, part: Part) -> Part:
        """Return a contribution as one of several."""
        if part.slot != before or not own:
            return part
        # It was the only one, and its node stays as the node of the sum: a copy takes its place.
        copy = copy_of(self._graph, before)
        self._held.append(copy)
        serial = self._graph._scheduler.topology.serial[copy._slot]
        part = Part(copy._slot, serial, None, None, (), True)
        self._put(self._parts, (child, i), part)
        return part

    def _sums(self, slot: int, adjoint: Any, parts: list[Part], redefine: Redefine | None) -> bool:
        """Make the existing adjoint of a node the sum of these parts.

        Return ``False`` where its shape or dtype would change.
        """
        graph, specs = self._graph, self._graph._host.specs
        first, shape = graph._scheduler.topology.next_serial, self._sum_shape(slot)
        attrs: Attrs
        if sum([part.kind is None for part in parts]) > FAN_IN:  # they are added up in groups
            operands, attrs = accumulated(self._contributed(parts), shape)
            self._held += operands
            slots = tuple([operand._slot for operand in operands])
        else:
            slots = tuple([part.slot for part in parts])
            slots += tuple([operand for part in parts for operand in part.operands])
            attrs = (shape, tuple([part.index for part in parts]))
        known = tuple([specs[at] for at in slots])
        if None in known:
            return False
        found = ACCUMULATE.result(known, attrs)
        if found is not specs[adjoint] and not (
            self._apart is not None
            and adjoint not in self._apart
            and graph._host.ops[adjoint] is ACCUMULATE
            and graph._scheduler.operands(adjoint) == slots
        ):
            return False
        assert redefine is not None
        redefine(adjoint, ACCUMULATE, slots, attrs, found)
        if graph._host.transient:
            follow_segment(graph, slot, slot, adjoint, first)
        return True

    def _background(self, slot: int) -> Any:
        """Return zeros for contributions to parts of a node whose shape only its value shows.

        They follow that shape.
        """
        zeros = zeros_like(self._graph, handle(self._graph, slot))
        self._held.append(zeros)
        return zeros

    def _contributed(self, parts: list[Part]) -> list[Any]:
        """Return contributions in the form in which rules return them."""
        at = partial(handle, self._graph)
        return [
            at(part.slot)
            if part.kind is None
            else part.kind(at(part.slot), part.index, *map(at, part.operands))
            for part in parts
        ]

    def _enter(
        self, slot: int, adjoint: Any, alone: bool, own: bool, hold: bool, redefine: Redefine | None
    ) -> bool:
        """Record the adjoint of a node. Return whether it is another node than before.

        Parameters
        ----------
        alone
            True if it is the adjoint of no other node; ignored for a constant, which never changes.
        own
            True if the same held for the former adjoint, so that its node may stay and be
            redefined.
        hold
            True if an anchor has to keep it alive.
        """
        graph, before, specs = self._graph, self.known(slot), self._graph._host.specs
        if own and before is not None and adjoint is not ZERO and specs[before] is specs[adjoint]:
            assert redefine is not None
            redefine(before, ALIAS, (adjoint,), ())
            return False
        self._put(self.adjoint, slot, adjoint)
        if adjoint is ZERO:
            self._drop(self._serials, slot)
        else:
            self._put(self._serials, slot, graph._scheduler.topology.serial[adjoint])
        if alone and not graph._scheduler.leaf[adjoint]:
            self._put(self._own, slot, None)
        else:
            self._drop(self._own, slot)
        if hold:
            self._put(self._holds, slot, graph._host.anchor(adjoint))
        else:
            self._drop(self._holds, slot)
        return True

    def _sum(self, slot: int, parts: list[Part]) -> Any:
        """Return a new node that adds up contributions."""
        if not parts:
            return zeros_like(self._graph, handle(self._graph, slot))
        first = self._graph._scheduler.topology.next_serial
        total = accumulate(self._contributed(parts), self._sum_shape(slot))
        if self._graph._host.transient:
            follow_segment(self._graph, slot, slot, total._slot, first)
        return total

    def _sum_shape(self, slot: int) -> Any:
        """Return the shape of a sum of parts; ``None`` stands for the shape of the first part."""
        found = self._graph._host.specs[slot]
        return None if found is None else found.shape

    def _ask(self, slot: int, totals: set[int], anew: bool) -> list[int]:
        """Ask the rule of a node for its contributions.

        Return the operands that get another one now.
        """
        adjoint = self.known(slot)
        if adjoint is None:
            return []
        serial, parts = self._graph._scheduler.topology.serial, self._parts
        wanted: list[tuple[int, int]] = []
        for i, source in self._edges[slot]:
            if source in totals or self.known(source) is not None:
                part = ABSENT if anew else parts.get((slot, i), ABSENT)
                if part is ABSENT or (part is not None and serial[part.slot] != part.serial):
                    wanted.append((i, source))
            elif anew:
                self._drop(parts, (slot, i))
        if anew:
            self._forget_seen(slot)
        if not wanted:
            return []
        made = {} if adjoint is ZERO else self._made(slot, wanted)
        changed: list[int] = []
        for i, source in wanted:
            part = made.get(i)
            if part != parts.get((slot, i), ABSENT):
                self._put(parts, (slot, i), part)
                changed.append(source)
        return changed

    def _refit(self, slot: int, totals: set[int], redefine: Redefine | None) -> bool:
        """Give the contributions of a node other shapes or attributes, and keep their nodes.

        Return ``False``, with nothing done, where its rules would build other ops now, or where one of these nodes
        must not change in place.
        """
        host, adjoint = self._graph._host, self.known(slot)
        op: Any = host.ops[slot]
        apart = self._apart
        if apart is None or redefine is None or adjoint in (None, ZERO) or slot in self.seen:
            return False
        if is_many(host, slot):  # what was built of its adjoint depends on what that is made of
            return False
        edges = [
            edge
            for edge in self._edges[slot]
            if edge[1] in totals or self.known(edge[1]) is not None
        ]
        key = key_of(self, slot, op, edges) if edges else None
        if key is None:
            return False
        template = op.templates.get(key)
        if template is None:
            self._made(slot, edges)  # what it builds goes with the next release
            template = op.templates.get(key)
        else:  # as if it was built: numbers of nodes do not depend on what was known before
            self._graph._scheduler.topology.next_serial += template.numbers()
        matched = None if template is None else match(self, slot, template, edges)
        if matched is None or any(at in apart for at, _ in matched):
            return False
        for at, made in matched:
            attrs = host.attrs[at]
            if repr(attrs) != repr(made.attrs):
                attrs = made.attrs
            if attrs is not host.attrs[at] or host.specs[at] is not made.found:
                redefine(at, made.op, self._graph._scheduler.operands(at), attrs, made.found)
        return True

    def _made(self, slot: int, edges: Sequence[tuple[int, int]]) -> dict[int, Part]:
        """Return new contributions of a node to these operands, by position."""
        graph = self._graph
        if is_many(graph._host, slot):
            return self._made_of_many(slot, edges)
        op: Any = graph._host.ops[slot]
        key = key_of(self, slot, op, edges)
        if key is None:
            return self._asked(slot, edges)
        template = op.templates.get(key)
        if template is not None:
            return build(self, slot, template)
        first, numbers = graph._scheduler.topology.next_serial, len(graph._host.numbers)
        made = self._asked(slot, edges)
        # What depends on values, or was refused before, is asked every time.
        if key not in op.templates and not (self.observed or self.seen or self._inner):
            if len(op.templates) >= MOST:
                op.templates.clear()
            op.templates[key] = record(self, slot, first, numbers, made)
        return made

    def _made_of_many(self, slot: int, edges: Sequence[tuple[int, int]]) -> dict[int, Part]:
        """Return the same for a view of very many elements; see ``_repeated``."""
        # What is built here and below may pass its adjoint by: so that one stays, and never changes in place.
        adjoint = self.adjoint[slot]
        self._drop(self._own, slot)
        self._put(self._holds, slot, self._graph._host.anchor(adjoint))
        return self._asked(slot, edges)

    def _asked(self, slot: int, edges: Sequence[tuple[int, int]]) -> dict[int, Part]:
        """Return new contributions of a node to these operands, by position, from its rules."""
        graph, serial = self._graph, self._graph._scheduler.topology.serial
        ops = graph._host.ops
        # A function's rule makes all contributions at once, and they may share nodes.
        alone = isinstance(ops[slot], Op) or len(self._edges[slot]) == 1
        made: dict[int, Part] = {}
        operands = dict(edges)
        first = graph._scheduler.topology.next_serial
        self._check_rule(slot, edges)
        g, around = handle(graph, self.adjoint[slot]), operand_vars(graph, slot)
        op, ans, attrs = ops[slot], handle(graph, slot), graph._host.attrs[slot]
        of_all = op.variadic(ans, around, attrs) if isinstance(op, Op) and op.variadic else None
        arguments = (g, ans, *around, *attrs)
        custom: dict[int, Any] = {}
        # No generator calls rules, since it would turn a StopIteration into a RuntimeError.
        for i, parent in edges:
            if isinstance(op, Op | Output):
                part = self._contribution(op, i, parent, arguments, of_all)
            else:
                custom = custom or custom_gradients(self, slot, g, around, [i for i, _ in edges])
                part = custom[i]
            if part is None:
                continue
            var, kind, index, inside = part, None, None, ()
            if isinstance(part, Placed | Share):
                var, kind, index = part.gradient, type(part), part.index
                if isinstance(part, Placed):
                    inside = tuple([operand._slot for operand in part.operands])
            self._held.append(var)
            at = var._slot
            # An output is one node for all that ask for it.
            own = alone and serial[at] >= first and not isinstance(ops[at], Output)
            made[i] = Part(at, serial[at], kind, index, inside, own)
            if graph._host.transient:
                follow_segment(graph, slot, operands[i], at, first)
            first = graph._scheduler.topology.next_serial
        return made

    def _contribution(
        self, op: Op | Output, i: int, parent: int, arguments: tuple[Any, ...], of_all: Any
    ) -> Any:
        """Return what an op contributes to the gradient of its `i`-th operand; ``None`` for nothing.

        Parameters
        ----------
        arguments
            What its rules get, the incoming gradient first.
        of_all
            The rule of an op of any number of operands, which is asked for each.
        """
        if isinstance(op, Output):
            return Share(arguments[0], op.index)
        part, since = None, self._graph._scheduler.topology.next_serial
        slot = arguments[1]._slot
        if op.broadcasts and is_many(self._graph._host, slot):
            part = gathered(self._graph, slot, arguments[0], arguments[2])
        if part is not None:
            pass
        elif op.vjps is not None:
            rule = op.vjps[i]
            part = None if rule is None else rule(*arguments)
        elif of_all is not None:
            part = of_all(i, arguments[0])
        return None if part is None else self._fitted(parent, part, op.broadcasts, since)

    def _fitted(self, parent: int, part: Any, broadcasts: bool, since: int | None = None) -> Any:
        """Return a contribution in the shape and dtype of the operand that it belongs to.

        Nodes from the serial `since` on were made for it alone; without `since` none were.
        """
        graph = self._graph
        specs = graph._host.specs
        found = specs[parent]
        if isinstance(part, Placed):
            if found is not None and _dtype(part.gradient) != found.dtype:
                part.gradient = astype(part.gradient, found.dtype)
            return part
        if found is not None and specs[part._slot] is found:
            return part
        given = _dtype(part)
        if found is not None and given is None:
            return apply(SUM_LIKE, (part, handle(graph, parent)))  # when its value shows the dtype
        if found is not None and given.kind == "c" != found.dtype.kind:
            part = real(part)  # a real operand moves along the real axis only
        if found is not None and (seen := specs[part._slot]) is not None and seen.weak is None:
            part = to_device(part, found.device)
        if broadcasts or found is None:
            new = since is not None and graph._scheduler.topology.serial[part._slot] >= since
            # A new product has no other user, so it and its sum may become one op.
            part = (sum_of_product if new else sum_to)(part, handle(graph, parent))
        return part if found is None or _dtype(part) == found.dtype else astype(part, found.dtype)


def _dtype(var: Any) -> Any:
    """Return the dtype of a node; ``None`` where only its value will show it."""
    found = var._graph._host.specs[var._slot]
    return None if found is None else found.dtype
