"""The errors of workbooks."""

from __future__ import annotations

from collections.abc import Mapping

from reactgrad import LoadError


class WorkbookError(LoadError):
    """A workbook that cannot become a graph: damaged, hostile, circular, or too large."""


class UnreadFunctionError(WorkbookError):
    """Functions in formulas that have no form here; the message names all at once, with counts.

    Attributes
    ----------
    functions : dict
        How often each occurs.
    cells : dict
        One cell for each.
    """

    def __init__(
        self,
        message: str,
        functions: Mapping[str, int] | None = None,
        cells: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.functions = dict(functions or {})
        self.cells = dict(cells or {})
