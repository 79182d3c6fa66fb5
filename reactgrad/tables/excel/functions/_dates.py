"""Dates as numbers of days since the end of 1899, with the 29th of February 1900 that Excel counts."""

from __future__ import annotations

import calendar
import datetime
import math
from typing import Any

from reactgrad.tables.excel._cells import Block, lifted, op
from reactgrad.tables.excel._values import NUM, VALUE, Fault, as_number
from reactgrad.tables.excel.functions._math import minus
from reactgrad.tables.excel.functions._register import single, whole

FIRST = datetime.date(1899, 12, 30)


def date_of(serial: Any) -> datetime.date:
    """Return the date of a number of days."""
    days = math.floor(as_number(serial))
    if not 0 <= days <= 2_958_465:
        raise Fault(NUM)
    return FIRST + datetime.timedelta(days + (days < 60))


def serial_of(date: datetime.date) -> float:
    """Return the number of days of a date."""
    days = (date - FIRST).days
    found = float(days - (days < 61))
    if found < 0.0:
        raise Fault(NUM)
    return found


def _moved(date: datetime.date, months: int, *, end: bool = False) -> datetime.date:
    year, month = divmod(date.year * 12 + date.month - 1 + months, 12)
    last = calendar.monthrange(year, month + 1)[1]
    return datetime.date(year, month + 1, last if end else min(date.day, last))


@single("DATE")
def _date(year: Any, month: Any, day: Any) -> Any:
    def date(y: Any, m: Any, d: Any) -> float:
        years, months = int(as_number(y)), math.floor(as_number(m)) - 1
        if not 0 <= years < 10_000:
            raise Fault(NUM)
        years += 1900 if years < 1900 else 0
        years, months = years + months // 12, months % 12
        if not 1900 <= years < 10_000:
            raise Fault(NUM)
        found = serial_of(datetime.date(years, months + 1, 1)) + math.floor(as_number(d)) - 1.0
        if found < 0.0:
            raise Fault(NUM)
        return found

    return lifted(date, year, month, day, kind="number")


# Day 0 is the day before the 1st of January 1900, and day 60 the 29th of February that never was.
ODD = {0: {"YEAR": 1900, "MONTH": 1, "DAY": 0}, 60: {"YEAR": 1900, "MONTH": 2, "DAY": 29}}


def _part(name: str, function: Any) -> None:
    def part(value: Any) -> float:
        known = ODD.get(math.floor(as_number(value)), {}).get(name)
        return float(function(date_of(value)) if known is None else known)

    single(name)(lambda value: lifted(part, value, kind="number"))


for _name, _function in {
    "YEAR": lambda d: d.year,
    "MONTH": lambda d: d.month,
    "DAY": lambda d: d.day,
    "ISOWEEKNUM": lambda d: d.isocalendar().week,
}.items():
    _part(_name, _function)


def _time(name: str, function: Any) -> None:
    def part(value: Any) -> float:
        seconds = round(as_number(value) % 1.0 * 86_400.0) % 86_400
        return float(function(seconds))

    single(name)(lambda value: lifted(part, value, kind="number"))


