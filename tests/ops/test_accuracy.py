"""Errors of elementwise ops and of their derivatives, in both modes, in ulps; the table of docs/accuracy.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.accuracy import BINARY, UNARY, measure

PAGE = Path(__file__).parents[2] / "docs" / "accuracy.md"
DTYPES = ("float16", "float32", "float64")
NAMES = [*UNARY, *BINARY]

# The most ulps of the value, the first and the second derivative, in any dtype; NumPy's own functions of
# float32 are within 4.
MOST = dict.fromkeys(NAMES, (4.0, 5.0, 8.0)) | {
    "tan": (4.0, 8.0, 12.0),
    "tanh": (4.0, 8.0, 10.0),
    "arcsin": (4.0, 3.0, 9.0),
    "arccos": (4.0, 3.0, 9.0),
    # Where exponents are near those of the least numbers, rounding x**2 costs digits.
    **dict.fromkeys(("erf", "erfc", "norm_cdf"), (20.0, 20.0, 24.0)),
    # Second derivative: a sum of two parts of other signs.
    "norm_pdf": (20.0, 24.0, 200.0),
    # The difference a - b is rounded: up to 80 here, which is in the exponent then.
    "logaddexp": (4.0, 60.0, 60.0),
    # So is the exponent b - 1.
    "power": (4.0, 40.0, 12.0),
}
QUICK = {"float16": 20_000, "float32": 20_000, "float64": 60}


def check(name: str, dtype: str, count: int) -> None:
    row = measure(name, dtype, count)
    assert all(error <= most for error, most in zip(row[2:], MOST[name], strict=True)), row


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_errors_are_a_few_ulps(name: str, dtype: str) -> None:
    check(name, dtype, QUICK[dtype])


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_errors_are_a_few_ulps_at_many_points(name: str) -> None:
    check(name, "float32", 250_000)
    check(name, "float64", 1_000)


def test_the_page_lists_each_op_within_these_bounds() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [name for name, _ in rows] == NAMES
    for name, cells in rows:
        for cell in cells.split(" | "):
            shown = [float(one) for one in cell.split(" / ")]
            assert all(error <= most for error, most in zip(shown, MOST[name], strict=True)), name
