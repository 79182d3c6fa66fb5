"""A sequence of Vars, compared by identity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar, overload

from reactgrad._errors import DTypeError
from reactgrad.nodes._handle import Handle
from reactgrad.scheduler import safe_repr

V_co = TypeVar("V_co", bound=Handle, covariant=True)


class VarList(Sequence[V_co]):
    """An immutable sequence of Vars; ``in`` and ``==`` go by identity, not element by element.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input(1.0)
    >>> y = x + 1.0
    >>> y in g.forward(y).ran
    True
    """

    __slots__ = ("_vars",)

    def __init__(self, variables: Sequence[V_co]) -> None:
        self._vars = tuple(variables)

    def __len__(self) -> int:
        return len(self._vars)

    @overload
    def __getitem__(self, index: int) -> V_co: ...
    @overload
    def __getitem__(self, index: slice) -> VarList[V_co]: ...
    def __getitem__(self, index: int | slice) -> V_co | VarList[V_co]:
        if isinstance(index, slice):
            return VarList(self._vars[index])
        if isinstance(index, str):
            raise DTypeError(
                f"[{safe_repr(index)}] of a list of Vars: its elements are found by position. A node is found by its "
                f"name in its graph, g[{safe_repr(index)}]."
            )
        return self._vars[index]

    def __iter__(self) -> Iterator[V_co]:
        return iter(self._vars)

    def __contains__(self, item: object) -> bool:
        return any(var is item for var in self._vars)

    def index(self, value: Any, start: int = 0, stop: int | None = None) -> int:
        """Return the position of a Var, found by identity.

        Raises
        ------
        ValueError
            If it is not in the list.
        """
        for i, var in list(enumerate(self._vars))[start:stop]:
            if var is value:
                return i
        raise ValueError("this Var is not in the list")

    def count(self, value: Any) -> int:
        """Return how often the Var is in the list, by identity."""
        return sum(var is value for var in self._vars)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, VarList | tuple | list):
            return len(other) == len(self) and all(a is b for a, b in zip(self, other, strict=True))
        return NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(map(id, self._vars)))

    def __repr__(self) -> str:
        return names_text(self._vars)


def names_text(variables: Sequence[Handle], most: int = 12) -> str:
    """Return the names of Vars as text, with at most ``most`` of them."""
    names = [var.label for var in variables[:most]]
    more = len(variables) - len(names)
    return f"[{', '.join(names)}{f', ... {more} more' if more else ''}]"
