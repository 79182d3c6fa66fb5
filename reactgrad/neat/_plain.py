"""Flat programs in Python, where the compiled ones (``_flat.c``) are not there; the interface is the same.

The formulas are neat-python's, for one float, with the same bits.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from functools import reduce
from math import exp, tanh
from operator import mul
from typing import Any, Final

SELU: Final = 1.0507009873554804934193349852946
SELU_ALPHA: Final = SELU * 1.6732632423543772848170429916717


def _clamp(z: float, limit: float) -> float:
    """Return neat-python's ``max(-limit, min(limit, z))``, in which NaN becomes the limit."""
    # Calls of `min` and `max` would be half the cost of a neuron.
    z = z if z < limit else limit  # noqa: FURB136 -- see above
    return z if z > -limit else -limit  # noqa: FURB136 -- see above


def _sigmoid(z: float) -> float:
    z *= 5.0
    if not z < 60.0:
        z = 60.0
    elif not z > -60.0:
        z = -60.0
    return 1.0 / (1.0 + exp(-z))


def _tanh(z: float) -> float:
    z *= 2.5
    if not z < 60.0:
        z = 60.0
    elif not z > -60.0:
        z = -60.0
    return tanh(z)


def _inv(z: float) -> float:
    return 0.0 if z == 0.0 else 1.0 / z


def _power(z: float, exponent: int) -> float:
    try:
        return z**exponent
    except OverflowError:
        return math.inf if z > 0.0 or exponent == 2 else -math.inf


def _middle(terms: list[float]) -> float:
    if len(terms) <= 2:
        return sum(terms) / len(terms)
    terms = sorted(terms)
    i = len(terms) // 2
    return terms[i] if len(terms) % 2 else (terms[i - 1] + terms[i]) / 2.0


# In the order of their codes.
ACTIVATIONS: Final[dict[str, Callable[[float], float]]] = {
    "sigmoid": _sigmoid,
    "tanh": _tanh,
    "sin": lambda z: math.sin(_clamp(5.0 * z, 60.0)),
    "gauss": lambda z: math.exp(-5.0 * _clamp(z, 3.4) ** 2),
    "relu": lambda z: max(0.0, z),
    "elu": lambda z: z if z > 0.0 else math.exp(z) - 1,
    "lelu": lambda z: z if z > 0.0 else 0.005 * z,
    "selu": lambda z: SELU * z if z > 0.0 else SELU_ALPHA * (math.exp(z) - 1),
    "softplus": lambda z: 0.2 * math.log(1 + math.exp(_clamp(5.0 * z, 60.0))),
    "identity": lambda z: z,
    "clamped": lambda z: _clamp(z, 1.0),
    "inv": _inv,
    "log": lambda z: math.log(max(1e-7, z)),
    "exp": lambda z: math.exp(_clamp(z, 60.0)),
    "abs": abs,
    "hat": lambda z: max(0.0, 1 - abs(z)),
    "square": lambda z: _power(z, 2),
    "cube": lambda z: _power(z, 3),
}
AGGREGATIONS: Final[dict[str, Callable[[list[float]], float]]] = {
    "sum": sum,
    "product": lambda terms: reduce(mul, terms, 1.0),
    "max": lambda terms: max(terms) if terms else 0.0,
    "min": lambda terms: min(terms) if terms else 0.0,
    "maxabs": lambda terms: max(terms, key=abs) if terms else 0.0,
    "median": lambda terms: _middle(terms) if terms else 0.0,
    "mean": lambda terms: sum(terms) / len(terms) if terms else 0.0,
}
_FLOATS: Final = frozenset((float,))
OWN: Final = -1
FIRST_AGGREGATION: Final = 32
FUNCTIONS: Final[dict[int, Any]] = {
    **dict(enumerate(ACTIVATIONS.values())),
    **dict(enumerate(AGGREGATIONS.values(), FIRST_AGGREGATION)),
}

# Key, activation, aggregation (codes, or functions of the user), genes, slots of sources, time constant.
Row = tuple[int, Any, Any, tuple[float, ...], tuple[int, ...], float]
# Key, activation, aggregation (functions), bias, response, keys of sources with weights.
Step = tuple[int, Any, Any, float, float, list[tuple[int, float]]]


