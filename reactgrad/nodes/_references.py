"""Counts of references, which tell whether anything outside holds an object.

What ``sys.getrefcount`` includes differs between versions of Python. So each count is measured once, on
an object of which all references are known, in the same way as it is taken.
"""

from __future__ import annotations

import sys
from typing import Any


def references(holder: Any, key: Any) -> int:
    """Return the number of references to ``holder[key]`` besides that of the holder."""
    return sys.getrefcount(holder[key]) - _HELD


_HELD = 0
_HELD = references([object()], 0)


def _references_of_a_call() -> int:
    def count(result: object) -> int:
        return sys.getrefcount(result)

    result = object()
    return count(result)


# The count that a function takes of an argument to which only a variable of its caller refers.
OF_A_CALL = _references_of_a_call()


def holders(thing: object) -> int:
    """Return the number of references to `thing` besides one variable of the caller."""
    return sys.getrefcount(thing) - OF_A_CALL
