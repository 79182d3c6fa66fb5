"""One node of a file while it becomes nodes of a graph, and the table of converters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

import reactgrad as rg
from reactgrad.models._errors import ModelError, OpError, UnknownLengthError
from reactgrad.models._open_lengths import Length
from reactgrad.models._tensors import Weight, dtype_of

# What a converter returns: the value of the only output, or a tuple with one for each.
Converter = Callable[["Call"], Any]
CONVERTERS: Final[dict[str, Converter]] = {}
MISSING: Final = object()


def converts(*names: str) -> Callable[[Converter], Converter]:
    """Enter a function into the table, as the converter of these ops."""

    def enter(function: Converter) -> Converter:
        for name in names:
            CONVERTERS[name] = function
        return function

    return enter


class Call:
    """A node of the file, with what its inputs have become.

    ``call[i]`` is an operand: a Var, or an array that never changes; ``None`` where the input was
    left out. ``call.static(i)`` is its value as an array, which must be known.
    """

    def __init__(
        self,
        node: Any,
        values: list[Any],
        attributes: dict[str, Any],
        build: Any,
        outer: dict[str, Any],
    ) -> None:
        self.node = node
        self.op: str = node.op_type
        self.values = values
        self.attributes = attributes
        self.build = build
        self.outer = outer
        self.version: int = build.opsets.get(node.domain, 1)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, i: int) -> Any:
        value = self.values[i] if i < len(self.values) else None
        return self.build.operand(value) if isinstance(value, Weight) else value

    def all(self) -> list[Any]:
        """Return the operands."""
        return [self[i] for i in range(len(self.values))]

    def has(self, i: int) -> bool:
        """Return whether input `i` was given."""
        return i < len(self.values) and self.values[i] is not None

    def attr(self, name: str, default: Any = None) -> Any:
        """Return an attribute: a number, a text, a list, an array, or a graph."""
        return self.attributes.get(name, default)

    def refuse(self, why: str) -> OpError:
        """Return the error for a use of the op that has no function here."""
        return OpError(f"{self}: {why} has no function in reactgrad. Export the model without it.")

    def static(self, i: int) -> np.ndarray[Any, Any]:
        """Return the value of input `i`, which decides about the shape of the graph."""
        value = self.values[i]
        if isinstance(value, Weight):
            return value.array
        if isinstance(value, rg.Var):
            known = self.build.hint(value)
            if known is not None and not np.isnan(known).any():
                return known.astype("i8")
            name = self.node.input[i]
            same = self.build.lengths.integers(name)
            if same is not None:
                return same
            needs = self.build.inputs_of(name)
            raise UnknownLengthError(
                f"{self}: its input {name!r} decides about the shape of the graph, so its value must be known "
                f"when the graph is built. Give the values of the inputs that it follows from, "
                f"{list(needs)}, as constants={{name: array}}, or their shapes as shapes={{name: shape}}.",
                needs,
            )
        return np.asarray(value)

    def static_or_none(self, i: int) -> np.ndarray[Any, Any] | None:
        """Return the value of input `i` as an array, or ``None`` if it hangs on open lengths."""
        try:
            return self.static(i)
        except UnknownLengthError:
            return None

    def unknown(self, why: str, needs: tuple[str, ...]) -> UnknownLengthError:
        """Return the error for a number that the graph hangs on, and that is not known."""
        return UnknownLengthError(
            f"{self}: {why}, and the graph hangs on it. Give the values of the inputs that it follows from, "
            f"{list(needs)}, as constants={{name: array}}, or their shapes as shapes={{name: shape}}.",
            needs,
        )

    def ints(self, i: int, attribute: str | None = None, default: Any = None) -> Any:
        """Return input `i`, or in its place an attribute, as a tuple of integers."""
        if self.has(i):
            return tuple(int(n) for n in self.static(i).reshape(-1))
        found = self.attr(attribute) if attribute is not None else None
        return default if found is None else tuple(found)

    def number(self, i: int, default: Any = None) -> Any:
        """Return input `i` as a Python number."""
        return self.static(i).reshape(-1)[0].item() if self.has(i) else default

    def shape(self, i: int) -> tuple[int, ...]:
        """Return the shape of input `i`, which must be known in all lengths."""
        return tuple(self.length(i, axis) for axis in range(self.rank(i)))

    def length(self, i: int, axis: int) -> int:
        """Return a length of input `i`, which must be known."""
        found = self.shape_or_none(i)[axis]
        if found is None:
            told = self.build.lengths.shape(self.node.input[i])
            found = told[axis] if told is not None else None
        if not isinstance(found, int):
            raise self.open_length(i)
        return found

    def space(self) -> tuple[int, ...]:
        """Return the lengths of input 0 behind those of samples and channels, which must be known."""
        return tuple(self.length(0, axis) for axis in range(2, self.rank(0)))

    def told(self, i: int) -> list[Length]:
        """Return the lengths of input `i`, with three numbers for each open one."""
        found = self.build.lengths.shape(self.node.input[i]) if self.node.input[i] else None
        if found is None:
            raise self.open_length(i)
        return found

    def made(self, i: int = 0) -> list[Length]:
        """Return the lengths of the first output, as ``told``; an error names input `i`."""
        found = self.build.lengths.shape(self.node.output[0])
        if found is None:
            raise self.refused(i)
        return found

    def mask(self, lengths: list[Length], i: int = 0) -> Any:
        """Return ``True`` in a shape with open lengths; `i` is the input that is named if that cannot be."""
        found = self.build.lengths.mask(lengths)
        if found is None:
            raise self.refused(i)
        return found

    def count(self, length: Length, i: int = 0) -> Any:
        """Return the integers from 0 to a length that may be open; `i` is named if that cannot be."""
        if isinstance(length, int):
            return np.arange(length)
        return rg.cumsum(rg.astype(self.mask([length], i), "i8"), axis=0) - 1

    def refused(self, i: int) -> UnknownLengthError:
        """Return the error for input `i`, a shape if it is not the first, that hangs on open lengths."""
        if i > 0:
            self.static(i)  # raises
        return self.open_length(i)

    def open_length(self, i: int) -> UnknownLengthError:
        """Return the error for an open length of input `i` that the graph hangs on."""
        shape = self.shape_or_none(i)
        needs = self.build.inputs_of(self.node.input[i])
        return UnknownLengthError(
            f"{self}: its input {self.node.input[i]!r} has shape {shape}, and the graph hangs on all of its "
            f"lengths. Give the shapes of the inputs that it follows from, {list(needs)}, as "
            "shapes={name: shape}.",
            needs,
        )

    def shape_or_none(self, i: int) -> tuple[Any, ...]:
        """Return the shape of input `i`, with ``None`` for lengths that differ from set to set."""
        return tuple(np.shape(self[i])) if not isinstance(self[i], rg.Var) else tuple(self[i].shape)

    def rank(self, i: int) -> int:
        """Return the number of axes of input `i`."""
        return len(self.shape_or_none(i))

    def axis(self, axis: int, rank: int | None = None) -> int:
        """Return an axis of input 0, or of `rank` axes, counted from the first; refuse one that is not there."""
        rank = self.rank(0) if rank is None else rank
        checked(-rank <= axis < rank, f"{self} goes along axis {axis} of {rank}.")
        return axis % rank

    def dtype(self, i: int) -> np.dtype[Any]:
        """Return the dtype of input `i`."""
        found = self[i]
        return np.dtype(found.dtype) if isinstance(found, rg.Var) else np.asarray(found).dtype

    def dtype_attr(self, name: str, default: Any = None) -> Any:
        """Return the dtype that an attribute names."""
        number = self.attr(name)
        return default if number is None else dtype_of(number, str(self))

    def __str__(self) -> str:
        name = f" {self.node.name!r}" if self.node.name else ""
        return f"{self.op}{name}"


def with_open(shape: Sequence[Any]) -> tuple[int, ...]:
    """Return a shape for a reshape: -1 for a length that is open, in whatever form."""
    return tuple(n if isinstance(n, int) else -1 for n in shape)


def constant(value: Any) -> bool:
    """Return whether a value never changes: no Var, and no param."""
    if isinstance(value, list | tuple):
        return all(constant(v) for v in value)
    return not isinstance(value, rg.Var | Weight)


def lifted(
    function: Callable[..., Any], *args: Any, outputs: int | None = None, dtype: Any = None
) -> Any:
    """Return a node, or several, of a function of arrays that has no gradient; constants are folded.

    With a `dtype` the function works element by element, so that the node has a shape before it has a value.
    """
    if not any(isinstance(a, rg.Var) for a in args):
        return function(*args)
    shapes = [tuple(a.shape) if isinstance(a, rg.Var) else np.shape(a) for a in args]
    if dtype is not None and not any(None in s for s in shapes):
        return rg.lift(function, shape=np.broadcast_shapes(*shapes), dtype=dtype)(*args)
    return rg.lift(function, outputs=outputs)(*args)


def checked(condition: bool, message: str) -> None:
    """Raise a ``ModelError`` unless the condition holds."""
    if not condition:
        raise ModelError(message)
