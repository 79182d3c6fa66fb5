"""The file of a workbook, checked before it is read: cells, names, and the values that Excel has left."""

from __future__ import annotations

import io
import os
import zipfile
from dataclasses import dataclass, field
from typing import Any

import reactgrad as rg
from reactgrad.tables.excel._errors import WorkbookError
from reactgrad.tables.excel._values import CODES, ExcelError

MOST_BYTES = 1 << 28  # of all parts of the file, unpacked
MOST_PARTS = 20_000
MOST_FORMULAS = 1_000_000
OLE = b"\xd0\xcf\x11\xe0"

Place = tuple[str, int, int]  # sheet, row, column


@dataclass
class Sheets:
    """The contents of a file.

    Attributes
    ----------
    names : list of str
        The sheets in order.
    values : dict
        What is written into cells, formulas left out.
    formulas : dict
        Formulas with a leading ``=``.
    arrays : dict
        For a formula of several cells: their last row and column.
    cached : dict
        The values of formulas that Excel has left; ``None`` where a program has saved the file without.
    defined : dict
        Defined names, and what they stand for; those of one sheet by ``(sheet, name)``.
    """

    names: list[str] = field(default_factory=list)
    values: dict[Place, Any] = field(default_factory=dict)
    formulas: dict[Place, str] = field(default_factory=dict)
    arrays: dict[Place, tuple[int, int]] = field(default_factory=dict)
    array_formulas: set[Place] = field(default_factory=set)
    spilled: dict[Place, Place] = field(
        default_factory=dict
    )  # their other cells, and the first one
    cached: dict[Place, Any] = field(default_factory=dict)
    defined: dict[Any, str] = field(default_factory=dict)
    ends: dict[str, tuple[int, int]] = field(default_factory=dict)  # last row and column in use


def read(source: Any) -> Sheets:
    """Return what a workbook holds.

    Raises
    ------
    WorkbookError
        If it is damaged, encrypted, of another format, or made to exhaust memory.
    MissingExtraError
        Without openpyxl (extra ``excel``).
    """
    try:
        import openpyxl
    except ModuleNotFoundError as error:
        raise rg.MissingExtraError(
            'from_excel needs the package openpyxl, which is not installed: pip install "reactgrad[excel]"'
        ) from error
    data = _bytes(source)
    _check(data)
    try:
        formulas = openpyxl.load_workbook(io.BytesIO(data), data_only=False, keep_links=False)
        values = openpyxl.load_workbook(io.BytesIO(data), data_only=True, keep_links=False)
    except (MemoryError, RecursionError):
        raise
    except Exception as error:  # whatever a damaged part makes openpyxl raise
        raise WorkbookError(
            f"this workbook is damaged: {error}. Open it in Excel and save it anew."
        ) from error
    return _sheets(formulas, values)


def _bytes(source: Any) -> bytes:
    if isinstance(source, bytes | bytearray):
        return bytes(source)
    if hasattr(source, "read"):
        return source.read()
    if not isinstance(source, str | os.PathLike):
        raise WorkbookError(
            f"from_excel was given {type(source).__name__}: give a path, bytes, or a file open for reading."
        )
    if os.path.getsize(source) > MOST_BYTES:
        raise WorkbookError(f"{os.fspath(source)!r} has more than {MOST_BYTES:,} bytes.")
    with open(source, "rb") as file:
        return file.read()


def _check(data: bytes) -> None:
    """Refuse what is no workbook, before anything unpacks it."""
    if data[:4] == OLE:
        raise WorkbookError(
            "this file is encrypted, or of the old format .xls. Save it in Excel as .xlsx without a password."
        )
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except (zipfile.BadZipFile, ValueError, OSError) as error:
        raise WorkbookError(
            f"this is no workbook: {error}. Workbooks are files of .xlsx or .xlsm."
        ) from error
    with archive:
        parts = archive.infolist()
        if "xl/workbook.xml" not in {part.filename for part in parts}:
            kind = (
                " It is a workbook in binary form: save it as .xlsx."
                if any("workbook.bin" in p.filename for p in parts)
                else ""
            )
            raise WorkbookError(f"this archive is no workbook: it has no xl/workbook.xml.{kind}")
        size = sum(part.file_size for part in parts)
        if len(parts) > MOST_PARTS or size > MOST_BYTES:
            raise WorkbookError(
                f"this workbook unpacks to {size:,} bytes in {len(parts):,} parts, more than {MOST_BYTES:,} and "
                f"{MOST_PARTS:,}: it is refused as a bomb."
            )
        if len({part.filename for part in parts}) < len(parts):
            raise WorkbookError(
                "this workbook holds parts of the same name, so readers disagree about it. It is refused."
            )
        for part in parts:
            if part.filename.endswith((".xml", ".rels", ".vml")):
                _check_part(archive, part)


