"""A feed-forward network as a live graph, which follows its genome by differences."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from threading import RLock
from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad import extend
from reactgrad.neat._compiled import new_graph
from reactgrad.neat._keys import find, genes_name, node_name
from reactgrad.neat._neuron import activated, taken_in
from reactgrad.neat._opening import Opening, opening
from reactgrad.neat._phenotype import Neuron, Phenotype, feed_forward
from reactgrad.neat._program import (
    FEED_FORWARD,
    phenotype_of,
    program_of,
    read,
)
from reactgrad.neat._samples import columns, side_by_side
from reactgrad.neat._shared import Place, SharedGenes, placed, places


def _plain(phenotype: Phenotype) -> dict[str, Any]:
    """Return a phenotype in a form that files can hold."""
    neurons = tuple([(key, *one) for key, one in phenotype.neurons.items()])
    return {"inputs": phenotype.inputs, "outputs": phenotype.outputs, "neurons": neurons}


class Network(Opening):
    """A feed-forward network of a genome, as a graph that keeps every value that a mutation does
    not reach.

    Made by ``Network.create``. Each neuron is a node, ``network[key]``: the activation of its one
    parent, the weighted sum or other aggregation, which is computed from its sources and its genes,
    an array of bias, response and weights in the order of its connections. Values have one element
    a sample. ``activate`` sets only the inputs that differ from the samples before: giving the same
    ones again runs nothing.

    One sample, a list of floats or an array with one axis, is answered by a loop without any graph,
    with the bits that neat-python gives. The graph comes into being when somebody asks for what is
    in it: ``net.graph``, a node, ``update``, ``fork``, or an array of many samples. One sample then
    agrees to 1e-12 with what the loop gave. Samples in single precision, as environments give, are
    computed in double precision; neat-python's results then agree to 1e-6.

    The graph has ``jit`` where numba is installed: neurons are compiled loops then, whose results
    agree with NumPy's to 1e-12. ``net.graph.jit = False`` does without, ``net.graph.jit = 2`` takes
    two threads. ``activate`` may be called from several threads, which take turns. A copy, also by
    ``pickle``, is a separate network with the same genes; ``net.fork()`` shares the values.
    ``net.graph`` can be saved and drawn, and ``rg.to_networkx(net.graph)`` is its graph for
    networkx.

    Attributes
    ----------
    graph : rg.Graph
        Its nodes have names, by which the network finds them: do not change ``"input -1"``, ``"neuron 0"``,
        ``"genes of 0"``, ``"outputs"``. They live as long as the network: hold it, not the graph alone.

    Examples
    --------
    >>> import random
    >>> import neat as neat_python
    >>> from reactgrad import neat
    >>> from reactgrad.demo import neat_config
    >>> config = neat_config(num_hidden=2)
    >>> genome = neat_python.Population(config, seed=1).population[1]
    >>> net = neat.Network.create(genome, config)
    >>> net.activate([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0]]).shape, net.ran
    ((3, 1), (1, 2, 0))
    >>> genome.nodes[2].bias += 0.5
    >>> net.update(genome)
    >>> net[0].is_stale, net[1].is_stale
    (True, False)
    >>> _ = net.activate([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> net.ran
    (2, 0)
    """

    # The flat program, until somebody may change the graph: then it is what counts.
    _program: Any
    _config: Any
    _known: Any = None
    _graph: Any = None
    _run: rg.Run | None = None
    # Where it is in a graph with others.
    _place: Place | None = None
    _prefix = ""
    # In a fork, nodes from before the fork stay alive when they are not used any more, unless
    # they are removed.
    _is_fork = False

    def __init__(self, phenotype: Phenotype, config: Any) -> None:
        self._program = program_of(FEED_FORWARD, phenotype)
        self._config = config

    @classmethod
    def create(
        cls,
        genome: Any,
        config: Any,
        unique_value: Any = False,
        random_values: bool = False,
        *,
        graph: rg.Graph | None = None,
        name: str | None = None,
        inputs: Sequence[rg.Var] | None = None,
        genes: SharedGenes | None = None,
    ) -> Any:
        """Return the network of a genome.

        Parameters
        ----------
        genome : neat.DefaultGenome
            Or anything with such ``nodes`` and ``connections``.
        config : neat.Config
            The one that the genome was made with.
        unique_value : float, optional
            A weight for all connections; written into the genome, as neat-python does.
        random_values : bool
            True if the weights are drawn anew, from -1 to 1; written into the genome, too.
        graph : rg.Graph, optional
            A graph to build it in, beside other networks; by default one of its own, when needed.
        name : str, optional
            For a network in a given graph: what the names of its nodes begin with, ``"name/neuron 0"``.
            By default ``"genome "`` and the key of the genome.
        inputs : sequence of Var, optional
            Nodes of that graph to compute from, in the order of the inputs, such as those of another
            network, ``[other[-1], other[-2]]``.
        genes : SharedGenes, optional
            To share weights, biases and responses with other networks in that graph.

        Returns
        -------
        Network

        Raises
        ------
        GenomeError
            If the genome is no feed-forward network; see ``update``.
        GraphError
            If name, inputs or genes are given without a graph, or belong to another one.

        Examples
        --------
        >>> import neat as neat_python
        >>> import reactgrad as rg
        >>> from reactgrad import neat
        >>> from reactgrad.demo import neat_config
        >>> config = neat_config()
        >>> population = neat_python.Population(config, seed=1).population
        >>> g = rg.Graph()
        >>> a = neat.Network.create(population[1], config, graph=g)
        >>> inputs = [a[-1], a[-2]]
        >>> b = neat.Network.create(population[2], config, graph=g, inputs=inputs)
        >>> outputs = a.activate([[0.0, 1.0], [1.0, 1.0]])
        >>> both = (a.outputs + b.outputs) / 2.0  # an ensemble, with one loss and one feed
        >>> both.shape, g["genome 2/neuron 0"] is b[0]
        ((2, 1), True)
        """
        place = None
        if graph is not None:
            prefix = f"genome {genome.key}" if name is None else name
            place = placed(graph, f"{prefix}/", inputs, genes, config)
        elif name is not None or inputs is not None or genes is not None:
            raise rg.GraphError(
                "create(name=, inputs=, genes=) are for networks in one graph. Name the graph, too: "
                "create(genome, config, graph=g, ...)."
            )
        if unique_value or random_values:
            for key, neuron in feed_forward(genome, config).neurons.items():
                for source in neuron.sources:
                    weight = unique_value or random.uniform(-1.0, 1.0)
                    genome.connections[source, key].weight = weight
        self = object.__new__(cls)
        object.__setattr__(self, "_program", read(FEED_FORWARD, genome, config))
        object.__setattr__(self, "_config", config)
        # ``activate`` finds it here sooner than in the class.
        object.__setattr__(self, "_run", None)
        if place is not None:
            self._place, self._prefix = place, place.prefix
            with opening:
                self._open()
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle what the network computes, with its present genes, and no value."""
        return _again, (type(self), self._described(), self._config)

    def _described(self) -> Phenotype:
        """Return the neurons with the genes that they have now."""
        known = self.phenotype
        if self._program is None:
            with self._lock:
                known = replace(known, neurons=self._neurons())
        return known

    def __repr__(self) -> str:
        known = self.phenotype
        counts = len(known.inputs), len(known.neurons), len(known.outputs)
        return "<{}: {} inputs, {} neurons, {} outputs>".format(type(self).__name__, *counts)

    # --- the graph ---------------------------------------------------------------------------

    def _open(self) -> None:
        """Make the graph what counts, in the state that the flat program is in."""
        program = self._program
        if program is None:
            return
        self._build()
        if self._run is None and program.given:
            with self._lock:
                given = np.array(program.bank(0)[: program.inputs]).reshape(-1, 1)
                self._graph.set(dict(zip(self._inputs, given, strict=True)))
                self._run = self._graph.forward(self._outputs)
                self._given = given
        self._program = None

    def _build(self) -> None:
        if self._graph is not None:
            return
        phenotype, place = self.phenotype, self._place
        self._lock = RLock()
        graph = new_graph() if place is None else place.graph
        # Everything that describes the network is in the graph, so that a failed transaction
        # restores it.
        bare = Phenotype(phenotype.inputs, phenotype.outputs, {})
        self._phenotype = graph.input(_plain(bare), name=f"{self._prefix}phenotype")
        if place is None or place.inputs is None:
            self._inputs = [
                graph.input(np.zeros(1), name=self._name(key)) for key in phenotype.inputs
            ]
        else:
            self._inputs = place.inputs
        self._given = np.zeros((0, 0))
        self._graph, self._known = graph, (self._phenotype.value, bare)
        try:
            self._become(phenotype, {})
        except BaseException:
            self._graph = self._known = None
            raise

    # --- values ------------------------------------------------------------------------------

    def __contains__(self, key: object) -> bool:
        """Return whether this is the key of a neuron or an input."""
        return key in self.phenotype.neurons or key in self.phenotype.inputs

    def __iter__(self) -> Iterator[int]:
        """Iterate over the keys of the inputs, then of the neurons, each after its sources."""
        return iter((*self.phenotype.inputs, *self.phenotype.neurons))

    def __getitem__(self, key: int) -> rg.Var:
        """Return the node of a neuron or an input, by its key in the genome.

        Raises
        ------
        UnknownNameError
            If there is none that leads to an output.
        DTypeError
            If it is no key of a genome.
        """
        inputs = self.phenotype.inputs
        if self._place is not None and key in inputs:
            return self._inputs[inputs.index(key)]
        return find(self.graph, self.phenotype, key, "net[{}]", self._name)

    def _name(self, key: int) -> str:
        return self._prefix + node_name(key)

    def _genes_name(self, key: int) -> str:
        return self._prefix + genes_name(key)

    def genes(self, key: int) -> rg.Var:
        """Return the node of a neuron's bias, response and weights, in an array.

        Raises
        ------
        UnknownNameError, DTypeError
            As for ``net[key]``.

        Examples
        --------
        See ``Network`` and ``fit``.
        """
        return find(self.graph, self.phenotype, key, "net.genes({})", self._genes_name)

    @property
    def phenotype(self) -> Phenotype:
        """The neurons that the genome expresses."""
        program = self._program
        if program is not None:
            if self._known is None:
                self._known = None, phenotype_of(program)
            return self._known[1]
        plain, known = self._known
        if self._phenotype.value is not plain:  # a failed transaction has restored an earlier one
            plain = self._phenotype.value
            neurons = {key: Neuron(*one) for key, *one in plain["neurons"]}
            known = Phenotype(plain["inputs"], plain["outputs"], neurons)
            self._known = plain, known
        return known

    def _describe(self, phenotype: Phenotype) -> None:
        self._phenotype.set(_plain(phenotype))
        self._known = self._phenotype.value, phenotype

    @property
    def outputs(self) -> rg.Var:
        """The node of all outputs, of shape (samples, outputs)."""
        if self._program is not None:
            with opening:
                self._open()
        return self._outputs

    @property
    def ran(self) -> tuple[int, ...]:
        """The keys of the neurons that the latest ``activate`` computed, in their order."""
        if self._run is None:
            program = self._program
            return tuple(self.phenotype.neurons) if program is not None and program.ran else ()
        start = f"{self._prefix}neuron "
        names = [var.name for var in self._run.ran]
        return tuple([int(name[len(start) :]) for name in names if name.startswith(start)])

    def activate(self, inputs: Any) -> Any:
        """Return the outputs for one sample or for many.

        Only neurons that are stale are computed.

        Parameters
        ----------
        inputs : list of float, or array_like of shape (samples, inputs)

        Returns
        -------
        list of float, or array of shape (samples, outputs)

        Raises
        ------
        ShapeError
            If there is not one number for each input.
        DTypeError
            If something is no number.

        Examples
        --------
        See ``Network``.
        """
        program = self._program
        if program is not None:
            found = program.activate(inputs)
            if found is not None:
                if self._run is not None:
                    self._run = None
                return found
        return self._activate(inputs)

    def _activate(self, inputs: Any) -> Any:
        """Do what ``activate`` does for many samples, or in the graph."""
        given, alone = columns(inputs, self.phenotype.inputs)
        if self._program is not None:
            if alone:
                return self.activate(given.ravel().tolist())
            with opening:
                self._build()
        with self._lock:
            self._graph.set(self._changed(given))
            object.__setattr__(self, "_run", self._graph.forward(self._outputs))
            value = self._outputs.value
            object.__setattr__(self, "_given", given)
        if alone:
            return value.ravel().tolist()
        # Where no input leads to any output, outputs are the same in all samples.
        return value if value.ndim == 2 else np.broadcast_to(value, (given.shape[1], len(value)))

    def _changed(self, given: np.ndarray[Any, Any]) -> dict[rg.Var, Any]:
        """Return new values for inputs that hold something else.

        Bits are compared, so that NaN equals NaN.
        """
        before = self._given
        if before.shape != given.shape:
            return dict(zip(self._inputs, given, strict=True))
        differs = (before.view(np.int64) != given.view(np.int64)).any(axis=1).tolist()
        return {
            var: row
            for var, row, new in zip(self._inputs, given, differs, strict=True)
            # An input may have been set to something else since the last call.
            if new or var.value.tobytes() != row.tobytes()
        }

    # --- evolution ---------------------------------------------------------------------------

    def update(self, genome: Any) -> None:
        """Become the network of another genome, or of this one after a mutation.

        Only differences are changed.

        What the difference does not reach keeps its values and versions. ``net[key]`` and
        ``net.genes(key)`` stay the same nodes as long as the neuron lives, and gradients and
        everything else that you have computed from them follow. Genes that were set in the graph,
        ``net.genes(key).set(...)``, are left where the genome has not changed: see ``adopt``.

        Parameters
        ----------
        genome : neat.DefaultGenome

        Raises
        ------
        GenomeError
            If enabled connections that lead to an output form a cycle (neat-python gives 0 for an output
            behind one), a connection begins at a node that is missing, or a gene holds no finite number
            or an unknown function; nothing has changed then. An output that nothing leads to is
            constant, as in neat-python: the activation of its bias.
        EditError
            If a node of your own is computed from what a neuron takes in, ``net[key].parents[0]``, and that
            is replaced; or, in a fork, from a neuron that goes, also if it was there before the fork. If a
            neuron that changes is pinned. Nothing has changed then.
        ShapeError, IndexingError
            If what you have computed from genes does not take their new length; or inside of ``g.edit()``,
            where nothing changes yet. Nothing has changed then.

        Examples
        --------
        See ``Network``.
        """
        if self._config is None:
            raise rg.DTypeError(
                "net.update(genome): the network was made from node_evals and has no config to read a "
                "genome with. Make it by create(genome, config)."
            )
        if self._place is not None and self._place.genes is not None:
            raise rg.EditError(
                "net.update(genome): the genes of this network are shared, and another genome has others. "
                "Make another network of them: create(genome, config, graph=net.graph, name=..., genes=...)."
            )
        phenotype = feed_forward(genome, self._config)
        with opening:
            self._open()
        with self._lock:
            self._become(phenotype, self.phenotype.neurons)

    def fork(self, genome: Any = None) -> Any:
        """Return a twin that shares all values, for a child.

        Parameters
        ----------
        genome : neat.DefaultGenome, optional
            The child's, to which the twin is updated.

        Returns
        -------
        Network

        Examples
        --------
        >>> import neat as neat_python
        >>> from reactgrad import neat
        >>> from reactgrad.demo import neat_config
        >>> config = neat_config()
        >>> genome = neat_python.Population(config, seed=1).population[1]
        >>> net = neat.Network.create(genome, config)
        >>> before = net.activate([1.0, 0.0])
        >>> genome.nodes[0].bias += 1.0
        >>> child = net.fork(genome)
        >>> child.activate([1.0, 0.0]) == before, net.activate([1.0, 0.0]) == before
        (False, True)
        """
        child = object.__new__(type(self))
        child._program, child._config = None, self._config
        with opening:
            self._open()
        with self._lock:
            child._graph = graph = self._graph.fork()
            child._known, child._given = self._known, self._given
        child._phenotype, child._outputs = graph[self._phenotype], graph[self._outputs]
        child._inputs = [graph[var] for var in self._inputs]
        child._prefix = self._prefix
        if self._place is not None:
            child._place = self._place._replace(graph=graph, inputs=child._inputs)
        child._is_fork, child._lock = True, RLock()
        if genome is not None:
            child.update(genome)
        return child

    def adopt(self) -> None:
        """Record the genes that were set in the graph, ``net.genes(key).set(...)``.

        ``update`` then compares with these; ``fit`` calls it.

        Examples
        --------
        See ``fit``.
        """
        if self._program is not None:
            return
        with self._lock:
            self._describe(replace(self.phenotype, neurons=self._neurons()))

    def _neurons(self) -> dict[int, Neuron]:
        """Return the neurons with the genes that they have in the graph."""
        return {
            key: one._replace(genes=tuple(self.genes(key).value.tolist()))
            for key, one in self.phenotype.neurons.items()
        }

    def _become(self, phenotype: Phenotype, old: dict[int, Neuron]) -> None:
        """Change the graph from these neurons to those of a phenotype, in one transaction."""
        graph, new = self._graph, phenotype.neurons
        kept = [key for key in new if key in old]
        leaving = [key for key in old if key not in new]
        rewired = {k for k in kept if old[k].takes_in != new[k].takes_in}
        resized = {k for k in rewired if len(old[k].genes) != len(new[k].genes)}
        nodes = dict(zip(phenotype.inputs, self._inputs, strict=True))
        nodes |= {key: graph[self._name(key)] for key in kept}
        genes = {key: graph[self._genes_name(key)] for key in kept}
        former = [graph[name(key)] for name in (self._name, self._genes_name) for key in leaving]
        shared = None if self._place is None else self._place.genes

        def potential(key: int) -> rg.Var:
            if key not in genes:
                values = np.array(new[key].genes, np.float64)
                genes[key] = graph.param(values) if shared is None else shared.take(key, new[key])
            return taken_in(new[key], genes[key], [nodes[source] for source in new[key].sources])

        with graph.transaction():
            # Genes can get another length only where nothing is computed from them.
            with graph.edit():
                for key in resized:
                    takes_in = nodes[key].parents[0]
                    nodes[key].replace_parent(0, graph.input(shape=takes_in.shape))
                    graph.remove(*self._inner_nodes(key))
            graph.set({genes[k]: new[k].genes for k in kept if old[k].genes != new[k].genes})
            with graph.edit():  # optimisers keep what they remember of a connection that stays
                for key in rewired:
                    extend.carry(genes[key], places(old[key], new[key]))
            for key in new:  # sources first
                if key not in old:
                    nodes[key] = activated(new[key], potential(key))
            outputs = [nodes[key] for key in phenotype.outputs]
            with graph.edit():
                for key in kept:
                    if key in rewired or old[key].activation != new[key].activation:
                        takes_in = potential(key) if key in rewired else nodes[key].parents[0]
                        nodes[key].rewire(takes_in, function=new[key].activation)
                if not old:
                    self._outputs = side_by_side(*outputs)
                elif any(key not in old for key in phenotype.outputs):
                    self._outputs.rewire(*outputs)
                # The former nodes go, even if the user holds one: their genes have another meaning
                # now.
                for key in rewired - resized:
                    graph.remove(*self._inner_nodes(key))
                if self._is_fork:
                    for key in leaving:
                        graph.remove(*self._inner_nodes(key), self[key], self.genes(key))
            for var in former:
                if var in graph:
                    var.name = None
            for key in new:
                if key not in old:
                    nodes[key].name, genes[key].name = self._name(key), self._genes_name(key)
            self._outputs.name = f"{self._prefix}outputs"
            self._describe(phenotype)

    def _inner_nodes(self, key: int) -> list[rg.Var]:
        """Return the nodes between a neuron and its sources."""
        stop = {self[source] for source in self.phenotype.neurons[key].sources}
        found = dict.fromkeys(self[key].parents)
        for var in (pending := list(found)):
            for parent in var.parents:
                if parent not in stop and parent not in found and parent.parents:
                    found[parent] = None
                    pending.append(parent)
        return list(found)


def _again(cls: Any, phenotype: Phenotype, config: Any) -> Any:
    self = object.__new__(cls)
    self._program, self._config = program_of(FEED_FORWARD, phenotype), config
    return self
