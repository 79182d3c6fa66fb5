"""A value as a short text for a label, made in short time and without raising."""

from __future__ import annotations

from reprlib import Repr
from typing import Any

import numpy as np

from reactgrad.scheduler import safe_repr

MOST_LETTERS = 48
MOST_ELEMENTS = 4


class _Objects(Repr):
    """Short texts of objects and of their elements. An element whose ``repr`` raises shows its type."""

    def repr1(self, x: Any, level: int) -> str:
        try:
            return super().repr1(x, level)
        except Exception:
            return safe_repr(x)


_objects = _Objects()
_objects.maxlevel = 2
_objects.maxother = _objects.maxstring = _objects.maxlong = MOST_LETTERS


def brief(value: Any) -> str:
    """Return a value as one short line.

    Parameters
    ----------
    value : object
        An array is shown by its first elements in C order; other objects by a shortened ``repr``, or
        by their type if that raises.

    Examples
    --------
    >>> import numpy as np
    >>> brief(np.pi), brief(np.arange(10.0)), brief({"a": 1})
    ('3.14159', '[0, 1, 2, 3, ...]', "{'a': 1}")
    """
    if isinstance(value, np.ndarray):
        # NumPy's flat takes 32 axes at most; an array that has more of two elements and more fits no memory.
        several = value if value.ndim <= 32 else value.squeeze()
        first = value[:MOST_ELEMENTS] if value.ndim == 1 else several.flat[:MOST_ELEMENTS]
        parts = [_number(element) for element in first.tolist()]
        if value.size > MOST_ELEMENTS:
            parts.append("...")
        return _cut(f"[{', '.join(parts)}]" if value.ndim else parts[0])
    return _cut(_number(value.item() if isinstance(value, np.generic) else value))


def _number(value: Any) -> str:
    return f"{value:.6g}" if type(value) in (float, complex) else _objects.repr(value)


def _cut(text: str) -> str:
    return text if len(text) <= MOST_LETTERS else text[: MOST_LETTERS - 3] + "..."
