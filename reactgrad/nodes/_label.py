"""The name that a line of user code assigns a node to, ``growth`` for ``growth = rg.exp(rate)``.

Nothing of this happens when a node is built: its site says where the call stands, and the source is
read and parsed when someone first asks.
"""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Iterator
from itertools import islice
from threading import RLock
from types import CodeType
from typing import NamedTuple

from reactgrad.nodes._site import Site

# Lines and columns at which an expression begins and ends, as code objects and syntax trees count them.
Position = tuple[int, int, int, int]

_OPERATORS: dict[type, str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder",
    ast.MatMult: "matmul",
    ast.USub: "negative",
}


class Assigned(NamedTuple):
    """The targets of an assignment: one for the value, or one for each of its outputs.

    ``calls`` is the name of the op that the expression writes, as far as its text shows that.
    """

    targets: tuple[str | None, ...]
    several: bool
    calls: str


def assigned(site: Site | None) -> Assigned | None:
    """Return the targets that the expression at a site is assigned to; ``None`` if it is to none."""
    if site is None or site[0] is None:
        return None
    code, offset = site[0], site[1]
    known = _known.get((id(code), offset))
    if known is not None and known[0] is code:
        return known[1]
    if len(_known) >= _MOST_PLACES:
        _known.clear()
    found = _at(code, offset)
    _known[id(code), offset] = code, found
    return found


# By the identity of the code, which a code object as a key would hash whole at each look-up.
_known: dict[tuple[int, int], tuple[CodeType, Assigned | None]] = {}
_MOST_PLACES = 4096


def _at(code: CodeType, offset: int) -> Assigned | None:
    position = next(islice(code.co_positions(), offset // 2, None), None)
    if position is None or None in position:  # Python runs without positions
        return None
    return _assignments(code).get(position)  # type: ignore[arg-type]


# By file: its lines, and what is assigned in them. The number is limited because notebooks make a new
# file for every cell.
_files: dict[str, tuple[list[str], dict[Position, Assigned]]] = {}
_MOST_FILES = 256


def _assignments(code: CodeType) -> dict[Position, Assigned]:
    lines = linecache.getlines(code.co_filename)
    if not lines:
        return {}
    known = _files.get(code.co_filename)
    if known is None or (known[0] is not lines and known[0] != lines):
        if len(_files) >= _MOST_FILES:
            _files.clear()
        known = _files[code.co_filename] = lines, _in_source("".join(lines))
    return known[1]


# In Python 3.11 two threads that parse may confuse each other.
_parsing = RLock()

# Backslashes whose text means nothing here. Python would warn of some once more, and to silence it there are
# only filters of all threads, which an interrupt would leave changed.
_escape = re.compile(r"""\\([\r\n'"\\N])|\\""")


def _without_escapes(source: str) -> str:
    """Return a source with the same names at the same places, and no escape that Python could warn of."""
    return (
        _escape.sub(lambda found: found[0] if found[1] else "_", source)
        if "\\" in source
        else source
    )


def _in_source(source: str) -> dict[Position, Assigned]:
    """Return all assignments of a source, by the position of what is assigned."""
    try:
        with _parsing:
            tree = ast.parse(_without_escapes(source))
    except (SyntaxError, ValueError):
        return {}
    found: dict[Position, Assigned] = {}
    for cell in ast.walk(tree) if ".cell" in source else ():
        if _is_cell(cell):
            indent = cell.body[0].col_offset  # type: ignore[attr-defined]
            for (top, bottom, left, right), what in _assigned_in(cell).items():
                found[top, bottom, left - indent, right - indent] = what
    return found | _assigned_in(tree)


def _is_cell(node: ast.AST) -> bool:
    """Return whether a function is a cell of marimo, which compiles its body without the indentation."""
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and any(
        isinstance(named := getattr(one, "func", one), ast.Attribute) and named.attr == "cell"
        for one in node.decorator_list
    )


def _assigned_in(tree: ast.AST) -> dict[Position, Assigned]:
    found: dict[Position, Assigned] = {}
    for node in ast.walk(tree):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr | ast.AugAssign):
            targets = [node.target]
        if targets and node.value is not None:  # type: ignore[attr-defined]
            if isinstance(node, ast.AugAssign):
                calls = _OPERATORS.get(type(node.op), "")
                found[_position(node)] = Assigned((_name(node.target),), False, calls)
            for target in reversed(targets):  # of `a = b = ...` the first counts
                found.update(_matched(target, node.value))  # type: ignore[attr-defined]
    return found


def _matched(target: ast.expr, value: ast.expr) -> Iterator[tuple[Position, Assigned]]:
    """Return the positions of the expressions that give what a target gets."""
    value = _inner(value)
    if isinstance(value, ast.IfExp):
        yield from _matched(target, value.body)
        yield from _matched(target, value.orelse)
        return
    if isinstance(target, ast.Tuple | ast.List):
        if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
            for one, part in zip(target.elts, value.elts, strict=True):
                yield from _matched(one, part)
            return
        found = Assigned(tuple(map(_name, target.elts)), True, _calls(value))
    else:
        found = Assigned((_name(target),), False, _calls(value))
    yield _position(value), found
    function = value.func if isinstance(value, ast.Call) else None
    if isinstance(function, ast.Attribute) and function.end_lineno != value.lineno:
        # The call of a method on a line below its object counts from the method's name on.
        end = function.end_col_offset or 0
        start = (function.end_lineno or 0, end - len(function.attr))
        _, to_line, _, to_column = _position(value)
        yield (start[0], to_line, start[1], to_column), found


def _inner(value: ast.expr) -> ast.expr:
    """Return the expression whose node another one passes on, ``rg.exp(x)`` in ``g.keep(rg.exp(x))``."""
    while isinstance(value, ast.NamedExpr | ast.Call):
        if isinstance(value, ast.NamedExpr):
            value = value.value
        elif _calls(value) == "keep" and len(value.args) == 1:
            value = value.args[0]
        else:
            break
    return value


def _calls(value: ast.expr) -> str:
    if isinstance(value, ast.Call):
        function = value.func
        return getattr(function, "attr", getattr(function, "id", ""))
    if isinstance(value, ast.BinOp | ast.UnaryOp):
        return _OPERATORS.get(type(value.op), "")
    return ""


def _name(target: ast.expr) -> str | None:
    """Return the last word of a target: ``w`` of ``self.w``, and of ``table["w"]``."""
    if isinstance(target, ast.Name):
        return None if target.id.strip("_") == "" else target.id
    if isinstance(target, ast.Attribute):
        return target.attr
    if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
        key = target.slice.value
        return key if isinstance(key, str) and key.isidentifier() else None
    return None


def _position(node: ast.expr | ast.stmt) -> Position:
    return (
        node.lineno,
        node.end_lineno or node.lineno,
        node.col_offset,
        node.end_col_offset or node.col_offset,
    )
