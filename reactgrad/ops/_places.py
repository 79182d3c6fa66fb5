"""The parts of an index, normalised, and the operands among them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from reactgrad.backend import along_key, numbers_in


class Slot:
    """The place of an operand in an index.

    Attributes
    ----------
    number
        The operand's place among those of the index.
    mode
        ``"raise"``, ``"wrap"`` or ``"clip"``: the meaning of integers that are no index.
    axis
        ``None`` where the operand is an index as in NumPy. Else it has as many axes as the indexed value,
        and holds numbers along this axis: each names an element of the row in which it stands itself.
    short
        Of such numbers: true if an axis may be shorter than that of the value and then stands for its
        beginning; else axes of length 1 are repeated.
    """

    __slots__ = ("axis", "mode", "number", "short")

    def __init__(
        self, number: int, mode: str = "raise", axis: int | None = None, short: bool = False
    ) -> None:
        self.number = number
        self.mode = mode
        self.axis = axis
        self.short = short

    def key(self) -> tuple[Any, ...]:
        """Return what tells this place from others."""
        return ("slot", self.number, self.mode, self.axis, self.short)


class Index:
    """A normalised index: a tuple of parts, whose arrays are read-only.

    ``None`` stands for a new axis, a ``Slot`` for the operand that is the index there. Indices are equal if
    their parts are; one with arrays is equal only to itself.

    Attributes
    ----------
    basic
        True if it gives a view.
    count
        The number of operands.
    row
        The axis along which it takes whole rows, counted from the end if negative; ``None`` if it does more.
    along
        Its only part, if that is a ``Slot`` with an axis.
    first
        The number of integers and arrays of them that it begins with, if all other axes are whole and it is no
        index of rows; else 0.
    """

    __slots__ = ("along", "basic", "count", "first", "key", "parts", "row")

    def __init__(self, parts: tuple[Any, ...]) -> None:
        self.parts = parts
        self.along: Slot | None = None
        self.row: int | None = None
        self.first = 0
        arrays = [i for i, p in enumerate(parts) if isinstance(p, np.ndarray | Slot)]
        self.basic = not arrays
        self.count = 0  # of operands
        if arrays:
            slots = [p for p in parts if isinstance(p, Slot)]
            self.count = len(slots)
            if slots and slots[0].axis is not None:
                self.along = slots[0]
            elif len(arrays) == 1:
                self.row = _row(parts, arrays[0])
            if self.row is None and self.along is None:
                self.first = _first(parts, arrays[-1] + 1)
        self.key: object = (
            id(self) if len(arrays) > self.count else tuple([_part_key(p) for p in parts])
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Index) and self.key == other.key

    def __hash__(self) -> int:
        if isinstance(self.key, int):
            raise TypeError("an index that holds arrays is not hashable")
        return hash(self.key)

    def __repr__(self) -> str:
        return f"[{', '.join(map(_part_text, self.parts))}]"

    def filled(self, operands: Sequence[Any], shape: Sequence[int]) -> tuple[Any, ...]:
        """Return the index of a value of this shape, with the values of its operands in place."""
        key: list[Any] = []
        for at, part in enumerate(self.parts):
            if not isinstance(part, Slot):
                key.append(part)
            elif part.axis is None:
                axis = self.axis_of(at, shape)
                key.append(numbers_in(operands[part.number], part.mode, shape, axis))
            else:
                key += along_key(operands[part.number], part, shape)
        return tuple(key)

    def arrays(self, operands: Sequence[Any]) -> list[Any]:
        """Return the arrays and the values of operands in this index; `operands` are those of the index."""
        return [*operands, *[p for p in self.parts if isinstance(p, np.ndarray)]]

    def numbers(self, operands: Sequence[Any]) -> tuple[Any, str]:
        """Return the numbers of an index of whole rows, or along an axis, and their mode.

        `operands` are those of the index.
        """
        for part in self.parts:
            if isinstance(part, Slot):
                return operands[part.number - 1], part.mode
            if isinstance(part, np.ndarray):
                return part, "raise"
        raise AssertionError("a basic index has no numbers")

    def axis_of(self, at: int, shape: Sequence[int]) -> int:
        """Return the axis that the part at this place indexes."""
        behind = [p for p in self.parts[at + 1 :] if p is not None and p is not Ellipsis]
        if any(p is Ellipsis for p in self.parts[:at]):
            return len(shape) - 1 - sum(map(width, behind))
        return sum(width(p) for p in self.parts[:at] if p is not None)


def _row(parts: tuple[Any, ...], at: int) -> int | None:
    """Return the axis that the array at this place indexes, if all other axes are whole."""
    one = parts[at]
    whole = all(map(_is_whole, (*parts[:at], *parts[at + 1 :])))
    if not whole or (isinstance(one, np.ndarray) and one.dtype.kind not in "iu"):
        return None
    if any(p is Ellipsis for p in parts[:at]):
        return at - len(parts)
    return at


def _first(parts: tuple[Any, ...], count: int) -> int:
    """Return `count` if all parts before it are integers or arrays of them and all others are whole axes."""
    many = all(
        isinstance(p, int | Slot) or (isinstance(p, np.ndarray) and p.dtype.kind in "iu")
        for p in parts[:count]
    )
    return count if many and all(map(_is_whole, parts[count:])) else 0


def _is_whole(part: Any) -> bool:
    return part is Ellipsis or (isinstance(part, slice) and part == slice(None))


def width(part: Any) -> int:
    """Return how many axes a part indexes."""
    return part.ndim if isinstance(part, np.ndarray) and part.dtype.kind == "b" else 1


def _part_key(part: Any) -> Any:
    if isinstance(part, slice):
        return (part.start, part.stop, part.step, "slice")
    return part.key() if isinstance(part, Slot) else part


def _part_text(part: Any) -> str:
    if isinstance(part, slice):
        ends = ["" if e is None else str(e) for e in (part.start, part.stop, part.step)]
        return ":".join(ends if part.step is not None else ends[:2])
    if isinstance(part, np.ndarray):
        return f"{part.dtype.name}{list(part.shape)}"
    return (
        {None: "None", Ellipsis: "..."}.get(part, str(part))
        if not isinstance(part, Slot)
        else "Var"
    )


@lru_cache(maxsize=256)
def rows_at(axis: int, mode: str = "raise") -> Index:
    """Return the index of rows along an axis whose numbers an operand holds; negative axes count from the end."""
    if axis < 0:
        return Index((Ellipsis, Slot(1, mode), *[slice(None)] * (-axis - 1)))
    return Index((*[slice(None)] * axis, Slot(1, mode)))


@lru_cache(maxsize=256)
def along(axis: int, short: bool = False) -> Index:
    """Return the index of elements along an axis whose numbers an operand holds, see ``Slot``."""
    return Index((Slot(1, "raise", axis, short),))