class Program:
    """A network as neurons in the order in which they are computed.

    Values lie in dicts by key, in the order of the slots of ``_flat.c``.
    """

    def __init__(
        self,
        kind: int,
        inputs: list[int],
        outputs: list[int],
        steps: list[Step],
        codes: list[tuple[int, int]],
        constants: list[float],
    ) -> None:
        self.kind = kind
        self._inputs, self._outputs = inputs, outputs
        self._steps, self._codes, self._constants = steps, codes, constants
        self.owns = 0
        for code in codes:
            if OWN in code:
                self.owns = 1
        self.active = self.given = self.ran = 0
        self._last: list[float] | None = None
        zeros: dict[int, float] = {}
        if kind:
            zeros = dict.fromkeys(inputs, 0.0)
            for step in steps:
                zeros[step[0]] = 0.0
            for step in steps:
                for source, _ in step[5]:
                    zeros[source] = 0.0
            for key in outputs:
                zeros[key] = 0.0
        self._banks: list[dict[int, float]] = [zeros, zeros.copy()]

    @property
    def keys(self) -> list[int]:
        """The key of each slot."""
        computed = [step[0] for step in self._steps]
        resting = [source for step in self._steps for source, _ in step[5]]
        return list(dict.fromkeys([*self._inputs, *computed, *resting, *self._outputs]))

    @property
    def rows(self) -> list[Row]:
        """The neurons."""
        slots = {key: slot for slot, key in enumerate(self.keys)}
        return [
            (
                key,
                activation if code[0] == OWN else code[0],
                aggregation if code[1] == OWN else code[1],
                (bias, response, *[weight for _, weight in links]),
                tuple([slots[source] for source, _ in links]),
                constant,
            )
            for (key, activation, aggregation, bias, response, links), code, constant in zip(
                self._steps, self._codes, self._constants, strict=True
            )
        ]

    @property
    def out(self) -> tuple[int, ...]:
        """The slots of the outputs."""
        keys = self.keys
        return tuple([keys.index(key) for key in self._outputs])

    @property
    def inputs(self) -> int:
        """The number of inputs."""
        return len(self._inputs)

    @property
    def outputs(self) -> int:
        """The number of outputs."""
        return len(self._outputs)

    @property
    def slots(self) -> int:
        """The number of slots."""
        return len(self.keys)

    def reset(self) -> None:
        """Set all values to 0."""
        self.active = self.given = self.ran = 0
        self._last = None
        zeros = dict.fromkeys(self.keys, 0.0)
        self._banks = [zeros, zeros.copy()]

    def bank(self, which: int) -> list[float]:
        """Return the values in all slots."""
        values = self._banks[which]
        return [values.get(key, 0.0) for key in self.keys]

    def resume(self, active: int, banks: list[list[float]]) -> None:
        """Take on the values of another program of the same network."""
        self._banks = [dict(zip(self.keys, bank, strict=True)) for bank in banks]
        self.active, self.given = active, 1

    def put(self, slot: int, number: float) -> None:
        """Set the value in a slot."""
        key = self.keys[slot]
        for bank in self._banks:
            bank[key] = number

    def activate(self, given: Any) -> list[float] | None:
        """Compute one sample; ``None`` if it is no list of as many numbers."""
        inputs = self._inputs
        if (
            type(given) is list
            and len(given) == len(inputs)
            and _FLOATS.issuperset(map(type, given))
        ):
            sample = given
        else:
            sample = self._sample(given)
            if sample is None:
                return None
        if not self.kind:
            if sample == self._last:
                self.ran = 0
                values = self._banks[0]
                return [values[key] for key in self._outputs]
            before = values = {} if self.owns else self._banks[0]
            for key, number in zip(inputs, sample):
                values[key] = number
        elif self.owns:
            before, values = self._begin(sample)  # aside, since functions of the user may fail
        else:
            before, values = self._banks[self.active], self._banks[1 - self.active]
            for key, number in zip(inputs, sample):
                before[key] = values[key] = number
        for key, activation, aggregation, bias, response, links in self._steps:
            total = aggregation([before[source] * weight for source, weight in links])
            values[key] = activation(bias + response * total)
        if self.kind:
            self._banks[self.active] = before
            self.active = 1 - self.active
        else:
            self._last = sample.copy()
        self._banks[self.active] = values
        self.given = self.ran = 1
        return [values[key] for key in self._outputs]

    def _sample(self, given: Any) -> list[float] | None:
        if type(given) not in (list, tuple):
            given = given.tolist() if getattr(given, "ndim", 0) == 1 else None
        if given is None or len(given) != len(self._inputs):
            return None
        if not _FLOATS.issuperset(map(type, given)):
            if not all(isinstance(one, float | int) for one in given):
                return None
            given = map(float, given)
        return list(given)

    def _begin(self, sample: list[float]) -> tuple[dict[int, float], dict[int, float]]:
        pins = dict(zip(self._inputs, sample))
        return self._banks[self.active] | pins, self._banks[1 - self.active] | pins

    def advance(self, given: Any, now: float, end: float, most: float) -> float | None:
        """Make steps of at most `most` in time; return the time that is reached."""
        sample = self._sample(given)
        if sample is None:
            return None
        while now < end:
            dt = min(most, end - now)
            before, values = self._begin(sample)
            for step, constant in zip(self._steps, self._constants):
                key, activation, aggregation, bias, response, links = step
                total = aggregation([before[source] * weight for source, weight in links])
                z = activation(bias + response * total)
                if self.kind == 2:
                    values[key] += dt / constant * (-values[key] + z)
                else:
                    decay = math.exp(-dt / constant)
                    values[key] = decay * before[key] + (1.0 - decay) * z
            self._banks[self.active] = before
            self.active = 1 - self.active
            self._banks[self.active] = values
            self.given = self.ran = 1
            now += dt
        return now


