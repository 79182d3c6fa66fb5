"""Subscripts of einsum: the forms in which they are written, and the one in which they are compared."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from reactgrad._errors import ParameterError, ShapeError
from reactgrad.scheduler import safe_repr

# Labels of axes: those that can be written, and those of the axes that `...` stands for.
LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ELLIPSIS: Final = "".join(map(chr, range(0x0391, 0x0391 + 64)))


class Subscripts(NamedTuple):
    """A label for each axis of each operand and of the result; a label may stand twice in an operand."""

    terms: tuple[str, ...]
    result: str


def written(operands: Sequence[Any]) -> tuple[str, list[Any]]:
    """Return the subscripts as text, and the arrays, of both forms of einsum's arguments.

    Raises
    ------
    DTypeError
        If there are no operands, or the axes of one are not written as a list of integers and ``...``.
    """
    if not operands:
        raise ParameterError(
            'einsum: write the subscripts and the operands, as in einsum("ij,jk", a, b).'
        )
    if isinstance(operands[0], str):
        return operands[0], list(operands[1:])
    if len(operands) < 2:
        raise ParameterError(
            "einsum without a text of subscripts: each operand is followed by the list of its axes, as in "
            "einsum(a, [0, 1], b, [1, 2], [0, 2])."
        )
    count = len(operands) // 2
    text = ",".join([_list_text(operands[2 * i + 1]) for i in range(count)])
    if len(operands) % 2:
        text += "->" + _list_text(operands[-1])
    return text, [operands[2 * i] for i in range(count)]


def _list_text(axes: Any) -> str:
    try:
        return "".join(["..." if one is Ellipsis else LETTERS[_index(one)] for one in axes])
    except (TypeError, AttributeError, IndexError):
        raise ParameterError(
            f"einsum: axes {safe_repr(axes):.60}; they are a list of integers from 0 to {len(LETTERS) - 1} and ... ."
        ) from None


def _index(label: Any) -> int:
    number = int(label.__index__())
    if number < 0:
        raise IndexError
    return number


@lru_cache(maxsize=4096)
def parsed(text: str, ndims: tuple[int | None, ...]) -> Subscripts:
    """Return the subscripts with a label for each axis, also for those that ``...`` stands for.

    Parameters
    ----------
    text
        As a caller has written it; without ``->`` the result has the labels that stand once, sorted.
    ndims
        The number of axes of each operand; ``None`` for one that is not known, where `text` has no ``...``.

    Raises
    ------
    ShapeError
        If the text is no list of subscripts, or does not fit the operands.
    """
    inputs, arrow, result = text.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if len(terms) != len(ndims):
        raise ShapeError(
            f"einsum({text!r}) has subscripts for {len(terms)} operands, and got {len(ndims)}."
        )
    for term in (*terms, result):
        _check_letters(text, term)
    widths = [
        0 if n is None else _width(text, i, term, n)
        for i, (term, n) in enumerate(zip(terms, ndims, strict=True))
    ]
    most = max(widths)
    full = [
        term.replace("...", _ELLIPSIS[most - width : most])
        for term, width in zip(terms, widths, strict=True)
    ]
    joined = "".join(terms).replace("...", "")
    if not arrow:
        result = "..." + "".join(sorted({one for one in joined if joined.count(one) == 1}))
    elif "..." not in result and most:
        raise ShapeError(
            f"einsum({text!r}): the result has to have the axes that ... stands for in the operands; "
            "write ... in the result, too, and sum over them afterwards if that is meant."
        )
    for one in result.replace("...", ""):
        if one not in joined or result.count(one) > 1:
            raise ShapeError(
                f"einsum({text!r}): label {one!r} of the result must stand in an operand, and once in the "
                "result."
            )
    return Subscripts(tuple(full), result.replace("...", _ELLIPSIS[:most]))


def _check_letters(text: str, term: str) -> None:
    letters = term.replace("...", "", 1)
    wrong = [one for one in letters if one not in LETTERS]
    if wrong:
        raise ShapeError(
            f"einsum({text!r}): {wrong[0]!r} is no label; labels are letters, one for each axis, and ... "
            "for axes without a label."
        )


def _width(text: str, i: int, term: str, ndim: int) -> int:
    """Return the number of axes that ``...`` stands for."""
    named = len(term.replace("...", ""))
    if named != ndim if "..." not in term else named > ndim:
        raise ShapeError(
            f"einsum({text!r}): operand {i} has {ndim} axes, and its subscripts {term!r} name "
            f"{named}. Each axis has a label; ... stands for those without one."
        )
    return ndim - named


@lru_cache(maxsize=4096)
def canonical(first: str, second: str, result: str) -> str:
    """Return the subscripts of a product with labels by order of first appearance: ``ab,bc->ac``."""
    names: dict[str, str] = {}
    for one in first + second:
        names.setdefault(one, (LETTERS[26:] + LETTERS[:26] + _ELLIPSIS)[len(names)])
    first, second, result = (
        "".join([names[one] for one in term]) for term in (first, second, result)
    )
    return f"{first},{second}->{result}"


@lru_cache(maxsize=4096)
def split(subscripts: str) -> tuple[str, str, str]:
    """Return the labels of both operands and of the result of canonical subscripts."""
    operands, _, result = subscripts.partition("->")
    first, _, second = operands.partition(",")
    return first, second, result
