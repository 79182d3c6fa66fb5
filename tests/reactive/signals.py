"""What the published suites call signal, computed and effect, said with reactgrad.

Every suite runs twice: once with functions that get their sources as arguments, once with
functions of no arguments that read ``.value`` of their sources while they run. Both must call the
same functions equally often.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import reactgrad as rg


class Signals:
    """Builds on one graph, and counts what was called.

    Attributes
    ----------
    calls
        How many computed functions were called since ``forget``.
    effects
        How many effects were called since ``forget``.
    """

    def __init__(self, graph: rg.Graph, *, reads: bool) -> None:
        self.graph = graph
        self.reads = reads
        self.calls = 0
        self.effects = 0
        self._observers: list[Any] = []

    def signal(self, value: object) -> rg.Var:
        return self.graph.input(value)

    def computed(
        self, function: Callable[..., object], *sources: rg.Var, cutoff: object = None
    ) -> rg.Var:
        if self.reads:

            def counted(*none: object) -> object:
                self.calls += 1
                return function(*[source.value for source in sources])

            with self.graph:
                return rg.lift(counted, cutoff=cutoff)()

        def given(*values: object) -> object:
            self.calls += 1
            return function(*values)

        return rg.lift(given, cutoff=cutoff)(*sources)

    def effect(self, var: rg.Var) -> None:
        def called(old: object, new: object) -> None:
            self.effects += 1

        self._observers.append(var.observe(called))

    def settle(self) -> rg.Run:
        """Run effects as a batch of the suites does at its end."""
        assert self.graph.stabilize() == 1
        return self.graph.last_run

    def write(self, signal: rg.Var, value: object) -> rg.Run:
        """Write one signal and run the effects."""
        signal.set(value)
        return self.settle()

    def forget(self) -> None:
        self.calls = self.effects = 0
