"""All or nothing: what open transactions have changed, and edits that can be taken back exactly.

A failed *edit* never was: ``Former`` has the rows of its nodes, and they are put back as they were.
A failed *transaction* was: others may have been computed from what it changed. Taking it back is a
change like any other, so that versions only grow (rule E7); ``Notes`` says what to change back.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable
from contextlib import contextmanager
from typing import NamedTuple

from reactgrad_scheduler import order
from reactgrad_scheduler.errors import BlockError

# What was noted: by key, the state that the transaction found.
Noted = dict[Hashable, object]


class Notes:
    """What the open transactions have changed, as they found it; innermost last.

    Each thing is noted once in a transaction, before its first change there.

    Attributes
    ----------
    open : list
        The notes of each open transaction.
    giving_back : bool
        Whether what happens now gives back what a transaction that failed has changed.
    """

    __slots__ = ("_void", "giving_back", "open")

    def __init__(self) -> None:
        self.open: list[Noted] = []
        self.giving_back = False
        self._void: tuple[Noted, ...] = ()  # of those that are open, around which one has ended

    def __bool__(self) -> bool:
        """Whether a transaction is open."""
        return bool(self.open)

    def wants(self, key: Hashable) -> bool:
        """Whether a transaction is open that has not noted this yet."""
        return bool(self.open) and not self.giving_back and key not in self.open[-1]

    def note(self, key: Hashable, before: object) -> None:
        """Remember how something was that is about to change for the first time."""
        if self.wants(key):
            self.open[-1][key] = before

    @contextmanager
    def aside(self) -> Generator[None]:
        """Note nothing in a block: for what belongs to nodes that were just made."""
        former, self.open = self.open, []
        try:
            yield
        finally:
            self.open = former

    @contextmanager
    def transaction(self, give_back: Callable[[Noted], None]) -> Generator[None]:
        """Keep what the block does if it ends normally; else give back what was noted in it.

        A transaction inside another one hands its notes to the outer one when it ends.

        Raises
        ------
        BlockError
            At the end, if they end out of order; then neither keeps what it did.
        """
        noted: Noted = {}
        try:
            self.open.append(noted)
            yield
            if self.open[-1] is not noted or any(one is noted for one in self._void):
                raise BlockError.of("a transaction")
            if len(self.open) > 1:
                outer = self.open[-2]
                for key, before in noted.items():
                    outer.setdefault(key, before)
            del self.open[-1:]  # now it cannot fail any more
        except BaseException:
            at = next((i for i, one in enumerate(self.open) if one is noted), len(self.open))
            inside = self.open[at + 1 :]
            for inner in inside:
                for key, before in inner.items():
                    noted.setdefault(key, before)
                inner.clear()
            self._void = tuple([one for one in (*self._void, *inside) if one is not noted])
            self.giving_back = True  # an outer transaction has noted it, or never saw it changed
            try:
                give_back(noted)
            finally:
                self.giving_back = False
                # Last: as long as it is open, nobody reads without the lock.
                self.open[at : at + 1] = []
            raise


class Link(NamedTuple):
    """What a node is computed from.

    ``fixed``: how many of the parents are its operands, where it read the others while it ran.
    """

    parents: tuple[int, ...]
    fixed: int | None = None

    @property
    def operands(self) -> tuple[int, ...]:
        """The parents that the node did not find by itself."""
        return self.parents[: self.fixed]

    def rewired(self, operands: tuple[int, ...]) -> Link:
        """Other operands, and the same reads."""
        if self.fixed is None:
            return Link(operands)
        reads = [parent for parent in self.parents[self.fixed :] if parent not in operands]
        return Link((*operands, *reads), len(operands)) if reads else Link(operands)


# What is known of the value of a node: how many of its parents are fixed, its version, its record, whether
# it is forced, what it raised, whether its value was released.
Row = tuple[int | None, int, tuple[int, ...] | None, bool, object, bool]


class Former(order.Former):
    """Nodes as they were before ``Scheduler.relink``, noted before anything changes.

    ``outdated``: whether they have become stale since (``Scheduler.outdate``).
    """

    __slots__ = ("outdated", "rows")

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[int, Row] = {}
        self.outdated = False
