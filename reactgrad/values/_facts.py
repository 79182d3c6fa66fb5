"""Facts about nodes: the tables of a graph, each declared once, in the body of the class that has it.

A fact is a plain attribute: a column with a row for each node, or a table of those nodes that have an
entry. Whatever is done with facts alike goes over the declarations: they begin empty, are cleared when
a node goes, are taken over by forks, and tell whether a node is still as it was built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple

from reactgrad.scheduler import Blank, share


class Fact(NamedTuple):
    """The declaration of a fact.

    Attributes
    ----------
    kind
        Makes an empty column or table: ``list``, ``dict`` or ``set``.
    row
        In a column, the row of a new node.
    forked
        True if a fork begins with what its origin has.
    cleared
        True if the entry of a node is removed with the node, and nothing else is to be done then.
    added
        True if callers add it to nodes that exist: such a node is not as it was built any more.
    """

    kind: Callable[[], Any]
    row: Any = None
    forked: bool = True
    cleared: bool = True
    added: bool = False


def column(row: Any, *, forked: bool = True) -> Any:
    """Declare a column in which a new node has this row."""
    return Fact(list, row, forked)


def table(
    kind: Callable[[], Any], *, forked: bool = True, cleared: bool = True, added: bool = False
) -> Any:
    """Declare a table, a ``dict`` or ``set`` by slots; see ``Fact``."""
    return Fact(kind, None, forked, cleared, added)


def put(entries: Any, slot: int, entry: Any) -> None:
    """Write the entry of a node into a table; remove it if it is ``None``, empty or false."""
    if type(entries) is set:
        (entries.add if entry else entries.discard)(slot)
    elif entry:
        entries[slot] = entry
    else:
        entries.pop(slot, None)


def part(entries: Any, slots: Iterable[int]) -> dict[int, Any]:
    """Return the entries that a table has for these nodes."""
    if type(entries) is set:
        return dict.fromkeys(entries.intersection(slots), True)
    return {slot: entries[slot] for slot in entries.keys() & slots}


class Facts:
    """The base of a class whose body declares facts.

    Invariant: a table that is cleared with its node stays one object as long as the graph lives; a column is
    another one after a fork.
    """

    _facts: ClassVar[dict[str, Fact]] = {}
    _columns: ClassVar[list[tuple[str, Any, bool]]]  # with the row of a new node, and ``forked``
    _rows: ClassVar[attrgetter[Any]]
    _defaults: ClassVar[list[Any]]
    # Functions that return the tables to clear, to fork, and of what callers add: half the time of a
    # look-up for each.
    _cleared: ClassVar[attrgetter[Any]]
    _forked: ClassVar[attrgetter[Any]]
    addable: ClassVar[attrgetter[Any]]
    _addable: ClassVar[list[str]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = {name: fact for name, fact in vars(cls).items() if isinstance(fact, Fact)}
        for name in own:
            delattr(cls, name)  # reading the attribute finds nothing in the class, as of any other
        facts = cls._facts = {**cls._facts, **own}
        tables = {name: fact for name, fact in facts.items() if fact.kind is not list}
        cls._columns = [(name, *facts[name][1:3]) for name in facts if name not in tables]
        cls._rows = attrgetter(*[name for name, _, _ in cls._columns])
        cls._defaults = [row for _, row, _ in cls._columns]
        cls._cleared = attrgetter(*[name for name, fact in tables.items() if fact.cleared])
        cls._forked = attrgetter(*[name for name, fact in tables.items() if fact.forked])
        cls._addable = [name for name, fact in tables.items() if fact.added]
        cls.addable = attrgetter(*cls._addable)

    def __init__(self) -> None:
        for name, fact in self._facts.items():
            setattr(self, name, fact.kind())
        self._to_clear: tuple[Any, ...] = self._cleared(self)  # tables stay the same objects

    def extend(self, rows: int) -> None:
        """Add rows with the defaults of a new node."""
        for name, row, _ in self._columns:
            getattr(self, name).extend([row] * rows)

    def clear(self, slot: int) -> None:
        """Clear the rows of a node that is gone."""
        for rows, row in zip(self._rows(self), self._defaults):
            rows[slot] = row
        for entries in self._to_clear:  # most are empty, which is faster to see than what they hold
            if entries and slot in entries:
                put(entries, slot, None)

    def lend(self, twin: Facts) -> None:
        """Share the facts with a fork, which has none yet."""
        for mine, its in zip(self._forked(self), self._forked(twin)):
            if mine:
                its.update(mine)
        for name, row, forked in self._columns:
            mine = getattr(self, name)
            if forked:
                mine, its = share(mine)
                setattr(self, name, mine)
            else:
                its = Blank(len(mine), row)
            setattr(twin, name, its)

    def added(self, slots: Iterable[int]) -> dict[str, dict[int, Any]]:
        """Return what these nodes have that callers add to nodes, by fact and node."""
        tables = self.addable(self)
        if not any(tables):
            return {}
        found = {name: part(one, slots) for name, one in zip(self._addable, tables) if one}
        return {name: entries for name, entries in found.items() if entries}
