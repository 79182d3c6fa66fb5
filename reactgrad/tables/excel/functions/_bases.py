"""Numbers in the bases 2, 8, 10 and 16, with ten digits and a sign by complement."""

from __future__ import annotations

from typing import Any

from reactgrad.tables.excel._cells import lifted
from reactgrad.tables.excel._values import NUM, VALUE, Fault, as_number, as_text
from reactgrad.tables.excel.functions._register import single

BASES = {"BIN": 2, "OCT": 8, "HEX": 16}
DIGITS = "0123456789ABCDEF"


def _read(value: Any, base: int) -> int:
    if isinstance(value, bool):
        raise Fault(VALUE)
    text = as_text(value).strip()
    if len(text) > 10 or any(digit not in DIGITS[:base] for digit in text.upper()):
        raise Fault(NUM)
    found = int(text or "0", base)
    return found - base**10 if found >= base**10 // 2 else found


def _written(value: int, base: int, places: Any) -> str:
    if not -(base**10) // 2 <= value < base**10 // 2:
        raise Fault(NUM)
    negative, value = value < 0, value % base**10
    digits = ""
    while value:
        value, digit = divmod(value, base)
        digits = DIGITS[digit] + digits
    digits = digits or "0"
    if places != "":
        if isinstance(places, bool):
            raise Fault(VALUE)
        wanted = int(as_number(places))
        if not 0 < wanted <= 10 or (wanted < len(digits) and not negative):
            raise Fault(NUM)
        digits = digits if negative else digits.rjust(wanted, "0")
    return digits


def _decimal(value: Any) -> int:
    if isinstance(value, bool):
        raise Fault(VALUE)
    return int(as_number(value))


def _add(source: str, base: int | None, target: str, goal: int | None) -> None:
    def convert(value: Any, places: Any) -> Any:
        found = _decimal(value) if base is None else _read(value, base)
        return float(found) if goal is None else _written(found, goal, places)

    # "" is a place that was left out; an empty cell is 0, and an error.
    def function(value: Any, places: Any = "") -> Any:
        return lifted(convert, value, places)

    single(f"{source}2{target}")(function)


for _source, _base in BASES.items():
    _add("DEC", None, _source, _base)
    _add(_source, _base, "DEC", None)
    for _target, _goal in BASES.items():
        if _target != _source:
            _add(_source, _base, _target, _goal)
