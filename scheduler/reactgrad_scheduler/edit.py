"""Transactions, and edits that can be taken back exactly.

A failed *edit* leaves no trace: ``Former`` has the rows of its nodes, and they are put back as they were.
A failed *transaction* has happened: nodes may have been computed from its changes. Taking it back is a
change like any other, so that versions only grow (rule E7). ``Notes`` has the former states.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable
from typing import NamedTuple

from reactgrad_scheduler import order
from reactgrad_scheduler.block import block
from reactgrad_scheduler.errors import BlockError
from reactgrad_scheduler.mending import is_stray


class Noted(dict[Hashable, object]):
    """By key: the state that a transaction found.

    Attributes
    ----------
    give_back
        Takes back all that was noted.
    failed : bool
        True once the transaction has failed, until everything is taken back.
    """

    __slots__ = ("failed", "give_back")

    def __init__(self, give_back: Callable[[Noted], None]) -> None:
        super().__init__()
        self.give_back = give_back
        self.failed = False


class Notes:
    """The former states of all that the open transactions have changed; the innermost is last.

    Each thing is noted once in a transaction, before its first change there.

    Attributes
    ----------
    open : list
        The notes of each open transaction.
    giving_back : bool
        True while the changes of a failed transaction are taken back.
    """

    __slots__ = ("_void", "giving_back", "open")

    def __init__(self) -> None:
        self.open: list[Noted] = []
        self.giving_back = False
        # Open transactions that must fail at their end: one around them has ended before.
        self._void: tuple[Noted, ...] = ()

    def __bool__(self) -> bool:
        """Return whether a transaction is open."""
        return bool(self.open)

    def wants(self, key: Hashable) -> bool:
        """Return whether a transaction is open that has not noted this yet."""
        return bool(self.open) and not self.giving_back and key not in self.open[-1]

    def note(self, key: Hashable, before: object) -> None:
        """Note the former state of a thing that is about to change, if it is the first change."""
        if self.wants(key):
            self.open[-1][key] = before

    @block
    def aside(self) -> Generator[None]:
        """Note nothing in a block: for changes of nodes that were just made."""
        former, self.open = self.open, []
        try:
            yield
        finally:
            self.open = former

    def break_off(self, give_back: Callable[[Noted], None]) -> None:
        """Take back all open transactions, before their blocks end; these raise then."""
        noted = Noted(give_back)
        noted.failed = True
        self.open.insert(0, noted)  # around all of them
        self._take_back(noted)
        self.open.clear()

    @block
    def transaction(self, give_back: Callable[[Noted], None]) -> Generator[None]:
        """Keep the changes of the block if it ends normally, else take back all that was noted in it.

        A transaction inside of another one hands its notes to the outer one when it ends.

        Raises
        ------
        BlockError
            At the end, if transactions end out of order; none of them keeps its changes then.

        Notes
        -----
        After a stray error the tables must be mended first; then ``finish`` takes back.
        """
        noted = Noted(give_back)
        try:
            try:
                self.open.append(noted)
                yield
                if (
                    not self.open
                    or self.open[-1] is not noted
                    or any(one is noted for one in self._void)
                ):
                    raise BlockError.of("a transaction")
                if len(self.open) > 1:
                    outer = self.open[-2]
                    for key, before in noted.items():
                        outer.setdefault(key, before)
                del self.open[-1:]  # from here on nothing can fail
            except BaseException as error:
                noted.failed = True  # first and without a call: if the rest fails, `finish` does it
                if not is_stray(error):
                    self._take_back(noted)
                raise
        finally:  # also where a stray error came as another one was about to be handled
            noted.failed = any(one is noted for one in self.open)

    def _take_back(self, noted: Noted) -> None:
        """Take back what a failed transaction has noted, and what those inside of it have."""
        at = next((i for i, one in enumerate(self.open) if one is noted), len(self.open))
        inside = self.open[at + 1 :]
        for inner in inside:
            for key, before in inner.items():
                noted.setdefault(key, before)
            inner.clear()
        self._void = tuple([one for one in (*self._void, *inside) if one is not noted])
        self.giving_back = True  # nothing new to note: outer transactions have their own notes
        try:
            noted.give_back(noted)
        except Exception as error:
            noted.failed = is_stray(error)  # else it would fail again and again
            raise
        else:
            noted.failed = False
        finally:
            self.giving_back = False
            if not noted.failed:
                # Last: while it is open, no reader skips the lock.
                self.open[at : at + 1] = []

    def finish(self) -> None:
        """Take back what failed transactions have left since they were cut short."""
        for noted in [one for one in reversed(self.open) if one.failed]:
            self._take_back(noted)


class Link(NamedTuple):
    """The parents of a node.

    ``fixed`` is the number of them that are operands, if the others were read while the node ran.
    """

    parents: tuple[int, ...]
    fixed: int | None = None

    @property
    def operands(self) -> tuple[int, ...]:
        """The parents that the node was built on."""
        return self.parents[: self.fixed]

    def rewired(self, operands: tuple[int, ...]) -> Link:
        """Return a link with other operands and the same reads."""
        if self.fixed is None:
            return Link(operands)
        reads = [parent for parent in self.parents[self.fixed :] if parent not in operands]
        return Link((*operands, *reads), len(operands)) if reads else Link(operands)


# A node as it was computed last before an edit: its serial, its version, its parents, and its record.
Edited = tuple[int, int, tuple[int, ...], tuple[int, ...]]

# The entries of a node: the number of its operands if it reads others, its version, its record, whether
# it is forced, its error, whether its value was released.
Row = tuple[int | None, int, tuple[int, ...] | None, bool, object, bool]


class Former(order.Former):
    """Nodes as they were before ``Scheduler.relink``, noted before anything changes.

    ``outdated`` is true once they have become stale (``Scheduler.outdate``).
    """

    __slots__ = ("outdated", "rows")

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[int, Row] = {}
        self.outdated = False
