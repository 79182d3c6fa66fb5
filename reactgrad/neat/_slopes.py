"""Gradients of flat programs by their genes, without a graph: compiled (``_training.h``), or in NumPy.

The genes of a program are one vector: its neurons one after the other, each with bias, response and weights.
Arrays of samples have a row for each input or output and step in time, and an element a sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from reactgrad import GradientError
from reactgrad.neat._activations import ACTIVATIONS
from reactgrad.neat._aggregations import AGGREGATIONS
from reactgrad.neat._phenotype import Phenotype
from reactgrad.neat._program import FLAT, RECURRENT, name_of, phenotype_of

Array = np.ndarray[Any, Any]

_COMPILED: Final = hasattr(FLAT, "train")


def is_fast(programs: Sequence[Any]) -> bool:
    """Return whether all of these programs are trained by compiled loops."""
    return _COMPILED and all(type(one) is FLAT.Program for one in programs)


def check_slopes(program: Any) -> None:
    """Raise ``GradientError`` if a function is the user's own, whose slope is not known."""
    for _, *functions, _, _, _ in program.rows:
        for what, function in zip(("activation", "aggregation"), functions, strict=True):
            if type(function) is not int:
                known = ACTIVATIONS if what == "activation" else {"sum": 0, **AGGREGATIONS}
                name = getattr(function, "__name__", repr(function))
                raise GradientError(
                    f"the {what} function {name!r} is your own, and its slope is not known. Gradients pass "
                    f"the functions of neat-python: {', '.join(known)}."
                )


def genes_of(program: Any) -> Array:
    """Return the genes of a program."""
    return np.array([number for row in program.rows for number in row[3]], np.float64)


def phenotype_with(program: Any, genes: Array) -> Phenotype:
    """Return what a program computes with other genes."""
    known = phenotype_of(program)
    numbers, at = genes.tolist(), 0
    neurons = {}
    for key, one in known.neurons.items():
        count = len(one.genes)
        neurons[key] = one._replace(genes=tuple(numbers[at : at + count]))
        at += count
    return Phenotype(known.inputs, known.outputs, neurons)


def tape_of(program: Any) -> Any:
    """Return what computes a program and its gradients."""
    return CompiledTape(program) if is_fast([program]) else PlainTape(program)


class CompiledTape:
    """A program over some steps in time with everything that its gradient needs."""

    def __init__(self, program: Any) -> None:
        self._program = program
        self._tape = np.empty(0)
        self._genes = np.empty(0)

    def forward(self, genes: Array, x: Array) -> Array:
        """Return the outputs, of shape (steps, outputs, samples), for genes and inputs.

        Parameters
        ----------
        genes : array
        x : array of shape (steps, inputs, samples)
        """
        program, (steps, _, samples) = self._program, x.shape
        size = ((steps + 1) * program.slots + 2 * steps * program.neurons) * samples
        if len(self._tape) != size:
            self._tape = np.empty(size)
        out = np.empty((steps, program.outputs, samples))
        self._genes = genes
        FLAT.unroll(program, genes, x, self._tape, out, steps, samples)
        return out

    def backward(self, seed: Array, window: int) -> Array:
        """Return the gradient of the genes for that of the outputs.

        No gradient passes the beginning of a window of steps.
        """
        steps, _, samples = seed.shape
        grad = np.empty(len(self._genes))
        FLAT.slopes(self._program, self._genes, self._tape, seed, grad, steps, samples, window)
        return grad


