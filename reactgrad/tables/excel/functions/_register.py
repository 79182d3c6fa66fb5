"""The table of functions of formulas, by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, Final

from reactgrad.tables.excel._cells import each

Function = Callable[..., Any]
FUNCTIONS: Final[dict[str, Function]] = {}  # of evaluated arguments
# To which a single cell is an area: what is in it may not count.
# fmt: off
OVER_CELLS: Final = frozenset({
    "AND", "AVERAGE", "COUNT", "COUNTA", "COUNTBLANK", "DEVSQ", "GEOMEAN", "HARMEAN", "IRR", "MAX", "MEDIAN", "MIN",
    "NPV", "OR", "PRODUCT", "STDEV", "STDEV.P", "STDEV.S", "STDEVP", "SUM", "SUMSQ", "VAR", "VAR.P", "VAR.S", "VARP",
    "XOR",
})
# fmt: on
# By function: positions of arguments that are single values beside areas; a range there is taken place by place.
SINGLE_VALUES: Final[dict[str, tuple[int, ...]]] = {
    "VLOOKUP": (0, 2, 3),
    "HLOOKUP": (0, 2, 3),
    "LOOKUP": (0,),
    "XLOOKUP": (0,),
    "MATCH": (0, 2),
    "INDEX": (1, 2),
    "COUNTIF": (1,),
    "SUMIF": (1,),
    "AVERAGEIF": (1,),
    "COUNTIFS": tuple(range(1, 255, 2)),
    "SUMIFS": tuple(range(2, 255, 2)),
    "AVERAGEIFS": tuple(range(2, 255, 2)),
    "MAXIFS": tuple(range(2, 255, 2)),
    "MINIFS": tuple(range(2, 255, 2)),
    "RANK": (0, 2),
    "RANK.EQ": (0, 2),
    "LARGE": (1,),
    "SMALL": (1,),
    "PERCENTILE": (1,),
    "PERCENTILE.INC": (1,),
    "QUARTILE": (1,),
    "QUARTILE.INC": (1,),
    "FORECAST": (0,),
    "FORECAST.LINEAR": (0,),
    "NPV": (0,),
    "XNPV": (0,),
    "IRR": (1,),
    "XIRR": (2,),
    **dict.fromkeys(("PMT", "PV", "FV", "IPMT", "PPMT", "NPER", "RATE", "SLN"), tuple(range(8))),
    **dict.fromkeys(
        ("SYD", "DB", "DDB", "VDB", "EFFECT", "NOMINAL", "CONCATENATE"), tuple(range(8))
    ),
}
LAZY: Final[dict[str, Function]] = {}  # of the builder, the place of the formula, and trees


def whole(*names: str) -> Callable[[Function], Function]:
    """Register a function that takes blocks as they are."""

    def add(function: Function) -> Function:
        FUNCTIONS.update(dict.fromkeys(names, function))
        return function

    return add


def single(*names: str) -> Callable[[Function], Function]:
    """Register a function of single values: of blocks it is taken place by place."""

    def add(function: Function) -> Function:
        @wraps(function)
        def placed(*arguments: Any) -> Any:
            return each(function, *arguments)

        FUNCTIONS.update(dict.fromkeys(names, placed))
        return function

    return add


def lazy(*names: str) -> Callable[[Function], Function]:
    """Register a function that evaluates its arguments itself."""

    def add(function: Function) -> Function:
        LAZY.update(dict.fromkeys(names, function))
        return function

    return add


@cache
def takes(name: str, count: int) -> bool:
    """Return whether a function can be called with so many arguments."""
    function = LAZY.get(name) or FUNCTIONS[name]
    more = 1 if name in LAZY else 0  # the evaluator
    try:
        inspect.signature(function).bind(*[None] * (count + more))
    except TypeError:
        return False
    return True
