"""Tables of other programs as live nodes.

``Table``
    A DataFrame as columns of Vars: in and out, keys kept.
``from_excel(path)``
    The formulas of a workbook as a live graph with named cells: a ``Workbook``.

- ``_frame``: ``Table``; ``_errors``: ``TableError``.
- ``excel``: the reader of workbooks.
"""

from reactgrad.tables._errors import TableError as TableError
from reactgrad.tables._frame import Table as Table
from reactgrad.tables.excel._errors import UnreadFunctionError as UnreadFunctionError
from reactgrad.tables.excel._errors import WorkbookError as WorkbookError
from reactgrad.tables.excel._from_excel import from_excel as from_excel
from reactgrad.tables.excel._workbook import Workbook as Workbook

__all__ = (
    "Table",
    "TableError",
    "UnreadFunctionError",
    "Workbook",
    "WorkbookError",
    "from_excel",
)
