"""Rules of Python functions: the values that they have read, and when they are asked again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reactgrad.autodiff._custom import MissingRuleError, no_rule
from reactgrad.autodiff._paths import Paths
from reactgrad.autodiff._tables import ZERO


class Rules(Paths):
    """The part of a program that knows the rules of functions, and which of the functions' results
    they read.
    """

    __slots__ = ()

    def look(self, slot: int, kind: type) -> Any:
        """Return the value that a rule needs to be built; in the middle of a change the last one.

        While an edit is followed nothing runs: the value of a function that never ran is then not
        of type `kind`. Where rules are built again because functions have run, a function that
        never ran is run here.
        """
        last = self._graph._host.data[slot]
        if self._graph._programs.changing or (self._updating and isinstance(last, kind)):
            return last
        return self._graph._value_for_rule(slot)

    def _forget_seen(self, slot: int) -> None:
        """Forget what the rule of this node has read, since it is asked again."""
        self._drop(self.seen, slot)
        self._drop(self._inner, slot)

    def saw(self, slot: int, left: dict[str, Any], read: dict[str, Any]) -> None:
        """Record that a rule has read this part of what its function has left.

        An earlier record of the same item counts.
        """
        before = self.seen.get(slot, ({}, None))[1]
        self._put(self.seen, slot, (left, read | before if before else read))
        self._tell_outer(slot, read)
        self._graph._rule_saw(self)

    def postpone(self, slot: int) -> None:
        """Record that the rule of this node waits until its function has run."""
        self._put(self.seen, slot, ({}, None))
        self._tell_outer(slot, None)
        self._graph._programs.waiting = True

    def _tell_outer(self, slot: int, read: dict[str, Any] | None) -> None:
        """Record in programs whose rules use this one that they depend on what this rule has read.

        Those rules have to be asked again with this one, and this program may be gone by then.
        """
        serial = self._graph._scheduler.topology.serial[slot]
        for program, node in self._graph._programs.asking:
            if program is not self:
                inner = program._inner.get(node, ())
                program._put(program._inner, node, (*inner, (slot, serial, read)))

    def outdated(self) -> dict[int, bool]:
        """Return the nodes whose rules were built for something that no longer holds, and whether
        each waits for a run.
        """
        if self.broken or self.hollow:  # what the rules of a hollow one have read is not known
            return {self._output: False}
        serial, still_so = self._graph._scheduler.topology.serial, self._still_so
        found = {
            node: False
            for node, inner in self._inner.items()
            if any(serial[at] == since and not still_so(at, read) for at, since, read in inner)
        }
        for slot, (_, read) in self.seen.items():
            if not still_so(slot, read):
                found[slot] = read is None
        return found

    def _still_so(self, slot: int, read: dict[str, Any] | None) -> bool:
        host = self._graph._host
        return read is not None and host.ops[slot].still_so(read, host.data[slot])

    def _check_rules(self, slots: set[int], needed: set[int]) -> None:
        """Refuse nodes without a gradient before any rule reads a value, since reading may run
        nodes.
        """
        for slot in slots:
            leading = [
                (i, source)
                for i, source in self._edges.get(slot, ())
                if source in needed or self.known(source) is not None
            ]
            if leading and (slot in needed or self.known(slot) not in (None, ZERO)):
                self._check_rule(slot, leading)

    def _check_rule(self, slot: int, edges: Sequence[tuple[int, int]]) -> None:
        """Raise ``GradientError`` if no gradient passes to these operands."""
        op = self._graph._host.ops[slot]
        if not self._has_rule(op):
            raise self._no_rule(slot)

    def _has_rule(self, op: Any) -> bool:
        return op.has_rules

    def _no_rule(self, slot: int) -> MissingRuleError:
        return no_rule(self._graph, slot)
