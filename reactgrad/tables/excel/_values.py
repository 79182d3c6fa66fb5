"""Values of cells as Excel knows them: numbers, texts, truth values, errors, and nothing."""

from __future__ import annotations

import math
import numbers
from typing import Any, Final


class ExcelError:
    """An error that a cell may hold, such as ``#N/A``."""

    __slots__ = ("code",)

    def __init__(self, code: str) -> None:
        self.code = code

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExcelError) and other.code == self.code

    def __hash__(self) -> int:
        return hash(self.code)

    def __repr__(self) -> str:
        return self.code


CODES: Final = ("#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!")
DIV, NA, NUM, REF, VALUE = (
    ExcelError(code) for code in ("#DIV/0!", "#N/A", "#NUM!", "#REF!", "#VALUE!")
)


class Fault(Exception):
    """The result of a formula is an error."""

    def __init__(self, error: ExcelError) -> None:
        self.error = error


def plain(value: Any) -> Any:
    """Return the value of a node as one of a cell: a number that is none is an error."""
    if isinstance(value, bool) or type(value).__name__ == "bool":
        return bool(value)
    if isinstance(value, numbers.Real):
        value = float(value)
        return value if math.isfinite(value) else NUM
    if getattr(value, "shape", None) == ():
        return plain(value.item())
    return value


def as_number(value: Any) -> float:
    """Return a value as a number: nothing is 0, a truth value 0 or 1, a text what it says.

    Raises
    ------
    Fault
        If it is none.
    """
    if value is None:
        return 0.0
    if isinstance(value, ExcelError):
        raise Fault(value)
    if isinstance(value, bool | int | float):
        return float(value)
    if isinstance(value, str):
        text = value.strip().replace(",", "")
        scale = 1.0
        if text.endswith("%"):
            text, scale = text[:-1], 0.01
        try:
            found = float(text) * scale
        except ValueError:
            raise Fault(VALUE) from None
        if "n" in text.lower() or "_" in text:  # nan, inf, 1_000: words of Python
            raise Fault(VALUE)
        return found
    raise Fault(VALUE)


def as_text(value: Any) -> str:
    """Return a value as a text, a number with up to 15 digits."""
    if value is None:
        return ""
    if isinstance(value, ExcelError):
        raise Fault(value)
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        if value == int(value) and abs(value) < 1e15:
            return str(int(value))
        return f"{value:.15g}".replace("e+", "E+").replace("e-", "E-")
    return str(value)


def as_truth(value: Any) -> bool:
    """Return a value as a truth value."""
    if isinstance(value, ExcelError):
        raise Fault(value)
    if isinstance(value, str):
        if value.upper() in ("TRUE", "FALSE"):
            return value.upper() == "TRUE"
        raise Fault(VALUE)
    return bool(value)


def rank(value: Any) -> tuple[int, Any]:
    """Return a key that compares as Excel does: numbers, then texts in any case, then truth values."""
    if isinstance(value, bool):
        return 2, value
    if isinstance(value, str):
        return 1, value.lower()
    return 0, 0.0 if value is None else float(value)


def compare(sign: str, a: Any, b: Any) -> bool:
    """Return whether two values compare so."""
    for one in (a, b):
        if isinstance(one, ExcelError):
            raise Fault(one)
    if a is None:
        a = "" if isinstance(b, str) else False if isinstance(b, bool) else 0.0
    if b is None:
        b = "" if isinstance(a, str) else False if isinstance(a, bool) else 0.0
    x, y = rank(a), rank(b)
    return {
        "=": x == y,
        "<>": x != y,
        "<": x < y,
        ">": x > y,
        "<=": x <= y,
        ">=": x >= y,
    }[sign]
