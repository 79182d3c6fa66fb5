"""A file of prices is read right, or refused in one line that says where and why."""

import csv
import hashlib
import math
import re
from datetime import date
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from reactgrad import ReactgradError, demo
from reactgrad.demo import _prices
from reactgrad.demo._prices import parse

HEADER = "symbol,date,price\n"
TWO_ROWS = "A,2000-01-31,10\nA,2000-02-29,11\n"
WANTED = "a header with the columns symbol,date,price"
A_DATE = "a date such as 'Jan 31 2000' or '2000-01-31'"
A_PRICE = "a positive number such as 39.81, from 1e-09 to 1e+12"

# (content, what the message says after the file's name)
BAD = {
    "empty": ("", f", line 1, column 'symbol': expected {WANTED}, found an empty file"),
    "blank": (" \n\n", f", line 1, column 'symbol': expected {WANTED}, found an empty file"),
    "only a byte order mark": (
        b"\xef\xbb\xbf",
        f", line 1, column 'symbol': expected {WANTED}, found an empty file",
    ),
    "no header": (
        TWO_ROWS,
        f", line 1, column 'symbol': expected {WANTED}, found 'A,2000-01-31,10'",
    ),
    "missing symbol": (
        "ticker,date,price\nA,2000-01-31,10\n",
        f", line 1, column 'symbol': expected {WANTED}, found 'ticker,date,price'",
    ),
    "missing date": (
        "symbol,price\nA,10\n",
        f", line 1, column 'date': expected {WANTED}, found 'symbol,price'",
    ),
    "missing price, blank line first": (
        "\nsymbol,date,close\nA,2000-01-31,10\n",
        f", line 2, column 'price': expected {WANTED}, found 'symbol,date,close'",
    ),
    "price twice": (
        "symbol,date,price,price\nA,2000-01-31,10,11\n",
        f", line 1, column 'price': expected {WANTED}, found it twice or more",
    ),
    "semicolons": (
        "symbol;date;price\nA;2000-01-31;10\n",
        f", line 1, column 'symbol': expected {WANTED}, found 'symbol;date;price'",
    ),
    "no rows": (
        HEADER,
        (
            ", line 2, column 'symbol': expected two or more rows for each symbol, "
            "found no rows below the header"
        ),
    ),
    "only blank rows": (
        HEADER + "\n,,\n",
        (
            ", line 2, column 'symbol': expected two or more rows for each symbol, "
            "found no rows below the header"
        ),
    ),
    "one row": (
        HEADER + "A,2000-01-31,10\n",
        (
            ", line 2, column 'price': expected two or more prices of A, because a volatility "
            "needs returns, found one"
        ),
    ),
    "one row of the second symbol": (
        HEADER + "A,2000-01-31,10\nB,2000-01-31,7\nA,2000-02-29,11\n",
        (
            ", line 3, column 'price': expected two or more prices of B, because a volatility "
            "needs returns, found one"
        ),
    ),
    "duplicate": (
        HEADER + "A,Jan 31 2000,10\nA,2000-02-29,11\nA,2000-01-31,12\n",
        (
            ", line 4, column 'date': expected one price for a symbol and date, found a second "
            "price of A for 2000-01-31 (the first is in line 2)"
        ),
    ),
    "no movement": (
        HEADER + "A,2000-01-31,10\nA,2000-02-29,10\nA,2000-03-31,10\n",
        (
            ", line 4, column 'price': expected prices of A that vary, with a volatility from 0.0001 "
            "to 120 a year, found a volatility of 0"
        ),
    ),
    "absurd movement": (
        HEADER + "A,2000-01-31,1e-9\nA,2000-02-29,1e12\n",
        (
            ", line 3, column 'price': expected prices of A that vary, with a volatility from 0.0001 "
            "to 120 a year, found a volatility of 168"
        ),
    ),
    "no symbol": (
        HEADER + ",2000-01-31,10\n",
        ", line 2, column 'symbol': expected a symbol such as MSFT, found nothing",
    ),
    "symbol with an escape": (
        HEADER + "A\x1b[2J,2000-01-31,10\n",
        ", line 2, column 'symbol': expected a symbol such as MSFT, found 'A\\x1b[2J'",
    ),
    "too few fields": (
        HEADER + TWO_ROWS + "A,2000-03-31\n",
        ", line 4, column 'price': expected 3 fields as in the header, found 2",
    ),
    "comma in a price": (
        HEADER + "A,2000-01-31,1,234\n",
        ", line 2, column 'price': expected 3 fields as in the header, found 4",
    ),
    "open quote": (
        HEADER + TWO_ROWS + 'A,2000-03-31,"12\n',
        ", line 4: expected comma-separated fields, found a fault: unexpected end of data",
    ),
    "not UTF-8": (
        HEADER.encode() + b"A,2000-01-31,10\nCaf\xe9,2000-01-31,10\n",
        ", line 3, byte 4: expected text in UTF-8, found the byte 0xe9; save the file as UTF-8",
    ),
    "UTF-16": (
        (HEADER + TWO_ROWS).encode("utf-16"),
        None,
    ),
    **{
        f"price {text!r}": (
            f"{HEADER}{TWO_ROWS}A,2000-03-31,{text}\n",
            f", line 4, column 'price': expected {A_PRICE}, found {found}",
        )
        for text, found in [
            ("-5", "'-5'"),
            ("0", "'0'"),
            ("-0.0", "'-0.0'"),
            ("nan", "'nan'"),
            ("inf", "'inf'"),
            ("1e999", "'1e999'"),
            ("1e-320", "'1e-320'"),
            ("abc", "'abc'"),
            ("$39.81", "'$39.81'"),
            ('"1,234.5"', "'1,234.5'"),
            ("1_000", "'1_000'"),
            ("٣", "'٣'"),
            ("", "nothing"),
            ("x" * 50, f"'{'x' * 37}...'"),
        ]
    },
    **{
        f"date {text!r}": (
            f"{HEADER}{TWO_ROWS}A,{text},12\n",
            f", line 4, column 'date': expected {A_DATE}, found {found}",
        )
        for text, found in [
            ("2000-02-30", "'2000-02-30'"),
            ("2000-13-01", "'2000-13-01'"),
            ("Feb 30 2000", "'Feb 30 2000'"),
            ("Foo 1 2000", "'Foo 1 2000'"),
            ("31/01/2000", "'31/01/2000'"),
            ("20000131", "'20000131'"),
            ("Jan 1 0000", "'Jan 1 0000'"),
            ("", "nothing"),
        ]
    },
}


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=BAD)
def test_bad_content_is_named(price_file, content: str | bytes, message: str | None) -> None:
    path = price_file(content)
    with pytest.raises(demo.PriceFileError) as caught:
        demo.stocks_from_file(path)
    text = str(caught.value)
    assert text.startswith(f"{path}, line ")
    assert "\n" not in text
    if message is not None:
        assert text == path + message


