"""Workbooks of Excel as live graphs.

- ``_file``: the file, checked before anything is read; its cells, names and cached values.
- ``_formula``: formulas as trees.
- ``_values``: values of cells as Excel knows them: numbers, texts, truth values, errors, nothing.
- ``_build``: trees as nodes. ``functions``: the functions of formulas, a family each.
- ``_workbook``: ``Workbook``; ``_from_excel``: from a path to it.
- ``_errors``: ``WorkbookError``, ``UnreadFunctionError``.
"""
