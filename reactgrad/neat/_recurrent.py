"""A recurrent network: each step computes all neurons from their values one step before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from threading import RLock
from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad._attributes import OwnAttributes
from reactgrad.neat._compiled import new_graph
from reactgrad.neat._keys import find, genes_name, node_name
from reactgrad.neat._neuron import activated, taken_in
from reactgrad.neat._opening import NodeKeys, Opening, opening
from reactgrad.neat._phenotype import Neuron, Phenotype
from reactgrad.neat._program import (
    RECURRENT,
    evaluations,
    phenotype_of,
    program_of,
    program_of_evaluations,
    read,
)
from reactgrad.neat._samples import columns, rows


def _stepped(
    phenotype: Phenotype, genes: Mapping[int, rg.Var], before: Mapping[int, Any]
) -> dict[int, rg.Var]:
    """Return the neurons one step after `before`, which holds the inputs of this step."""
    return {
        key: activated(one, taken_in(one, genes[key], [before[source] for source in one.sources]))
        for key, one in phenotype.neurons.items()
    }


def _resting(phenotype: Phenotype) -> set[int]:
    """Return the nodes that are read and never computed, which stay 0, as in neat-python."""
    read = {source for one in phenotype.neurons.values() for source in one.sources}
    return read.union(phenotype.outputs) - phenotype.neurons.keys() - set(phenotype.inputs)


class RecurrentNetwork(NodeKeys, Opening):
    """neat-python's ``RecurrentNetwork``, on a graph.

    Made by ``RecurrentNetwork.create`` for one genome, or from neat-python's ``node_evals``; it is
    not updated or forked. Each call of ``activate`` is one step in time: inputs reach the neurons
    they are connected to, and all neurons change at once. A step for one sample is made by a loop
    without any graph, with the bits that neat-python gives. The graph comes into being when
    somebody asks for it or for a node, or steps with many samples; from then on it makes the steps.

    ``net[key]`` is the node of a neuron at the latest step, computed from its own genes and from
    inputs that hold the step before. Genes that are set, ``net.genes(key).set(...)``, count from the
    next step on: earlier steps are not computed again. A step that fails is not made. A copy, also
    by ``pickle``, has the same genes and the state of its neurons.

    Parameters
    ----------
    inputs, outputs : list of int
        Keys.
    node_evals : list of tuple
        For each neuron its key, activation, aggregation, bias, response, and pairs of a source and
        a weight.

    Examples
    --------
    >>> import neat as neat_python
    >>> from reactgrad import neat
    >>> from reactgrad.demo import neat_config
    >>> config = neat_config(feed_forward=False)
    >>> genome = neat_python.Population(config, seed=1).population[1]
    >>> net = neat.RecurrentNetwork.create(genome, config)
    >>> theirs = neat_python.nn.RecurrentNetwork.create(genome, config)
    >>> all(net.activate([1.0, x]) == theirs.activate([1.0, x]) for x in (0.0, 0.5, 1.0))
    True
    """

    # The flat program, until there is a graph.
    _program: Any
    _graph: Any = None
    _is_recurrent = True
    _phenotype: Any = None

    def __init__(self, inputs: Any, outputs: Any, node_evals: Any) -> None:
        self._program = program_of_evaluations(RECURRENT, inputs, outputs, node_evals)

    @property
    def phenotype(self) -> Phenotype:
        """The neurons that the genome expresses."""
        if self._phenotype is None:
            self._phenotype = phenotype_of(self._program)
        return self._phenotype

    def _open(self) -> None:
        """Build the graph, in the state that the flat program is in."""
        program = self._program
        if program is None:
            return
        graph, phenotype = new_graph(), self.phenotype
        self._lock = RLock()
        self._genes = {
            key: graph.param(np.array(one.genes, np.float64), name=genes_name(key))
            for key, one in phenotype.neurons.items()
        }
        self._before = {
            key: graph.input(np.zeros(1), name=node_name(key) if key < 0 else f"{key} before")
            for key in [*phenotype.inputs, *phenotype.neurons]
        }
        still = {key: graph.const(np.zeros(())) for key in _resting(phenotype)}
        self._now = _stepped(phenotype, self._genes, {**self._before, **still})
        for key, var in self._now.items():
            var.name = node_name(key)
        self._values = {**self._now, **still}
        self._held: dict[int, Any] = {}
        self._active = program.active
        if program.given:
            before, now = [
                dict(zip(program.keys, program.bank(i), strict=True))
                for i in (1 - program.active, program.active)
            ]
            graph.set({var: np.full(1, before[key]) for key, var in self._before.items()})
            graph.forward(*self._now.values())
            self._held = {key: np.full(1, now[key]) for key in self._now}
        self._graph, self._program = graph, None

    @classmethod
    def create(cls, genome: Any, config: Any) -> RecurrentNetwork:
        """Return the network of a genome.

        Parameters
        ----------
        genome : neat.DefaultGenome
        config : neat.Config

        Raises
        ------
        GenomeError
            If a connection begins at a node that is missing, or a gene holds no finite number or an
            unknown function. Cycles are welcome. As in neat-python, a node that no enabled connection
            leads to stays 0, whatever its bias.
        """
        self = object.__new__(cls)
        object.__setattr__(self, "_program", read(RECURRENT, genome, config))
        return self

    @classmethod
    def of(cls, phenotype: Phenotype) -> RecurrentNetwork:
        """Return the network of a phenotype."""
        self = object.__new__(cls)
        self._program = program_of(RECURRENT, phenotype)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the network with its present genes and state, and no graph."""
        active, banks = self.active, self.values
        return _again, (type(self), self._described(), active, banks)

    def _described(self) -> Phenotype:
        """Return the neurons with the genes that they have now."""
        if self._program is not None:
            return self.phenotype
        neurons: dict[int, Neuron] = {
            key: one._replace(genes=tuple(self._genes[key].value.tolist()))
            for key, one in self.phenotype.neurons.items()
        }
        return replace(self.phenotype, neurons=neurons)

    @property
    def node_evals(self) -> list[tuple[Any, ...]]:
        """The neurons as neat-python has them; a copy."""
        program = self._program
        return evaluations(program_of(RECURRENT, self._described()) if program is None else program)

    @property
    def active(self) -> int:
        """The place of the latest step in ``values``: 0 or 1."""
        return self._active if self._program is None else self._program.active

    @property
    def values(self) -> list[dict[int, float]]:
        """The values of all nodes before and after the latest step, of the first sample; a copy."""
        program = self._program
        if program is not None:
            return [dict(zip(program.keys, program.bank(i), strict=True)) for i in (0, 1)]
        still = dict.fromkeys(_resting(self.phenotype), 0.0)
        begun = bool(self._held) or not self._now
        before = {key: _first(var.value) if begun else 0.0 for key, var in self._before.items()}
        now = {key: before[key] for key in self.phenotype.inputs}
        now |= {key: _first(self._held.get(key, 0.0)) for key in self._now}
        banks = [{**before, **still}, {**now, **still}]
        return banks if self._active else banks[::-1]

    def __getitem__(self, key: int) -> rg.Var:
        """Return the node of a neuron or of an input, by its key in the genome.

        Raises as ``Network`` does.
        """
        return find(self.graph, self.phenotype, key, "net[{}]", node_name)

    def genes(self, key: int) -> rg.Var:
        """Return the node of a neuron's bias, response and weights, in an array."""
        return find(self.graph, self.phenotype, key, "net.genes({})", genes_name)

    def activate(self, inputs: Any) -> Any:
        """Make one step in time, for one sample or for many that step together.

        Takes and returns what ``Network.activate`` does, and raises the same errors; ``ShapeError``
        also if there are not as many samples as at the step before.
        """
        program = self._program
        if program is not None:
            found = program.activate(inputs)
            if found is not None:
                return found
        given, alone = columns(inputs, self.phenotype.inputs)
        if alone and self._program is not None:
            return self.activate(given.ravel().tolist())
        with opening:
            self._open()
        with self._lock:
            return self._step(given, alone)

    def _step(self, given: Any, alone: bool) -> Any:
        """Make a step in the graph."""
        samples = given.shape[1]
        values: dict[rg.Var, Any] = {
            self._before[key]: column for key, column in zip(self.phenotype.inputs, given)
        }
        for key in self._now:
            held = np.asarray(self._held.get(key, 0.0))
            # A neuron that no input leads to is the same in all samples.
            if held.shape not in ((), (samples,)):
                raise rg.ShapeError(
                    f"the network is in the middle of {held.size} sequences and was given {samples} "
                    "samples. Give one for each sequence, or begin anew with net.reset()."
                )
            values[self._before[key]] = np.broadcast_to(held, (samples,))
        self._graph.set(values)
        self._graph.forward(*self._now.values())
        held = {key: var.value for key, var in self._now.items()}
        object.__setattr__(self, "_active", 1 - self._active)
        object.__setattr__(self, "_held", held)
        result = rows([self._values[key].value for key in self.phenotype.outputs], samples)
        return result[0].tolist() if alone else result

    def reset(self) -> None:
        """Set all neurons back to 0. The next step may have another number of samples."""
        if self._program is not None:
            self._program.reset()
        else:
            self._held, self._active = {}, 0

    def unroll(self, steps: int) -> Unrolled:
        """Return the network over several steps as one graph, through which gradients pass.

        Parameters
        ----------
        steps : int

        Returns
        -------
        Unrolled
            Its genes are those of this network.

        Examples
        --------
        >>> import neat as neat_python
        >>> import numpy as np
        >>> import reactgrad as rg
        >>> from reactgrad import neat
        >>> from reactgrad.demo import neat_config
        >>> config = neat_config(feed_forward=False)
        >>> genome = neat_python.Population(config, seed=1).population[1]
        >>> net = neat.RecurrentNetwork.create(genome, config)
        >>> three = net.unroll(3)
        >>> three.activate(np.ones((3, 2))).shape
        (3, 1)
        >>> rg.grad(three[0, 2].sum(), net.genes(0)).shape == net.genes(0).shape
        True
        """
        if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
            raise rg.ParameterError(
                f"unroll({steps!r:.60}): it takes a number of steps, at least 1."
            )
        graph = self.graph
        return Unrolled(graph, self.phenotype, self._genes, steps)


