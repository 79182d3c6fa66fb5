"""Interest, annuities, cash flows, depreciation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad.tables.excel._cells import Block, Live, chosen, divided, live, number, smooth
from reactgrad.tables.excel._values import NUM, VALUE, ExcelError, Fault
from reactgrad.tables.excel.functions._math import added
from reactgrad.tables.excel.functions._register import whole
from reactgrad.tables.excel.functions._statistics import numbers_of

MOST_PERIODS = 100_000.0  # that are counted one by one


def _given(value: Any, default: float) -> Any:
    return default if value is None else value


def _is_live(*values: Any) -> bool:
    return any(isinstance(one, rg.Var) for one in values)


def _by_rate(rate: Any, compound: Any, flat: Any) -> Any:
    """Return a formula for a rate, with the one that holds at zero; each is built only where it may be needed."""
    if not isinstance(rate, rg.Var):
        return live(compound() if rate else flat())
    first, second = compound(), flat()
    graph = rate.graph
    parts = [
        one if isinstance(one, rg.Var) else graph.const(np.float64(one)) for one in (first, second)
    ]
    return chosen(rate != 0.0, Live(parts[0], "number"), Live(parts[1], "number"))


@whole("PMT")
def _pmt(rate: Any, nper: Any, pv: Any, fv: Any = 0.0, when: Any = 0.0) -> Any:
    r, n, p, f, w = (number(_given(one, 0.0)) for one in (rate, nper, pv, fv, when))
    if not _is_live(n) and n == 0.0:
        raise Fault(NUM)
    return _by_rate(
        r,
        lambda: -(p * (1.0 + r) ** n + f) * r / ((1.0 + r * w) * ((1.0 + r) ** n - 1.0)),
        lambda: -(p + f) / n,
    )


@whole("PV")
def _pv(rate: Any, nper: Any, pmt: Any, fv: Any = 0.0, when: Any = 0.0) -> Any:
    r, n, p, f, w = (number(_given(one, 0.0)) for one in (rate, nper, pmt, fv, when))
    return _by_rate(
        r,
        lambda: -(f + p * (1.0 + r * w) * ((1.0 + r) ** n - 1.0) / r) / (1.0 + r) ** n,
        lambda: -(f + p * n),
    )


@whole("FV")
def _fv(rate: Any, nper: Any, pmt: Any, pv: Any = 0.0, when: Any = 0.0) -> Any:
    r, n, p, v, w = (number(_given(one, 0.0)) for one in (rate, nper, pmt, pv, when))
    return _by_rate(
        r,
        lambda: -(v * (1.0 + r) ** n + p * (1.0 + r * w) * ((1.0 + r) ** n - 1.0) / r),
        lambda: -(v + p * n),
    )


def _balance(rate: Any, per: Any, pmt: Any, pv: Any, when: Any) -> Any:
    """Return what is owed before a payment, with its sign."""
    return _fv(rate, per, pmt, pv, when)


@whole("IPMT")
def _ipmt(rate: Any, per: Any, nper: Any, pv: Any, fv: Any = 0.0, when: Any = 0.0) -> Any:
    def ipmt(r: float, k: float, n: float, p: float, f: float, w: float) -> float:
        if not 1.0 <= k <= n:
            raise Fault(NUM)
        payment = _float(_pmt(r, n, p, f, w))
        if w and k == 1.0:
            return 0.0
        owed = _float(_fv(r, k - 1.0, payment, p, w))
        return owed * r / (1.0 + r) if w and r else owed * r

    return smooth(ipmt, rate, per, nper, pv, _given(fv, 0.0), _given(when, 0.0))


def _float(value: Any) -> float:
    assert isinstance(value, float)
    return value


@whole("PPMT")
def _ppmt(rate: Any, per: Any, nper: Any, pv: Any, fv: Any = 0.0, when: Any = 0.0) -> Any:
    from reactgrad.tables.excel.functions._math import minus

    return minus(_pmt(rate, nper, pv, fv, when), _ipmt(rate, per, nper, pv, fv, when))


@whole("NPER")
def _nper(rate: Any, pmt: Any, pv: Any, fv: Any = 0.0, when: Any = 0.0) -> Any:
    def nper(r: float, p: float, v: float, f: float, w: float) -> float:
        if r == 0.0:
            return -(v + f) / p
        z = p * (1.0 + r * w) / r
        return math.log((z - f) / (z + v)) / math.log1p(r)

    return smooth(nper, rate, pmt, pv, _given(fv, 0.0), _given(when, 0.0))


@whole("RATE")
def _rate(nper: Any, pmt: Any, pv: Any, fv: Any = 0.0, when: Any = 0.0, guess: Any = 0.1) -> Any:
    start = number(_given(guess, 0.1))
    if _is_live(start):
        raise Fault(VALUE)

    def rate(n: float, p: float, v: float, f: float, w: float) -> float:
        def owed(r: float) -> float:
            return _float(_fv(r, n, p, v, w)) - f if r > -1.0 else math.nan

        return _root(lambda r: owed(r), start)

    return smooth(rate, nper, pmt, pv, _given(fv, 0.0), _given(when, 0.0))


def _root(function: Any, start: float) -> float:
    """Return a root near `start`: secants, and bisection once it lies between two points."""
    a, b = start, start + 1e-4
    at_a, at_b = function(a), function(b)
    for _ in range(200):
        if at_b == at_a or not math.isfinite(at_b):
            break
        c = b - at_b * (b - a) / (at_b - at_a)
        if c <= -1.0:
            c = (b - 1.0) / 2.0
        a, at_a, b = b, at_b, c
        at_b = function(b)
        if abs(b - a) <= 1e-14 * max(1.0, abs(b)):
            return b
    points = [-0.999, -0.9, -0.5, -0.2, -0.05, 0.0, 0.05, 0.2, 0.5, 1.0, 3.0, 10.0, 100.0]
    for low, high in pairwise(points):
        at_low, at_high = function(low), function(high)
        if math.isfinite(at_low) and math.isfinite(at_high) and (at_low < 0.0) != (at_high < 0.0):
            for _ in range(200):
                middle = (low + high) / 2.0
                at_middle = function(middle)
                if (at_middle < 0.0) == (at_low < 0.0):
                    low = middle
                else:
                    high = middle
            return (low + high) / 2.0
    raise Fault(NUM)


def _flows(areas: Sequence[Any]) -> list[Any]:
    found, late = numbers_of(areas)
    if late:
        found += [number(one) for one in late]
    if not found:
        raise Fault(NUM)
    return found


@whole("NPV")
def _npv(rate: Any, *flows: Any) -> Any:
    r = number(next(iter(rate)) if isinstance(rate, Block) else rate)
    values = _flows(flows)
    factor, parts = 1.0 + r, []
    if _is_live(factor) and len(values) > 3:
        graph = factor.graph
        stacked = rg.stack(
            [one if isinstance(one, rg.Var) else graph.const(np.float64(one)) for one in values]
        )
        return live((stacked / factor ** np.arange(1.0, len(values) + 1.0)).sum())
    if not _is_live(factor) and factor == 0.0:
        raise Fault(ExcelError("#DIV/0!"))
    for k, value in enumerate(values, 1):
        parts.append(value / factor ** float(k))
    return added(parts)


def _implicit(values: list[Any], times_of: Any, guess: float) -> Any:
    """Return the rate at which flows are worth nothing, with its derivative by the implicit function theorem."""
    n = len(values)
    holes = [one for one in values if isinstance(one, rg.Var)]
    live_at = [i for i, one in enumerate(values) if isinstance(one, rg.Var)]

    def rate(*numbers: Any) -> float:
        flows = [float("nan") if isinstance(one, rg.Var) else float(one) for one in values]
        for i, value in zip(live_at, numbers, strict=True):
            flows[i] = float(value)
        if not (any(one > 0.0 for one in flows) and any(one < 0.0 for one in flows)):
            raise Fault(NUM)
        scale = max(map(abs, flows))

        def worth(r: float) -> float:
            if r <= -1.0:
                return math.nan
            try:
                return (
                    math.fsum(v / (1.0 + r) ** t for v, t in zip(flows, times_of, strict=True))
                    / scale
                )
            except OverflowError:
                return math.nan

        return _root(worth, guess)

    if not holes:
        return rate()

    def safe(*numbers: Any) -> float:
        try:
            return rate(*numbers)
        except (Fault, ArithmeticError, ValueError):
            return math.nan

    def rule(g: Any, ans: Any, *numbers: Any) -> tuple[Any, ...]:
        flows = list(values)
        for i, value in zip(live_at, numbers, strict=True):
            flows[i] = value
        base = 1.0 + ans
        slope = added(
            [-float(times_of[k]) * flows[k] * base ** (-float(times_of[k]) - 1.0) for k in range(n)]
        )
        assert isinstance(slope, Live)
        return tuple(-g * base ** -float(times_of[i]) / slope.var for i in live_at)

    return live(rg.lift(safe, shape=(), dtype=np.float64, vjp=rule)(*holes))


@whole("IRR")
def _irr(flows: Any, guess: Any = 0.1) -> Any:
    start = number(next(iter(guess)) if isinstance(guess, Block) else _given(guess, 0.1))
    if _is_live(start):  # it chooses among several rates only
        start = 0.1
    values = _flows([flows])
    return _implicit(values, [float(k) for k in range(len(values))], start)


def _times(dates: Any) -> list[float]:
    days = _flows([dates])
    if _is_live(*days):
        raise Fault(VALUE)
    return [(math.floor(one) - math.floor(days[0])) / 365.0 for one in days]


@whole("XIRR")
def _xirr(flows: Any, dates: Any, guess: Any = 0.1) -> Any:
    values, days = _flows([flows]), _flows([dates])
    if len(values) != len(days):
        raise Fault(NUM)
    if _is_live(*days):

        def xirr(*numbers: float) -> float:
            half = len(numbers) // 2
            times = [
                (math.floor(one) - math.floor(numbers[half])) / 365.0 for one in numbers[half:]
            ]
            return _implicit([float(one) for one in numbers[:half]], times, 0.1)

        return smooth(xirr, *[_back(one) for one in (*values, *days)])
    return _implicit(values, _times(dates), float(_given(guess, 0.1)))


def _back(value: Any) -> Any:
    return Live(value, "number") if isinstance(value, rg.Var) else value


@whole("XNPV")
def _xnpv(rate: Any, flows: Any, dates: Any) -> Any:
    r, values, days = number(rate), _flows([flows]), _flows([dates])
    if len(values) != len(days):
        raise Fault(NUM)
    first = days[0]
    return added(
        [
            value / (1.0 + r) ** ((day - first) / 365.0)
            for value, day in zip(values, days, strict=True)
        ]
    )


@whole("SLN")
def _sln(cost: Any, salvage: Any, life: Any) -> Any:
    from reactgrad.tables.excel.functions._math import minus

    return divided(minus(cost, salvage), life)


@whole("SYD")
def _syd(cost: Any, salvage: Any, life: Any, per: Any) -> Any:
    c, s, n, k = map(number, (cost, salvage, life, per))
    return live((c - s) * (n - k + 1.0) * 2.0 / (n * (n + 1.0)))


@whole("DB")
def _db(cost: Any, salvage: Any, life: Any, period: Any, month: Any = 12.0) -> Any:
    def db(c: float, s: float, n: float, k: float, m: float) -> float:
        if c == 0.0:
            return 0.0
        if c < 0.0 or s < 0.0 or n <= 0.0 or not 1.0 <= k <= n + 1.0 or n > MOST_PERIODS:
            raise Fault(NUM)
        rate = round(1.0 - (s / c) ** (1.0 / n), 3)
        total = first = c * rate * m / 12.0
        if k < 2.0:
            return first
        found = first
        for _ in range(2, int(min(k, n)) + 1):
            found = (c - total) * rate
            total += found
        return (c - total) * rate * (12.0 - m) / 12.0 if k > n else found

    return smooth(db, cost, salvage, life, period, _given(month, 12.0))


def _ddb_of(c: float, s: float, n: float, k: float, factor: float) -> float:
    rate = min(factor / n, 1.0)
    before = (c if k == 1.0 else 0.0) if rate >= 1.0 else c * (1.0 - rate) ** (k - 1.0)
    after = 0.0 if rate >= 1.0 else c * (1.0 - rate) ** k
    return max(before - max(after, s), 0.0)


@whole("DDB")
def _ddb(cost: Any, salvage: Any, life: Any, period: Any, factor: Any = 2.0) -> Any:
    def ddb(c: float, s: float, n: float, k: float, f: float) -> float:
        if c < 0.0 or s < 0.0 or n <= 0.0 or not 0.0 < k <= n or f <= 0.0:
            raise Fault(NUM)
        return _ddb_of(c, s, n, k, f)

    return smooth(ddb, cost, salvage, life, period, _given(factor, 2.0))


@whole("VDB")
def _vdb(
    cost: Any,
    salvage: Any,
    life: Any,
    start: Any,
    end: Any,
    factor: Any = 2.0,
    no_switch: Any = False,
) -> Any:
    stay = number(_given(no_switch, 0.0))
    if _is_live(stay):
        raise Fault(VALUE)

    def vdb(c: float, s: float, n: float, a: float, b: float, f: float) -> float:
        if c < 0.0 or s < 0.0 or n <= 0.0 or not 0.0 <= a <= b <= n or f <= 0.0 or n > MOST_PERIODS:
            raise Fault(NUM)
        return _vdb_of(c, s, n, a, b, f, bool(stay))

    return smooth(vdb, cost, salvage, life, start, end, _given(factor, 2.0))


def _vdb_of(c: float, s: float, n: float, a: float, b: float, factor: float, stay: bool) -> float:
    """Return the depreciation between two times, as Excel counts parts of periods.

    A start within a period moves all periods: the first one has the length of that part, and the others follow it.
    """
    rate = min(factor / n, 1.0)
    total, left, time = 0.0, c, 0.0
    line: float | None = None
    length = a - math.floor(a) or 1.0
    while time < b:
        rest = max(left - s, 0.0)
        amount = left * rate * length
        if not stay and line is None and n > time and rest / (n - time) > left * rate:
            line = rest / (n - time)
        if line is not None:
            amount = line * length
        if time >= a:
            total += min(amount * min(1.0, (b - time) / length), rest)
        left -= min(amount, rest)
        time += length
        length = 1.0
    return total


@whole("EFFECT")
def _effect(nominal: Any, times: Any) -> Any:
    r, n = number(nominal), number(times)
    return live((1.0 + r / n) ** n - 1.0)


@whole("NOMINAL")
def _nominal(effective: Any, times: Any) -> Any:
    r, n = number(effective), number(times)
    return live(((1.0 + r) ** (1.0 / n) - 1.0) * n)
