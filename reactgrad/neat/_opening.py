"""``Opening``: a network that answers one sample by a flat program, until somebody asks for its graph."""

from __future__ import annotations

from threading import RLock
from typing import Any

# Of threads that build the graph of one network, one does.
opening = RLock()


class Opening:
    """A network with a flat program, which ``_open`` replaces by a graph."""

    _program: Any = None
    _graph: Any = None

    @property
    def graph(self) -> Any:
        """The graph, from now on what the network computes with."""
        if self._program is not None:
            with opening:
                self._open()
        return self._graph

    def _open(self) -> None:
        """Build the graph in the state that the flat program is in, if there is one, and drop the program."""
        raise NotImplementedError


class NodeKeys:
    """The keys of inputs and outputs by neat-python's names."""

    phenotype: Any

    @property
    def input_nodes(self) -> list[int]:
        """The keys of the inputs."""
        return list(self.phenotype.inputs)

    @property
    def output_nodes(self) -> list[int]:
        """The keys of the outputs."""
        return list(self.phenotype.outputs)
