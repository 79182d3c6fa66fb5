"""Sums, means, counts and the like over cells."""

from __future__ import annotations

import fnmatch
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad.tables.excel._cells import Block, Live, divided, each, kind_of, lifted, live, number
from reactgrad.tables.excel._values import (
    DIV,
    NA,
    NUM,
    VALUE,
    ExcelError,
    Fault,
    as_number,
    compare,
)
from reactgrad.tables.excel.functions._math import added, minus, power, times
from reactgrad.tables.excel.functions._register import whole


def numbers_of(arguments: Any) -> tuple[list[Any], list[Any]]:
    """Return numbers among arguments, and the values of which only a run knows whether they are numbers.

    In cells, texts, truth values and nothing do not count; written into the formula they do.
    """
    found: list[Any] = []
    late: list[Any] = []
    for one in arguments:
        if isinstance(one, Block):
            for value in one:
                if isinstance(value, ExcelError):
                    raise Fault(value)
                kind = kind_of(value)
                if kind == "number":
                    found.append(number(value))
                elif isinstance(value, Live) and kind == "any":
                    late.append(value)
        elif one is not None:
            found.append(number(one))
    return found, late


def _counted(value: Any) -> float:
    return value if isinstance(value, float) else 0.0


def _sum_rule(g: Any, ans: Any, value: Any) -> tuple[Any]:
    return (g,)


@whole("SUM")
def _sum(*arguments: Any) -> Any:
    found, late = numbers_of(arguments)
    found += [number(lifted(_counted, one, kind="number", vjp=_sum_rule)) for one in late]
    return added(found)


def _over(
    nodes: Callable[[Any], Any], floats: Callable[[list[float]], float], least: int = 1
) -> Any:
    """Return a function over cells: by ops where all are numbers, else as a Python function."""

    def plain(*values: Any) -> float:
        counted = [
            float(one) for one in values if isinstance(one, float) and not isinstance(one, bool)
        ]
        if len(counted) < least:
            raise Fault(DIV)
        return floats(counted)

    def function(*arguments: Any) -> Any:
        found, late = numbers_of(arguments)
        if late or not any(isinstance(one, rg.Var) for one in found):
            every = [Live(one, "number") if isinstance(one, rg.Var) else one for one in found]
            result = lifted(plain, *every, *late, kind="number")
            if isinstance(result, ExcelError):
                raise Fault(result)
            return result
        if len(found) < least:
            raise Fault(DIV)
        return live(nodes(rg.stack([_node(one, found) for one in found])))

    return function


def _node(value: Any, others: list[Any]) -> Any:
    if isinstance(value, rg.Var):
        return value
    graph = next(one for one in others if isinstance(one, rg.Var)).graph
    return graph.const(np.float64(value))


def _sample(power_of: float, ddof: int) -> Callable[[list[float]], float]:
    return lambda values: float(np.var(values, ddof=ddof)) ** power_of


whole("AVERAGE")(_over(lambda x: x.mean(), lambda v: math.fsum(v) / len(v)))
whole("PRODUCT")(_over(lambda x: rg.prod(x), lambda v: math.prod(v)))
whole("SUMSQ")(_over(lambda x: (x * x).sum(), lambda v: math.fsum(one * one for one in v)))
whole("STDEV", "STDEV.S")(_over(lambda x: rg.std(x, ddof=1), _sample(0.5, 1), 2))
whole("STDEVP", "STDEV.P")(_over(lambda x: rg.std(x), _sample(0.5, 0)))
whole("VAR", "VAR.S")(_over(lambda x: rg.var(x, ddof=1), _sample(1.0, 1), 2))
whole("VARP", "VAR.P")(_over(lambda x: rg.var(x), _sample(1.0, 0)))
whole("MEDIAN")(_over(lambda x: rg.median(x), lambda v: float(np.median(v))))
whole("DEVSQ")(_over(lambda x: ((x - x.mean()) ** 2).sum(), lambda v: float(np.var(v) * len(v))))
whole("GEOMEAN")(
    _over(
        lambda x: rg.exp(rg.log(x).mean()), lambda v: math.exp(math.fsum(map(math.log, v)) / len(v))
    )
)
whole("HARMEAN")(
    _over(lambda x: 1.0 / (1.0 / x).mean(), lambda v: len(v) / math.fsum(1.0 / one for one in v))
)
_max = _over(lambda x: x.max(), max)
_min = _over(lambda x: x.min(), min)


