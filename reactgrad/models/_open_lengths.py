"""Lengths that a file leaves open: what it computes of them, found by trials.

A file leaves its batch open, and makes shapes of it: ``view(x.size(0), -1)``, first states of zeros, a token for each
sample. Where a converter needs such a shape, the file is built three times aside, each time with other lengths, and
nothing but integers is computed there. What is the same in all three does not hang on the lengths; what differs is
known by its three values. So a length is an integer, or a tuple of three.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

import reactgrad as rg
from reactgrad.models._errors import ModelError
from reactgrad.models._tensors import Weight

Values = dict[str, Any]
Length = int | tuple[int, ...]
TRIALS: Final = 3
# Factors of axes behind the first: short sequences first, as each step has nodes; else images that windows fit into.
SCALES: Final = (1, 32)


class OpenLengths:
    """The open lengths of the inputs of a model, and what names of the file are for three choices of them."""

    def __init__(self, build_aside: Callable[[Mapping[str, Any]], Values]) -> None:
        self._build_aside = build_aside
        self._places: dict[Any, list[tuple[str, int]]] = {}  # of each open length, by its symbol
        self._shapes: dict[str, tuple[Any, ...]] = {}
        self._inputs: dict[str, Any] = {}
        self._found: list[Values] | None = None
        self._tried = False

    def note(self, name: str, var: Any, symbols: tuple[Any, ...]) -> None:
        """Keep an input; `symbols` has a number for each fixed length, and else what tells open ones apart."""
        self._inputs[name], self._shapes[name] = var, symbols
        for axis, symbol in enumerate(symbols):
            if not isinstance(symbol, int):
                self._places.setdefault(symbol, []).append((name, axis))

    def shape(self, name: str) -> list[Length] | None:
        """Return the lengths of a value of the file, or ``None`` if the trials do not tell."""
        found = self._each(name)
        if found is None:
            return None
        shapes = [_shape(v) for v in found]
        if len({len(s) for s in shapes}) != 1 or any(None in s for s in shapes):
            return None
        return [one[0] if len(set(one)) == 1 else one for one in zip(*shapes, strict=True)]

    def integers(self, name: str) -> np.ndarray[Any, Any] | None:
        """Return numbers that are the same whatever the open lengths are, or ``None``."""
        found = self._each(name)
        if found is None or not all(isinstance(v, np.ndarray) for v in found):
            return None
        return found[0] if all(np.array_equal(found[0], v) for v in found[1:]) else None

    def numbers(self, name: str) -> list[Length] | None:
        """Return numbers of one axis, each with its three values if it is not the same in all trials, or ``None``."""
        found = self._each(name)
        if found is None or not all(isinstance(v, np.ndarray) and v.ndim == 1 for v in found):
            return None
        rows = zip(*(v.tolist() for v in found), strict=True)
        return [one[0] if len(set(one)) == 1 else one for one in rows]

    def true(self, length: Length) -> Any:
        """Return ``True`` as often as a length says, along one axis; ``None`` for lengths of no known kind."""
        if isinstance(length, int):
            return np.ones(length, bool)
        for symbol in self._places:
            base = self._sizes(symbol)
            if (factor := _factor(length, base)) is not None:
                return _times(self._ones(symbol), factor)
            more = {n - b for n, b in zip(length, base, strict=True)}
            if len(more) == 1 and (count := more.pop()) > 0:
                return rg.concatenate([self._ones(symbol), np.ones(count, bool)])
        return self._product(length)

    def mask(self, lengths: list[Length]) -> Any:
        """Return ``True`` in this shape; ``None`` if one of its lengths is of no known kind."""
        fixed = [n if isinstance(n, int) else 1 for n in lengths]
        mask: Any = np.ones(fixed, bool)
        for axis, length in enumerate(lengths):
            if not isinstance(length, int):
                ones = self.true(length)
                if ones is None:
                    return None
                mask = rg.logical_and(
                    mask,
                    rg.reshape(ones, tuple(-1 if a == axis else 1 for a in range(len(lengths)))),
                )
        return mask

    def _product(self, length: tuple[int, ...]) -> Any:
        symbols = list(self._places)
        for i, one in enumerate(symbols):
            for other in symbols[i:]:
                base = [a * b for a, b in zip(self._sizes(one), self._sizes(other), strict=True)]
                if (factor := _factor(length, base)) is not None:
                    both = rg.logical_and(self._ones(one)[:, None], self._ones(other))
                    return _times(rg.reshape(both, -1), factor)
        return None

    def _ones(self, symbol: Any) -> Any:
        name, axis = self._places[symbol][0]
        var = self._inputs[name]
        index = tuple(slice(None) if a == axis else 0 for a in range(len(var.shape)))
        return rg.full_like(var[index], True, dtype=bool)

    def _each(self, name: str) -> list[Any] | None:
        if not self._tried:
            self._tried = True
            self._found = next(self._trials(), None) if self._places else None
        if self._found is None or not all(name in one for one in self._found):
            return None
        return [one[name] for one in self._found]

    def _trials(self) -> Iterator[list[Values]]:
        for self._scale in SCALES:
            try:
                yield [self._build_aside(self._trial(t)) for t in range(TRIALS)]
            except (ModelError, MemoryError, RecursionError):
                continue

    def _trial(self, t: int) -> dict[str, tuple[int, ...]]:
        return {
            name: tuple(n if isinstance(n, int) else self._sizes(n)[t] for n in shape)
            for name, shape in self._shapes.items()
        }

    def _sizes(self, symbol: Any) -> tuple[int, ...]:
        """Return the lengths that a symbol has in the trials: no two symbols have the same ones."""
        k = list(self._places).index(symbol)
        leading = all(axis == 0 for _, axis in self._places[symbol])
        scale = 1 if leading else self._scale
        return tuple(scale * n for n in (2 + k, 5 + 2 * k, 11 + 3 * k))


def _factor(length: Sequence[int], base: Sequence[int]) -> int | None:
    """Return by which whole number a length is larger than another one in each trial."""
    found = {divmod(n, b) for n, b in zip(length, base, strict=True)}
    factor, rest = next(iter(found))
    return factor if len(found) == 1 and rest == 0 and factor > 0 else None


def _shape(value: Any) -> tuple[Any, ...]:
    if isinstance(value, Weight):
        value = value.array
    return tuple(value.shape) if isinstance(value, rg.Var) else np.shape(value)


def _times(ones: Any, count: int) -> Any:
    return (
        ones if count == 1 else rg.reshape(rg.logical_and(ones[:, None], np.ones(count, bool)), -1)
    )