def make(
    kind: int,
    inputs: tuple[int, ...],
    rows: tuple[Row, ...],
    resting: tuple[int, ...],
    out: tuple[int, ...],
) -> Program:
    """Return a program made of rows."""
    keys = [*inputs, *[row[0] for row in rows], *resting]
    steps: list[Step] = []
    for key, activation, aggregation, genes, sources, _ in rows:
        own = [FUNCTIONS[one] if type(one) is int else one for one in (activation, aggregation)]
        links = [(keys[slot], weight) for slot, weight in zip(sources, genes[2:], strict=True)]
        steps.append((key, own[0], own[1], genes[0], genes[1], links))
    codes = [
        (row[1] if type(row[1]) is int else OWN, row[2] if type(row[2]) is int else OWN)
        for row in rows
    ]
    constants = [row[5] for row in rows]
    return Program(kind, list(inputs), [keys[slot] for slot in out], steps, codes, constants)


def read(
    kind: int,
    nodes: dict[int, Any],
    connections: dict[tuple[int, int], Any],
    inputs: list[int],
    outputs: list[int],
    activations: dict[str, Any],
    aggregations: dict[str, Any],
    table: dict[Any, int],
) -> Program | None:
    """Return the program of a genome, or ``None`` if something about it is unusual."""
    incoming: dict[int, list[tuple[int, float]]] = {}
    if kind:
        needed = _required(connections, inputs, outputs)
        for (source, target), gene in connections.items():
            if gene.enabled and (target in needed or source in needed):
                if target in incoming:
                    incoming[target].append((source, gene.weight))
                else:
                    incoming[target] = [(source, gene.weight)]
        order = list(incoming)
    else:
        for (source, target), gene in connections.items():
            if gene.enabled:
                if target in incoming:
                    incoming[target].append((source, gene.weight))
                else:
                    incoming[target] = [(source, gene.weight)]
        order = _order(incoming, inputs, outputs)
        if order is None:
            return None
    steps: list[Step] = []
    codes: list[tuple[int, int]] = []
    met: dict[tuple[str, str], tuple[Any, Any, tuple[int, int]]] = {}
    total = 0.0
    try:
        for key in order:
            gene = nodes[key]
            links = incoming.get(key, [])
            names = gene.activation, gene.aggregation
            own = met.get(names)
            if own is None:
                activation, aggregation = activations[names[0]], aggregations[names[1]]
                code = table[activation], table[aggregation]
                own = met[names] = (
                    FUNCTIONS.get(code[0], activation),
                    FUNCTIONS.get(code[1], aggregation),
                    code,
                )
            numbers = [weight for _, weight in links]
            bias, response = gene.bias, gene.response
            numbers += bias, response
            if not _FLOATS.issuperset(map(type, numbers)):
                return None
            total += sum(numbers)
            steps.append((key, own[0], own[1], bias, response, links))
            codes.append(own[2])
        constants = [nodes[key].time_constant for key in order] if kind > 1 else [1.0] * len(order)
    except (LookupError, TypeError, AttributeError):
        return None
    if not math.isfinite(total):
        return None
    if kind:
        for links in incoming.values():
            for source, _ in links:
                if source not in nodes and source not in inputs:
                    return None
    return Program(kind, inputs, outputs, steps, codes, constants)


def _required(connections: Any, inputs: list[int], outputs: list[int]) -> set[int]:
    """Return the outputs and the nodes from which connections, also disabled ones, lead to them."""
    leading: defaultdict[int, list[int]] = defaultdict(list)
    for source, target in connections:
        leading[target].append(source)
    found = set(outputs)
    pending = list(outputs)
    while pending:
        for source in leading.get(pending.pop(), ()):
            if source not in found and source not in inputs:
                found.add(source)
                pending.append(source)
    return found


def _order(
    incoming: dict[int, list[tuple[int, float]]], inputs: list[int], outputs: list[int]
) -> list[int] | None:
    """Return the nodes that lead to the outputs, sources first; ``None`` if there is a cycle."""
    done: dict[int, bool] = dict.fromkeys(inputs, True)  # False while its sources are pending
    order: list[int] = []
    for output in outputs:
        pending = [output]
        while pending:
            key = pending[-1]
            state = done.get(key)
            if state:
                pending.pop()
                continue
            links = incoming.get(key, ())
            if state is None:
                done[key] = False
                more = [source for source, _ in links if source not in done]
                if more:
                    pending.extend(reversed(more))
                    continue
            for source, _ in links:
                if not done[source]:
                    return None
            done[key] = True
            order.append(key)
            pending.pop()
    return order
