"""Steps that call a Python function on values as they lie in the table.

Many models are made of functions that take less time than gathering their operands would. So each
number of operands gets code of its own, ``function(data[a0], data[a1])``. All of it is made from one
template.
"""

from __future__ import annotations

import linecache
import os
from collections.abc import Callable, Sequence
from functools import cache
from operator import itemgetter
from typing import Any

import numpy as np

from reactgrad.nodes._cutoff import equal
from reactgrad.nodes._lifted import Lifted
from reactgrad.scheduler import UNCHANGED, Column, Step

# With more operands than this they are gathered by an `itemgetter`.
_MOST = 32

# Types of results that need no check, and that `==` compares safely.
PLAIN = frozenset((int, float, bool, str, type(None)))

_NAMES = {
    "PLAIN": PLAIN,
    "UNCHANGED": UNCHANGED,
    "array": np.ndarray,
    "equal": equal,
    "itemgetter": itemgetter,
}

_TEMPLATE = """\
def bind(data, slot, operands, op, missing, handed):
    # What a step uses each time comes as its defaults, which are faster to reach than cells.
    {names} = operands

    def step(data=data, slot=slot, function=op.function, {defaults}):
        new = function({values})
        if type(new) is not float and type(new) not in PLAIN:
            new = op.keep(new, ({values})) if type(new) is array else op.check(new)
        data[slot] = new

    def step_unless_equal(data=data, slot=slot, handed=handed, function=op.function, {defaults}):
        new = function({values})
        old = data[slot]
        # Of plain values that differ only two NaNs are the same.
        if type(new) not in PLAIN or type(old) not in PLAIN or not old == old != new:
            if type(new) not in PLAIN:
                new = op.keep(new, ({values})) if type(new) is array else op.check(new)
            if old is not missing and equal(old, new):
                return UNCHANGED
        data[slot] = new
        if slot in handed:
            del handed[slot]

    return step if handed is None else step_unless_equal
"""


def direct_step(
    op: Lifted,
    data: Column[Any],
    slot: int,
    operands: Sequence[int],
    missing: Any,
    handed: dict[int, Any] | None,
) -> Step:
    """Return the step of a node that calls a function.

    Parameters
    ----------
    data, slot, operands
        The table of values, with the places of the result and of the operands in it.
    missing
        The object that stands in the table for an absent value.
    handed
        If the node's cutoff is ``equal``: the table of values that callers were given, from which a
        replaced value is removed. Else ``None``.
    """
    return _binder(min(len(operands), _MOST + 1))(data, slot, operands, op, missing, handed)


@cache
def _binder(count: int) -> Callable[..., Step]:
    """Return the function that binds steps with this number of operands."""
    names, each, values = "gather", ["gather"], "*gather(data),"
    if count <= _MOST:
        each = [f"a{i}" for i in range(count)]
        names = f"({''.join(f'{name}, ' for name in each)})"
        values = "".join(f"data[{name}], " for name in each)
    defaults = ", ".join(f"{name}={name}" for name in each)
    source = _TEMPLATE.format(names=names, values=values, defaults=defaults)
    if count > _MOST:
        source = source.replace("gather = operands", "gather = itemgetter(*operands)")
    # A file name inside of this package hides the frame like the package's own; `linecache` gives
    # tracebacks the lines.
    file = os.path.join(os.path.dirname(os.path.dirname(__file__)), f"<step with {count} operands>")
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    made = dict(_NAMES)
    exec(compile(source, file, "exec"), made)
    return made["bind"]
