"""Formulas as trees: openpyxl's tokens, read by precedence (Pratt 1973)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from reactgrad.tables.excel._errors import WorkbookError
from reactgrad.tables.excel._values import ExcelError

DEEPEST = 100  # Excel allows 64 levels
LONGEST = 8192  # Excel's limit
BINDING: Final = {
    **dict.fromkeys(("=", "<>", "<", ">", "<=", ">="), 1),
    "&": 2,
    **dict.fromkeys("+-", 3),
    **dict.fromkeys("*/", 4),
    "^": 5,
}
PREFIX, POSTFIX = 7, 6  # a sign binds closer than a power: -2^2 is 4


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, a text, a truth value, an error; ``None`` for an argument that is left out."""

    value: Any


@dataclass(frozen=True, slots=True)
class Area:
    """Cells of one sheet, from a row and column to a row and column; whole rows or columns reach 0 or the end."""

    sheet: str | None
    row: int
    column: int
    last_row: int | None
    last_column: int | None

    @property
    def single(self) -> bool:
        """True for one cell."""
        return (self.row, self.column) == (self.last_row, self.last_column)


@dataclass(frozen=True, slots=True)
class Name:
    """A defined name, or a reference that is none of those that can be read."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A function of arguments."""

    function: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator and its one or two operands; ``%`` and signs have one."""

    sign: str
    operands: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Rows:
    """An array that is written out: ``{1,2;3,4}``."""

    rows: tuple[tuple[Any, ...], ...]


CELL = re.compile(r"\$?([A-Za-z]{1,3})\$?([0-9]{1,7})$")
COLUMN = re.compile(r"\$?([A-Za-z]{1,3})$")
ROW = re.compile(r"\$?([0-9]{1,7})$")


def column_number(letters: str) -> int:
    """Return the number of a column, from 1 on."""
    found = 0
    for letter in letters.upper():
        found = found * 26 + ord(letter) - 64
    return found


def area_of(text: str) -> Area | None:
    """Return the area that a reference names, ``None`` if it names none."""
    sheet = None
    if "!" in text:
        sheet, _, text = text.rpartition("!")
        if sheet.startswith("'") and sheet.endswith("'"):
            sheet = sheet[1:-1].replace("''", "'")
    if text.count(":") > 1:  # A1:B2:C3 is all between them
        *others, end = text.split(":")
        first_area, last_area = area_of(":".join(others)), area_of(end)
        if first_area is None or last_area is None:
            return None
        joined = operation(":", first_area, last_area)
        return replace(joined, sheet=sheet) if isinstance(joined, Area) else None
    first, _, last = text.partition(":")
    last = last or first
    if "!" in last:
        last = last.rpartition("!")[2]
    one, other = CELL.match(first), CELL.match(last)
    if one and other:
        r, c = int(one[2]), column_number(one[1])
        r2, c2 = int(other[2]), column_number(other[1])
        return Area(sheet, min(r, r2), min(c, c2), max(r, r2), max(c, c2))
    one, other = COLUMN.match(first), COLUMN.match(last)
    if one and other and ":" in text:
        c, c2 = column_number(one[1]), column_number(other[1])
        return Area(sheet, 1, min(c, c2), None, max(c, c2))
    one, other = ROW.match(first), ROW.match(last)
    if one and other and ":" in text:
        r, r2 = int(one[1]), int(other[1])
        return Area(sheet, min(r, r2), 1, max(r, r2), None)
    return None


class Parser:
    """The tokens of one formula, and the place in them."""

    def __init__(self, text: str) -> None:
        from openpyxl.formula import Tokenizer

        if len(text) > LONGEST:
            raise WorkbookError(
                f"a formula of {len(text):,} characters: Excel has at most {LONGEST:,}."
            )
        self._tokens = list(_without_space(Tokenizer(text).items))
        self._at = 0
        self._depth = 0

    def whole(self) -> Any:
        """Return the tree of the whole formula."""
        tree = self._expression(0)
        if self._at < len(self._tokens):
            raise WorkbookError(f"{self._tokens[self._at].value!r} does not belong there.")
        return tree

    def _peek(self) -> Any:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _next(self) -> Any:
        token = self._peek()
        if token is None:
            raise WorkbookError("it ends too early.")
        self._at += 1
        return token

    def _expression(self, least: int) -> Any:
        self._depth += 1
        if self._depth > DEEPEST:
            raise WorkbookError(f"it is nested more than {DEEPEST} levels deep; Excel allows 64.")
        tree = self._operand()
        while (token := self._peek()) is not None:
            if token.type == "OPERATOR-POSTFIX":
                if least > POSTFIX:
                    break
                self._at += 1
                tree = Operation("%", (tree,))
                continue
            if token.type != "OPERATOR-INFIX":
                break
            sign = token.value.strip()
            binding = BINDING.get(sign, 8)
            if binding <= least:
                break
            self._at += 1
            tree = operation(sign or " ", tree, self._expression(binding))
        self._depth -= 1
        return tree

    def _operand(self) -> Any:
        token = self._next()
        kind, part = token.type, token.subtype
        if kind == "OPERATOR-PREFIX":
            return Operation("u" + token.value, (self._expression(PREFIX),))
        if kind == "PAREN" and part == "OPEN":
            tree = self._expression(0)
            if self._peek() is not None and self._peek().type == "SEP":  # a union: (A1:A3,C1)
                parts = [tree]
                while self._peek() is not None and self._peek().type == "SEP":
                    self._at += 1
                    parts.append(self._expression(0))
                tree = Operation(",", tuple(parts))
            self._close("PAREN")
            return tree
        if kind == "FUNC" and part == "OPEN":
            return Call(function_name(token.value), self._arguments())
        if kind == "ARRAY" and part == "OPEN":
            return self._array()
        if kind == "OPERAND":
            return _literal(token.value, part)
        raise WorkbookError(f"{token.value!r} does not belong there.")

    def _close(self, kind: str) -> None:
        token = self._next()
        if token.type != kind or token.subtype != "CLOSE":
            raise WorkbookError(f"{token.value!r} stands where a bracket should close.")

    def _arguments(self) -> tuple[Any, ...]:
        found: list[Any] = []
        token = self._peek()
        if token is not None and token.type == "FUNC" and token.subtype == "CLOSE":
            self._at += 1
            return ()
        while True:
            token = self._peek()
            if token is None:
                raise WorkbookError("a bracket is not closed.")
            if token.type == "SEP" or (token.type == "FUNC" and token.subtype == "CLOSE"):
                found.append(Literal(None))
            else:
                found.append(self._expression(0))
            token = self._next()
            if token.type == "FUNC" and token.subtype == "CLOSE":
                return tuple(found)
            if token.type != "SEP":
                raise WorkbookError(f"{token.value!r} stands where an argument should end.")

    def _array(self) -> Rows:
        rows: list[list[Any]] = []
        while True:
            token = self._next()
            if token.type == "ARRAY":
                return Rows(tuple(tuple(row) for row in rows))
            if token.type == "ARRAYROW" and token.subtype == "OPEN":
                rows.append([])
            elif token.type == "OPERAND":
                if not rows:
                    rows.append([])
                rows[-1].append(_literal(token.value, token.subtype))
            elif token.type == "OPERATOR-PREFIX":
                sign = token.value
                if not rows:
                    rows.append([])
                rows[-1].append(Operation("u" + sign, (_literal(self._next().value, "NUMBER"),)))
            elif token.type == "SEP" and token.subtype == "ROW" and rows and rows[-1]:
                rows.append([])


@dataclass(frozen=True, slots=True)
class _Space:
    """A blank between two operands: the operator of the cells that both have."""

    type: str = "OPERATOR-INFIX"
    subtype: str = ""
    value: str = " "


def _without_space(tokens: list[Any]) -> Iterator[Any]:
    """Iterate over tokens, blanks left out where they mean nothing."""
    last: Any = None
    for i, token in enumerate(tokens):
        if token.type != "WHITE-SPACE":
            last = token
            yield token
            continue
        after = next((one for one in tokens[i + 1 :] if one.type != "WHITE-SPACE"), None)
        if last is None:
            continue
        ends = last.type == "OPERAND" or last.subtype == "CLOSE"
        begins = after is not None and (after.type == "OPERAND" or after.subtype == "OPEN")
        if ends and begins and last.type != "ARRAY":
            last = _Space()
            yield last


def operation(sign: str, first: Any, second: Any) -> Any:
    """Return an operation; of two areas that meet, or are joined, the area that this is."""
    if sign not in (" ", ":") or not isinstance(first, Area) or not isinstance(second, Area):
        return Operation(sign, (first, second))
    sheet = first.sheet if second.sheet is None else second.sheet
    ends = [first.last_row, second.last_row], [first.last_column, second.last_column]
    if first.sheet not in (None, sheet) or None in ends[0] or None in ends[1]:
        return Operation(sign, (first, second))
    low, high = (max, min) if sign == " " else (min, max)
    found = Area(
        sheet,
        low(first.row, second.row),
        low(first.column, second.column),
        high(ends[0]),  # type: ignore[arg-type]
        high(ends[1]),  # type: ignore[arg-type]
    )
    if found.row > found.last_row or found.column > found.last_column:  # type: ignore[operator]
        return Literal(ExcelError("#NULL!"))
    return found


def _literal(text: str, part: str) -> Any:
    if part == "NUMBER":
        return Literal(float(text))
    if part == "TEXT":
        return Literal(text[1:-1].replace('""', '"'))
    if part == "LOGICAL":
        return Literal(text.upper() == "TRUE")
    if part == "ERROR":
        return Literal(ExcelError(text.upper()))
    return area_of(text) or Name(text)


def function_name(token: str) -> str:
    """Return the name of a function without its bracket and without the prefixes of newer ones."""
    name = token.rstrip("(").strip().upper()
    for prefix in ("_XLFN.", "_XLWS.", "_XLUDF."):
        name = name.removeprefix(prefix)
    return name.removeprefix("@")


def parse(text: str) -> Any:
    """Return the tree of a formula that begins with ``=``.

    Raises
    ------
    WorkbookError
        If it is none.
    """
    try:
        return Parser(text).whole()
    except WorkbookError:
        raise
    except Exception as error:  # openpyxl's tokenizer raises several kinds
        raise WorkbookError(str(error)) from error


def walk(tree: Any) -> Iterator[Any]:
    """Iterate over all parts of a tree."""
    pending = [tree]
    while pending:
        one = pending.pop()
        yield one
        if isinstance(one, Call):
            pending += one.arguments
        elif isinstance(one, Operation):
            pending += one.operands
        elif isinstance(one, Rows):
            for row in one.rows:
                pending += row
