"""Sites: the lines of user code that built or changed a node."""

from __future__ import annotations

import contextlib
import linecache
import os
import sys
from opcode import opmap
from sys import _getframe
from types import CodeType

import reactgrad_scheduler

# Frames of these files are skipped. A block such as `with x.mutate()` ends in contextlib, and its
# site is the line that wrote the block.
_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep
_DEMO = _PACKAGE + "demo" + os.sep  # whose lines are those of a user
_OURS = (
    _PACKAGE,
    os.path.dirname(reactgrad_scheduler.__file__) + os.sep,
    contextlib.__file__,
)

# A code object and the offset of an instruction in it; no frame, so no variable is kept alive. Then
# the scope, for a node built in one. The code is ``None`` where the place is unknown.
Site = tuple[CodeType, int] | tuple[CodeType | None, int, str]


def is_ours(code: CodeType) -> bool:
    """Return whether code is reactgrad's own, and no place of a user."""
    name = code.co_filename
    return name.startswith(_OURS) and not name.startswith(_DEMO)


class Places(dict[int, tuple[CodeType, int]]):
    """The sites in one code object, by offset: thousands of nodes share the same few tuples."""

    __slots__ = ("code", "ours")

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.ours = is_ours(code)

    def __missing__(self, offset: int) -> tuple[CodeType, int]:
        site = self[offset] = (self.code, offset)
        return site


# By the identity of the code, since a code object as a key hashes all of its constants at each look-up.
# Places keep their code alive, so an id is not used again. The number is limited because notebooks make
# new code for every cell.
_places: dict[int, Places] = {}
_MOST_PLACES = 4096

# The code of the site found last: most nodes are built in the same function as the one before.
_latest = Places(compile("", "", "exec"))


def user_site(above: int = 2) -> Site | None:
    """Return the innermost place on the stack that is not in reactgrad's own code.

    The search begins `above` calls up; the calls below are known to be reactgrad's.
    """
    global _latest
    try:
        frame = _getframe(above)
    except ValueError:  # a thread whose first call is one of reactgrad's
        return None
    # One read of the global: another thread may replace it between the test and the use.
    if frame.f_code is (latest := _latest).code:
        return latest[frame.f_lasti]
    while frame is not None:
        code = frame.f_code
        found = _places.get(id(code))
        if found is None:
            found = _look_at(code)
        if not found.ours:
            _latest = found
            return found[frame.f_lasti]
        frame = frame.f_back
    return None


def _look_at(code: CodeType) -> Places:
    """Return a new table of the places in `code`, and remember it."""
    if len(_places) >= _MOST_PLACES:
        _places.clear()
    places = _places[id(code)] = Places(code)
    return places


def in_scope(site: Site | None, path: str) -> Site:
    """Return the same place with the scope `path`."""
    return (None, 0, path) if site is None else (site[0], site[1], path)


def scope_of(site: Site | None) -> str:
    """Return the scope of a place, such as ``"block1/attention"``; empty outside of all."""
    return site[2] if site is not None and len(site) == 3 else ""


def is_called(above: int) -> bool:
    """Return whether the attribute being looked up `above` calls up is called at once, as in ``y.grad(x)``."""
    frame = _getframe(above + 1)
    instruction, argument = frame.f_code.co_code[frame.f_lasti : frame.f_lasti + 2]
    if sys.version_info < (3, 12):
        return instruction == opmap["LOAD_METHOD"]
    return instruction == opmap["LOAD_ATTR"] and bool(argument & 1)  # one instruction for both


def user_level() -> int:
    """Return the ``stacklevel`` with which a warning from the caller shows the line of user code."""
    site = user_site()
    level, frame = 1, sys._getframe(1)
    while site and frame.f_code is not site[0] and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    return level


def line_of(site: Site | None) -> tuple[str, int]:
    """Return the file of a place, and the number of its line."""
    if site is None or site[0] is None:
        return "<unknown>", 1
    code, offset = site[0], site[1]
    lines = (n for start, end, n in code.co_lines() if start <= offset < end and n is not None)
    return code.co_filename, next(lines, code.co_firstlineno)


def site_text(site: Site | None) -> str:
    """Return file, line and text of a place, ``model.py:12: y = rg.log(x)``.

    A notebook's cell has its number in place of a file.
    """
    if site is None or site[0] is None:
        return "unknown place"
    code, line = site[0], line_of(site)[1]
    text = linecache.getline(code.co_filename, line).strip()
    cell = _cell(code.co_filename)
    place = f"{cell}, line {line}" if cell else f"{code.co_filename}:{line}"
    return place + (f": {text}" if text else "")


def _cell(filename: str) -> str:
    """Return ``In [3]`` if IPython has compiled a cell under this file name, and otherwise ``""``."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    # IPython's own tracebacks call it, since version 8: it gives ("Cell", "In[3]"), or None for a file.
    named = getattr(getattr(shell, "compile", None), "format_code_name", None)
    kind, name = (named and named(filename)) or ("", "")
    return name.replace("[", " [") if kind == "Cell" else ""
