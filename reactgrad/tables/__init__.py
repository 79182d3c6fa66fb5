"""Tables of other programs as live nodes.

``from_excel(path)``
    The formulas of a workbook as a live graph with named cells: a ``Workbook``.

- ``excel``: the reader of workbooks.
"""