def _check_part(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> None:
    """Refuse XML with entities, which may blow up or name other files."""
    try:
        with archive.open(part) as file:
            head, tail, read = b"", b"", 0
            while block := file.read(1 << 20):
                read += len(block)
                if read > part.file_size or read > MOST_BYTES:
                    raise WorkbookError(
                        f"{part.filename} is longer than it says: this workbook is refused as a bomb."
                    )
                text = (tail + block).replace(b"\0", b"")  # also in UTF-16
                if b"<!DOCTYPE" in text or b"<!ENTITY" in text:
                    raise WorkbookError(
                        f"{part.filename} declares entities, which workbooks of Excel never do. It is refused."
                    )
                tail = block[-32:]
    except (
        zipfile.BadZipFile,
        OSError,
        EOFError,
        RuntimeError,
        NotImplementedError,
        ValueError,
    ) as error:
        if isinstance(error, WorkbookError):
            raise
        raise WorkbookError(f"{part.filename} in this workbook is damaged: {error}") from error
    del head


def _sheets(formulas: Any, values: Any) -> Sheets:
    from openpyxl.utils.cell import range_boundaries
    from openpyxl.worksheet.formula import ArrayFormula, DataTableFormula

    found = Sheets()
    epoch = formulas.epoch
    for sheet in formulas.worksheets:
        name = sheet.title
        found.names.append(name)
        cached = values[name]._cells
        rows = columns = 1
        for (row, column), cell in sheet._cells.items():
            given = cell.value
            if given is None:
                continue
            rows, columns = max(rows, row), max(columns, column)
            place = name, row, column
            if isinstance(given, DataTableFormula):
                found.formulas[place] = "=TABLE()"
            elif isinstance(given, ArrayFormula):
                if given.text is None:
                    continue
                text = given.text if given.text.startswith("=") else "=" + given.text
                found.formulas[place] = text
                found.array_formulas.add(place)
                _, _, last_column, last_row = range_boundaries(given.ref)
                if (last_row, last_column) != (row, column):
                    found.arrays[place] = int(last_row or row), int(last_column or column)
            elif cell.data_type == "f":
                found.formulas[place] = given
            else:
                found.values[place] = _value(given, epoch, cell.data_type)
                continue
            other = cached.get((row, column))
            left = None if other is None else other.value
            found.cached[place] = (
                None if left is None else _value(left, epoch, getattr(other, "data_type", "n"))
            )
        found.ends[name] = rows, columns
        for title, defined in sheet.defined_names.items():
            found.defined[name.lower(), title.lower()] = defined.attr_text or ""
    for title, defined in formulas.defined_names.items():
        found.defined[title.lower()] = defined.attr_text or ""
    if len(found.formulas) > MOST_FORMULAS:
        raise WorkbookError(
            f"this workbook has {len(found.formulas):,} formulas, more than {MOST_FORMULAS:,}."
        )
    for place, (last_row, last_column) in found.arrays.items():
        for row in range(place[1], min(last_row, found.ends[place[0]][0]) + 1):
            for column in range(place[2], min(last_column, found.ends[place[0]][1]) + 1):
                other = place[0], row, column
                if other != place:
                    found.spilled[other] = place
                    found.cached[other] = found.values.pop(other, None)
    return found


def _value(given: Any, epoch: Any, kind: str) -> Any:
    """Return a cell's value as Excel keeps it: dates are numbers of days."""
    import datetime

    from openpyxl.utils.datetime import to_excel

    if kind == "e" or (isinstance(given, str) and given in CODES):
        return ExcelError(str(given))
    if isinstance(given, bool | str):
        return given
    if isinstance(given, int | float):
        return float(given)
    if isinstance(given, datetime.datetime | datetime.date | datetime.time | datetime.timedelta):
        return float(to_excel(given, epoch))
    return str(given)
