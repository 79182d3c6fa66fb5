"""Results of formulas: values, live nodes, and blocks of these."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

import reactgrad as rg
from reactgrad.tables.excel._errors import WorkbookError
from reactgrad.tables.excel._values import (
    DIV,
    NUM,
    VALUE,
    ExcelError,
    Fault,
    as_number,
    as_truth,
    plain,
)

Kind = Literal["number", "logical", "any"]
MOST_CELLS = 2_000_000  # of one range, or of what is made of ranges
LONGEST = 32_767  # of a text in a cell: Excel's limit


@dataclass(frozen=True, slots=True)
class Live:
    """A node, and the kind of value that it has: floats, truth values, or any values of a cell.

    A node of numbers has NaN in place of an error.
    """

    var: rg.Var
    kind: Kind


@dataclass(frozen=True, slots=True)
class Block:
    """Values by row and column; of cells with the place of the first one."""

    rows: list[list[Any]]
    row: int = 0
    column: int = 0

    def __iter__(self) -> Iterator[Any]:
        for row in self.rows:
            yield from row

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return len(self.rows), len(self.rows[0]) if self.rows else 0


def number(value: Any) -> Any:
    """Return a value as a float, or as a node of floats.

    Raises
    ------
    Fault
        If it is none.
    """
    if not isinstance(value, Live):
        return as_number(value)
    if value.kind == "number":
        return value.var
    if value.kind == "logical":
        return value.var.astype(np.float64)
    return _number(value.var)


def _passed(g: Any, ans: Any, value: Any) -> tuple[Any]:
    """Return the gradient of a value that is taken as a number: it is the same number."""
    return (g,)


def _number_of(value: Any) -> float:
    try:
        return as_number(plain(value))
    except Fault:
        return float("nan")


_number = rg.lift(_number_of, shape=(), dtype=np.float64, vjp=_passed)


def _truth_of(value: Any) -> bool:
    try:
        return as_truth(plain(value))
    except Fault:
        return False


_truth = rg.lift(_truth_of, shape=(), dtype=np.bool_)


def truth(value: Any) -> Any:
    """Return a value as a truth value, or as a node of them."""
    if not isinstance(value, Live):
        return as_truth(value)
    if value.kind == "logical":
        return value.var
    if value.kind == "number":
        return value.var != 0.0
    return _truth(value.var)


def live(var: Any, kind: Kind = "number") -> Any:
    """Return the result of ops: a node with its kind, or a value as it is."""
    if isinstance(var, rg.Var):
        return Live(var, kind)
    if isinstance(var, bool | np.bool_):
        return bool(var)
    found = float(var)
    if not np.isfinite(found):
        raise Fault(NUM)
    return found


def op(
    ours: Callable[..., Any], theirs: Callable[..., Any], *operands: Any, kind: Kind = "number"
) -> Any:
    """Return a function of numbers, by `ours` of nodes or by `theirs` of floats."""
    values = [number(one) for one in operands]
    if any(isinstance(one, rg.Var) for one in values):
        return live(ours(*values), kind)
    with np.errstate(all="ignore"):
        return live(theirs(*values), kind)


def divided(a: Any, b: Any) -> Any:
    """Return a quotient; by zero it is an error."""
    x, y = number(a), number(b)
    if isinstance(y, rg.Var):
        return live(x / rg.where(y == 0.0, np.nan, y))
    if y == 0.0:
        raise Fault(DIV)
    return live(x / y)


class Call:
    """A function of the values of cells, as a function for ``rg.lift``: errors come in and go out as values."""

    __slots__ = ("__name__", "_form", "_function", "_numeric", "_strict")

    def __init__(
        self, function: Callable[..., Any], form: Sequence[Any], numeric: bool, strict: bool
    ) -> None:
        self._function = function
        self._form = form
        self._numeric = numeric
        self._strict = strict
        self.__name__ = getattr(function, "__name__", "formula").strip("_")

    def __call__(self, *values: Any) -> Any:
        given = [plain(value) for value in values]
        arguments = [_filled(one, given) for one in self._form]
        found = called(self._function, arguments, strict=self._strict)
        if not self._numeric:
            return found
        return float("nan") if isinstance(found, ExcelError) else float(found)


@dataclass(frozen=True, slots=True)
class _Hole:
    place: int


def _filled(form: Any, values: Sequence[Any]) -> Any:
    if isinstance(form, _Hole):
        return values[form.place]
    if isinstance(form, list):
        return [_filled(one, values) for one in form]
    return form


def called(function: Callable[..., Any], arguments: Sequence[Any], *, strict: bool = True) -> Any:
    """Return what a function of values gives: an error among them comes first, and so do faults."""
    if strict:
        for one in _flat(arguments):
            if isinstance(one, ExcelError):
                return one
    try:
        found = function(*arguments)
    except Fault as fault:
        return fault.error
    except ZeroDivisionError:
        return DIV
    except (ValueError, OverflowError, ArithmeticError):
        return NUM
    except (TypeError, IndexError, KeyError, AttributeError):
        return VALUE
    if isinstance(found, str) and len(found) > LONGEST:
        return VALUE
    return plain(found)


def _flat(arguments: Sequence[Any]) -> Iterator[Any]:
    for one in arguments:
        if isinstance(one, list):
            yield from _flat(one)
        else:
            yield one


def lifted(
    function: Callable[..., Any],
    *arguments: Any,
    kind: Kind = "any",
    vjp: Callable[..., Any] | None = None,
    strict: bool = True,
) -> Any:
    """Return a function of values of cells as a node; of known values as a value.

    Its derivative is zero where none is given: texts, dates and positions move in steps.

    Parameters
    ----------
    strict
        Whether an error among the arguments is the result.
    """
    holes: list[rg.Var] = []

    def form(one: Any) -> Any:
        if isinstance(one, Block):
            return [[form(value) for value in row] for row in one.rows]
        if isinstance(one, list):
            return [form(value) for value in one]
        if isinstance(one, Live):
            holes.append(one.var)
            return _Hole(len(holes) - 1)
        return one

    forms = [form(one) for one in arguments]
    if not holes:
        return called(function, forms, strict=strict)
    rule = vjp or (lambda g, ans, *values: (None,) * len(holes))
    call: Any = Call(function, forms, kind == "number", strict)
    if kind == "number":
        node = rg.lift(call, shape=(), dtype=np.float64, vjp=rule)(*holes)
    elif kind == "logical":
        node = rg.lift(_Truth(call), shape=(), dtype=np.bool_)(*holes)
    else:
        node = rg.lift(call, vjp=rule)(*holes)
    return Live(node, kind)


class _Truth:
    """A call whose result is a truth value; an error is false."""

    __slots__ = ("__name__", "_call")

    def __init__(self, call: Any) -> None:
        self._call = call
        self.__name__ = call.__name__

    def __call__(self, *values: Any) -> bool:
        return self._call(*values) is True


class Slopes:
    """The gradient of a smooth function of numbers by central differences, as a rule for ``rg.lift``."""

    __slots__ = ("_call", "_count")

    def __init__(self, call: Callable[..., float], count: int) -> None:
        self._call = call
        self._count = count

    def __call__(self, g: Any, ans: Any, *values: Any) -> tuple[Any, ...]:
        found = rg.lift(self._differences, shape=(self._count,), dtype=np.float64)(*values)
        return tuple(g * found[i] for i in range(self._count))

    def _differences(self, *values: Any) -> np.ndarray[Any, Any]:
        at = [float(value) for value in values]
        found = np.zeros(self._count)
        for i, value in enumerate(at):
            step = 6e-6 * max(1.0, abs(value))
            ends = [self._call(*at[:i], value + sign * step, *at[i + 1 :]) for sign in (1.0, -1.0)]
            found[i] = (ends[0] - ends[1]) / (2.0 * step)
        return found


def smooth(function: Callable[..., float], *arguments: Any) -> Any:
    """Return a smooth function of numbers as a node, with derivatives by central differences."""
    values = [number(one) for one in arguments]
    holes = [one for one in values if isinstance(one, rg.Var)]
    if not holes:
        found = called(function, values)
        if isinstance(found, ExcelError):
            raise Fault(found)
        return found
    places = iter(range(len(holes)))
    forms = [_Hole(next(places)) if isinstance(one, rg.Var) else one for one in values]
    call: Any = Call(function, forms, True, True)
    node = rg.lift(call, shape=(), dtype=np.float64, vjp=Slopes(call, len(holes)))(*holes)
    return Live(node, "number")


def chosen(condition: Any, first: Any, second: Any) -> Any:
    """Return one of two values by a truth value; only the chosen one is computed."""
    if not isinstance(condition, rg.Var):
        return first if condition else second
    kind: Kind = "any"
    parts = [first, second]
    if all(_kind(one) == "number" for one in parts):
        kind = "number"
        parts = [number(one) for one in parts]
    elif all(_kind(one) == "logical" for one in parts):
        kind = "logical"
        parts = [truth(one) for one in parts]
    else:
        parts = [one.var if isinstance(one, Live) else one for one in parts]
    if kind == "any" or not isinstance(parts[0], rg.Var) or not isinstance(parts[1], rg.Var):
        graph = condition.graph
        parts = [one if isinstance(one, rg.Var) else graph.const(one) for one in parts]
    return Live(rg.switch(condition, *parts), kind)


def _kind(value: Any) -> Kind:
    if isinstance(value, Live):
        return value.kind
    if isinstance(value, bool):
        return "logical"
    return "number" if isinstance(value, int | float) else "any"


kind_of = _kind


def each(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return a function of single values for each place of blocks; a fault is the value of its place."""
    blocks = [one for one in arguments if isinstance(one, Block)]
    if not blocks:
        return function(*arguments)
    rows = max(block.shape[0] for block in blocks)
    columns = max(block.shape[1] for block in blocks)

    def at(one: Any, i: int, j: int) -> Any:
        if not isinstance(one, Block):
            return one
        n, m = one.shape
        if (i >= n > 1) or (j >= m > 1):
            return ExcelError("#N/A")
        return one.rows[i if n > 1 else 0][j if m > 1 else 0]

    def one(i: int, j: int) -> Any:
        try:
            return function(*[at(argument, i, j) for argument in arguments])
        except Fault as fault:
            return fault.error

    if rows * columns > MOST_CELLS:
        raise WorkbookError(
            f"a formula makes a block of {rows:,} x {columns:,} cells, more than {MOST_CELLS:,}: refused."
        )
    first = blocks[0]
    found = [[one(i, j) for j in range(columns)] for i in range(rows)]
    return Block(found, first.row, first.column)
