"""Networks of spiking neurons (``IZNN``), step by step as neat-python's.

Eugene M. Izhikevich, Simple Model of Spiking Neurons, IEEE Transactions on Neural Networks 14, 2003.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reactgrad._attributes import OwnAttributes
from reactgrad.neat._errors import SampleError
from reactgrad.neat._phenotype import spiking
from reactgrad.neat._program import FLAT


def _no_spike(neurons: Any, given: Any, dt_msec: float, kind: type) -> bool:
    return False


spike: Any = _no_spike if FLAT is None else FLAT.spike


class IZNeuron:
    """A spiking neuron, with the attributes of neat-python's.

    Parameters
    ----------
    bias : float
        The current that is always there.
    a, b : float
        The pace of the recovery, and how it follows the potential.
    c, d : float
        After a spike, the potential, and what the recovery rises by.
    inputs : list of tuple
        Pairs of a source and a weight.

    Attributes
    ----------
    v, u : float
        Membrane potential in millivolts, and recovery.
    fired : float
        1 if the latest step ended in a spike, else 0.
    current : float
        Input of the next step.

    Examples
    --------
    >>> from reactgrad import neat
    >>> neuron = neat.IZNeuron(10.0, 0.02, 0.2, -65.0, 8.0, [])
    >>> spikes = 0.0
    >>> for _ in range(1000):
    ...     neuron.advance(0.25)
    ...     spikes += neuron.fired
    >>> spikes
    6.0
    """

    def __init__(
        self, bias: float, a: float, b: float, c: float, d: float, inputs: list[tuple[int, float]]
    ) -> None:
        self.a, self.b, self.c, self.d = a, b, c, d
        self.bias, self.inputs = bias, inputs
        self.reset()

    def reset(self) -> None:
        """Return to rest."""
        self.v = self.c
        self.u = self.b * self.v
        self.fired = 0.0
        self.current = self.bias

    def advance(self, dt_msec: float) -> None:
        """Make a step in time: the potential in two halves, then the recovery."""
        v, u, current = self.v, self.u, self.current
        half = 0.5 * dt_msec
        try:
            v += half * (0.04 * v**2 + 5 * v + 140 - u + current)
            v += half * (0.04 * v**2 + 5 * v + 140 - u + current)
            u += dt_msec * self.a * (self.b * v - u)
        except OverflowError:  # back to rest, without a spike
            v = self.c
            u = self.b * v
        if v > 30.0:
            self.fired = 1.0
            self.v = self.c
            self.u = u + self.d
        else:
            self.fired = 0.0
            self.v, self.u = v, u


class IZNN(OwnAttributes):
    """neat-python's ``IZNN``: a network of spiking neurons.

    Parameters
    ----------
    neurons : dict of IZNeuron
        By key.
    inputs, outputs : list of int
        Keys.

    Examples
    --------
    >>> from reactgrad import neat
    >>> neuron = neat.IZNeuron(0.0, 0.02, 0.2, -65.0, 8.0, [(-1, 20.0)])
    >>> net = neat.IZNN({0: neuron}, [-1], [0])
    >>> net.set_inputs([1.0])
    >>> sum(net.advance(0.25)[0] for _ in range(1000))
    13.0
    """

    def __init__(
        self, neurons: Mapping[int, IZNeuron], inputs: list[int], outputs: list[int]
    ) -> None:
        self.neurons, self.inputs, self.outputs = neurons, inputs, outputs
        self.input_values: dict[int, float] = {}

    @staticmethod
    def create(genome: Any, config: Any) -> IZNN:
        """Return the network of a genome.

        Parameters
        ----------
        genome : neat.iznn.IZGenome
        config : neat.Config

        Raises
        ------
        GenomeError
            If a connection begins at a node that is missing, or a gene holds no finite number.
        """
        inputs, outputs, found = spiking(genome, config)
        return IZNN({key: IZNeuron(*one) for key, one in found.items()}, inputs, outputs)

    def set_inputs(self, inputs: Any) -> None:
        """Set the input voltages, which stay.

        Raises
        ------
        ShapeError
            If there is not one for each input.
        """
        if len(inputs) != len(self.inputs):
            raise SampleError(
                f"Number of inputs {len(inputs)} does not match number of input nodes "
                f"{len(self.inputs)}. Give a list of {len(self.inputs)} numbers."
            )
        self.input_values.update(zip(self.inputs, inputs))

    def reset(self) -> None:
        """Set all neurons back to rest; the inputs stay."""
        for one in self.neurons.values():
            one.reset()

    def get_time_step_msec(self) -> float:
        """Return the step that neat-python proposes, 0.05 milliseconds."""
        return 0.05

    def advance(self, dt_msec: float) -> list[float]:
        """Make a step of so many milliseconds; return for each output whether it fired, 1 or 0."""
        neurons, given = self.neurons, self.input_values
        if spike(neurons, given, dt_msec, IZNeuron):
            return [neurons[key].fired for key in self.outputs]
        for one in neurons.values():
            current = one.bias
            for source, weight in one.inputs:
                neuron = neurons.get(source)
                current += (given[source] if neuron is None else neuron.fired) * weight
            one.current = current
        for one in neurons.values():
            one.advance(dt_msec)
        return [neurons[key].fired for key in self.outputs]
