"""The error of tables."""

from __future__ import annotations

from reactgrad import ReactgradError


class TableError(ReactgradError, ValueError):
    """Columns, keys or values that do not fit a table."""
