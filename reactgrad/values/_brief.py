"""A value in a few characters, for a label: never long, never slow, never an error."""

from __future__ import annotations

from reprlib import Repr
from typing import Any

import numpy as np

MOST_LETTERS = 48
MOST_ELEMENTS = 4


def told(value: Any) -> str:
    """``repr(value)``; of a value whose own raises, as that of integers of many digits does, its type.

    Examples
    --------
    >>> told([1]), told(10**6000)
    ('[1]', '<int of 19932 bits>')
    """
    try:
        return repr(value)
    except Exception as error:
        if isinstance(value, int):
            return f"<int of {value.bit_length()} bits>"
        return f"<{type(value).__name__}, whose repr raises {type(error).__name__}>"


class _Objects(Repr):
    """Short texts of objects, and of those inside of them, none of which raises."""

    def repr1(self, x: Any, level: int) -> str:
        try:
            return super().repr1(x, level)
        except Exception:
            return told(x)


_objects = _Objects()
_objects.maxlevel = 2
_objects.maxother = _objects.maxstring = _objects.maxlong = MOST_LETTERS


def brief(value: Any) -> str:
    """A value as one short line.

    Parameters
    ----------
    value : object
        Of an array the first elements, in the order of memory C; of other objects a cut ``repr``,
        or the type if that raises.

    Examples
    --------
    >>> import numpy as np
    >>> brief(np.pi), brief(np.arange(10.0)), brief({"a": 1})
    ('3.14159', '[0, 1, 2, 3, ...]', "{'a': 1}")
    """
    if isinstance(value, np.ndarray):
        parts = [_number(element) for element in value.flat[:MOST_ELEMENTS].tolist()]
        if value.size > MOST_ELEMENTS:
            parts.append("...")
        return _cut(f"[{', '.join(parts)}]" if value.ndim else parts[0])
    return _cut(_number(value.item() if isinstance(value, np.generic) else value))


def _number(value: Any) -> str:
    return f"{value:.6g}" if type(value) in (float, complex) else _objects.repr(value)


def _cut(text: str) -> str:
    return text if len(text) <= MOST_LETTERS else text[: MOST_LETTERS - 3] + "..."
