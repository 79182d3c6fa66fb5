"""Where in the user's code a node was built, or changed."""

from __future__ import annotations

import contextlib
import linecache
import os
import sys
from sys import _getframe
from types import CodeType

import reactgrad_scheduler

# A block such as `with x.mutate()` ends in contextlib: the line meant is the one that wrote it.
_OURS = (
    os.path.dirname(os.path.dirname(__file__)) + os.sep,
    os.path.dirname(reactgrad_scheduler.__file__) + os.sep,
    contextlib.__file__,
)

# A code object and the offset of an instruction in it; no frame, so no variable is kept alive. Behind
# them the scope, of what was built in one; ``None`` for the code that nobody knows any more.
Site = tuple[CodeType, int] | tuple[CodeType | None, int, str]


class Places(dict[int, tuple[CodeType, int]]):
    """The places in one code object, by their offsets: thousands of nodes are built at the same few."""

    __slots__ = ("code", "ours")

    def __init__(self, code: CodeType) -> None:
        self.code = code
        name = code.co_filename
        self.ours = name.startswith(_OURS) and "/demo/" not in name.replace("\\", "/")

    def __missing__(self, offset: int) -> tuple[CodeType, int]:
        site = self[offset] = (self.code, offset)
        return site


# By the identity of the code, which lives as long as its places do: it hashes all of its constants each
# time that it is looked up itself. So many at most: notebooks make new code for every cell.
_places: dict[int, Places] = {}
_MOST_PLACES = 4096

# The user's code that was asked for last: most nodes are built where the one before was.
_latest = Places(compile("", "", "exec"))


def user_site(above: int = 2) -> Site | None:
    """The innermost place on the stack that is not reactgrad's; so many calls up are known to be."""
    global _latest
    try:
        frame = _getframe(above)
    except ValueError:  # a thread that begins with an op of ours
        return None
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
    """The places in code that is met for the first time."""
    if len(_places) >= _MOST_PLACES:
        _places.clear()
    places = _places[id(code)] = Places(code)
    return places


def in_scope(site: Site | None, path: str) -> Site:
    """The same place, in a scope."""
    return (None, 0, path) if site is None else (site[0], site[1], path)


def scope_of(site: Site | None) -> str:
    """The scope of a place, ``"block1/attention"``; empty outside of all."""
    return site[2] if site is not None and len(site) == 3 else ""


def user_level() -> int:
    """The ``stacklevel`` at which a warning that the caller gives shows that place."""
    site = user_site()
    level, frame = 1, sys._getframe(1)
    while site and frame.f_code is not site[0] and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    return level


def site_text(site: Site | None) -> str:
    """File, line and text of a place, ``model.py:12: y = rg.log(x)``; of a notebook's cell its number."""
    if site is None or site[0] is None:
        return "unknown place"
    code, offset = site[0], site[1]
    line = next(
        (n for start, end, n in code.co_lines() if start <= offset < end and n is not None),
        code.co_firstlineno,
    )
    text = linecache.getline(code.co_filename, line).strip()
    cell = _cell(code.co_filename)
    place = f"{cell}, line {line}" if cell else f"{code.co_filename}:{line}"
    return place + (f": {text}" if text else "")


def _cell(filename: str) -> str:
    """``In [3]``, if IPython has compiled a cell under this name; the name itself says nothing."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    # What IPython's own tracebacks use since version 8: ("Cell", "In[3]"), or None of a file.
    named = getattr(getattr(shell, "compile", None), "format_code_name", None)
    kind, name = (named and named(filename)) or ("", "")
    return name.replace("[", " [") if kind == "Cell" else ""
