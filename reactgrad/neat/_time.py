"""Networks of continuous time (``CTRNN``), step by step as neat-python's."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

import reactgrad as rg
from reactgrad._attributes import ClassAttributes, OwnAttributes
from reactgrad.neat._phenotype import Neuron, Phenotype
from reactgrad.neat._program import (
    EULER,
    EXPONENTIAL,
    code_of,
    evaluations,
    name_of,
    program_of,
    read,
)
from reactgrad.neat._samples import columns

_KINDS: Final = {"euler": EULER, "exponential": EXPONENTIAL}


def _default() -> str:
    """Return the integrator of the neat-python that is there."""
    found = getattr(sys.modules.get("neat"), "__version__", None)
    try:
        major, minor = (found or version("neat-python")).split(".")[:2]
        is_first = (int(major), int(minor)) < (2, 1)
    except (PackageNotFoundError, ValueError):
        is_first = False
    return "euler" if is_first else "exponential"


def _kind_of(integrator: str | None) -> int:
    kind = _KINDS.get(integrator or _default())
    if kind is None:
        raise rg.ParameterError(
            f"CTRNN(integrator={integrator!r:.60}): there is no such integrator. Write 'euler', "
            "'exponential', or None for that of the neat-python that is installed."
        )
    return kind


class CTRNNNodeEval(OwnAttributes):
    """A neuron of continuous time, with the attributes of neat-python's.

    Parameters
    ----------
    time_constant : float
        In seconds.
    activation, aggregation : callable
    bias, response : float
    links : list of tuple
        Pairs of a source and a weight.
    """

    def __init__(
        self,
        time_constant: float,
        activation: Any,
        aggregation: Any,
        bias: float,
        response: float,
        links: list[tuple[int, float]],
    ) -> None:
        self.time_constant = time_constant
        self.activation = activation
        self.aggregation = aggregation
        self.bias = bias
        self.response = response
        self.links = links


class CTRNN(ClassAttributes):
    """neat-python's ``CTRNN``: neurons that follow their inputs with a delay, each at its own pace.

    Each step takes all neurons from their values before it, by a loop without any graph. Values
    have the bits of neat-python's.

    Parameters
    ----------
    inputs, outputs : list of int
        Keys.
    node_evals : dict of CTRNNNodeEval
        By key. Read at once: later changes have no effect.
    integrator : {"euler", "exponential"}, optional
        How a step is made; by default as the installed neat-python does. ``"euler"`` is that of
        neat-python 2.0, which moves a neuron from its value two steps before, and returns the
        values before the latest step; ``"exponential"`` that of 2.1, which is exact for constant
        inputs and stable for any step.

    Attributes
    ----------
    time_seconds : float
        The time that is reached.

    Examples
    --------
    >>> import math
    >>> from reactgrad import neat
    >>> def same(z):
    ...     return z
    >>> evals = {0: neat.CTRNNNodeEval(0.5, same, sum, 0.0, 1.0, [(-1, 1.0)])}
    >>> net = neat.CTRNN([-1], [0], evals, integrator="exponential")
    >>> (value,) = net.advance([1.0], 0.5, 0.01)
    >>> abs(value - (1.0 - math.exp(-1.0))) < 1e-12
    True
    """

    time_seconds = 0.0

    def __init__(
        self,
        inputs: Iterable[int],
        outputs: Iterable[int],
        node_evals: Mapping[int, Any],
        integrator: str | None = None,
    ) -> None:
        neurons = {
            key: Neuron(
                name_of(code_of(one.activation)),
                name_of(code_of(one.aggregation)),
                (float(one.bias), float(one.response), *[float(w) for _, w in one.links]),
                tuple([source for source, _ in one.links]),
            )
            for key, one in node_evals.items()
        }
        constants = {key: float(one.time_constant) for key, one in node_evals.items()}
        known = Phenotype(tuple(inputs), tuple(outputs), neurons)
        self._begin(program_of(_kind_of(integrator), known, constants))

    def _begin(self, program: Any) -> None:
        self._program = program
        self.time_seconds = 0.0

    @classmethod
    def create(cls, genome: Any, config: Any, integrator: str | None = None) -> CTRNN:
        """Return the network of a genome.

        Parameters
        ----------
        genome : neat.DefaultGenome
            Whose nodes have a ``time_constant``.
        config : neat.Config
        integrator : {"euler", "exponential"}, optional

        Raises
        ------
        GenomeError
            As for ``RecurrentNetwork``.
        """
        self = object.__new__(cls)
        self._begin(read(_kind_of(integrator), genome, config))
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the network with its state."""
        program = self._program
        state = program.active, [program.bank(0), program.bank(1)], self.time_seconds
        given = self.input_nodes, self.output_nodes, self.node_evals, self.integrator
        return _again, (type(self), given, *state)

    @property
    def integrator(self) -> str:
        """The way in which a step is made."""
        return "euler" if self._program.kind == EULER else "exponential"

    @property
    def input_nodes(self) -> list[int]:
        """The keys of the inputs."""
        return self._program.keys[: self._program.inputs]

    @property
    def output_nodes(self) -> list[int]:
        """The keys of the outputs."""
        keys = self._program.keys
        return [keys[slot] for slot in self._program.out]

    @property
    def node_evals(self) -> dict[int, CTRNNNodeEval]:
        """The neurons as neat-python has them; a copy."""
        program = self._program
        return {
            key: CTRNNNodeEval(row[5], *own)
            for (key, *own), row in zip(evaluations(program), program.rows, strict=True)
        }

    @property
    def active(self) -> int:
        """The place of the latest step in ``values``: 0 or 1."""
        return self._program.active

    @property
    def values(self) -> list[dict[int, float]]:
        """The values of all nodes before and after the latest step; a copy."""
        program = self._program
        return [dict(zip(program.keys, program.bank(i), strict=True)) for i in (0, 1)]

    def reset(self) -> None:
        """Set all values and the time back to 0."""
        self._program.reset()
        self.time_seconds = 0.0

    def set_node_value(self, node_key: int, value: float) -> None:
        """Set the value of a node.

        Raises
        ------
        UnknownNameError
            If the network has no such node.
        """
        keys = self._program.keys
        if node_key not in keys:
            raise rg.UnknownNameError(
                f"net.set_node_value({node_key!r:.60}, ...): the network has no such node. It has "
                f"{', '.join(map(str, keys)):.200}."
            )
        self._program.put(keys.index(node_key), float(value))

    def get_max_time_step(self) -> float:
        """Raise ``NotImplementedError``, as neat-python does: give ``advance`` a time step."""
        raise NotImplementedError(
            "get_max_time_step(): the longest stable step is not known. Give one: "
            "net.advance(inputs, advance_time, time_step)."
        )

    def advance(
        self, inputs: Any, advance_time: float, time_step: float | None = None
    ) -> list[float]:
        """Let time pass with constant inputs, and return the outputs.

        Parameters
        ----------
        inputs : list of float
        advance_time : float
            In seconds.
        time_step : float
            The longest step, in seconds.

        Raises
        ------
        ShapeError
            If there is not one number for each input.
        DTypeError
            If something is no number.
        """
        if time_step is None:
            time_step = 0.5 * self.get_max_time_step()
        program, now = self._program, self.time_seconds
        if not time_step > 0.0:
            raise rg.ParameterError(
                f"net.advance(..., time_step={time_step!r:.60}): time does not pass by such a step. Give "
                "a number above 0."
            )
        reached = program.advance(inputs, now, now + advance_time, time_step)
        if reached is None:
            given, alone = columns(inputs, tuple(self.input_nodes))
            if not alone:
                raise rg.ShapeError(
                    f"net.advance was given an array of shape {given.T.shape}, and is in one state. Give "
                    "one sample, a list of numbers."
                )
            sample = given.ravel().tolist()
            reached = program.advance(sample, now, now + advance_time, time_step)
        object.__setattr__(self, "time_seconds", reached)
        latest = program.bank(1 - program.active if program.kind == EULER else program.active)
        return [latest[slot] for slot in program.out]


def _again(cls: Any, given: Any, active: int, banks: list[list[float]], time: float) -> Any:
    net = CTRNN(*given)
    self = object.__new__(cls)
    self.__dict__.update(net.__dict__)
    self._program.resume(active, banks)
    self.time_seconds = time
    return self
