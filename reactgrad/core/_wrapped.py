"""The warning of a whole number that has left its dtype."""

from __future__ import annotations

import warnings
from typing import Any

from reactgrad._errors import WrapWarning
from reactgrad.nodes._site import line_of, site_text
from reactgrad.scheduler import shortened

_told: dict[Any, Any] = {}  # by which Python's filters show a warning once for each line
_MOST_TOLD = 1000


def warn_of(rows: Any, slot: int, dtype: Any) -> None:
    """Warn, at the line that built the node, that its number has wrapped around."""
    site = rows.sites[slot]
    text = (
        f"{rows.describe_op(slot)} of node {shortened(rows.label(slot), 100)!r} has left {dtype} and "
        "wraps around, as NumPy's numbers do: its value is not that of the whole numbers. Make an input one of "
        "floats, as g.input(4.0), or compute with Python's integers in a function of rg.lift. Built at "
        f"{site_text(site)}"
    )
    if len(_told) > _MOST_TOLD:
        _told.clear()
    warnings.warn_explicit(text, WrapWarning, *line_of(site), "reactgrad", _told)
