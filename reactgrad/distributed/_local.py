"""Ranks as threads of one process, with latency and lost messages for tests."""

from __future__ import annotations

import contextvars
import random
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from reactgrad._errors import ReactgradError
from reactgrad.distributed._errors import DistributedError, RankFailedError, RankTimeoutError
from reactgrad.distributed._reductions import combined, part
from reactgrad.distributed._request import Header, Request, check_together, in_words
from reactgrad.distributed._work import Pack, Traffic, Transport, Work

# How long ``run`` waits for ranks that have been told to end.
GRACE = 2.0


class Meeting:
    """One collective, as far as ranks have come to it.

    Attributes
    ----------
    ranks : tuple of int
        Who takes part, as numbers of the group.
    agreed, ready : float or None
        When all headers, and all data, will have arrived everywhere.
    """

    def __init__(self, ranks: tuple[int, ...]) -> None:
        self.ranks = ranks
        self.headers: dict[int, Header] = {}
        self.given: dict[int, np.ndarray] = {}
        self.agreed: float | None = None
        self.ready: float | None = None
        self.whole: Any = None
        self.left = len(ranks)

    @property
    def stale(self) -> bool:
        """True if an operand was stale on any of the ranks that came."""
        return any(header.stale for header in self.headers.values())


class World:
    """The state that the threads of one ``run`` share, guarded by ``changed``."""

    def __init__(self, size: int, latency: float, loss: float, timeout: float, seed: int) -> None:
        self.size, self.latency, self.loss, self.timeout = size, latency, loss, timeout
        self.changed = threading.Condition()
        self.meetings: dict[Any, Meeting] = {}
        self.failure: Callable[[], DistributedError] | None = None
        self.ended: set[int] = set()
        self.blocked: dict[int, tuple[Meeting, str]] = {}
        self._random = random.Random(seed)

    def travel(self, traffic: Traffic) -> float:
        """Return the seconds that a message takes; each time that it is lost it is sent again."""
        seconds = self.latency
        while self.loss and self._random.random() < self.loss:
            traffic.resent += 1
            seconds += 2 * self.latency  # until the sender knows
        return seconds

    def fail(self, failure: Callable[[], DistributedError]) -> None:
        """End what all ranks wait for, now and later."""
        with self.changed:
            if self.failure is None:
                self.failure = failure
            self.changed.notify_all()


class LocalWork(Work):
    """A collective that this thread has asked for."""

    def __init__(self, transport: LocalTransport, meeting: Meeting, key: Any, *given: Any) -> None:
        super().__init__(*given)
        self.transport, self.meeting, self.key = transport, meeting, key

    def deliver(self) -> None:
        """Give this rank's data to the meeting, if it is needed; the lock is held."""
        meeting, transport = self.meeting, self.transport
        rank = transport.rank
        if meeting.agreed is None or rank in meeting.given or not meeting.stale:
            return
        self.attach()
        assert self.given is not None
        meeting.given[rank] = self.given.copy()  # others take it when this rank has gone on
        transport.traffic.bytes += self.request.bytes_from(rank)
        transport.traffic.messages += 1
        if len(meeting.given) == len(meeting.ranks):
            arrays = [meeting.given[one] for one in meeting.ranks]
            meeting.whole = combined(self.request, arrays), arrays
            meeting.ready = time.monotonic() + transport.world.travel(transport.traffic)
            transport.world.changed.notify_all()

    def agree(self) -> bool:
        """Wait until all ranks have asked. Return whether an operand was stale on any."""
        world, meeting = self.transport.world, self.meeting
        with world.changed:
            self.transport.wait(self, lambda: meeting.agreed)
            if not meeting.stale:
                self.transport.traffic.skipped += 1
                self._leave()
            return meeting.stale

    def _wait(self) -> np.ndarray:
        world, meeting = self.transport.world, self.meeting
        with world.changed:
            self.transport.wait(self, lambda: meeting.ready)
            whole, arrays = meeting.whole
            result = part(self.request, self.transport.rank, whole, arrays)
            self._leave()
        return result

    def _leave(self) -> None:
        self.meeting.left -= 1
        if not self.meeting.left:
            self.transport.world.meetings.pop(self.key, None)
        self.transport.open.remove(self)


