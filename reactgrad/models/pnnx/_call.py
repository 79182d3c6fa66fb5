"""One operator of a PNNX file while it becomes nodes of a graph, and the table of converters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

import reactgrad as rg
from reactgrad.models._errors import ModelError, OpError, UnknownLengthError
from reactgrad.models.pnnx._text import Operator

# What a converter returns: the value of the only output, or a tuple with one for each.
Converter = Callable[["Call"], Any]
CONVERTERS: Final[dict[str, Converter]] = {}
# A few bytes of a file must not ask for more elements than this.
MAX_ELEMENTS: Final = 2**28
_MISSING: Final = object()


def converts(*names: str) -> Callable[[Converter], Converter]:
    """Enter a function into the table, as the converter of these operators."""

    def enter(function: Converter) -> Converter:
        for name in names:
            CONVERTERS[name] = function
        return function

    return enter


class Length:
    """A length of a node that is not known yet, as it stands in shapes."""

    def __init__(self, var: Any, axis: int) -> None:
        self.var = var
        self.axis = axis

    def __repr__(self) -> str:
        return f"{self.var.name}.shape[{self.axis}]"


class Call:
    """An operator, with what its operands have become.

    ``call[i]`` is an operand by its place; ``call("dim")`` an argument by its name: a parameter, or an operand
    that has a name.
    """

    def __init__(self, one: Operator, values: Sequence[Any], weights: dict[str, Any]) -> None:
        self.one = one
        self.op = one.type
        self.values = list(values)
        self.weights = weights
        self.named = dict(zip(one.inputs, self.values, strict=True))

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, i: int) -> Any:
        if i >= len(self.values):
            raise ModelError(
                f"{self} reads {len(self.values)} operands, and needs more. The file is damaged."
            )
        return self.values[i]

    def __call__(self, name: str, default: Any = _MISSING) -> Any:
        """Return an argument: the operand of this name, or the parameter."""
        if name in self.one.named:
            return self.named[self.one.named[name]]
        if name in self.one.params:
            return self.one.params[name]
        if default is _MISSING:
            raise ModelError(
                f"{self} has no {name}. The file is damaged, or of another version of pnnx."
            )
        return default

    def x(self, name: str = "input", i: int = 0) -> Any:
        """Return an operand by its name, or else by its place."""
        return self.named[self.one.named[name]] if name in self.one.named else self[i]

    def weight(self, name: str) -> Any:
        """Return an attribute; ``None`` if there is none."""
        return self.weights.get(name)

    def either(self, name: str, i: int) -> Any:
        """Return an attribute of a layer, or in its place an operand of a function; ``None`` if there is none."""
        if name in self.weights:
            return self.weights[name]
        if name in self.one.named:
            return self.named[self.one.named[name]]
        return (
            self[i]
            if name not in self.one.params and not self.one.named and len(self) > i
            else None
        )

    def ints(self, name: str, default: Any = _MISSING) -> tuple[int, ...]:
        """Return an argument that holds integers."""
        found = self(name, default)
        many: Sequence[Any] = found if isinstance(found, list | tuple) else (found,)
        for one in many:
            if isinstance(one, Length):
                raise UnknownLengthError(
                    f"{self}: its {name} hangs on {one!r}, which is not known. Give the shapes of inputs as "
                    "shapes={'in0': (1, 3, 8, 8)}.",
                    (),
                )
            if isinstance(one, rg.Var) or not float(one).is_integer():
                raise self.refuse(f"{name}={one!r:.40}, which is no integer that is known,")
        return tuple(int(one) for one in many)

    def integer(self, name: str, default: Any = _MISSING) -> int:
        """Return an argument that is an integer."""
        return self.ints(name, default)[0]

    def axis(self, name: str = "dim") -> Any:
        """Return the axes that an argument names: an integer, a tuple, or ``None`` for all."""
        found = self(name, None)
        if found is None or found == ():
            return None
        axes = self.ints(name)
        return axes[0] if len(axes) == 1 else axes

    def refuse(self, why: str) -> OpError:
        """Return the error for a use of the operator that has no function here."""
        return OpError(f"{self}: {why} has no function in reactgrad. Export the model without it.")

    def affordable(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return a shape that a few bytes of a file ask for, unless it is absurdly large."""
        size = 1
        for n in shape:
            size *= max(int(n), 0)
        if size > MAX_ELEMENTS:
            raise ModelError(
                f"{self} makes an array of shape {tuple(shape)}: at most {MAX_ELEMENTS} elements are made of a few "
                "numbers."
            )
        return tuple(int(n) for n in shape)

    def __str__(self) -> str:
        return str(self.one)


def shape_of(x: Any) -> tuple[Any, ...]:
    """Return the shape of a value, with ``None`` for lengths that are not known."""
    return tuple(x.shape) if isinstance(x, rg.Var) else np.shape(x)


def rank(x: Any) -> int:
    """Return the number of axes of a value."""
    return len(shape_of(x))


def needs_known(call: Call, x: Any) -> tuple[int, ...]:
    """Return the shape of a value, all of whose lengths must be known."""
    shape = shape_of(x)
    if None in shape:
        raise UnknownLengthError(
            f"{call} needs all lengths of a value of shape {shape}. Give the shapes of inputs as "
            "shapes={'in0': (1, 3, 8, 8)}.",
            (),
        )
    return shape
