"""Reads dated prices from a CSV file and derives each stock's spot and volatility.

The file needs the columns ``symbol``, ``date`` and ``price``, in any order and among any others. A
fault ends in one `PriceFileError` that names the file, the line, the column, what was expected and
what was found.
"""

from __future__ import annotations

import csv
import io
import math
import re
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from importlib import resources
from itertools import pairwise

from reactgrad import ReactgradError

COLUMNS = ("symbol", "date", "price")
EMBEDDED = "stocks.csv (vega_datasets 0.9.0)"

# Outside these limits a 64-bit Greek loses the digits that the demo's checks ask for: at tiny
# volatilities the parts of a derivative cancel, at huge ones strikes far from the spot overflow.
LEAST_PRICE, MOST_PRICE = 1e-9, 1e12
LEAST_VOLATILITY, MOST_VOLATILITY = 1e-4, 120.0

# (largest median gap in days, rows in a year, name)
_FREQUENCIES = (
    (4, 252, "daily"),
    (14, 52, "weekly"),
    (45, 12, "monthly"),
    (135, 4, "quarterly"),
    (math.inf, 1, "yearly"),
)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_ISO_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ].+)?")
_NAMED_DATE = re.compile(r"([A-Za-z]{3})[a-z]*\.? ([0-9]{1,2}),? ([0-9]{4})")
MOST_BYTES = 100_000_000  # of a file; devices and pipes may have no end
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


class PriceFileError(ReactgradError, ValueError):
    """A file of prices that cannot be used; the message is one line."""


@dataclass(frozen=True)
class Stock:
    """One stock as the book sees it.

    Attributes
    ----------
    symbol : str
        The ticker.
    spot : float
        The last close.
    volatility : float
        Annualised standard deviation of the log returns (0.3 is 30 % a year).
    closes : int
        The number of closes in the file.
    frequency : str
        ``"daily"``, ``"weekly"``, ``"monthly"``, ``"quarterly"`` or ``"yearly"``, from the median
        gap between closes.
    last : datetime.date
        The date of the last close.
    """

    symbol: str
    spot: float
    volatility: float
    closes: int
    frequency: str
    last: date


@dataclass(frozen=True)
class _Row:
    line: int
    day: date
    price: float


def embedded_stocks() -> list[Stock]:
    """Return the five US stocks that ship with reactgrad (monthly closes, 2000 to 2010).

    Returns
    -------
    list of Stock
        In the order in which they appear in the file.

    Examples
    --------
    >>> [stock.symbol for stock in embedded_stocks()]
    ['MSFT', 'AMZN', 'IBM', 'GOOG', 'AAPL']
    """
    data = resources.files("reactgrad.demo").joinpath("data", "stocks.csv").read_bytes()
    return parse(data, EMBEDDED)


def stocks_from_file(path: str) -> list[Stock]:
    """Read stocks from a CSV file with the columns ``symbol``, ``date`` and ``price``.

    Parameters
    ----------
    path : str
        The file: UTF-8, comma-separated, one row a symbol and date; dates like ``Jan 1 2000`` or
        ``2000-01-31``.

    Returns
    -------
    list of Stock
        In the order in which they first appear in the file.

    Raises
    ------
    PriceFileError
        When the file cannot be read, or its content cannot be used.
    """
    shown = path if path and path.isprintable() else repr(path)
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        problem = "there is no such file"
    except IsADirectoryError:
        problem = "it is a directory"
    except PermissionError:
        problem = "reading it is not permitted"
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        problem = getattr(error, "strerror", None) or str(error)
    except MemoryError:
        problem = "there is no memory for it"
    else:
        if len(data) <= MOST_BYTES:
            return parse(data, shown)
        problem = f"it is larger than {MOST_BYTES // 10**6} MB"
    raise PriceFileError(f"{shown}: expected a CSV file with the columns {_names()}, but {problem}")


def parse(data: bytes, source: str) -> list[Stock]:
    """Turn the bytes of a CSV file into stocks.

    Parameters
    ----------
    data : bytes
        The content of the file.
    source : str
        The name of the file in messages.

    Returns
    -------
    list of Stock
        In the order in which they first appear.

    Raises
    ------
    PriceFileError
        When the content cannot be used.

    Examples
    --------
    >>> parse(b"symbol,date,price\\nA,2024-01-31,10\\nA,2024-02-29,11\\n", "a.csv")[0].spot
    11.0
    """
    rows_of: dict[str, dict[date, _Row]] = {}
    for symbol, row in _rows(_decoded(data, source), source):
        earlier = rows_of.setdefault(symbol, {}).setdefault(row.day, row)
        if earlier is not row:
            found = (
                f"a second price of {symbol} for {row.day} (the first is in line {earlier.line})"
            )
            raise _fault(source, row.line, "date", "one price for a symbol and date", found)
    return [
        _stock(symbol, sorted(rows.values(), key=lambda row: row.day), source)
        for symbol, rows in rows_of.items()
    ]


