"""Arrays as figures for the page: a line, an image, a histogram, and a page of a table."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reactgrad.viz._text import sent

MOST_POINTS, MOST_PIXELS, BINS = 120, 48, 24
ROWS, COLUMNS = 20, 12  # of one page of a table; a panel has room for some of the columns


def figures(value: Any) -> dict[str, Any] | None:
    """Return what the page draws of an array; ``None`` of anything else.

    Returns
    -------
    dict or None
        ``shape``, ``low``, ``high``, ``bad`` (how many elements are no finite numbers), ``bins`` (how
        many lie in each of equal parts between), and ``line`` (of one axis) or ``image``: rows of
        numbers, or of ``[red, green, blue]`` for an array of bytes with three or four channels.
    """
    if not isinstance(value, np.ndarray) or value.size < 2 or value.dtype.kind not in "biuf":
        return None
    numbers = value.astype(np.float64)
    good = numbers[np.isfinite(numbers)]
    if not good.size:
        return None
    low, high = float(good.min()), float(good.max())
    with np.errstate(over="ignore"):
        wide = np.isfinite(high - low)
    made: dict[str, Any] = {
        "shape": [*value.shape],
        "low": low,
        "high": high,
        "bad": int(value.size - good.size),
        "bins": np.histogram(good, BINS)[0].tolist() if wide and high > low else [],
    }
    if value.ndim == 1:
        made["line"] = _rounded(numbers[:: -(-value.size // MOST_POINTS)])
    elif value.ndim == 2:
        made["image"] = _rounded(_thinned(numbers))
    elif value.ndim == 3 and value.shape[2] in (3, 4) and value.dtype == np.uint8:
        made["image"] = _thinned(value)[..., :3].tolist()
    return made


def table(value: Any, start: int, left: int = 0) -> dict[str, Any] | None:
    """Return a page of an array as texts, from a row and a column on.

    Of more than two axes the last one lies across. ``None`` if it is no array with an axis.
    """
    if not isinstance(value, np.ndarray) or not value.ndim:
        return None
    *above, wide = value.shape if value.ndim > 1 else (value.size, 1)
    rows = value.reshape(math.prod(above), wide)
    start = max(0, min(start, len(rows) - 1))
    left = max(0, min(left, rows.shape[1] - 1))
    page = rows[start : start + ROWS, left : left + COLUMNS]
    return {
        "start": start,
        "left": left,
        "total": len(rows),
        "wide": rows.shape[1],
        "rows": [[sent(str(one), 24) for one in row] for row in page.tolist()],
    }


def _thinned(value: np.ndarray) -> np.ndarray:
    """Return at most so many rows and columns, evenly spread."""
    return value[:: -(-value.shape[0] // MOST_PIXELS), :: -(-value.shape[1] // MOST_PIXELS)]


def _rounded(value: np.ndarray) -> list[Any]:
    """Return numbers as JSON has them: four digits, and null for what is not finite."""
    flat = [float(f"{one:.4g}") if np.isfinite(one) else None for one in value.ravel().tolist()]
    if value.ndim == 1:
        return flat
    wide = value.shape[1]
    return [flat[n : n + wide] for n in range(0, len(flat), wide)] if wide else []
