"""``Opening``: a network that answers one sample by a flat program, until somebody asks for its graph."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from threading import RLock
from typing import Any

from reactgrad._attributes import ClassAttributes
from reactgrad.neat._drawing import Drawing, drawing
from reactgrad.neat._formula import formula
from reactgrad.neat._phenotype import Phenotype

# Of threads that build the graph of one network, one does.
opening = RLock()


class Opening(ClassAttributes):
    """A network with a flat program, which ``_open`` replaces by a graph."""

    _program: Any = None
    _graph: Any = None
    _is_recurrent = False

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

    def _described(self) -> Phenotype:
        """Return the neurons with the genes that they have now."""
        raise NotImplementedError

    def formula(
        self, form: str = "text", *, names: Mapping[int, str] | None = None, digits: int = 4
    ) -> str:
        """Return the network as a formula, a line for each neuron, sources first.

        Parameters
        ----------
        form : "text", "latex" or "python"
            The last is the source of a function ``network(x1, x2, ...)`` of floats, with all digits; only for
            networks without memory.
        names : dict, optional
            Of inputs and neurons, by their keys. By default x1, x2, ... for inputs, y0, y1, ... for
            outputs, and h and the key for others.
        digits : int
            Of numbers in texts.

        Examples
        --------
        >>> import neat as neat_python
        >>> from reactgrad import neat
        >>> from reactgrad.demo import neat_config
        >>> config = neat_config()
        >>> genome = neat_python.Population(config, seed=1).population[1]
        >>> net = neat.Network.create(genome, config)
        >>> print(net.formula(digits=2))
        y0 = sigmoid(1.3 - 0.76 x1 - 1.1 x2)
        where sigmoid(z) = 1 / (1 + exp(-5 z))
        """
        return formula(
            self._described(), form, names=names, digits=digits, recurrent=self._is_recurrent
        )

    def draw(
        self,
        path: Any = None,
        *,
        ran: Collection[int] | None = None,
        parent: Any = None,
        names: Mapping[int, str] | None = None,
        weights: bool = True,
    ) -> Drawing:
        """Return a drawing of the neurons and connections, with weights on the connections.

        Positive weights are blue, negative ones orange and dashed; large ones are thick. Notebooks show
        the drawing; ``net.draw("net.svg")`` also writes it to a file.

        Parameters
        ----------
        path : path-like, optional
            A file that ends with ``.svg``.
        ran : collection of int, optional
            Keys of neurons to mark as computed, such as ``net.ran``; the others are grey.
        parent : Network, optional
            A network to compare with: what it has not is drawn bold and green, what is gone is dotted.
        names : dict, optional
            Of inputs and neurons, by their keys.
        weights : bool
            False to leave out the numbers.

        Examples
        --------
        >>> import neat as neat_python
        >>> from reactgrad import neat
        >>> from reactgrad.demo import neat_config
        >>> config = neat_config()
        >>> genome = neat_python.Population(config, seed=1).population[1]
        >>> picture = neat.Network.create(genome, config).draw(names={-1: "age", -2: "size"})
        >>> picture.svg[:4], "age" in picture.svg
        ('<svg', True)
        """
        before = None if parent is None else parent.phenotype
        made = drawing(
            self._described(),
            ran=ran,
            before=before,
            names=names,
            weights=weights,
            title=repr(self),
        )
        if path is not None:
            made.save(path)
        return made


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