class LocalTransport(Transport):
    """The place of one thread among the ranks of a group."""

    def __init__(
        self, world: World, ranks: tuple[int, ...], rank: int, path: tuple[Any, ...]
    ) -> None:
        self.name = f"local:{len(ranks)}"
        self.world, self.ranks, self.rank, self.size = world, ranks, rank, len(ranks)
        self.timeout = world.timeout
        self.traffic = Traffic()
        self.open: deque[LocalWork] = deque()
        self._path = path
        self._numbers: dict[Any, int] = {}
        self._splits = 0

    def post(
        self, request: Request, pack: Pack, stale: bool, into: np.ndarray | None = None
    ) -> Work:
        """Ask the other ranks for a collective; returns without waiting."""
        world, participants = self.world, request.participants
        number = self._numbers.get(participants, 0)
        self._numbers[participants] = number + 1
        key = (self._path, participants, number)
        ranks = participants or tuple(range(self.size))
        with world.changed:
            self._check()
            meeting = world.meetings.get(key)
            if meeting is None:
                meeting = world.meetings[key] = Meeting(ranks)
        work = LocalWork(self, meeting, key, request, pack, stale)
        with world.changed:
            self.open.append(work)
            meeting.headers[self.rank] = Header(number, stale, request.digest, request.text())
            if len(meeting.headers) == len(ranks):
                try:
                    check_together(dict(sorted(meeting.headers.items())))
                except DistributedError as error:
                    text, asked = str(error), error.asked
                    world.fail(lambda: DistributedError(text, asked))
                    raise
                late = 0.0 if meeting.stale else world.latency
                meeting.agreed = time.monotonic() + late
                world.changed.notify_all()
            for one in self.open:
                one.deliver()
        return work

    def _check(self) -> None:
        if self.world.failure is not None:
            raise self.world.failure()

    def wait(self, work: LocalWork, arrived: Callable[[], float | None]) -> None:
        """Wait for a part of a meeting; the lock is held. All waits end, by an error if need be."""
        world, meeting = self.world, work.meeting
        me = self.ranks[self.rank]
        end = time.monotonic() + self.timeout
        while True:
            self._check()
            for one in self.open:
                one.deliver()
            at, now = arrived(), time.monotonic()
            if at is not None and at <= now:
                return
            if at is not None:
                world.changed.wait(at - now)
                continue
            missing = [r for r in meeting.ranks if r not in meeting.headers]
            gone = [r for r in missing if self.ranks[r] in world.ended]
            if gone:
                self._give_up(meeting, gone, "has ended", RankFailedError)
            world.blocked[me] = (meeting, work.request.text())
            try:
                alive = world.size - len(world.ended)
                if missing and len(world.blocked) == alive and self._all_stuck():
                    self._give_up_all()
                if now >= end:
                    late = missing or [r for r in meeting.ranks if r not in meeting.given]
                    waited = f"did not come within {self.timeout:g} s"
                    self._give_up(meeting, late, waited, RankTimeoutError)
                world.changed.wait(end - now)
            finally:
                world.blocked.pop(me, None)

    def _all_stuck(self) -> bool:
        """Return whether no rank waits for something that is under way."""
        return all(
            len(meeting.headers) < len(meeting.ranks) for meeting, _ in self.world.blocked.values()
        )

    def _give_up(self, meeting: Meeting, ranks: list[int], what: str, kind: Any) -> None:
        who = f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))}"
        asked = {rank: header.text for rank, header in meeting.headers.items()}
        text = (
            f"{who} {what}: {in_words(asked)}. Every rank must come to each collective; "
            "let all ranks read the same nodes, or leave the rank out by group.subgroup."
        )
        first = ranks[0]

        def failure() -> DistributedError:
            made = RankFailedError(text, first) if kind is RankFailedError else kind(text, asked)
            made.asked = asked
            return made

        self.world.fail(failure)
        raise failure()

    def _give_up_all(self) -> None:
        asked = {rank: text for rank, (_, text) in self.world.blocked.items()}
        text = (
            f"all ranks wait for each other: {in_words(asked)}. All ranks must ask for the same "
            "collectives in the same order."
        )
        self.world.fail(lambda: DistributedError(text, asked))
        raise DistributedError(text, asked)

    def split(self, color: int | None, colors: list[int | None]) -> Transport | None:
        """Return the transport among the ranks of the same color."""
        self._splits += 1
        if color is None:
            return None
        members = [rank for rank, one in enumerate(colors) if one == color]
        ranks = tuple([self.ranks[rank] for rank in members])
        path = (*self._path, self._splits, color)
        return LocalTransport(self.world, ranks, members.index(self.rank), path)

    def fail(self, error: BaseException) -> None:
        """Tell the other ranks that this one has raised."""
        rank, text = self.ranks[self.rank], "".join(traceback.format_exception(error))
        message = f"rank {rank} raised {type(error).__name__}, so this rank ends, too.\n{text}"
        self.world.fail(lambda: RankFailedError(message, rank))

    def close(self, *given: Any) -> None:
        """Tell the other ranks that this one comes no more."""
        with self.world.changed:
            self.world.ended.add(self.ranks[self.rank])
            self.world.changed.notify_all()


def run_threads(world: World, call: Callable[[LocalTransport], Any]) -> list[Any]:
    """Call a function on each rank, in a thread each. Return the results by rank.

    Raises
    ------
    Exception
        What the first rank that failed has raised, with its traceback.
    """
    results: list[Any] = [None] * world.size
    errors: list[tuple[int, BaseException]] = []

    def body(rank: int) -> None:
        transport = LocalTransport(world, tuple(range(world.size)), rank, ())
        try:
            results[rank] = call(transport)
        except BaseException as error:
            errors.append((rank, error))
            transport.fail(error)
        finally:
            transport.close()

    threads = []
    for rank in range(world.size):
        context = contextvars.copy_context()
        thread = threading.Thread(
            target=context.run, args=(body, rank), name=f"rank {rank}", daemon=True
        )
        threads.append(thread)
        thread.start()
    left = _join(world, threads)
    if errors:
        # A rank that ended because of another one is not the cause.
        causes = [one for one in errors if not isinstance(one[1], RankFailedError)]
        rank, error = (causes or errors)[0]
        if not isinstance(error, DistributedError):
            error.add_note(f"raised on rank {rank} of {world.size}")
        if left and isinstance(error, ReactgradError):
            error.add_note(f"still at work, and left behind: {', '.join(left)}")
        try:
            raise error
        finally:
            del error, causes
            errors.clear()
    return results


def _join(world: World, threads: list[threading.Thread]) -> list[str]:
    """Wait for the threads, not long once one has failed. Return the names of those still at work."""
    end: float | None = None
    while any(thread.is_alive() for thread in threads):
        if end is None and world.failure is not None:
            end = time.monotonic() + GRACE
        if end is not None and time.monotonic() > end:
            break
        for thread in threads:
            if thread.is_alive():
                thread.join(0.05)
                break
    return [thread.name for thread in threads if thread.is_alive()]
