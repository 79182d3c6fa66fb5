"""``Workbook``: the cells of a workbook as named nodes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad._attributes import OwnAttributes
from reactgrad._habits import answer
from reactgrad._names_of_pandas import OF_WORKBOOKS
from reactgrad.scheduler import safe_repr, shortened
from reactgrad.tables.excel._build import Build, address
from reactgrad.tables.excel._cells import Live
from reactgrad.tables.excel._errors import WorkbookError
from reactgrad.tables.excel._file import Place
from reactgrad.tables.excel._formula import Area, area_of
from reactgrad.tables.excel._values import ExcelError, plain


class Workbook(OwnAttributes):
    """A workbook whose formulas are a live graph; see ``from_excel``.

    Attributes
    ----------
    graph : Graph
    sheets : tuple of str
        The sheets in order.
    inputs : dict of str to Var
        Cells without a formula that formulas read, by address: ``"Sheet1!B2"``.
    outputs : dict of str to Var
        Cells with a formula that no other formula reads.
    formulas : dict of str to str
        All formulas by address.
    names : dict of str to str
        Defined names of one cell or range, and the address that each stands for.
    unread : dict of str to int
        What has no form here, and how often it occurs; empty unless ``unread="cached"``.
    """

    def __init__(self, build: Build) -> None:
        self._build = build
        self.graph = build.graph
        self.sheets = tuple(build.sheets.names)
        self.inputs = {address(place): var for place, var in build.inputs.items()}
        self.formulas = {address(place): text for place, text in build.sheets.formulas.items()}
        self.unread = dict(build.unread)
        used: set[Place] = set()
        for place, tree in build.trees.items():
            if place not in build.broken:
                used.update(build.places(tree, place[0]))
        self.outputs = {
            address(place): found.var
            for place in build.trees
            if place not in used and isinstance(found := build.cells.get(place), Live)
            if address(place) not in self.inputs
        }
        self.names = self._cells_by_name()

    def _cells_by_name(self) -> dict[str, str]:
        found = {}
        for key, text in self._build.sheets.defined.items():
            area = area_of(text.lstrip("="))
            if area is not None and area.sheet is not None and isinstance(key, str):
                found[key] = text.lstrip("=").replace("$", "")
        return found

    # --- cells ----------------------------------------------------------------------------------

    def __getitem__(self, key: str) -> Any:
        """Return the node of a cell, by address or defined name; of a range an array of nodes.

        A cell of the first sheet needs no sheet: ``wb["B2"]``. A cell whose value is known while the graph is
        built is a constant.

        Raises
        ------
        WorkbookError
            If there is no such cell.
        """
        area = self._area(key)
        sheet = self.sheets[0] if area.sheet is None else self._sheet(area.sheet)
        if area.single:
            return self._var((sheet, area.row, area.column))
        ends = self._build.sheets.ends[sheet]
        last_row = min(area.last_row or ends[0], max(ends[0], area.row))
        last_column = min(area.last_column or ends[1], max(ends[1], area.column))
        found = np.empty((last_row - area.row + 1, last_column - area.column + 1), object)
        for i in range(found.shape[0]):
            for j in range(found.shape[1]):
                found[i, j] = self._var((sheet, area.row + i, area.column + j), blank=True)
        return found

    def __setitem__(self, key: str, value: Any) -> None:
        raise WorkbookError(
            f"a cell is set by wb.set({{{key!r}: {shortened(safe_repr(value), 60)}}}), which takes several at once."
        )

    def _sheet(self, name: str) -> str:
        for sheet in self.sheets:
            if sheet.lower() == name.lower():
                return sheet
        raise WorkbookError(f"there is no sheet {name!r}. Sheets are {', '.join(self.sheets)}.")

    def _area(self, key: str) -> Area:
        if not isinstance(key, str):
            raise WorkbookError(
                f"{key!r} is no cell: write its address, such as wb['Sheet1!B2'], or a defined name."
            )
        known = self.names.get(key.lower())
        area = area_of(known or key)
        if area is None:
            names = ", ".join([*self.names][:8]) or "none"
            raise WorkbookError(
                f"{key!r} is neither an address, such as 'Sheet1!B2', nor one of the names ({names})."
            )
        return area

    def _var(self, place: Place, *, blank: bool = False) -> Any:
        found = self._build.cell(place)
        if isinstance(found, Live):
            if place in self._build.inputs:
                self.inputs.setdefault(address(place), found.var)
            return found.var
        if found is None:
            if blank:
                return None
            raise WorkbookError(
                f"{address(place)} is empty, so nothing can be read or set there. Write a value into it in Excel first."
            )
        var = self.graph.const(found)
        self._build.cells[place] = Live(var, "number" if isinstance(found, float) else "any")
        return var

    def __contains__(self, key: str) -> bool:
        try:
            return self[key] is not None
        except WorkbookError:
            return False

    def __iter__(self) -> Iterator[str]:
        """Iterate over the addresses of inputs and formulas."""
        yield from self.inputs
        yield from (one for one in self.formulas if one not in self.inputs)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def set(self, values: Mapping[str, Any]) -> None:
        """Set inputs by address or name, all or none.

        Numbers become floats, as all numbers in Excel are.
        """
        found = {}
        for key, value in values.items():
            var = self[key]
            where = self._build.inputs
            if not isinstance(var, rg.Var) or not any(var is one for one in where.values()):
                raise WorkbookError(
                    f"{key!r} is no input: it has a formula, or is a range. Set what it is computed from; "
                    "wb.graph.fork() and pin put a value in its place."
                )
            number = isinstance(value, int | float) and not isinstance(value, bool)
            found[var] = float(value) if number else value
        self.graph.set(found)

    def value(self, key: str) -> Any:
        """Return the value of a cell as Excel has it: a float, text, truth value, or an error such as ``#N/A``."""
        found = self[key]
        return (
            plain(found.value)
            if isinstance(found, rg.Var)
            else [[self._plain(one) for one in row] for row in found]
        )

    @staticmethod
    def _plain(one: Any) -> Any:
        return None if one is None else plain(one.value)

    # --- questions ------------------------------------------------------------------------------

    def sensitivities(self, key: str, inputs: Iterable[str] | None = None, **options: Any) -> Any:
        """Return the live gradients of one cell by the inputs that it hangs on; see ``rg.sensitivities``."""
        chosen = None if inputs is None else [self[one] for one in inputs]
        return rg.sensitivities(self[key], chosen, **options)

    def differences(self, rtol: float = 1e-9) -> dict[str, tuple[Any, Any]]:
        """Return the formulas whose value is not the one that Excel has left in the file: ours and Excel's.

        A number that is an error has none here, so it equals every error. Cells that were saved without
        values are left out.
        """
        found: dict[str, tuple[Any, Any]] = {}
        build = self._build
        places = [place for place, left in build.sheets.cached.items() if left is not None]
        live = [one.var for place in places if isinstance(one := build.cells.get(place), Live)]
        if live:
            self.graph.forward(*live)
        for place in places:
            ours, theirs = build.cells.get(place), build.sheets.cached[place]
            value = plain(ours.var.value) if isinstance(ours, Live) else ours
            if not _close(value, theirs, rtol):
                found[address(place)] = value, theirs
        return found

    def __repr__(self) -> str:
        return (
            f"<Workbook: {len(self.sheets)} sheets, {len(self.formulas):,} formulas, {len(self.inputs):,} inputs"
            + (f", {len(self._build.broken):,} formulas not read" if self.unread else "")
            + ">"
        )


answer(Workbook, "wb", OF_WORKBOOKS)


def _close(ours: Any, theirs: Any, rtol: float) -> bool:
    if isinstance(theirs, ExcelError) or isinstance(ours, ExcelError):
        return isinstance(theirs, ExcelError) and isinstance(ours, ExcelError)
    if isinstance(ours, bool) or isinstance(theirs, bool):
        # Some programs save truth values as numbers.
        return type(ours) in (bool, float) and type(theirs) in (bool, float) and ours == theirs
    if isinstance(ours, float) and isinstance(theirs, float):
        return math.isclose(ours, theirs, rel_tol=rtol, abs_tol=rtol)
    return ours == theirs
