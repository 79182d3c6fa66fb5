"""Formulas as nodes: checked as a whole first, then built in the order in which they need each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import reactgrad as rg
from reactgrad.tables.excel import _formula as f
from reactgrad.tables.excel._cells import MOST_CELLS, Block, Live, each, op
from reactgrad.tables.excel._cells import divided as quotient
from reactgrad.tables.excel._errors import UnreadFunctionError, WorkbookError
from reactgrad.tables.excel._file import Place, Sheets
from reactgrad.tables.excel._values import NA, REF, VALUE, ExcelError, Fault
from reactgrad.tables.excel.functions import FUNCTIONS, LAZY, OVER_CELLS, SINGLE_VALUES, takes
from reactgrad.tables.excel.functions._logic import SIGNS, compared
from reactgrad.tables.excel.functions._math import power
from reactgrad.tables.excel.functions._text import joined

MOST_READ = 20_000_000  # cells in the ranges of all formulas
DEEPEST_NAME = 20  # names that stand for names
# Functions of places, which `_evaluate` knows itself.
PLACES = frozenset({"ROW", "COLUMN"})
OPERATORS = frozenset({*"+-*/^&%", *SIGNS, "u+", "u-", "u@"})


def address(place: Place) -> str:
    """Return a place as it is written in formulas, with its sheet."""
    sheet, row, column = place
    letters = ""
    while column:
        column, digit = divmod(column - 1, 26)
        letters = chr(65 + digit) + letters
    return f"{sheet}!{letters}{row}"


def _walk_all(trees: list[Any]) -> Iterator[Any]:
    """Iterate over all parts of trees, to which more may be added meanwhile."""
    while trees:
        yield from f.walk(trees.pop())


class Build:
    """The cells of a workbook while they become nodes.

    Attributes
    ----------
    cells : dict
        What has been built: values, ``Live`` nodes, by place.
    inputs : dict
        The inputs by place: cells without a formula that formulas read.
    broken : set
        The places of formulas that need what has no form here.
    unread : Counter
        Functions and references that have no form here.
    """

    def __init__(self, sheets: Sheets, graph: rg.Graph) -> None:
        self.sheets = sheets
        self.graph = graph
        self.trees: dict[Place, Any] = {}
        self.cells: dict[Place, Any] = {}
        self.inputs: dict[Place, rg.Var] = {}
        self.unread: Counter[str] = Counter()
        self.examples: dict[str, str] = {}
        self.broken: set[Place] = set()
        self._names = {name.lower(): name for name in sheets.names}
        self._defined: dict[Any, Any] = {}
        self._lacking: dict[tuple[str, str], tuple[str, ...]] = {}
        self._open_names: set[tuple[str, str]] = set()
        self._names_read: dict[tuple[str, str], Any] = {}
        self._read = 0

    # --- check ----------------------------------------------------------------------------------

    def check(self) -> set[Place]:
        """Read all formulas; return the places of those that need something that has no form here."""
        for place, text in self.sheets.formulas.items():
            try:
                tree = f.parse(text)
                missing = self._missing(tree, place[0])
            except WorkbookError as error:
                tree = f.Literal(None)
                missing = [f"a formula that cannot be read, {text:.60}: {error}"]
            for name in missing:
                self.unread[name] += 1
                self.examples.setdefault(name, address(place))
            if missing:
                self.broken.add(place)
            self.trees[place] = tree
        return self.broken

    def refuse_unread(self) -> None:
        """Raise the error that names all that has no form here."""
        if self.unread:
            told = ", ".join(
                f"{name} ({count}x, as in {self.examples[name]})"
                for name, count in self.unread.most_common()
            )
            raise UnreadFunctionError(
                f"{len(self.broken):,} formulas need what has no form here: {told}. Write "
                "from_excel(path, unread='cached') to keep the values that Excel has left in these cells, as inputs.",
                self.unread,
                self.examples,
            )

    def _missing(self, tree: Any, sheet: str) -> list[str]:
        """Return what a tree needs that has no form here."""
        found: list[str] = []
        for one in f.walk(tree):
            if isinstance(one, f.Call):
                count = len(one.arguments)
                if one.function in PLACES:
                    continue
                if one.function not in FUNCTIONS and one.function not in LAZY:
                    found.append(one.function)
                elif not takes(one.function, count):
                    found.append(f"{one.function} of {count} arguments")
            elif isinstance(one, f.Operation) and one.sign not in OPERATORS:
                found.append(
                    {" ": "intersection", ":": "range operator", ",": "union"}.get(
                        one.sign, one.sign
                    )
                )
            elif (
                isinstance(one, f.Area)
                and one.sheet is not None
                and one.sheet.lower() not in self._names
            ):
                found.append(
                    "reference to another workbook" if "[" in one.sheet else f"sheet {one.sheet!r}"
                )
            elif isinstance(one, f.Name):
                found += self._missing_in_name(one.text, sheet)
        return found

    def _missing_in_name(self, text: str, sheet: str) -> tuple[str, ...]:
        """Return what a name lacks. Each name is read once, so names of names of names cost nothing."""
        tree = self._name(text, sheet)
        if tree is None:
            return ("reference to a table" if "[" in text else f"name {text!r}",)
        key = text.lower(), sheet
        if key in self._open_names or len(self._open_names) >= DEEPEST_NAME:
            raise WorkbookError(
                f"the name {text!r} stands for itself, or for more than {DEEPEST_NAME} names in turn."
            )
        if key not in self._lacking:
            self._open_names.add(key)
            try:
                self._lacking[key] = tuple(dict.fromkeys(self._missing(tree, sheet)))
            finally:
                self._open_names.discard(key)
        return self._lacking[key]

    def _name(self, text: str, sheet: str) -> Any:
        """Return the tree of a defined name, ``None`` if there is none."""
        if "!" in text:
            before, _, text = text.rpartition("!")
            sheet = before.strip("'")
        for key in ((sheet.lower(), text.lower()), text.lower()):
            given = self.sheets.defined.get(key)
            if given is not None:
                if key not in self._defined:
                    try:
                        self._defined[key] = f.parse("=" + given)
                    except WorkbookError:
                        self._defined[key] = None
                return self._defined[key]
        return None

    # --- order ----------------------------------------------------------------------------------

    def _sheet(self, area: f.Area, own: str) -> str:
        return own if area.sheet is None else self._names[area.sheet.lower()]

    def _bounds(self, area: f.Area, own: str) -> tuple[str, int, int, int, int]:
        """Return the sheet, and rows and columns that hold anything, of an area."""
        sheet = self._sheet(area, own)
        rows, columns = self.sheets.ends[sheet]
        last_row = max(rows, area.row) if area.last_row is None else area.last_row
        last_column = max(columns, area.column) if area.last_column is None else area.last_column
        if (last_row - area.row + 1) * (last_column - area.column + 1) > MOST_CELLS:
            last_row = min(last_row, max(rows, area.row))
            last_column = min(last_column, max(columns, area.column))
        size = (last_row - area.row + 1) * (last_column - area.column + 1)
        if size > MOST_CELLS:
            raise WorkbookError(
                f"a range of {size:,} cells in {sheet!r} is more than {MOST_CELLS:,}: refused."
            )
        return sheet, area.row, area.column, last_row, last_column

    def places(self, tree: Any, own: str) -> Iterator[Place]:
        """Iterate over the cells with a formula that a tree reads."""
        formulas, spilled = self.trees, self.sheets.spilled
        names: set[str] = set()
        trees = [tree]
        for one in _walk_all(trees):
            if isinstance(one, f.Area):
                sheet, row, column, last_row, last_column = self._bounds(one, own)
                self._read += (last_row - row + 1) * (last_column - column + 1)
                if self._read > MOST_READ:
                    raise WorkbookError(
                        f"the formulas read more than {MOST_READ:,} cells: refused."
                    )
                for i in range(row, last_row + 1):
                    for j in range(column, last_column + 1):
                        place = (sheet, i, j)
                        place = spilled.get(place, place)
                        if place in formulas:
                            yield place
            elif isinstance(one, f.Name) and one.text.lower() not in names:
                names.add(one.text.lower())
                known = self._name(one.text, own)
                if known is not None:
                    trees.append(known)

    def order(self, wanted: Iterable[Place]) -> list[Place]:
        """Return formulas so that each stands behind those that it reads.

        Raises
        ------
        WorkbookError
            If cells need each other in a circle; the message gives the whole circle.
        """
        done: set[Place] = set()
        found: list[Place] = []
        for first in wanted:
            if first in done:
                continue
            way: dict[Place, None] = {}
            stack = [
                (
                    first,
                    iter(()) if first in self.broken else self.places(self.trees[first], first[0]),
                )
            ]
            way[first] = None
            while stack:
                place, reads = stack[-1]
                for other in reads:
                    if other in way:
                        circle = [*way][[*way].index(other) :]
                        told = " -> ".join(map(address, [*circle[:12], other]))
                        raise WorkbookError(
                            f"these cells need each other in a circle: {told}. Excel would iterate; break the "
                            "circle, or solve it with rg.goal_seek."
                        )
                    if other not in done:
                        way[other] = None
                        reads_of = (
                            iter(())
                            if other in self.broken
                            else self.places(self.trees[other], other[0])
                        )
                        stack.append((other, reads_of))
                        break
                else:
                    stack.pop()
                    del way[place]
                    done.add(place)
                    found.append(place)
        return found

    # --- nodes ----------------------------------------------------------------------------------

    def all(self) -> None:
        """Build all formulas."""
        with self.graph:
            for place in self.order(self.trees):
                if place in self.broken:
                    self._keep_cached(place)
                else:
                    self._formula(place)
                if place in self.sheets.arrays:
                    for other, first in self._spilled_from(place):
                        if place in self.broken:
                            self._keep_cached(other)
                        else:
                            self.cells[other] = self._spill(place, other, first)

    def _spilled_from(self, place: Place) -> Iterator[tuple[Place, Place]]:
        last_row, last_column = self.sheets.arrays[place]
        for i in range(place[1], last_row + 1):
            for j in range(place[2], last_column + 1):
                other = place[0], i, j
                if self.sheets.spilled.get(other) == place:
                    yield other, place

    def _keep_cached(self, place: Place) -> None:
        value = self.sheets.cached.get(place)
        self.cells[place] = None if value is None else self._input(place, value)

    def _formula(self, place: Place) -> None:
        tree = self.trees[place]
        try:
            found = self._evaluate(tree, place)
        except Fault as fault:
            found = fault.error
        if isinstance(found, Block):
            self._blocks[place] = found
            found = self._one_of(found, place)
        if found is None:
            found = 0.0
        if isinstance(found, Live):
            found = self._named(found, place)
        self.cells[place] = found

    def _spill(self, place: Place, other: Place, first: Place) -> Any:
        block = self._blocks.get(place)
        i, j = other[1] - first[1], other[2] - first[2]
        if block is None:
            return self.cells[place]
        rows, columns = block.shape
        if (i >= rows > 1) or (j >= columns > 1):
            tree = self.trees[place]  # of a whole row or column only the part in use was read
            return (
                0.0
                if isinstance(tree, f.Area) and None in (tree.last_row, tree.last_column)
                else NA
            )
        found = block.rows[i if rows > 1 else 0][j if columns > 1 else 0]
        return (
            self._named(found, other)
            if isinstance(found, Live)
            else 0.0
            if found is None
            else found
        )

    @property
    def _blocks(self) -> dict[Place, Block]:
        return self.__dict__.setdefault("blocks", {})

    def _named(self, found: Live, place: Place) -> Live:
        """Return a node that has the name of its cell: one of its own, if it is that of another cell already."""
        var = found.var
        if var.name == var.label and "!" in var.name:
            var = (
                _same(var)
                if found.kind == "any"
                else rg.positive(var)
                if found.kind == "number"
                else rg.equal(var, True)
            )
        var.name = address(place)
        return Live(var, found.kind)

    def _one_of(self, block: Block, place: Place) -> Any:
        """Return the value that a formula of one cell has of a range: that of its row or column."""
        rows, columns = block.shape
        if place in self.sheets.arrays or not block.row:
            return block.rows[0][0]
        i = place[1] - block.row if rows > 1 else 0
        j = place[2] - block.column if columns > 1 else 0
        if 0 <= i < rows and 0 <= j < columns:
            return block.rows[i][j]
        return VALUE

    def cell(self, place: Place) -> Any:
        """Return what a cell holds: a value, or a node."""
        place_of = self.cells
        if place in place_of:
            return place_of[place]
        value = self.sheets.values.get(place)
        if value is None or isinstance(value, ExcelError):
            return value
        found = self._input(place, value)
        place_of[place] = found
        return found

    def _input(self, place: Place, value: Any) -> Any:
        if isinstance(value, ExcelError):
            return value
        var = self.graph.input(value, name=address(place))
        self.inputs[place] = var
        kind = (
            "logical"
            if isinstance(value, bool)
            else "number"
            if isinstance(value, float)
            else "any"
        )
        return Live(var, kind)

    def _area(self, area: f.Area, own: str) -> Any:
        sheet, row, column, last_row, last_column = self._bounds(area, own)
        if area.single:
            return self.cell((sheet, row, column))
        rows = [
            [self.cell((sheet, i, j)) for j in range(column, last_column + 1)]
            for i in range(row, last_row + 1)
        ]
        return Block(rows, row, column)

    def _evaluate(self, tree: Any, place: Place) -> Any:
        """Return what a tree is: a value, a node, or a block of these."""
        if isinstance(tree, f.Literal):
            return tree.value
        if isinstance(tree, f.Area):
            return self._area(tree, place[0])
        if isinstance(tree, f.Name):
            key = tree.text.lower(), place[0]
            if key not in self._names_read:
                self._names_read[key] = self._evaluate(self._name(tree.text, place[0]), place)
            return self._names_read[key]
        if isinstance(tree, f.Rows):
            return Block([[self._evaluate(one, place) for one in row] for row in tree.rows])
        if isinstance(tree, f.Operation):
            operands = [self._evaluate(one, place) for one in tree.operands]
            return each(_OPERATIONS[tree.sign], *operands)
        return self._call(tree, place)

    def _call(self, tree: f.Call, place: Place) -> Any:
        name = tree.function
        if name in PLACES:
            return self._place_of(name, tree, place)

        def evaluate(one: Any) -> Any:
            try:
                return self._evaluate(one, place)
            except Fault as fault:
                return fault.error

        try:
            if name in LAZY:
                return LAZY[name](evaluate, *tree.arguments)
            arguments = [evaluate(one) for one in tree.arguments]
            if name in OVER_CELLS:
                arguments = [
                    Block([[found]])
                    if isinstance(one, f.Area) and not isinstance(found, Block)
                    else found
                    for one, found in zip(tree.arguments, arguments, strict=True)
                ]
            while (
                arguments
                and arguments[-1] is None
                and isinstance(tree.arguments[-1], f.Literal)
                and len(arguments) > 1
            ):
                arguments.pop()
            single = [k for k in SINGLE_VALUES.get(name, ()) if k < len(arguments)]
            if any(isinstance(arguments[k], Block) for k in single):
                return self._place_by_place(name, arguments, single, place)
            return FUNCTIONS[name](*arguments)
        except Fault as fault:
            return fault.error

    def _place_by_place(
        self, name: str, arguments: list[Any], single: list[int], place: Place
    ) -> Any:
        """Return a function for each value of ranges that stand where single values are meant.

        In a formula of one cell that is no array formula, the value of its own row or column is meant.
        """
        if place not in self.sheets.array_formulas:
            for k in single:
                one = arguments[k]
                if isinstance(one, Block):
                    arguments[k] = self._one_of(one, place)
            return FUNCTIONS[name](*arguments)

        def function(*values: Any) -> Any:
            for k, value in zip(single, values, strict=True):
                arguments[k] = value
            found = FUNCTIONS[name](*arguments)
            return found.rows[0][0] if isinstance(found, Block) else found

        return each(function, *[arguments[k] for k in single])

    def _place_of(self, name: str, tree: f.Call, place: Place) -> Any:
        at = 1 if name == "ROW" else 2
        if not tree.arguments:
            return float(place[at])
        area = tree.arguments[0]
        if isinstance(area, f.Name):
            area = self._name(area.text, place[0])
        if not isinstance(area, f.Area):
            raise Fault(REF)
        _, row, column, last_row, last_column = self._bounds(area, place[0])
        if at == 1:
            rows = [[float(i)] for i in range(row, last_row + 1)]
        else:
            rows = [[float(j) for j in range(column, last_column + 1)]]
        return rows[0][0] if len(rows) == len(rows[0]) == 1 else Block(rows)


_same = rg.lift(lambda value: value, vjp=lambda g, ans, value: (g,))


def _negative(a: Any) -> Any:
    return op(lambda x: -x, lambda x: -x, a)


def _comparison(sign: str) -> Any:
    return lambda a, b: compared(sign, a, b)


_OPERATIONS: dict[str, Any] = {
    "+": lambda a, b: op(lambda x, y: x + y, lambda x, y: x + y, a, b),
    "-": lambda a, b: op(lambda x, y: x - y, lambda x, y: x - y, a, b),
    "*": lambda a, b: op(lambda x, y: x * y, lambda x, y: x * y, a, b),
    "/": quotient,
    "^": power,
    "&": joined,
    "%": lambda a: op(lambda x: x / 100.0, lambda x: x / 100.0, a),
    "u-": _negative,
    "u+": lambda a: a,
    "u@": lambda a: a,
    **{sign: _comparison(sign) for sign in SIGNS},
}
