"""Rows by input, the most important first: what rankings of all kinds can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from html import escape
from typing import Any, Generic, Protocol, TypeVar

import reactgrad as rg
from reactgrad._attributes import OwnAttributes
from reactgrad._habits import answer
from reactgrad._names_of_pandas import OF_RANKINGS
from reactgrad.whatif._errors import ScenarioError
from reactgrad.whatif._table import pandas


class Row(Protocol):
    """A row of a ranking."""

    @property
    def input(self) -> str:
        """The label of its input."""
        ...


R = TypeVar("R", bound=Row)


class Ranking(OwnAttributes, ABC, Generic[R]):
    """Rows in order, which are also found by their inputs."""

    @property
    @abstractmethod
    def rows(self) -> tuple[R, ...]:
        """The rows, in order."""

    @abstractmethod
    def columns(self) -> dict[str, list[Any]]:
        """Return the rows as columns by title."""

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[R]:
        return iter(self.rows)

    def __getitem__(self, key: rg.Var | str | int) -> R:
        """Return the row of an input, or at a place of the ranking."""
        rows = self.rows
        if isinstance(key, int):
            return rows[key]
        label = key if isinstance(key, str) else key.label
        for row in rows:
            if row.input == label:
                return row
        raise ScenarioError(self._absent(label, rows))

    def _absent(self, label: str, rows: tuple[R, ...]) -> str:
        """Return what to say of an input that has no row."""
        near = [row.input for row in rows if row.input.startswith(f"{label}[")]
        names = near or [row.input for row in rows]
        more = f" and {len(names) - 8} more" if len(names) > 8 else ""
        what = (
            f"Rows of its elements are {', '.join(names[:8])}"
            if near
            else f"Rows are {', '.join(names[:8])}"
        )
        return f"there is no row {label!r}. {what}{more}."

    def to_pandas(self) -> Any:
        """Return a DataFrame of the rows, with the input as its index."""
        return pandas("to_pandas").DataFrame(self.columns()).set_index("input")

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


answer(Ranking, "found", OF_RANKINGS)
