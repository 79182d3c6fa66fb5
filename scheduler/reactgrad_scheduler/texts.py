"""Texts of limited length for messages, whatever names and values are in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import cast

MOST_LETTERS = 2000  # of a message
MOST_OF_A_WORD = 100  # of a name or value in a message that gets too long otherwise
_name = type.__dict__["__name__"].__get__  # whatever a metaclass makes of attributes
_LONG = re.compile(rf"\S{{{2 * MOST_OF_A_WORD},}}")


def shortened(text: str, most: int) -> str:
    """Return a text of at most about `most` letters: the middle of a longer one is counted instead.

    Examples
    --------
    >>> shortened("a" * 1_000_000, 8)
    'aaaa...(999,992 letters)...aaaa'
    """
    left_out = len(text) - most
    if left_out <= 0:
        return text
    half = most // 2
    return f"{text[: most - half]}...({left_out:,} letters)...{text[len(text) - half :]}"


def fitting(text: str) -> str:
    """Return a text that fits a message: long words are shortened first, then the whole.

    Examples
    --------
    >>> len(fitting("the name " + "a" * 10**6 + " is taken."))
    142
    """
    if len(text) <= MOST_LETTERS:
        return text
    text = _LONG.sub(lambda word: shortened(word[0], MOST_OF_A_WORD), text)
    return shortened(text, MOST_LETTERS)


def listed(names: Iterable[str], joint: str = ", ", most: int = 12) -> str:
    """Return names in a row; of many the first and last ones, with the number of the others.

    Examples
    --------
    >>> listed("abcdefgh", " -> ", most=4)
    'a -> b -> (4 more) -> g -> h'
    """
    each = [shortened(name, MOST_OF_A_WORD) for name in names]
    if len(each) > most:
        half = most // 2
        each[half : len(each) - half] = [f"({len(each) - 2 * half:,} more)"]
    return joint.join(each)


def safe_repr(value: object) -> str:
    """Return ``repr(value)``, or a text with the type if that raises, as for very large integers.

    Examples
    --------
    >>> safe_repr([1]), safe_repr(10**6000), safe_repr((2, 10**6000))
    ('[1]', '<int of 19932 bits>', '(2, <int of 19932 bits>)')
    """
    return _repr(value, 4)


def _repr(value: object, depth: int) -> str:
    """Return the same; lists and tuples that hold what raises are written to this depth."""
    try:
        return repr(value)
    except Exception as error:
        if isinstance(value, int):
            return f"<int of {value.bit_length()} bits>"
        if depth and isinstance(value, tuple | list):
            some = cast("Sequence[object]", value)
            inside = ", ".join([_repr(one, depth - 1) for one in some])
            if isinstance(value, list):
                return f"[{inside}]"
            return f"({inside},)" if len(some) == 1 else f"({inside})"
        return f"<{type(value).__name__}, whose repr raises {type(error).__name__}>"


def error_text(error: BaseException) -> str:
    """Return an exception as ``"Type: message"``, or its type alone if it has none or its ``str`` raises.

    Examples
    --------
    >>> error_text(ValueError("no")), error_text(ValueError())
    ('ValueError: no', 'ValueError')
    """
    try:
        text = str(error)
    except Exception as other:
        text = f"<whose str raises {type(other).__name__}>"
    name = _name(type(error))
    return f"{name}: {text}" if text else name