class PlainTape:
    """The same with NumPy, where programs are not compiled."""

    def __init__(self, program: Any) -> None:
        self._rows = [
            (name_of(activation), name_of(aggregation), len(genes), list(sources))
            for _, activation, aggregation, genes, sources, _ in program.rows
        ]
        self._inputs, self._slots, self._out = program.inputs, program.slots, program.out
        self._has_memory = program.kind == RECURRENT
        self._genes = np.empty(0)
        self._kept: list[tuple[list[Any], list[Any]]] = []

    def forward(self, genes: Array, x: Array) -> Array:
        """Do what ``CompiledTape.forward`` does."""
        self._genes, self._kept = genes, []
        samples = x.shape[2]
        state: list[Any] = [np.zeros(samples)] * self._slots
        found = []
        with np.errstate(all="ignore"):
            for given in x:
                before = [*given, *state[self._inputs :]]
                now = before.copy()
                source = before if self._has_memory else now
                potentials = self._step(genes, source, now)
                self._kept.append((source, potentials))
                state = now
                found.append([now[slot] for slot in self._out])
        return np.array(found)

    def _step(self, genes: Array, source: list[Any], now: list[Any]) -> list[Any]:
        at, potentials, zeros = 0, [], np.zeros_like(now[0])
        for i, (activation, aggregation, count, sources) in enumerate(self._rows):
            bias, response, *weights = genes[at : at + count].tolist()
            terms = [source[slot] * w for slot, w in zip(sources, weights, strict=True)]
            total = _aggregated(aggregation, terms, zeros)
            z = bias + response * total
            now[self._inputs + i] = ACTIVATIONS[activation][0](z)
            potentials.append((z, total))
            at += count
        return potentials

    def backward(self, seed: Array, window: int) -> Array:
        """Do what ``CompiledTape.backward`` does."""
        grad = np.zeros(len(self._genes))
        samples = seed.shape[2]
        carry = np.zeros((self._slots, samples))
        with np.errstate(all="ignore"):
            for t in reversed(range(len(self._kept))):
                adjoint, carry = carry, np.zeros((self._slots, samples))
                for slot, one in zip(self._out, seed[t], strict=True):
                    adjoint[slot] += one
                self._back(t, adjoint, carry if self._has_memory else adjoint, grad)
                if t % window == 0:
                    carry[:] = 0.0
        return grad

    def _back(self, t: int, adjoint: Array, carry: Array, grad: Array) -> None:
        source, potentials = self._kept[t]
        at = len(self._genes)
        for i in reversed(range(len(self._rows))):
            activation, aggregation, count, sources = self._rows[i]
            at -= count
            _, response, *weights = self._genes[at : at + count].tolist()
            z, total = potentials[i]
            a = adjoint[self._inputs + i]
            by_z = np.where(a == 0.0, 0.0, a * ACTIVATIONS[activation][1](z))
            grad[at] += by_z.sum()
            grad[at + 1] += (by_z * total).sum()
            if not sources:
                continue
            values = np.array([source[slot] for slot in sources])
            shares = _shares(aggregation, values * np.array(weights)[:, None])
            by_term = by_z * response * shares
            grad[at + 2 : at + count] += (by_term * values).sum(axis=1)
            for slot, weight, one in zip(sources, weights, by_term, strict=True):
                if slot >= self._inputs:
                    carry[slot] += one * weight


def _aggregated(name: str, terms: list[Any], zeros: Any) -> Any:
    if name == "sum":
        return sum(terms, zeros)
    several, none = AGGREGATIONS[name]
    return several(terms) if terms else zeros + none


def _shares(name: str, terms: Array) -> Array:
    """Return the derivative of an aggregation by each term; those that are equal share it."""
    count = len(terms)
    if name == "sum":
        return np.ones_like(terms)
    if name == "mean" or (name == "median" and count <= 2):
        return np.full_like(terms, 1.0 / count)
    if name == "product":
        return np.array([np.delete(terms, k, axis=0).prod(axis=0) for k in range(count)])
    if name == "maxabs":
        best = np.abs(terms).argmax(axis=0)
        return (np.arange(count)[:, None] == best).astype(np.float64)
    if name == "median":
        ordered = np.sort(terms, axis=0)
        ends = ordered[(count - 1) // 2], ordered[count // 2]
    else:
        end = terms.max(axis=0) if name == "max" else terms.min(axis=0)
        ends = end, end
    shares = np.zeros_like(terms)
    for end in ends:
        equal = terms == end
        shares += 0.5 * equal / equal.sum(axis=0)
    return shares