def _first(value: Any) -> float:
    return np.ravel(value)[0].item()


def _again(cls: Any, phenotype: Phenotype, active: int, banks: list[dict[int, float]]) -> Any:
    self = object.__new__(cls)
    self._program = program_of(RECURRENT, phenotype)
    self._program.resume(active, [[bank[key] for key in self._program.keys] for bank in banks])
    return self


class Unrolled(OwnAttributes):
    """A recurrent network over several steps; made by ``RecurrentNetwork.unroll``.

    ``unrolled[key, step]`` is the node of a neuron or an input at a step, from 0;
    ``UnknownNameError`` if there is none.
    """

    def __init__(
        self, graph: rg.Graph, phenotype: Phenotype, genes: Mapping[int, rg.Var], steps: int
    ) -> None:
        self.graph = graph
        self.phenotype = phenotype
        self.steps = steps
        zero = graph.const(np.zeros(()))
        still = dict.fromkeys(_resting(phenotype), zero)
        state: dict[int, rg.Var] = dict.fromkeys(phenotype.neurons, zero)
        self._at: list[dict[int, rg.Var]] = []
        for _ in range(steps):
            given = {key: graph.input(np.zeros(1), cutoff="equal") for key in phenotype.inputs}
            state = _stepped(phenotype, genes, {**still, **state, **given})
            self._at.append({**still, **given, **state})

    def __getitem__(self, at: tuple[int, int]) -> rg.Var:
        try:
            key, step = at
            if step >= 0:
                return self._at[step][key]
        except (TypeError, ValueError, LookupError):
            pass
        raise rg.UnknownNameError(
            f"unrolled[{at!r:.60}]: write the key of a neuron or an input, and a step from 0 to "
            f"{self.steps - 1}: unrolled[{self.phenotype.outputs[0] if self.phenotype.outputs else 0}, 0]."
        ) from None

    def activate(self, sequence: Any) -> np.ndarray[Any, Any]:
        """Return the outputs at each step, starting from neurons that are all 0.

        Parameters
        ----------
        sequence : array_like of shape (steps, inputs) or (steps, samples, inputs)

        Returns
        -------
        array of shape (steps, outputs) or (steps, samples, outputs)

        Raises
        ------
        ShapeError
            If there are not as many steps, or not one number for each input.
        DTypeError
            If something is no number.
        """
        try:
            array = np.asarray(sequence)
        except ValueError as error:
            raise rg.ShapeError(
                f"the steps that were given make no array: {error}. Give the same number of samples, and "
                f"{len(self.phenotype.inputs)} numbers each, for every step."
            ) from None
        if array.ndim not in (2, 3) or len(array) != self.steps:
            raise rg.ShapeError(
                f"the network is unrolled over {self.steps} steps and was given an array of shape "
                f"{array.shape}. Give one of shape ({self.steps}, inputs) or ({self.steps}, samples, inputs)."
            )
        values: dict[rg.Var, Any] = {}
        samples = 1 if array.ndim == 2 else array.shape[1]
        for at, one in zip(self._at, array, strict=True):
            given, _ = columns(one, self.phenotype.inputs)
            values |= {at[key]: column for key, column in zip(self.phenotype.inputs, given)}
        self.graph.set(values)
        outputs = [[at[key] for key in self.phenotype.outputs] for at in self._at]
        self.graph.forward(*[var for several in outputs for var in several])
        result = np.stack([rows([var.value for var in several], samples) for several in outputs])
        return result[:, 0] if array.ndim == 2 else result