def _stock(symbol: str, rows: list[_Row], source: str) -> Stock:
    """Derive one stock from its rows, oldest first."""
    last = rows[-1]
    if len(rows) < 2:
        expected = f"two or more prices of {symbol}, because a volatility needs returns"
        raise _fault(source, last.line, "price", expected, "one")
    gap = statistics.median((b.day - a.day).days for a, b in pairwise(rows))
    rows_a_year, frequency = next((n, name) for most, n, name in _FREQUENCIES if gap <= most)
    returns = [math.log(b.price / a.price) for a, b in pairwise(rows)]
    # One return has no spread about its own mean; take zero for the mean, as realised volatility.
    spread = statistics.stdev(returns) if len(returns) > 1 else abs(returns[0])
    volatility = spread * math.sqrt(rows_a_year)
    if not LEAST_VOLATILITY <= volatility <= MOST_VOLATILITY:
        expected = (
            f"prices of {symbol} that vary, with a volatility from {LEAST_VOLATILITY:g} to "
            f"{MOST_VOLATILITY:g} a year"
        )
        raise _fault(source, last.line, "price", expected, f"a volatility of {volatility:.3g}")
    return Stock(symbol, last.price, volatility, len(rows), frequency, last.day)


def _decoded(data: bytes, source: str) -> str:
    """Decode UTF-8, with or without a byte order mark."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        place = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        raise PriceFileError(
            f"{source}, line {line}, byte {place}: expected text in UTF-8, "
            f"found the byte 0x{data[error.start]:02x}; save the file as UTF-8"
        ) from None


def _rows(text: str, source: str) -> Iterator[tuple[str, _Row]]:
    """Yield (symbol, row) for each record below the header."""
    records = _records(text, source)
    line, header = next(records, (1, []))
    if not header:
        expected = f"a header with the columns {_names()}"
        raise _fault(source, 1, "symbol", expected, "an empty file")
    place = {column: _position(column, header, line, source) for column in COLUMNS}
    empty = True
    for line, fields in records:
        empty = False
        if len(fields) != len(header):
            expected = f"{len(header)} fields as in the header"
            column = header[min(len(fields), len(header) - 1)]
            raise _fault(source, line, column, expected, str(len(fields)))
        symbol, day, price = (fields[place[column]].strip() for column in COLUMNS)
        if not symbol or not symbol.isprintable():
            raise _fault(source, line, "symbol", "a symbol such as MSFT", _shown(symbol))
        yield symbol, _Row(line, _date(day, line, source), _price(price, line, source))
    if empty:
        expected = "two or more rows for each symbol"
        raise _fault(source, line + 1, "symbol", expected, "no rows below the header")


def _records(text: str, source: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (first line, fields) for each record that is not blank."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    width = 0
    while True:
        line = reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise PriceFileError(
                f"{source}, line {line}: expected comma-separated fields, found a fault: {error}"
            ) from None
        if any(field.strip() for field in fields):
            width = width or len(fields)
            while len(fields) > width and not fields[-1].strip():
                fields.pop()  # spreadsheets pad rows with empty fields
            yield line, fields


def _position(column: str, header: list[str], line: int, source: str) -> int:
    """Return the position of `column` in the header, ignoring case and blanks around it."""
    found = [i for i, name in enumerate(header) if name.strip().lower() == column]
    if len(found) != 1:
        times = "it twice or more" if found else _shown(",".join(header))
        raise _fault(source, line, column, f"a header with the columns {_names()}", times)
    return found[0]


def _date(text: str, line: int, source: str) -> date:
    """Parse ``Jan 1 2000`` or an ISO date; English month names whatever the locale."""
    try:
        if _ISO_DATE.fullmatch(text):
            return datetime.fromisoformat(text).date()
        if named := _NAMED_DATE.fullmatch(text):
            month, day, year = named.groups()
            return date(int(year), _MONTHS.index(month.lower()) + 1, int(day))
    except ValueError:
        pass
    expected = "a date such as 'Jan 31 2000' or '2000-01-31'"
    raise _fault(source, line, "date", expected, _shown(text))


def _price(text: str, line: int, source: str) -> float:
    """Parse a positive finite number."""
    price = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not LEAST_PRICE <= price <= MOST_PRICE:
        expected = f"a positive number such as 39.81, from {LEAST_PRICE:g} to {MOST_PRICE:g}"
        raise _fault(source, line, "price", expected, _shown(text))
    return price


def _fault(source: str, line: int, column: str, expected: str, found: str) -> PriceFileError:
    return PriceFileError(
        f"{source}, line {line}, column {column!r}: expected {expected}, found {found}"
    )


def _shown(text: str) -> str:
    """Quote what was found, shortened, without line breaks."""
    if not text:
        return "nothing"
    return repr(text if len(text) <= 40 else text[:37] + "...")


def _names() -> str:
    return ",".join(COLUMNS)
