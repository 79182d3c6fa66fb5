"""Choices, truth values, and questions about kinds of values."""

from __future__ import annotations

from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad.tables.excel._cells import (
    Block,
    Live,
    chosen,
    each,
    kind_of,
    lifted,
    live,
    number,
    truth,
)
from reactgrad.tables.excel._values import NA, VALUE, ExcelError, Fault, compare
from reactgrad.tables.excel.functions._register import lazy, single, whole


@lazy("IF")
def _if(evaluate: Any, condition: Any, first: Any = None, second: Any = None) -> Any:
    test = evaluate(condition)
    left = (lambda: True) if first is None else (lambda: evaluate(first))
    right = (lambda: False) if second is None else (lambda: evaluate(second))

    if isinstance(test, Block):
        return each(_either, test, left(), right())
    if isinstance(test, ExcelError):
        raise Fault(test)
    value = truth(test)
    if not isinstance(value, rg.Var):  # only the chosen part is built
        return _blank_is_zero(left() if value else right())
    return chosen(value, _blank_is_zero(left()), _blank_is_zero(right()))


def _either(test: Any, first: Any, second: Any) -> Any:
    if isinstance(test, ExcelError):
        return test
    return chosen(truth(test), _blank_is_zero(first), _blank_is_zero(second))


def _blank_is_zero(value: Any) -> Any:
    return 0.0 if value is None else value


@lazy("IFERROR", "IFNA")
def _iferror(evaluate: Any, value: Any, other: Any) -> Any:
    first = evaluate(value)
    if isinstance(first, Block):
        second = evaluate(other)
        return each(lambda one, instead: _sound_or(one, lambda: instead), first, second)
    return _sound_or(first, lambda: evaluate(other))


def _sound_or(found: Any, other: Any) -> Any:
    """Return a value, or another one if it is an error; of nodes only the chosen one is computed."""
    if isinstance(found, ExcelError):
        return _blank_is_zero(other())
    if not isinstance(found, Live) or found.kind == "logical":
        return _blank_is_zero(found)
    if found.kind == "number":
        good = rg.isfinite(found.var)
    else:
        good = lifted(
            lambda v: not isinstance(v, ExcelError), found, kind="logical", strict=False
        ).var
    instead = other()
    if isinstance(instead, Block):
        instead = instead.rows[0][0]
    return chosen(good, found, _blank_is_zero(instead))


@lazy("CHOOSE")
def _choose(evaluate: Any, index: Any, *parts: Any) -> Any:
    at = evaluate(index)
    if isinstance(at, ExcelError):
        raise Fault(at)
    place = number(at)
    if not isinstance(place, rg.Var):
        if not 1 <= int(place) <= len(parts):
            raise Fault(VALUE)
        return evaluate(parts[int(place) - 1])
    found: Any = VALUE
    for i, part in reversed(list(enumerate(parts, 1))):
        found = chosen(rg.floor(place) == float(i), evaluate(part), found)
    return found


@lazy("IFS")
def _ifs(evaluate: Any, *parts: Any) -> Any:
    def ifs(*values: Any) -> Any:
        found: Any = NA
        for test, part in reversed(list(zip(values[::2], values[1::2], strict=True))):
            if isinstance(test, ExcelError):
                found = test
                continue
            found = chosen(truth(test), _blank_is_zero(part), found)
        return found

    if len(parts) % 2:
        raise Fault(NA)
    return each(ifs, *map(evaluate, parts))


@lazy("SWITCH")
def _switch(evaluate: Any, value: Any, *parts: Any) -> Any:
    def switch(wanted: Any, *values: Any) -> Any:
        found: Any = NA
        if len(values) % 2:
            found, values = _blank_is_zero(values[-1]), values[:-1]
        for one, part in reversed(list(zip(values[::2], values[1::2], strict=True))):
            found = chosen(truth(_sound(equal(wanted, one))), _blank_is_zero(part), found)
        return found

    return each(switch, *map(evaluate, (value, *parts)))


def _sound(value: Any) -> Any:
    if isinstance(value, ExcelError):
        raise Fault(value)
    return value


def equal(a: Any, b: Any) -> Any:
    """Return whether two values are equal, texts in any case."""
    return compared("=", a, b)


SIGNS = {
    "=": np.equal,
    "<>": np.not_equal,
    "<": np.less,
    ">": np.greater,
    "<=": np.less_equal,
    ">=": np.greater_equal,
}


def compared(sign: str, a: Any, b: Any) -> Any:
    """Return a comparison: an op of numbers, else a function of values."""
    if isinstance(a, Live) or isinstance(b, Live):
        kinds = {kind_of(one) if one is not None else "number" for one in (a, b)}
        if kinds == {"number"}:
            return live(SIGNS[sign](number(a), number(b)), "logical")
    return lifted(lambda x, y: compare(sign, x, y), a, b, kind="logical")


def _all_of(arguments: Any) -> list[Any]:
    found = []
    for one in arguments:
        if isinstance(one, Block):
            for value in one:
                if isinstance(value, ExcelError):
                    raise Fault(value)
                if value is not None and not isinstance(value, str):
                    found.append(truth(value))
        else:
            found.append(truth(_sound(one)))
    if not found:
        raise Fault(VALUE)
    return found


def _joined(known: Any, ours: Any) -> Any:
    def function(*arguments: Any) -> Any:
        values = _all_of(arguments)
        nodes = [one for one in values if isinstance(one, rg.Var)]
        rest = [one for one in values if not isinstance(one, rg.Var)]
        found = known(rest)
        for node in nodes:
            found = ours(found, node)
        return live(found, "logical") if isinstance(found, rg.Var) else bool(found)

    return function


whole("AND")(_joined(all, lambda a, b: b if a is True else rg.logical_and(a, b)))
whole("OR")(_joined(any, lambda a, b: b if a is False else rg.logical_or(a, b)))
whole("XOR")(
    _joined(lambda v: sum(v) % 2 == 1, lambda a, b: b if a is False else rg.not_equal(a, b))
)


@single("NOT")
def _not(value: Any) -> Any:
    found = truth(value)
    return live(rg.logical_not(found), "logical") if isinstance(found, rg.Var) else not found


@whole("TRUE")
def _true() -> bool:
    return True


@whole("FALSE")
def _false() -> bool:
    return False


@whole("NA")
def _na() -> Any:
    raise Fault(NA)


def _asks(test: Any) -> Any:
    def function(value: Any) -> Any:
        return each(lambda one: lifted(test, one, kind="logical", strict=False), value)

    return function


def _number(value: Any) -> bool:
    return isinstance(value, float) and not isinstance(value, bool)


for _name, _test in {
    "ISNUMBER": _number,
    "ISTEXT": lambda value: isinstance(value, str),
    "ISNONTEXT": lambda value: not isinstance(value, str),
    "ISLOGICAL": lambda value: isinstance(value, bool),
    "ISBLANK": lambda value: value is None,
    "ISERROR": lambda value: isinstance(value, ExcelError),
    "ISERR": lambda value: isinstance(value, ExcelError) and value != NA,
    "ISNA": lambda value: value == NA,
    "ISEVEN": lambda value: int(value or 0.0) % 2 == 0,
    "ISODD": lambda value: int(value or 0.0) % 2 == 1,
}.items():
    whole(_name)(_asks(_test))


@single("N")
def _n(value: Any) -> Any:
    return value if kind_of(value) == "number" else lifted(lambda v: float(v is True), value)
