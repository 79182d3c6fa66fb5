"""Implicit conversions: Python, NumPy or another library takes a number or an array out of a node.

What is computed from it would not follow the graph, and gradients would miss it, so a conversion
raises unless the value can never change or the caller has allowed it.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from contextlib import ContextDecorator
from contextvars import ContextVar
from functools import cache
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar

from reactgrad._errors import (
    ImplicitValueError,
    ImplicitValueWarning,
    IndexingError,
    ParameterError,
)
from reactgrad.backend import MOST_AXES
from reactgrad.nodes._handle import Handle
from reactgrad.nodes._op import CONST
from reactgrad.nodes._site import is_ours, site_text, user_level
from reactgrad.ops._index import GETITEM
from reactgrad.scheduler import safe_repr

if TYPE_CHECKING:
    from reactgrad.core._core import Core

F = TypeVar("F", bound=Callable[..., Any])
Treatment = Literal["raise", "warn", "allow"]
_TREATMENTS: Final = ("raise", "warn", "allow")

# What to write instead, by what was taken out; {x} is the name of the node.
_INSTEAD: Final = {
    "bool": "`&`, `|` and `~` for `and`, `or` and `not`, as in x[(x > 0) & (x < 3)], also in place of the chain "
    "0 < x < 3, rg.maximum and rg.minimum for max and min, rg.where(condition, a, b) for `a if condition "
    "else b`, rg.switch(condition, a, b) to run one branch alone, a set in place of a list for `node in "
    "nodes`; or {x}.value where the present value is meant, as in `if {x}.value:`",
    "number": "the op of that name, as rg.exp({x}) for math.exp({x}), or rg.lift(function)({x}) where "
    "there is none; or {x}.value (in text f'{{{x}.value}}') where the present number is meant",
    "index": "an op that takes a node where there is one, as g.const(array)[{x}] for array[{x}]; or "
    "{x}.value where the present number is meant",
    "rows": "an op along the axis, as rg.sum({x}, axis=0), which follows when rows come; or {x}.value where the "
    "present rows are meant",
    "array": "rg.stack([{x}, ...]) for a list of nodes, `a @ {x}` for a.dot({x}), {x} on the left of the "
    "operator or g.const(other) for an operand of another library, rg.lift(function)({x}) for its "
    "functions; or {x}.value where the present array is meant",
}

# What to write besides, by the library that took an array.
_OF_LIBRARIES: Final = {
    "pandas": "t = rg.Table(frame) and t['name'] = {x} for a column that follows, t.to_pandas() for a DataFrame of "
    "values, ",
}

# The setting of the process, and those of the open blocks of this thread or task, innermost last.
_setting: list[Treatment] = ["raise"]
_blocks: ContextVar[tuple[Treatment, ...]] = ContextVar("reactgrad_implicit_values", default=())


@cache
def _libraries() -> tuple[str, ...]:
    """Return the folders whose lines are not the user's: the standard library and installed packages."""
    import sysconfig

    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return tuple({sysconfig.get_path(name) + os.sep for name in names})


class implicit_values(ContextDecorator):
    """Choose what implicit conversions of nodes do: in a block, in a function, or from here on.

    `float(x)`, `if x > 0`, `max(x, y)`, `math.exp(x)`, `np.array([x, y])` and the like take the present
    value out of the graph. They raise ``ImplicitValueError`` unless the node is a constant or computed
    of constants only. This switch is for code that is being moved to nodes.

    A bare call holds for the whole process. A ``with`` block or a decorated function holds for its
    thread or task, whatever the setting of the process.

    Parameters
    ----------
    treatment : {"raise", "warn", "allow"}
        ``"warn"`` gives the value with an ``ImplicitValueWarning``, ``"allow"`` without.

    Raises
    ------
    DTypeError
        If `treatment` is none of the three.

    Examples
    --------
    >>> import math
    >>> import reactgrad as rg
    >>> x = rg.Graph().input(0.0)
    >>> with rg.implicit_values("allow"):
    ...     math.exp(x)
    1.0
    """

    __slots__ = ("_before", "_treatment")

    def __init__(self, treatment: Treatment) -> None:
        if treatment not in _TREATMENTS:
            raise ParameterError(
                f"implicit_values({safe_repr(treatment):.60}): write 'raise', 'warn' or 'allow'."
            )
        self._treatment: Treatment = treatment
        self._before: Treatment | None = _setting[0]
        _setting[0] = treatment

    def _take_back(self) -> None:
        """Restore the setting of the process, since this call opens a block or decorates a function."""
        if self._before is not None:
            _setting[0], self._before = self._before, None

    def __call__(self, function: F) -> F:
        self._take_back()
        return super().__call__(function)

    def __enter__(self) -> Self:
        self._take_back()
        _blocks.set((*_blocks.get(), self._treatment))
        return self

    def __exit__(self, *exc: object) -> None:
        _blocks.set(_blocks.get()[:-1])


