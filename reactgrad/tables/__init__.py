"""Tables of other programs as live nodes.

``Table``
    A DataFrame as columns of Vars: in and out, keys kept.
``from_excel(path)``
    The formulas of a workbook as a live graph with named cells: a ``Workbook``.

- ``_frame``: ``Table``; ``_errors``: ``TableError``.
- ``excel``: the reader of workbooks.
"""