def _or_zero(function: Any) -> Any:
    def largest(*arguments: Any) -> Any:
        found, late = numbers_of(arguments)
        return function(*arguments) if found or late else 0.0

    return largest


whole("MAX")(_or_zero(_max))
whole("MIN")(_or_zero(_min))


def _counts(test: Callable[[Any], bool], cells: Callable[[Any], bool]) -> Any:
    """Return a function that counts: `test` of values written into the formula, `cells` of those in cells."""

    def function(*arguments: Any) -> Any:
        inside = [value for one in arguments if isinstance(one, Block) for value in one]
        outside = [one for one in arguments if not isinstance(one, Block)]
        known = sum(cells(one) for one in inside if _settled(one)) + sum(
            test(one) for one in outside if _settled(one)
        )
        late = [one for one in (*inside, *outside) if not _settled(one)]
        if not late:
            return float(known)
        return lifted(
            lambda *values: float(known + sum(map(cells, values))),
            *late,
            kind="number",
            strict=False,
        )

    return function


def _settled(value: Any) -> bool:
    return not isinstance(value, Live) or value.kind != "any"


def _is_number(value: Any) -> bool:
    return kind_of(value) == "number" and not isinstance(value, bool)


def _is_numeric(value: Any) -> bool:
    if isinstance(value, str):
        try:
            as_number(value)
        except Fault:
            return False
        return True
    return value is not None and not isinstance(value, ExcelError)


whole("COUNT")(_counts(_is_numeric, _is_number))
whole("COUNTA")(_counts(lambda one: True, lambda one: one is not None))
whole("COUNTBLANK")(_counts(lambda one: one is None, lambda one: one is None or one == ""))


@whole("SUMPRODUCT")
def _sumproduct(*arguments: Any) -> Any:
    def factor(value: Any) -> Any:
        if isinstance(value, ExcelError):
            raise Fault(value)
        kind = kind_of(value)
        if kind == "number":
            return number(value)
        if isinstance(value, Live) and kind == "any":
            return number(lifted(_counted, value, kind="number", vjp=_sum_rule))
        return 0.0

    if not all(isinstance(one, Block) for one in arguments):
        arguments = tuple(one if isinstance(one, Block) else Block([[one]]) for one in arguments)
    if len({one.shape for one in arguments}) > 1:
        raise Fault(VALUE)
    columns = [[factor(value) for value in one] for one in arguments]
    if any(isinstance(one, rg.Var) for column in columns for one in column) and len(columns[0]) > 2:
        product: Any = None
        for column in columns:
            nodes: Any = np.array(column) if _first(column) is None else None
            if nodes is None:
                nodes = rg.stack([_node(one, column) for one in column])
            product = nodes if product is None else product * nodes
        return live(product.sum())
    total: list[Any] = []
    for row in zip(*columns, strict=True):
        product = row[0]
        for one in row[1:]:
            product = product * one
        total.append(product)
    return added(total)


def _first(column: list[Any]) -> Any:
    return next((one for one in column if isinstance(one, rg.Var)), None)


def _with_all(name: str, floats: Callable[[list[float]], float], least: int) -> None:
    """Register a function that counts truth values as 0 and 1, and texts as 0."""

    def function(*arguments: Any) -> Any:
        def plain(*values: Any) -> float:
            flat = [cell for one in values for cell in _cells_of(one)]
            counted = [
                0.0 if isinstance(one, str) else float(one) for one in flat if one is not None
            ]
            if len(counted) < least:
                raise Fault(DIV)
            return floats(counted)

        return lifted(plain, *arguments, kind="number")

    whole(name)(function)


def _cells_of(value: Any) -> list[Any]:
    return [cell for row in value for cell in row] if isinstance(value, list) else [value]


for _name, _floats, _least in (
    ("AVERAGEA", lambda v: math.fsum(v) / len(v), 1),
    ("MAXA", max, 1),
    ("MINA", min, 1),
    ("STDEVA", _sample(0.5, 1), 2),
    ("STDEVPA", _sample(0.5, 0), 1),
    ("VARA", _sample(1.0, 1), 2),
    ("VARPA", _sample(1.0, 0), 1),
):
    _with_all(_name, _floats, _least)


# --- by criteria -----------------------------------------------------------------------------------------


