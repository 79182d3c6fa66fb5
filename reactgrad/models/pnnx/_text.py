"""The text of a PNNX model: operators with their operands, parameters and attributes.

The first line is a number, the second one counts operators and operands. Each line after them is an operator:
its type and name, how many operands it reads and writes, their names, and ``key=value`` pairs. A key that begins
with ``@`` is an attribute, whose array lies in the other file; ``$`` names an input, ``#`` declares an operand.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from math import prod
from typing import Any, Final

import numpy as np

from reactgrad.models._errors import ModelError

MAGIC: Final = "7767517"
MAX_OPERATORS: Final = 1_000_000
MAX_AXES: Final = 64
# An end of a slice that is larger than any length: what is left of PyTorch's largest integer.
INT_MAX: Final = 2**31 - 1
DTYPES: Final = {
    "f32": np.dtype("f4"),
    "f64": np.dtype("f8"),
    "f16": np.dtype("f2"),
    "i32": np.dtype("i4"),
    "i64": np.dtype("i8"),
    "i16": np.dtype("i2"),
    "i8": np.dtype("i1"),
    "u8": np.dtype("u1"),
    "bool": np.dtype("?"),
    "c64": np.dtype("c8"),
    "c128": np.dtype("c16"),
}
_TYPED = re.compile(r"\(([^()]*)\)([a-z0-9]*)")
_NUMBER = re.compile(r"-?[0-9]")


@dataclass(frozen=True)
class Typed:
    """A shape and a dtype: of an attribute, or of an operand, with ``None`` for lengths that are not known."""

    shape: tuple[int | None, ...]
    dtype: np.dtype[Any]


@dataclass(eq=False)
class Operator:
    """A line of the file."""

    type: str
    name: str
    inputs: list[str]
    outputs: list[str]
    params: dict[str, Any] = field(default_factory=dict)
    attributes: dict[str, Typed] = field(default_factory=dict)
    named: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.type} {self.name!r}"


@dataclass(eq=False)
class Program:
    """A file: operators in order, and what is declared of operands."""

    operators: list[Operator]
    operands: dict[str, Typed]


def program_of(text: str) -> Program:
    """Return the operators of a text, each after those whose operands it reads.

    Raises
    ------
    ModelError
        If it is no text of PNNX, or a damaged one.
    """
    lines = text.split("\n")
    if lines[0].strip() != MAGIC:
        raise ModelError(
            f"rg.from_pnnx: the file begins with {lines[0][:20]!r}, and those of PNNX with {MAGIC}. Give the "
            "m.pnnx.param that pnnx wrote, and not the one of ncnn."
        )
    counts = lines[1].split() if len(lines) > 1 else []
    if len(counts) != 2 or not all(c.isdigit() and len(c) < 10 for c in counts):
        raise ModelError(
            f"rg.from_pnnx: line 2 holds two counts, and not {' '.join(counts)[:40]!r}. The file is damaged."
        )
    rows = [(i, line.split()) for i, line in enumerate(lines[2:], 3) if line.strip()]
    if len(rows) != int(counts[0]) or len(rows) > MAX_OPERATORS:
        raise ModelError(
            f"rg.from_pnnx: the file declares {counts[0]} operators and holds {len(rows)}; at most "
            f"{MAX_OPERATORS} are read. It is damaged, or was cut off: export it again."
        )
    operands: dict[str, Typed] = {}
    operators = [_operator(number, row, operands) for number, row in rows]
    _check(operators)
    return Program(operators, operands)


def _operator(number: int, row: list[str], operands: dict[str, Typed]) -> Operator:
    place = f"rg.from_pnnx: line {number}"
    if len(row) < 4 or not (row[2].isdigit() and row[3].isdigit()) or len(row[2] + row[3]) > 12:
        raise ModelError(f"{place}: {' '.join(row)[:60]!r} is no operator. The file is damaged.")
    reads, writes = int(row[2]), int(row[3])
    rest = row[4 + reads + writes :]
    names = row[4 : 4 + reads + writes]
    if len(names) < reads + writes or any("=" in name for name in names):
        raise ModelError(
            f"{place}: {row[0]} {row[1]!r} declares {reads} + {writes} operands and names fewer. The file is damaged."
        )
    one = Operator(row[0], row[1], names[:reads], names[reads:])
    for pair in rest:
        key, sign, value = pair.partition("=")
        if not sign:
            raise ModelError(f"{place}: {pair[:40]!r} is no key=value. The file is damaged.")
        if key[0:1] == "@":
            one.attributes[key[1:]] = typed(value, place)
        elif key[0:1] == "#":
            if value.rpartition(")")[2]:
                operands[key[1:]] = typed(value, place)
        elif key[0:1] == "$":
            one.named[key[1:]] = value
        else:
            one.params[key] = value if key == "expr" else parameter(value)
    for name in one.named.values():
        if name not in one.inputs:
            raise ModelError(
                f"{place}: {one} names the input {name!r}, which it does not read. The file is damaged."
            )
    return one


def typed(value: str, place: str) -> Typed:
    """Return a shape and a dtype as text: ``(2,?,8)f32``."""
    found = _TYPED.fullmatch(value)
    if found is None:
        raise ModelError(f"{place}: {value[:40]!r} is no shape with a type. The file is damaged.")
    lengths = [part for part in found[1].split(",") if part]
    if len(lengths) > MAX_AXES or any(len(part) > 18 for part in lengths):
        raise ModelError(
            f"{place}: the shape {value[:40]!r} is larger than any array. The file is damaged."
        )
    dtype = DTYPES.get(found[2])
    if dtype is None:
        raise ModelError(
            f"{place}: elements of type {found[2] or 'none'!r}: nodes hold {', '.join(DTYPES)}. Convert the model "
            "to float32."
        )
    shape = tuple(int(part) if part.isdigit() else None for part in lengths)
    return Typed(shape, dtype)


def parameter(value: str) -> Any:
    """Return a parameter as Python has it."""
    if value in ("None", "()", "[]", ""):
        return None if value in ("None", "") else ()
    if value in ("True", "False"):
        return value == "True"
    if value[0] in "([" and value[-1] in ")]":
        return tuple(parameter(part) for part in value[1:-1].split(","))
    if _NUMBER.match(value) and "%" not in value:
        try:
            if value.endswith("j"):
                return complex(value)
            if "." in value or "e" in value or "n" in value:
                return float(value)
            return int(value) if len(value) < 20 else float(value)
        except ValueError:
            return value
    if value in ("inf", "-inf", "nan"):
        return float(value)
    return value


def _check(operators: list[Operator]) -> None:
    """Refuse operands that are missing, or written twice, or read before they are written."""
    known: set[str] = set()
    for one in operators:
        missing = [name for name in one.inputs if name not in known]
        if missing:
            raise ModelError(
                f"rg.from_pnnx: {one} reads {missing[0]!r}, which no operator before it writes. The file is damaged, "
                "or has a cycle: export it again."
            )
        twice = [name for name in one.outputs if name in known]
        if twice or len(set(one.outputs)) < len(one.outputs):
            raise ModelError(
                f"rg.from_pnnx: {one} writes {(twice or one.outputs)[0]!r} a second time. The file is damaged."
            )
        known.update(one.outputs)


def size_of(one: Typed) -> int:
    """Return the number of bytes of an array."""
    return prod(n or 0 for n in one.shape) * one.dtype.itemsize
