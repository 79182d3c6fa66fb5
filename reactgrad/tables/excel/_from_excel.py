"""From a workbook to a live graph."""

from __future__ import annotations

from typing import Any, Literal

import reactgrad as rg
from reactgrad.tables.excel._build import Build
from reactgrad.tables.excel._errors import WorkbookError
from reactgrad.tables.excel._file import read
from reactgrad.tables.excel._workbook import Workbook


def from_excel(
    source: Any,
    *,
    unread: Literal["raise", "cached"] = "raise",
    graph: rg.Graph | None = None,
) -> Workbook:
    """Return the formulas of a workbook as a live graph with named cells.

    Cells without a formula that formulas read become inputs; each formula becomes nodes, the last of them
    with the address of its cell as its name. Numbers have gradients, through lookups and choices, too.
    Excel's dates are numbers. Nothing in the file is run: macros are ignored, other workbooks are not opened.

    Parameters
    ----------
    source : path, bytes or file
        A workbook of the form ``.xlsx`` or ``.xlsm``.
    unread : {"raise", "cached"}
        For formulas with a function that has no form here: raise, before anything is built; or make such a
        cell an input with the value that Excel has left in the file. ``wb.unread`` names them.
    graph : Graph, optional
        The graph to build in; by default a new one.

    Returns
    -------
    Workbook
        ``wb["Sheet1!B2"]`` is a Var; ``wb.set``, ``wb.value``, ``wb.sensitivities``, and ``wb.differences()``, which
        compares all values with those in the file.

    Raises
    ------
    UnreadFunctionError
        Names all functions and references that cannot be read, with counts.
    WorkbookError
        If the file is damaged, encrypted, made to exhaust memory, or has cells that need each other in a circle.
    MissingExtraError
        Without openpyxl (extra ``excel``).

    Examples
    --------
    >>> import reactgrad as rg
    >>> wb = rg.from_excel("loan.xlsx")  # doctest: +SKIP
    >>> wb["Loan!B4"].value  # doctest: +SKIP
    np.float64(-1073.64)
    >>> wb.set({"Loan!B2": 0.04})  # doctest: +SKIP
    >>> print(wb.sensitivities("Loan!B4"))  # doctest: +SKIP
    """
    if unread not in ("raise", "cached"):
        raise WorkbookError(
            f"unread={unread!r}: write 'raise', or 'cached' to keep the values that Excel has left."
        )
    build = Build(read(source), graph if graph is not None else rg.Graph())
    build.check()
    if unread == "raise":
        build.refuse_unread()
    build.all()
    return Workbook(build)