def criterion(given: Any) -> Callable[[Any], bool]:
    """Return the test of a criterion such as ``">=5"``, ``"a*"`` or ``3``."""
    sign, wanted = "=", given
    if isinstance(given, str):
        match = re.match(r"(<=|>=|<>|=|<|>)?(.*)$", given, re.DOTALL)
        assert match is not None
        sign, wanted = match[1] or "=", match[2]
        try:
            wanted = as_number(wanted)
        except Fault:
            if str(wanted).upper() in ("TRUE", "FALSE"):
                wanted = str(wanted).upper() == "TRUE"
    if isinstance(wanted, str):
        if sign in ("=", "<>"):
            if not wanted:
                return lambda value: (value in (None, "")) == (sign == "=")
            pattern = re.compile(
                fnmatch.translate(wanted.replace("[", "[[]").lower()).replace("~", "")
            )

            def matches(value: Any) -> bool:
                return (isinstance(value, str) and pattern.match(value.lower()) is not None) == (
                    sign == "="
                )

            return matches
        return lambda value: isinstance(value, str) and compare(sign, value, wanted)
    if wanted is None:
        wanted = 0.0

    def holds(value: Any) -> bool:
        same = type(value) is type(wanted) and not isinstance(value, ExcelError)
        return compare(sign, value, wanted) if same else sign == "<>"

    return holds


def _mask(pairs: list[Any]) -> list[Any]:
    """Return for each place whether all criteria hold, as values or nodes."""
    if len(pairs) % 2 or not pairs:
        raise Fault(VALUE)
    areas = [one if isinstance(one, Block) else Block([[one]]) for one in pairs[::2]]
    if len({one.shape for one in areas}) > 1:
        raise Fault(VALUE)

    def holds(*values: Any) -> bool:
        half = len(values) // 2
        return all(
            criterion(wanted)(value)
            for value, wanted in zip(values[:half], values[half:], strict=True)
        )

    columns = [list(one) for one in areas]
    return [
        lifted(holds, *row, *pairs[1::2], kind="logical", strict=False)
        for row in zip(*columns, strict=True)
    ]


def _weights(mask: list[Any]) -> list[Any]:
    return [number(one) for one in mask]


@whole("COUNTIF", "COUNTIFS")
def _countifs(*pairs: Any) -> Any:
    return added(_weights(_mask(list(pairs))))


def _selected(values: Any, mask: list[Any]) -> tuple[list[Any], list[Any]]:
    """Return the numbers of an area, zero where the mask is false, and the weights of those that are numbers."""
    cells = list(values) if isinstance(values, Block) else [values]
    if len(cells) != len(mask):
        raise Fault(VALUE)
    found: list[Any] = []
    weights: list[Any] = []
    for cell, hold in zip(cells, mask, strict=True):
        kind = kind_of(cell)
        if kind == "any" and not isinstance(cell, Live):
            continue
        if kind == "logical" or hold is False:
            continue
        value = (
            number(lifted(_counted, cell, kind="number", vjp=_sum_rule))
            if kind == "any"
            else number(cell)
        )
        if hold is True:
            found.append(value)
            weights.append(1.0)
        else:
            found.append(rg.where(hold.var, value, 0.0))
            weights.append(number(hold))
    return found, weights


@whole("SUMIFS")
def _sumifs(values: Any, *pairs: Any) -> Any:
    return added(_selected(values, _mask(list(pairs)))[0])


@whole("SUMIF")
def _sumif(area: Any, wanted: Any, values: Any = None) -> Any:
    return _sumifs(area if values is None else values, area, wanted)


@whole("AVERAGEIFS")
def _averageifs(values: Any, *pairs: Any) -> Any:
    found, weights = _selected(values, _mask(list(pairs)))
    return divided(added(found), added(weights))


@whole("AVERAGEIF")
def _averageif(area: Any, wanted: Any, values: Any = None) -> Any:
    return _averageifs(area if values is None else values, area, wanted)


def _extremum_ifs(largest: bool) -> Any:
    def function(values: Any, *pairs: Any) -> Any:
        mask = _mask(list(pairs))
        end = -math.inf if largest else math.inf
        cells = [
            number(cell) if hold is True else rg.where(hold.var, number(cell), end)
            for cell, hold in zip(values, mask, strict=True)
            if kind_of(cell) == "number" and hold is not False
        ]
        if not cells:
            return 0.0
        if not any(isinstance(one, rg.Var) for one in cells):
            return max(cells) if largest else min(cells)
        stacked = rg.stack([_node(one, cells) for one in cells])
        found = stacked.max() if largest else stacked.min()
        return live(rg.where(rg.isfinite(found), found, 0.0))

    return function


