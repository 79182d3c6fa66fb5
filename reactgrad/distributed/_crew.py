"""Workers that each hold the same, and do pieces of work in turn until all are done."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, Self

from reactgrad._attributes import OwnAttributes
from reactgrad.distributed._errors import DistributedError
from reactgrad.distributed._places import Hosts, LostError, Place, hosts_of, start

# How many pieces of work each worker gets, if their number is known.
_PIECES = 8


class Crew(OwnAttributes):
    """The workers of a farm: one place on each.

    Parameters
    ----------
    client : distributed.Client, LocalHosts or int
    kind : type
        The class of what each place holds.
    given : object
        Its argument.
    workers : int, optional
    patience : float
    """

    def __init__(
        self, client: Any, kind: type, given: Any, workers: int | None, patience: float
    ) -> None:
        self._hosts: Hosts = hosts_of(client)
        self._kind, self._given, self._patience = kind, given, patience
        self._lock = threading.Lock()
        self._stopped: threading.Event | None = None
        self.lost: list[str] = []  # the workers that have died
        self.calls = 0
        names = self._hosts.names()[:workers]
        if not names:
            raise DistributedError(f"{type(self).__name__}: the cluster has no worker. Start some.")
        self._places: list[Place] = [self._hosts.place(name, kind, given) for name in names]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._places)

    def close(self) -> None:
        """Release what the workers hold."""
        self.cancel()
        for place in self._places:
            place.close()
        self._places = []

    def cancel(self) -> None:
        """Let the work under way end: nothing more is begun, and its iterator ends."""
        if self._stopped is not None:
            self._stopped.set()

    def _check_open(self) -> None:
        if not self._places:
            raise DistributedError("this farm is closed. Make a new one.")

    def _share(self, count: int | None) -> int:
        """Return how many of so many pieces one call takes."""
        return 1 if count is None else max(1, count // (_PIECES * len(self._places)))

    def _begin(self, place: Place) -> None:
        """Bring a new place up to date."""

    def _work(
        self, method: str, pieces: Iterator[Any], more: tuple[Any, ...], chunk: int
    ) -> Iterator[Any]:
        """Yield the results of all pieces in order, while workers are at the next ones."""
        self._check_open()
        work = _Work(self, method, pieces, more, chunk)
        self._stopped = work.stopped
        return work.results()

    def _replace(self, place: Place) -> Place | None:
        """Put another worker in the place of one that has died; ``None`` if others have to do its work.

        Raises
        ------
        DistributedError
            If no worker is left.
        """
        with self._lock:
            self.lost.append(place.host)
            others = [one.host for one in self._places if one is not place]
            try:
                # While others are at work, there is no need to wait long.
                patience = min(self._patience, 1.0) if others else self._patience
                new = start(
                    self._hosts, self._kind, lambda: self._given, {*others, place.host}, patience
                )
            except DistributedError:
                if not others:
                    raise
                self._places.remove(place)
                return None
            self._begin(new)
            self._places[self._places.index(place)] = new
        return new


class _Work:
    """One sweep: a thread for each worker takes the next piece until there is none.

    At most a few pieces are ahead of what the caller has taken, so endless iterables work, too. An error comes in the
    turn of its piece: pieces before it are computed, whoever is at them.
    """

    def __init__(
        self, crew: Crew, method: str, pieces: Iterator[Any], more: tuple[Any, ...], chunk: int
    ) -> None:
        self.crew, self.method, self.pieces, self.more, self.chunk = (
            crew,
            method,
            pieces,
            more,
            chunk,
        )
        self.stopped = threading.Event()
        self.changed = threading.Condition()
        self.number = self.taken = 0
        self.again: deque[tuple[int, list[Any]]] = deque()
        self.done: dict[int, list[Any]] = {}
        self.failed: tuple[int, BaseException] | None = None  # the first piece that raised
        self.exhausted = False
        self.at_work = 0

    def results(self) -> Iterator[Any]:
        """Yield results in order."""
        threads = [
            threading.Thread(target=self._serve, args=(place,), name=f"farm {i}", daemon=True)
            for i, place in enumerate(self.crew._places)
        ]
        for thread in threads:
            thread.start()
        try:
            while True:
                with self.changed:
                    while self.taken not in self.done:
                        if self.failed is not None and self.failed[0] <= self.taken:
                            raise self.failed[1]
                        if self.stopped.is_set() or self._is_over():
                            return
                        self.changed.wait(0.2)
                    values = self.done.pop(self.taken)
                    self.taken += 1
                    self.changed.notify_all()
                yield from values
        finally:
            self.stopped.set()
            with self.changed:
                self.changed.notify_all()

    def _is_over(self) -> bool:
        return self.exhausted and not self.again and not self.at_work and not self.done

    def _next(self) -> tuple[int, list[Any]] | None:
        """Return the number and the content of the next pieces; wait while too many are ahead."""
        with self.changed:
            while not self.stopped.is_set():
                if self.again:
                    found = self.again.popleft()
                    if self.failed is None or found[0] < self.failed[0]:
                        self.at_work += 1
                        return found
                    continue
                if self.exhausted:
                    if not self.at_work:  # else somebody may be lost, and leave a piece
                        self.changed.notify_all()
                        return None
                elif self.number - self.taken < 4 * len(self.crew._places):
                    piece = self._read()
                    if piece:
                        self.number += 1
                        self.at_work += 1
                        return self.number - 1, piece
                    self.exhausted = True
                    continue
                self.changed.wait(0.2)
            return None

    def _read(self) -> list[Any]:
        """Return the next pieces; none after an error of the iterable."""
        try:
            return list(islice(self.pieces, self.chunk))
        except BaseException as error:
            self._fail(self.number, error)
            return []

    def _fail(self, number: int, error: BaseException) -> None:
        """Begin nothing new, and let an error come in the turn of this piece; the caller holds the lock."""
        if self.failed is None or number < self.failed[0]:
            self.failed = number, error
        self.exhausted = True
        self.changed.notify_all()

    def _serve(self, place: Place) -> None:
        try:
            self._take_pieces(place)
        except BaseException as error:  # between two steps of the sweep: memory has run out
            with self.changed:
                self._fail(self.taken, error)
            with suppress(RuntimeError):  # it may have come where a block with the lock ends
                while True:
                    self.changed.release()

    def _take_pieces(self, place: Place) -> None:
        while (found := self._next()) is not None:
            number, piece = found
            try:
                values = place.call(self.method, piece, *self.more)
            except LostError:
                with self.changed:
                    self.again.append(found)  # another worker may take it meanwhile
                    self.at_work -= 1
                    self.changed.notify_all()
                try:
                    new = self.crew._replace(place)
                except BaseException as error:
                    with self.changed:
                        self._fail(number, error)
                    return
                if new is None:
                    return
                place = new
            except BaseException as error:
                with self.changed:
                    self.at_work -= 1
                    self._fail(number, error)
            else:
                with self.changed:
                    self.crew.calls += 1
                    self.at_work -= 1
                    self.done[number] = values
                    self.changed.notify_all()
