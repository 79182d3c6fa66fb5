"""The copy of a graph on a worker, and its answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reactgrad.distributed._shipping import Receiver
from reactgrad.transforms._transforms import grad

Sets = dict[int, Any]


class Holder:
    """A graph that came from another process. Nodes go by their numbers there.

    Methods return a pair: whether all went well, and the result or the error. So the caller can tell an
    error of the model from a lost connection.
    """

    def __init__(self, data: bytes) -> None:
        self._receiver = Receiver()
        self._receiver.take(data)
        self._grads: dict[tuple[int, tuple[int, ...]], Any] = {}
        # A fork in which scenarios were read, and the leaves in which it differs from the graph.
        self._latest: tuple[frozenset[int], Any] | None = None

    def take(self, data: bytes) -> tuple[bool, Any]:
        """Bring the graph up to date."""
        try:
            before, self._latest = self._receiver.graph, None
            if self._receiver.take(data) is not before:
                self._grads.clear()
            return True, None
        except Exception as error:
            return False, error

    def run(self, scenarios: Sequence[Sets], outputs: Sequence[int]) -> tuple[bool, Any]:
        """Return the outputs in each scenario; the graph itself does not change."""
        try:
            node = self._receiver.node
            return True, self._read(scenarios, [node(number) for number in outputs])
        except Exception as error:
            return False, error

    def slopes(
        self, scenarios: Sequence[Sets], output: int, inputs: Sequence[int]
    ) -> tuple[bool, Any]:
        """Return the gradients of an output in each scenario; ``None`` for what it does not depend on."""
        try:
            key = (output, tuple(inputs))
            if key not in self._grads:
                node = self._receiver.node
                self._latest = None  # forks do not follow their graph
                self._grads[key] = grad(
                    node(output), [node(number) for number in inputs], allow_unused=True
                )
            found = self._grads[key]
            there = [one for one in found if one is not None]
            every = []
            for values in self._read(scenarios, there):
                rest = iter(values)
                every.append([None if one is None else next(rest) for one in found])
            return True, every
        except Exception as error:
            return False, error

    def set(self, sets: Sets, outputs: Sequence[int]) -> tuple[bool, Any]:
        """Set leaves for good. Return the outputs."""
        try:
            node = self._receiver.node
            self._latest = None
            if sets:
                self._receiver.graph.set({node(number): value for number, value in sets.items()})
            variables = [node(number) for number in outputs]
            self._receiver.graph.forward(*variables)
            return True, [one.value for one in variables]
        except Exception as error:
            return False, error

    def ran(self) -> tuple[bool, int]:
        """Return how many nodes the last read has run."""
        return True, len(self._receiver.graph.last_run.ran)

    def _read(self, scenarios: Sequence[Sets], variables: Sequence[Any]) -> list[list[Any]]:
        graph = self._receiver.graph
        results = []
        for sets in scenarios:
            if not sets:
                graph.forward(*variables)
                results.append([one.value for one in variables])
                continue
            fork = self._fork_for(sets)
            twins = [fork[one] for one in variables]
            fork.forward(*twins)
            results.append([one.value for one in twins])
        return results

    def _fork_for(self, sets: Sets) -> Any:
        """Return a fork with some leaves set: the latest one, if it differs from the graph in just these.

        So scenarios of the same leaves, one after the other, are sets of one fork.
        """
        graph, node = self._receiver.graph, self._receiver.node
        latest, self._latest = self._latest, None  # not kept if a value is refused
        leaves = frozenset(sets)
        fork = latest[1] if latest is not None and latest[0] == leaves else graph.fork()
        fork.set({fork[node(number)]: value for number, value in sets.items()})
        self._latest = leaves, fork
        return fork