whole("MAXIFS")(_extremum_ifs(True))
whole("MINIFS")(_extremum_ifs(False))

# --- order and fit ---------------------------------------------------------------------------------------


def _stacked(area: Any) -> Any:
    found, late = numbers_of([area])
    if late:
        raise Fault(VALUE)
    if not found:
        raise Fault(NUM)
    if any(isinstance(one, rg.Var) for one in found):
        return rg.stack([_node(one, found) for one in found])
    return np.array(found)


def _with_texts(area: Any) -> bool:
    """Return whether only a run knows which cells are numbers."""
    return bool(numbers_of([area])[1])


def _ordered(area: Any, k: Any, *, largest: bool) -> Any:
    if _with_texts(area):

        def ordered(rows: Any, at: Any) -> float:
            found = sorted(
                (one for row in rows for one in row if isinstance(one, float)), reverse=largest
            )
            if not 1 <= int(as_number(at)) <= len(found):
                raise Fault(NUM)
            return found[int(as_number(at)) - 1]

        return lifted(ordered, area, k, kind="number")
    values, place = _stacked(area), number(k)
    if isinstance(place, rg.Var):
        raise Fault(VALUE)
    n = int(values.shape[0])
    at = n - int(place) if largest else int(place) - 1
    if not 0 <= at < n:
        raise Fault(NUM)
    return live(rg.sort(values)[at] if isinstance(values, rg.Var) else np.sort(values)[at])


@whole("LARGE")
def _large(area: Any, k: Any) -> Any:
    return each(lambda one: _ordered(area, one, largest=True), k)


@whole("SMALL")
def _small(area: Any, k: Any) -> Any:
    return each(lambda one: _ordered(area, one, largest=False), k)


@whole("PERCENTILE", "PERCENTILE.INC")
def _percentile(area: Any, q: Any) -> Any:
    values, at = _stacked(area), number(q)
    if isinstance(at, rg.Var):
        raise Fault(VALUE)
    if not 0.0 <= at <= 1.0:
        raise Fault(NUM)
    return live((rg if isinstance(values, rg.Var) else np).quantile(values, at))


@whole("QUARTILE", "QUARTILE.INC")
def _quartile(area: Any, q: Any) -> Any:
    return _percentile(area, divided(q, 4.0))


@whole("RANK", "RANK.EQ")
def _rank(value: Any, area: Any, order: Any = 0.0) -> Any:
    def rank(x: Any, rows: Any, up: Any) -> float:
        others = [one for row in rows for one in row if isinstance(one, float)]
        if x not in others:
            raise Fault(NA)
        return 1.0 + sum(one < x if up else one > x for one in others)

    return lifted(rank, value, area, 0.0 if order is None else order, kind="number")


def _pair(ys: Any, xs: Any) -> tuple[Any, Any]:
    y, x = _stacked(ys), _stacked(xs)
    if y.shape != x.shape:
        raise Fault(NA)
    return y, x


def _centred(a: Any) -> Any:
    return a - a.mean()


@whole("SLOPE")
def _slope(ys: Any, xs: Any) -> Any:
    y, x = _pair(ys, xs)
    return live((_centred(x) * _centred(y)).sum() / (_centred(x) ** 2).sum())


@whole("INTERCEPT")
def _intercept(ys: Any, xs: Any) -> Any:
    y, x = _pair(ys, xs)
    return minus(live(y.mean()), times(_slope(ys, xs), live(x.mean())))


@whole("CORREL", "PEARSON")
def _correl(ys: Any, xs: Any) -> Any:
    y, x = _pair(ys, xs)
    a, b = _centred(y), _centred(x)
    root = rg.sqrt if isinstance(a, rg.Var) or isinstance(b, rg.Var) else np.sqrt
    return live((a * b).sum() / root((a * a).sum() * (b * b).sum()))


@whole("RSQ")
def _rsq(ys: Any, xs: Any) -> Any:
    return power(_correl(ys, xs), 2.0)


@whole("COVAR", "COVARIANCE.P")
def _covar(ys: Any, xs: Any) -> Any:
    y, x = _pair(ys, xs)
    return live((_centred(y) * _centred(x)).mean())


@whole("FORECAST", "FORECAST.LINEAR")
def _forecast(at: Any, ys: Any, xs: Any) -> Any:
    from reactgrad.tables.excel.functions._math import plus

    return plus(_intercept(ys, xs), times(_slope(ys, xs), at))