@pytest.mark.parametrize(
    ("name", "problem"),
    [("missing.csv", "there is no such file"), (".", "it is a directory")],
)
def test_what_cannot_be_read_is_named(tmp_path, name: str, problem: str) -> None:
    path = str(tmp_path / name)
    with pytest.raises(demo.PriceFileError) as caught:
        demo.stocks_from_file(path)
    assert str(caught.value) == (
        f"{path}: expected a CSV file with the columns symbol,date,price, but {problem}"
    )


@pytest.mark.parametrize(
    ("path", "shown"), [("", "''"), ("a\0b", "'a\\x00b'"), ("a\nb", "'a\\nb'")]
)
def test_an_odd_path_is_quoted(path: str, shown: str) -> None:
    with pytest.raises(demo.PriceFileError, match=f"^{re.escape(shown)}: expected") as caught:
        demo.stocks_from_file(path)
    assert "\n" not in str(caught.value)


def test_no_permission_is_named(price_file, monkeypatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    path = price_file(HEADER + TWO_ROWS)
    monkeypatch.setattr("builtins.open", refuse)  # the superuser may read everything
    with pytest.raises(demo.PriceFileError, match="but reading it is not permitted$"):
        demo.stocks_from_file(path)


def test_the_error_is_also_a_value_error() -> None:
    assert issubclass(demo.PriceFileError, ReactgradError)
    assert issubclass(demo.PriceFileError, ValueError)


PLAIN = HEADER + "A,Jan 31 2000,10\nA,Feb 29 2000,11\nA,Mar 31 2000,10.5\n"
SAME = {
    "ISO dates": HEADER + "A,2000-01-31,10\nA,2000-02-29,11\nA,2000-03-31,10.5\n",
    "ISO dates with a time": HEADER
    + "A,2000-01-31 00:00:00,10\nA,2000-02-29T16:00:00+01:00,11\nA,2000-03-31T00:00:00Z,10.5\n",
    "long month names": HEADER
    + 'A,January 31 2000,10\nA,"February 29, 2000",11\nA,MAR. 31 2000,10.5\n',
    "byte order mark": b"\xef\xbb\xbf" + PLAIN.encode(),
    "CRLF": PLAIN.replace("\n", "\r\n"),
    "CR": PLAIN.replace("\n", "\r"),
    "no last line end": PLAIN.rstrip(),
    "blank lines": "\n" + PLAIN.replace("\n", "\n\n") + "   \n,,\n\n",
    "quoted": re.sub(r"[^,\n]+", lambda field: f'"{field[0]}"', PLAIN),
    "another order of columns, and more of them": "volume,price,note,date,symbol\n"
    '7,10,"a, b",Jan 31 2000,A\n8,11,"two\nlines",Feb 29 2000,A\n,10.5,,Mar 31 2000,A\n',
    "another order of rows": HEADER + "A,Mar 31 2000,10.5\nA,Jan 31 2000,10\nA,Feb 29 2000,11\n",
    "case and blanks": " Symbol , DATE,Price\n A , Jan 31 2000 , 10\nA,Feb 29 2000,1.1e1\nA,Mar 31 2000,+10.5\n",
    "padded by a spreadsheet": HEADER
    + "A,Jan 31 2000,10,,\nA,Feb 29 2000,11,,\nA,Mar 31 2000,10.5,,\n",
}


@pytest.mark.parametrize("content", SAME.values(), ids=SAME)
def test_the_same_prices_written_otherwise(price_file, content: str | bytes) -> None:
    plain = parse(PLAIN.encode(), "plain")
    assert demo.stocks_from_file(price_file(content)) == plain
    [stock] = plain
    assert (stock.symbol, stock.spot, stock.closes) == ("A", 10.5, 3)
    assert (stock.frequency, stock.last) == ("monthly", date(2000, 3, 31))
    returns = np.diff(np.log([10, 11, 10.5]))
    assert stock.volatility == pytest.approx(np.std(returns, ddof=1) * math.sqrt(12), rel=1e-14)


def test_a_line_number_counts_lines_not_records(price_file) -> None:
    content = 'symbol,date,price,note\nA,2000-01-31,10,"two\nlines"\nA,2000-02-29,x,\n'
    with pytest.raises(demo.PriceFileError, match="line 4, column 'price'"):
        demo.stocks_from_file(price_file(content))


def test_two_prices_make_a_volatility(price_file) -> None:
    [stock] = demo.stocks_from_file(price_file(HEADER + TWO_ROWS))
    assert stock.volatility == pytest.approx(math.log(1.1) * math.sqrt(12), rel=1e-14)


@pytest.mark.parametrize(
    ("days", "frequency", "rows_a_year"),
    [
        (["2024-01-05", "2024-01-08", "2024-01-09"], "daily", 252),
        (["2024-01-05", "2024-01-12", "2024-01-19"], "weekly", 52),
        (["2024-01-31", "2024-02-29", "2024-03-31"], "monthly", 12),
        (["2024-01-31", "2024-04-30", "2024-07-31"], "quarterly", 4),
        (["2022-01-31", "2023-01-31", "2024-01-31"], "yearly", 1),
    ],
)
def test_volatility_is_a_year_at_any_frequency(
    price_file, days: list[str], frequency: str, rows_a_year: int
) -> None:
    rows = [f"A,{day},{price}" for day, price in zip(days, (10, 11, 10.5), strict=True)]
    [stock] = demo.stocks_from_file(price_file(HEADER + "\n".join(rows)))
    spread = np.std(np.diff(np.log([10, 11, 10.5])), ddof=1)
    assert stock.frequency == frequency
    assert stock.volatility == pytest.approx(spread * math.sqrt(rows_a_year), rel=1e-14)


def test_embedded_prices_are_the_file_that_the_source_note_names() -> None:
    folder = resources.files("reactgrad.demo").joinpath("data")
    data = folder.joinpath("stocks.csv").read_bytes()
    note = folder.joinpath("SOURCE.md").read_text(encoding="utf-8")
    assert hashlib.sha256(data).hexdigest() in note
    assert "MIT License" in note
    rows = list(csv.DictReader(data.decode().splitlines()))
    for stock in demo.embedded_stocks():
        prices = [float(row["price"]) for row in rows if row["symbol"] == stock.symbol]
        assert stock.spot == prices[-1]
        spread = np.std(np.diff(np.log(prices)), ddof=1) * math.sqrt(12)
        assert stock.volatility == pytest.approx(spread, rel=1e-13)
        assert (stock.closes, stock.frequency) == (len(prices), "monthly")
        assert stock.last == date(2010, 3, 1)


def test_a_file_without_end_is_refused_after_100_mb(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert _prices.MOST_BYTES == 100_000_000
    monkeypatch.setattr(_prices, "MOST_BYTES", 1000)
    for name in (
        *(["/dev/zero"] if Path("/dev/zero").exists() else []),
        str(tmp_path / "long.csv"),
    ):
        if name != "/dev/zero":
            Path(name).write_bytes(b"a" * 1001)
        with pytest.raises(demo.PriceFileError) as caught:
            demo.stocks_from_file(name)
        assert str(caught.value) == (
            f"{name}: expected a CSV file with the columns symbol,date,price, but it is larger than 0 MB"
        )
