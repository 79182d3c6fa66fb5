"""Rows of a result as text, and as a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import reactgrad as rg
from reactgrad.whatif._inputs import text_of


def as_text(columns: Mapping[str, Sequence[Any]], head: str = "", most: int = 12) -> str:
    """Return columns as lines of text: numbers to the right, at most `most` rows."""
    n = max(map(len, columns.values()), default=0)
    cells = [
        [title, *(text_of(value) for value in column[:most])] for title, column in columns.items()
    ]
    right = [all(not isinstance(value, str) for value in column) for column in columns.values()]
    lines = [head] if head else []
    widths = [max(map(len, column)) for column in cells]
    for row in zip(*cells, strict=True):
        parts = [
            part.rjust(width) if to_right else part.ljust(width)
            for part, width, to_right in zip(row, widths, right, strict=True)
        ]
        lines.append("  ".join(parts).rstrip())
    if n > most:
        lines.append(f"... {n - most} more")
    return "\n".join(lines)


def pandas(who: str) -> Any:
    """Return the package pandas.

    Raises
    ------
    MissingExtraError
        If it is not installed.
    """
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        raise rg.MissingExtraError(
            f'{who} needs the package pandas, which is not installed: pip install "reactgrad[tables]"'
        ) from error
    return pd