def check_conversion(node: Handle, conversion: str, kind: str) -> None:
    """Raise or warn where a conversion of `node` takes a value out of the graph that may change.

    Parameters
    ----------
    node
    conversion : str
        The conversion as a user would write it, with ``{x}`` for the node.
    kind : {"bool", "number", "index", "rows", "array"}
        What is taken out; decides what the message says to write instead.

    Raises
    ------
    ImplicitValueError
    """
    graph: Core = node._graph
    if _never_changes(graph, node._slot) and _read_nothing_else(node):
        return
    if graph._traced and not _passes_gradients(graph, node._slot, kind):
        return  # a transform calls its function again for other values, so the result follows
    blocks = _blocks.get()
    treatment = blocks[-1] if blocks else _setting[0]
    if treatment == "allow":
        return
    x = node.label
    line, library = _asked_by()
    way = (_OF_LIBRARIES.get(library, "") if kind == "array" else "") + _INSTEAD[kind]
    message = (
        f"{conversion.format(x=x)} takes the present value out of the graph: the result would not "
        f"follow when {x} changes, and no gradient would pass. {line}Write {way.format(x=x)}."
    )
    if treatment == "warn" or _takes_errors_for_an_answer():
        warnings.warn(message, ImplicitValueWarning, stacklevel=user_level())
    if treatment == "raise":
        raise ImplicitValueError(message)


def check_axes(value: Any) -> None:
    """Raise ``IndexingError`` if a value of unknown shape was indexed by a number more often than arrays have axes.

    Some functions in C take ``x[0]`` of what is no number until they meet one. Each such index builds a node,
    so they would never end.
    """
    graph = value._graph
    host, parents = graph._host, graph._scheduler.topology.parents
    slot = value._slot
    for _ in range(MOST_AXES):
        if host.ops[slot] is not GETITEM or not _takes_one(host.attrs[slot][0].parts):
            return
        slot = parents[slot][0]
    raise IndexingError(
        f"{host.label(slot)!r} was indexed {MOST_AXES + 1} times by a number, and an array has at most "
        f"{MOST_AXES} axes. If a function of another library did so, it looked for a number in the node: give it "
        f"the value, {host.label(slot)}.value, or call it on values, rg.lift(function)({host.label(slot)})."
    )


def _takes_one(parts: tuple[Any, ...]) -> bool:
    return len(parts) == 1 and isinstance(parts[0], int)


def _passes_gradients(graph: Core, slot: int, kind: str) -> bool:
    """Return whether a gradient would be lost where the value is taken out; a condition passes none."""
    found = graph._host.specs[slot]
    return kind != "bool" and (found is None or found.dtype.kind in "fc")


def _never_changes(graph: Core, slot: int) -> bool:
    """Return whether a node is a constant, or computed of constants only."""
    ops, pins, parents = graph._host.ops, graph._host.pins, graph._scheduler.topology.parents
    if ops[slot] is CONST:
        return True
    seen, left = {slot}, [slot]
    while left:
        one = left.pop()
        if one in pins or not (found := parents[one]):
            return False
        for parent in found:
            if parent not in seen and ops[parent] is not CONST:
                seen.add(parent)
                left.append(parent)
    return True


def _read_nothing_else(node: Handle) -> bool:
    """Return whether a node of constants is still one after its functions have run.

    What a function reads while it runs is among the parents only from its first run on.
    """
    graph: Core = node._graph
    if graph._host.ops[node._slot] is CONST:
        return True
    graph._value(node._slot)
    return _never_changes(graph, node._slot)


def _takes_errors_for_an_answer() -> bool:
    """Return whether the caller is one of NumPy's functions that answer False where a conversion raises."""
    frame = _not_ours()
    names = ("array_equal", "array_equiv")
    return (
        frame is not None
        and frame.f_code.co_name in names
        and frame.f_globals.get("__name__", "").startswith("numpy.")
    )


def _not_ours() -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_ours(frame.f_code):
        frame = frame.f_back
    return frame


def _asked_by() -> tuple[str, str]:
    """Return a sentence with the innermost line that is neither ours nor of an installed library, and the outermost
    library below it, which the user has called.
    """
    frame = innermost = _not_ours()
    library = ""
    while frame is not None and frame.f_code.co_filename.startswith(_libraries()):
        library = frame.f_globals.get("__name__", "").partition(".")[0]
        frame = frame.f_back
    frame = frame or innermost
    line = "" if frame is None else f"Line: {site_text((frame.f_code, frame.f_lasti))}. "
    return line, library
