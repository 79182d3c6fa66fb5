"""Workbooks written by openpyxl, with the values that Excel would leave in them."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping
from typing import Any

import pytest


def workbook(cells: Mapping[str, Any], names: Mapping[str, str] | None = None) -> bytes:
    """Return a workbook: values and formulas by address, ``"B2"`` on Sheet1 or ``"Other!B2"``."""
    openpyxl = pytest.importorskip("openpyxl")
    from openpyxl.workbook.defined_name import DefinedName

    book = openpyxl.Workbook()
    book.active.title = "Sheet1"
    for key, value in cells.items():
        sheet, _, cell = key.rpartition("!")
        sheet = sheet or "Sheet1"
        if sheet not in book.sheetnames:
            book.create_sheet(sheet)
        book[sheet][cell] = value
    for name, text in (names or {}).items():
        book.defined_names[name] = DefinedName(name, attr_text=text)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def rewritten(data: bytes, part: str, change: Any) -> bytes:
    """Return a workbook in which one part has been changed."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for item in old.infolist():
            text = old.read(item)
            new.writestr(item, change(text) if item.filename == part else text)
    return out.getvalue()


def with_cached(data: bytes, values: Mapping[str, str]) -> bytes:
    """Return a workbook of one sheet with values behind its formulas, as Excel saves them."""

    def add(text: bytes) -> bytes:
        for cell, value in values.items():
            text = re.sub(
                rb'(<c r="' + cell.encode() + rb'"[^>]*>\s*<f>[^<]*</f>)\s*<v\s*/>',
                rb"\1<v>" + value.encode() + rb"</v>",
                text,
            )
        return text

    return rewritten(data, "xl/worksheets/sheet1.xml", add)
