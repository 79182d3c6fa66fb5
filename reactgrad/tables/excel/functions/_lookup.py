"""Cells by position and by value: the position follows the values, and gradients pass to the cell that is found."""

from __future__ import annotations

import fnmatch
import re
from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad.tables.excel._cells import Block, Live, chosen, kind_of, lifted, live, number
from reactgrad.tables.excel._values import (
    NA,
    REF,
    VALUE,
    ExcelError,
    Fault,
    as_number,
    compare,
    rank,
)
from reactgrad.tables.excel.functions._register import whole


def _block(area: Any) -> Block:
    return area if isinstance(area, Block) else Block([[area]])


def picked(cells: list[Any], place: Any) -> Any:
    """Return the cell at a place, counted from 1, that may be a node."""
    if isinstance(place, ExcelError):
        raise Fault(place)
    at = number(place)
    if not isinstance(at, rg.Var):
        if not 1 <= int(at) <= len(cells):
            raise Fault(REF)
        found = cells[int(at) - 1]
        return 0.0 if found is None else found
    if all(kind_of(one) == "number" for one in cells):
        graph = at.graph
        values = [number(one) for one in cells]
        stacked = rg.stack([one if isinstance(one, rg.Var) else graph.const(one) for one in values])
        # A place that is an error reads the first cell, and is put back as an error.
        inside = rg.logical_and(at >= 1.0, at < len(cells) + 1.0)
        index = rg.where(inside, at - 1.0, 0.0).astype(np.int64)
        return live(rg.where(inside, stacked[index], np.nan))
    found: Any = NA
    for i, cell in reversed(list(enumerate(cells, 1))):
        found = chosen(rg.floor(at) == float(i), 0.0 if cell is None else cell, found)
    return found


@whole("INDEX")
def _index(area: Any, row: Any = None, column: Any = None) -> Any:
    block = _block(area)
    rows, columns = block.shape
    if column is None and rows == 1 and row is not None:
        row, column = None, row
    if row in (None, 0.0) and column in (None, 0.0):
        return block
    if row in (None, 0.0):
        if rows == 1:
            return picked(block.rows[0], column)
        at = int(_known(column))
        if not 1 <= at <= columns:
            raise Fault(REF)
        return Block([[one[at - 1]] for one in block.rows], block.row, block.column + at - 1)
    if column in (None, 0.0):
        if columns == 1:
            return picked([one[0] for one in block.rows], row)
        at = int(_known(row))
        if not 1 <= at <= rows:
            raise Fault(REF)
        return Block([block.rows[at - 1]], block.row + at - 1, block.column)
    if not isinstance(column, Live):
        at = int(as_number(column))
        if not 1 <= at <= columns:
            raise Fault(REF)
        return picked([one[at - 1] for one in block.rows], row)
    if not isinstance(row, Live):
        at = int(as_number(row))
        if not 1 <= at <= rows:
            raise Fault(REF)
        return picked(block.rows[at - 1], column)
    place = live((rg.floor(number(row)) - 1.0) * columns + rg.floor(number(column)))
    return picked(list(block), place)


def _known(value: Any) -> float:
    if isinstance(value, Live):
        raise Fault(VALUE)
    return as_number(value)


def _equal(wanted: Any, value: Any) -> bool:
    if isinstance(wanted, str) and isinstance(value, str) and re.search(r"[*?]", wanted):
        return re.match(fnmatch.translate(wanted.lower()), value.lower()) is not None
    if type(wanted) is not type(value):
        return False
    return compare("=", wanted, value)


def position(wanted: Any, cells: Any, kind: Any) -> float:
    """Return the place of a value, from 1 on: equal (0), the last not above (1), the last not below (-1)."""
    values = [one for row in cells for one in row]
    if isinstance(wanted, ExcelError):
        raise Fault(wanted)
    if wanted is None:
        wanted = 0.0
    how = as_number(kind)
    found = 0
    for i, value in enumerate(values, 1):
        if how == 0.0:
            if _equal(wanted, value):
                return float(i)
        elif type(value) is type(wanted) and not isinstance(value, ExcelError):
            if rank(value) <= rank(wanted) if how > 0.0 else rank(value) >= rank(wanted):
                found = i
            elif how < 0.0 or rank(value) > rank(wanted):
                break
    if not found:
        raise Fault(NA)
    return float(found)


@whole("MATCH")
def _match(wanted: Any, area: Any, kind: Any = 1.0) -> Any:
    return lifted(position, wanted, _block(area), kind, kind="number", strict=False)


def _looked_up(wanted: Any, keys: list[Any], results: list[Any], near: Any) -> Any:
    how = (
        lifted(lambda n: 1.0 if n is None or as_number(n) else 0.0, near)
        if near is not None
        else 0.0
    )
    return picked(
        results, lifted(position, wanted, Block([keys]), how, kind="number", strict=False)
    )


@whole("VLOOKUP")
def _vlookup(wanted: Any, area: Any, column: Any, near: Any = True) -> Any:
    block, at = _block(area), int(_known(column))
    if at < 1:
        raise Fault(VALUE)
    if at > block.shape[1]:
        raise Fault(REF)
    return _looked_up(
        wanted, [row[0] for row in block.rows], [row[at - 1] for row in block.rows], near
    )


@whole("HLOOKUP")
def _hlookup(wanted: Any, area: Any, row: Any, near: Any = True) -> Any:
    block, at = _block(area), int(_known(row))
    if at < 1:
        raise Fault(VALUE)
    if at > block.shape[0]:
        raise Fault(REF)
    return _looked_up(wanted, block.rows[0], block.rows[at - 1], near)


@whole("LOOKUP")
def _lookup(wanted: Any, keys: Any, results: Any = None) -> Any:
    block = _block(keys)
    if results is not None:
        return _looked_up(wanted, list(block), list(_block(results)), True)
    rows, columns = block.shape
    if columns > rows:
        return _looked_up(wanted, block.rows[0], block.rows[-1], True)
    return _looked_up(wanted, [row[0] for row in block.rows], [row[-1] for row in block.rows], True)


@whole("XLOOKUP")
def _xlookup(wanted: Any, keys: Any, results: Any, missing: Any = None, how: Any = 0.0) -> Any:
    place = lifted(
        position, wanted, _block(keys), 0.0 if how is None else how, kind="number", strict=False
    )
    cells = list(_block(results))
    if isinstance(place, ExcelError):
        if missing is None:
            raise Fault(place)
        return missing
    found = picked(cells, place)
    if missing is None or not isinstance(place, Live):
        return found
    return chosen(rg.isfinite(place.var), found, missing)


@whole("ROWS")
def _rows(area: Any) -> float:
    return float(_block(area).shape[0])


@whole("COLUMNS")
def _columns(area: Any) -> float:
    return float(_block(area).shape[1])


@whole("TRANSPOSE")
def _transpose(area: Any) -> Block:
    return Block([list(row) for row in zip(*_block(area).rows, strict=True)])


@whole("MMULT")
def _mmult(a: Any, b: Any) -> Block:
    from reactgrad.tables.excel.functions._math import added, times

    x, y = _block(a), _block(b)
    if x.shape[1] != y.shape[0]:
        raise Fault(VALUE)
    columns = list(zip(*y.rows, strict=True))
    return Block(
        [
            [
                added([number(times(p, q)) for p, q in zip(row, column, strict=True)])
                for column in columns
            ]
            for row in x.rows
        ]
    )
