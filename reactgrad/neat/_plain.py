"""Flat programs in Python, where the compiled ones (``_flat.c``) are not there; the interface is the same.

The formulas are neat-python's, for one float, with the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from operator import mul
from typing import Any, Final

SELU: Final = 1.0507009873554804934193349852946
SELU_ALPHA: Final = SELU * 1.6732632423543772848170429916717


def _clamp(z: float, limit: float) -> float:
    """Return neat-python's ``max(-limit, min(limit, z))``, in which NaN becomes the limit."""
    # Calls of `min` and `max` would be half the cost of a neuron.
    z = z if z < limit else limit  # noqa: FURB136 -- see above
    return z if z > -limit else -limit  # noqa: FURB136 -- see above


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
    "sigmoid": lambda z: 1.0 / (1.0 + math.exp(-_clamp(5.0 * z, 60.0))),
    "tanh": lambda z: math.tanh(_clamp(2.5 * z, 60.0)),
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


class Program:
    """A network as rows of neurons over slots, which lie as ``_flat.c`` says."""

    def __init__(
        self,
        kind: int,
        inputs: tuple[int, ...],
        rows: Sequence[Row],
        resting: tuple[int, ...],
        out: tuple[int, ...],
    ) -> None:
        self.kind, self.rows, self.out = kind, list(rows), out
        self.keys = [*inputs, *[row[0] for row in rows], *resting]
        self.inputs, self.neurons = len(inputs), len(rows)
        self.slots, self.outputs = len(self.keys), len(out)
        self.owns = int(any(callable(one) for row in rows for one in row[1:3]))
        self._steps = [
            (
                slot,
                FUNCTIONS.get(activation, activation),
                FUNCTIONS.get(aggregation, aggregation),
                genes[0],
                genes[1],
                tuple(zip(sources, genes[2:])),
            )
            for slot, (_, activation, aggregation, genes, sources, _) in enumerate(
                rows, self.inputs
            )
        ]
        self.reset()

    def reset(self) -> None:
        """Set all values to 0."""
        self._banks = [[0.0] * self.slots for _ in range(2 if self.kind else 1)]
        self.active = self.given = self.ran = 0

    def bank(self, which: int) -> list[float]:
        """Return the values in all slots."""
        return list(self._banks[which])

    def resume(self, active: int, banks: list[list[float]]) -> None:
        """Take on the values of another program of the same network."""
        self._banks = [list(bank) for bank in banks]
        self.active, self.given = active, 1

    def put(self, slot: int, number: float) -> None:
        """Set the value in a slot."""
        for bank in self._banks:
            bank[slot] = number

    def activate(self, given: Any) -> list[float] | None:
        """Compute one sample; ``None`` if it is no list of as many numbers."""
        values = self._sample(given)
        if values is None:
            return None
        former = self._banks[self.active]
        if not self.kind and self.given and former[: self.inputs] == values:
            self.ran = 0
        else:
            self._step(values)
            self.ran = 1
        values = self._banks[self.active]
        return [values[slot] for slot in self.out]

    def _sample(self, given: Any) -> list[float] | None:
        if type(given) not in (list, tuple):
            given = given.tolist() if getattr(given, "ndim", 0) == 1 else None
        if given is None or len(given) != self.inputs:
            return None
        if not _FLOATS.issuperset(map(type, given)):
            if not all(isinstance(one, float | int) for one in given):
                return None
            given = map(float, given)
        return list(given)

    def _step(self, given: list[float]) -> None:
        """Make a step aside, since functions of the user may fail."""
        if self.kind:
            before = given + self._banks[self.active][self.inputs :]
            values = given + self._banks[1 - self.active][self.inputs :]
        else:
            before = values = given + self._banks[0][self.inputs :]
        for slot, activation, aggregation, bias, response, links in self._steps:
            total = aggregation([before[source] * weight for source, weight in links])
            values[slot] = activation(bias + response * total)
        self._keep(before, values)

    def _keep(self, before: list[float], values: list[float]) -> None:
        if self.kind:
            self._banks[self.active] = before
            self.active = 1 - self.active
        self._banks[self.active] = values
        self.given = 1

    def advance(self, given: Any, now: float, end: float, most: float) -> float | None:
        """Make steps of at most `most` in time; return the time that is reached."""
        values = self._sample(given)
        if values is None:
            return None
        while now < end:
            dt = min(most, end - now)
            self._step_in_time(values, dt)
            now += dt
        return now

    def _step_in_time(self, given: list[float], dt: float) -> None:
        before = given + self._banks[self.active][self.inputs :]
        values = given + self._banks[1 - self.active][self.inputs :]
        for step, row in zip(self._steps, self.rows, strict=True):
            slot, activation, aggregation, bias, response, links = step
            total = aggregation([before[source] * weight for source, weight in links])
            z = activation(bias + response * total)
            if self.kind == 2:
                values[slot] += dt / row[5] * (-values[slot] + z)
            else:
                decay = math.exp(-dt / row[5])
                values[slot] = decay * before[slot] + (1.0 - decay) * z
        self._keep(before, values)