_time("HOUR", lambda s: s // 3600)
_time("MINUTE", lambda s: s // 60 % 60)
_time("SECOND", lambda s: s % 60)


@single("TIME")
def _time_of(hours: Any, minutes: Any, seconds: Any) -> Any:
    def time(h: Any, m: Any, s: Any) -> float:
        return (
            (int(as_number(h)) * 3600 + int(as_number(m)) * 60 + int(as_number(s))) / 86_400.0 % 1.0
        )

    return lifted(time, hours, minutes, seconds, kind="number")


@single("WEEKDAY")
def _weekday(value: Any, kind: Any = 1.0) -> Any:
    def weekday(v: Any, k: Any) -> float:
        monday = (math.floor(as_number(v)) - 2) % 7  # day 1 was a Sunday to Excel
        form = int(as_number(k))
        starts = {1: 6, 2: 0, 3: 0, **{10 + i: i - 1 for i in range(1, 8)}}
        if form not in starts:
            raise Fault(NUM)
        return float((monday - starts[form]) % 7 + (0 if form == 3 else 1))

    return lifted(weekday, value, kind, kind="number")


@single("EDATE")
def _edate(start: Any, months: Any) -> Any:
    return lifted(
        lambda s, m: serial_of(_moved(date_of(s), int(as_number(m)))), start, months, kind="number"
    )


@single("EOMONTH")
def _eomonth(start: Any, months: Any) -> Any:
    return lifted(
        lambda s, m: serial_of(_moved(date_of(s), int(as_number(m)), end=True)),
        start,
        months,
        kind="number",
    )


@single("DAYS")
def _days(end: Any, start: Any) -> Any:
    return minus(op(_floor, math.floor, end), op(_floor, math.floor, start))


def _floor(x: Any) -> Any:
    import reactgrad as rg

    return rg.floor(x)


@single("DATEDIF")
def _datedif(start: Any, end: Any, unit: Any) -> Any:
    def datedif(s: Any, e: Any, u: Any) -> float:
        a, b = date_of(s), date_of(e)
        if a > b:
            raise Fault(NUM)
        months = (b.year - a.year) * 12 + b.month - a.month - (b.day < a.day)
        kind = str(u).upper()
        if kind == "MD":
            whole_months = _moved(a, months)
            return float((b - whole_months).days)
        if kind == "YD":
            return float((b - _moved(a, months // 12 * 12)).days)
        found = {"Y": months // 12, "M": months, "D": (b - a).days, "YM": months % 12}.get(kind)
        if found is None:
            raise Fault(NUM)
        return float(found)

    return lifted(datedif, start, end, unit, kind="number")


def days360(a: datetime.date, b: datetime.date, *, european: bool) -> int:
    """Return the days between two dates where each month has 30."""
    d1, d2 = a.day, b.day
    if european:
        d1, d2 = min(d1, 30), min(d2, 30)
    else:
        last = calendar.monthrange(a.year, a.month)[1]
        if a.month == 2 and d1 == last:
            if b.month == 2 and d2 == calendar.monthrange(b.year, b.month)[1]:
                d2 = 30
            d1 = 30
        if d2 == 31 and d1 >= 30:
            d2 = 30
        d1 = min(d1, 30)
    return (b.year - a.year) * 360 + (b.month - a.month) * 30 + d2 - d1


@single("DAYS360")
def _days360(start: Any, end: Any, european: Any = False) -> Any:
    return lifted(
        lambda s, e, m: float(days360(date_of(s), date_of(e), european=bool(m))),
        start,
        end,
        european,
        kind="number",
    )


def year_part(a: datetime.date, b: datetime.date, basis: int) -> float:
    """Return the part of a year between two dates, by one of five counts of days."""
    if a > b:
        a, b = b, a
    if basis in (0, 4):
        return days360(a, b, european=basis == 4) / 360.0
    if basis in (2, 3):
        return (b - a).days / (360.0 if basis == 2 else 365.0)
    if basis != 1:
        raise Fault(NUM)
    within = a.year == b.year or (a.year + 1 == b.year and (b.month, b.day) <= (a.month, a.day))
    if within:
        leap = any(
            calendar.isleap(y) and a <= datetime.date(y, 2, 29) <= b for y in {a.year, b.year}
        )
        if a.year == b.year:
            leap = calendar.isleap(a.year)
        return (b - a).days / (366.0 if leap else 365.0)
    years = range(a.year, b.year + 1)
    return (b - a).days / (sum(366 if calendar.isleap(y) else 365 for y in years) / len(years))


@single("YEARFRAC")
def _yearfrac(start: Any, end: Any, basis: Any = 0.0) -> Any:
    return lifted(
        lambda s, e, k: year_part(date_of(s), date_of(e), int(as_number(k))),
        start,
        end,
        basis,
        kind="number",
    )


@whole("NETWORKDAYS")
def _networkdays(start: Any, end: Any, holidays: Any = None) -> Any:
    days = (
        [one for one in holidays if one is not None]
        if isinstance(holidays, Block)
        else [holidays]
        if holidays is not None
        else []
    )

    def networkdays(s: Any, e: Any, *free: Any) -> float:
        a, b = date_of(s), date_of(e)
        sign = 1.0 if a <= b else -1.0
        a, b = min(a, b), max(a, b)
        off = {date_of(one) for one in free}
        count = sum(
            1
            for k in range((b - a).days + 1)
            if (day := a + datetime.timedelta(k)).weekday() < 5 and day not in off
        )
        return sign * count

    return lifted(networkdays, start, end, *days, kind="number")


@single("DATEVALUE")
def _datevalue(text: Any) -> Any:
    def datevalue(t: Any) -> float:
        for form in ("%Y-%m-%d", "%m/%d/%Y", "%d-%b-%Y", "%B %d, %Y", "%Y/%m/%d"):
            try:
                return serial_of(datetime.datetime.strptime(str(t).strip(), form).date())
            except ValueError:
                continue
        raise Fault(VALUE)

    return lifted(datevalue, text, kind="number")
