"""Arrays of three and more axes as text: one matrix after the other, in the order of memory."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

# Columns are at least so wide, and so far apart.
WIDTH, GAP = 6, "  "


def in_slices(value: np.ndarray[Any, Any], device: str) -> str:
    """Return an array of at least two axes as text: its matrices, each under its index, and a foot line.

    Large arrays are shortened as NumPy shortens them, by NumPy's settings (``np.printoptions``).

    Examples
    --------
    >>> import numpy as np
    >>> print(in_slices(np.arange(8).reshape(2, 2, 2), "cpu"))  # doctest: +NORMALIZE_WHITESPACE
    (0,.,.) =
         0       1
         2       3
    (1,.,.) =
         4       5
         6       7
    <BLANKLINE>
     Var(shape=[2, 2, 2], dtype=int64, device=cpu)
    """
    shape = ", ".join(map(str, value.shape))
    foot = f" Var(shape=[{shape}], dtype={value.dtype.name}, device={device})"
    if not value.size:
        return foot
    options = np.get_printoptions()
    edge = options["edgeitems"] if value.size > options["threshold"] else value.size
    shown = [_shown(n, edge) for n in value.shape]
    kept = [[i for i in axis if i is not None] for axis in shown]
    texts = iter(_elements(value[np.ix_(*kept)]))
    by_place: dict[Any, str] = {place: next(texts) for place in product(*kept)}
    width = max(WIDTH, 1 + max(map(len, by_place.values())))
    lines = []
    for lead in product(*shown[:-2]):
        if None in lead:
            # Of all that is left out at one place, one line speaks.
            if lines[-1] != "...":
                lines.append("...")
            continue
        lines.append(f"({','.join(map(str, lead))},.,.) = ")
        for row in shown[-2]:
            if row is None:
                lines.append("...".rjust(width))
                continue
            cells = ["..." if i is None else by_place[(*lead, row, i)] for i in shown[-1]]
            lines.append(GAP.join([cell.rjust(width) for cell in cells]).rstrip())
    return "\n".join([*lines, "", foot])


def _shown(n: int, edge: int) -> list[int | None]:
    """Return the numbers along an axis that are shown, with ``None`` for those left out between them."""
    if n <= 2 * edge:
        return list(range(n))
    return [*range(edge), None, *range(n - edge, n)]


def _elements(value: np.ndarray[Any, Any]) -> Sequence[str]:
    """Return the elements as text, all with as many digits; whole numbers have no decimal point."""
    if not value.size:
        return []
    with np.printoptions(threshold=sys.maxsize, linewidth=sys.maxsize):
        text = np.array2string(value.reshape(-1), separator=",")
    texts = text[1:-1].split(",")
    if value.dtype.kind == "f" and all(one.endswith(".") or "n" in one for one in texts):
        texts = [one.rstrip(".") for one in texts]
    return texts
