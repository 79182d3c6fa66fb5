"""Ranks as processes of MPI, by mpi4py.

A collective begins with a header from each rank to each other one. Data moves when all headers are there
and agree, so ranks that ask for different things find that out before MPI would mix up their bytes. All
waits poll: they end when a rank says that it has failed, or does not come.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
import traceback
from collections import deque
from typing import Any

import numpy as np

from reactgrad._errors import MissingExtraError
from reactgrad.distributed._errors import DistributedError, RankFailedError, RankTimeoutError
from reactgrad.distributed._request import HEADER, Header, Request, check_together, in_words
from reactgrad.distributed._work import Pack, Traffic, Transport, Work

_COLLECTIVE, _MESSAGE, _FAILED, _ENDED, _DATA = 11, 12, 13, 14, 15
# Polls between two looks for ranks that have failed, and before a waiting rank leaves the core to others.
_LOOK, _SPIN = 64, 16_384
# The calls of MPI in a row for data under way, before what else there is to do gets a turn.
_TURNS = 256
# How long a rank that has raised waits before it ends all: so long others have to print what they know.
_LAST_WORDS = 1.0
_TEXT = 1 << 14


def mpi() -> Any:
    """Return ``mpi4py.MPI``.

    Raises
    ------
    MissingExtraError
        If it is not installed.
    """
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise MissingExtraError(
            'rg.distributed.init("mpi") needs the packages mpi4py and mpich: pip install '
            '"reactgrad[distributed]", and start ranks by mpiexec -n 2 python program.py.'
        ) from error
    return MPI


class MPIWork(Work):
    """A collective that this process has asked for."""

    def __init__(self, transport: MPITransport, number: int, *given: Any) -> None:
        super().__init__(*given)
        self.transport = transport
        self.agreed: bool | None = None
        self.done = False
        request, rank = self.request, transport.rank
        ranks = request.participants or range(transport.size)
        self.others = [one for one in ranks if one != rank]
        tag = _COLLECTIVE if request.participants is None else _MESSAGE
        self.own = Header(number, self.stale, request.digest, request.text())
        mine = self.own.encoded()
        self._arrived = [np.zeros(HEADER, np.uint8) for _ in self.others]
        comm = transport.headers
        self._coming = [
            comm.Irecv(into, one, tag) for into, one in zip(self._arrived, self.others, strict=True)
        ]
        self._sent = [comm.Isend(mine, one, tag) for one in self.others]
        self._mine = mine  # alive until it is sent
        self._data: Any = None
        self._out: Any = None

    def advance(self) -> bool:
        """Do what can be done without waiting. Return whether nothing is left to do."""
        if self.done:
            return True
        if self.agreed is None:
            request_type = self.transport.MPI.Request
            if not request_type.Testall(self._coming) or not request_type.Testall(self._sent):
                return False
            if not all(map(self.own.equals, self._arrived)):
                headers = {self.transport.rank: self.own}
                for one, array in zip(self.others, self._arrived, strict=True):
                    headers[one] = Header.decoded(array)
                check_together(dict(sorted(headers.items())))
            self.agreed = self.stale or any(array[8] for array in self._arrived)
            if not self.agreed:
                self.transport.traffic.skipped += 1
                self.done = True
                return True
        if self._data is None:
            self.attach()
            self._data, self._out = self.transport.move(self.request, self.given, self.into)
            traffic = self.transport.traffic
            traffic.bytes += self.request.bytes_from(self.transport.rank)
            traffic.messages += 1
        self.done = self._data.Test()
        return self.done

    def came(self) -> dict[int, str]:
        """Return what each rank that came has asked for."""
        asked = {self.transport.rank: self.own.text}
        for one, array in zip(self.others, self._arrived, strict=True):
            header = Header.decoded(array)
            if any(header.digest):
                asked[one] = header.text
        return asked

    def abandon(self) -> None:
        """End the use of the operands' memory: nobody will ask for the result."""
        end = time.monotonic() + _LAST_WORDS
        try:
            while not (self.done or self.transport._failure):
                self.transport._advance()
                if time.monotonic() > end:
                    # Values of this rank may change while others still read them.
                    self.transport._failure = DistributedError(
                        f"a read on rank {self.transport.rank} ended by an error while others were to take "
                        f"part in {self.own.text}; the ranks are no longer in step. Start them anew."
                    )
                    return
        except DistributedError:  # the error that came first is the one to raise
            return

    @property
    def is_done(self) -> bool:
        """True once the result has been taken, or no data moves: its memory may be used again."""
        return self._result is not None or self.agreed is False

    def agree(self) -> bool:
        """Wait until all ranks have asked. Return whether an operand was stale on any."""
        self.transport.wait(self, lambda: self.agreed is not None)
        return bool(self.agreed)

    def _wait(self) -> np.ndarray:
        self.transport.wait(self, lambda: self.done)
        out, request = self._out, self.request
        if request.kind in ("reduce", "gather") and request.root != self.transport.rank:
            out = np.zeros(request.received(self.transport.size), request.dtype)
        elif request.reduction == "avg":
            out /= self.transport.size
        self._data = self._out = None
        return out


class MPITransport(Transport):
    """The place of one process among the ranks of a communicator."""

    def __init__(self, comm: Any, timeout: float) -> None:
        self.name = "mpi"
        self.MPI = mpi()
        # Apart from each other and from what the program does with MPI itself.
        self.headers, self.data = comm.Dup(), comm.Dup()
        self.comm, self.rank, self.size = comm, comm.rank, comm.size
        self.timeout = timeout
        self.traffic = Traffic()
        # Where there are more ranks than cores, the rank that others wait for may need this one's.
        self._spin = _SPIN if self.size <= (os.cpu_count() or 1) else 0
        self.queue: deque[MPIWork] = deque()
        self._numbers: dict[Any, int] = {}
        self._failure: DistributedError | None = None
        self._ended: set[int] = set()
        self._leaving: list[Any] = []
        self._bad_news: tuple[np.ndarray, Any] | None = None

    def post(
        self, request: Request, pack: Pack, stale: bool, into: np.ndarray | None = None
    ) -> Work:
        """Ask the other ranks for a collective; returns without waiting."""
        self._check()
        self._advance()
        number = self._numbers.get(request.participants, 0)
        self._numbers[request.participants] = number + 1
        work = MPIWork(self, number, request, pack, stale, into)
        self.queue.append(work)
        self._advance()
        return work

    def _advance(self) -> None:
        """Do what can be done without waiting: in turn, since data moves in one order on all ranks."""
        queue = self.queue
        try:
            while queue and queue[0].advance():
                queue.popleft()
            for work in queue:
                if work.agreed is None or work._data is None:
                    break
                work.advance()
            for work in list(queue)[1:]:  # as far as their turn has come
                before = queue[queue.index(work) - 1]
                if before.agreed is None or (before.agreed and before._data is None):
                    break
                work.advance()
        except DistributedError as error:
            self._failure = error
            raise

    def _check(self) -> None:
        if self._failure is not None:
            raise type(self._failure)(*self._again())

    def _again(self) -> tuple[Any, ...]:
        failure = self._failure
        assert failure is not None
        more = failure.rank if isinstance(failure, RankFailedError) else failure.asked
        return str(failure), more

    def _look(self) -> None:
        """Raise if another rank has said that it failed; note which ranks have ended."""
        MPI = self.MPI
        if self._bad_news is None:
            into = np.zeros(_TEXT, np.uint8)
            self._bad_news = into, self.headers.Irecv(into, MPI.ANY_SOURCE, _FAILED)
        status = MPI.Status()
        if self._bad_news[1].Test(status):
            text = self._bad_news[0].tobytes().rstrip(b"\0").decode(errors="replace")
            rank = status.Get_source()
            self._failure = RankFailedError(
                f"rank {rank} raised, so this rank ends, too.\n{text}", rank
            )
            self._check()
        while self.headers.Iprobe(MPI.ANY_SOURCE, _ENDED, status):
            self.headers.Recv(np.zeros(1, np.uint8), status.Get_source(), _ENDED)
            self._ended.add(status.Get_source())

    def wait(self, work: MPIWork, arrived: Any) -> None:
        """Poll until something has arrived. All waits end, by an error if need be."""
        self._check()
        end = time.monotonic() + self.timeout
        polls = 0
        while not arrived():
            self._advance()
            if arrived():
                return
            if work._data is not None and polls < min(_TURNS, self._spin):
                # MPI moves a large array piece by piece, and only while it is called.
                test = work._data.Test
                for _ in range(_TURNS):
                    if test():
                        break
            polls += 1
            if polls > self._spin:
                time.sleep(0.0 if polls < self._spin + 2048 else 0.0002)
            if polls % _LOOK:
                continue
            self._look()
            asked = work.came()
            missing = [one for one in work.others if one not in asked]
            gone = [one for one in missing if one in self._ended]
            if gone:
                self._advance()
                asked = work.came()
                if gone[0] not in asked:
                    self._give_up(gone, "has ended", asked)
            if time.monotonic() >= end:
                waited = f"did not come within {self.timeout:g} s"
                self._give_up(missing or work.others, waited, asked)

    def _give_up(self, ranks: list[int], what: str, asked: dict[int, str]) -> None:
        asked = {**self._elsewhere(), **asked}
        who = f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))}"
        text = (
            f"{who} {what}: {in_words(asked)}. Every rank must come to each collective; "
            "let all ranks read the same nodes, or leave the rank out by group.subgroup."
        )
        if "ended" in what:
            self._failure = RankFailedError(text, ranks[0])
        else:
            self._failure = RankTimeoutError(text, asked)
        self._check()

    def _elsewhere(self) -> dict[int, str]:
        """Return what ranks ask for that nobody here waits for: a message in place of a collective, say."""
        MPI, found = self.MPI, {}
        for tag in (_COLLECTIVE, _MESSAGE):
            status = MPI.Status()
            while self.headers.Iprobe(MPI.ANY_SOURCE, tag, status):
                array = np.zeros(HEADER, np.uint8)
                self.headers.Recv(array, status.Get_source(), tag)
                found.setdefault(status.Get_source(), Header.decoded(array).text)
        return found

    def move(self, request: Request, given: Any, into: Any) -> tuple[Any, Any]:
        """Begin to move data. Return MPI's request, and the array that it fills."""
        MPI, comm, kind = self.MPI, self.data, request.kind
        root, rank = request.root or 0, self.rank
        count = request.received(self.size)
        inside = into is not None and np.may_share_memory(given, into)
        out: Any = np.empty(count, request.dtype) if into is None or inside else into[:count]
        if request.reduction is not None:
            names = {"sum": "SUM", "avg": "SUM", "max": "MAX", "min": "MIN", "product": "PROD"}
            op = getattr(MPI, names[request.reduction])
        else:
            op = MPI.SUM
        if kind == "all_reduce":
            if inside:
                return comm.Iallreduce(MPI.IN_PLACE, given, op), given
            return comm.Iallreduce(given, out, op), out
        if kind == "reduce":
            return comm.Ireduce(given, out if rank == root else None, op, root), out
        if kind == "broadcast":
            if rank == root:
                return comm.Ibcast(given, root), given
            return comm.Ibcast(out, root), out
        if kind == "scatter":
            return comm.Iscatter(given if rank == root else None, out, root), out
        if kind == "gather":
            return comm.Igather(given, out if rank == root else None, root), out
        if kind == "all_gather":
            return comm.Iallgather(given, out), out
        if kind == "reduce_scatter":
            return comm.Ireduce_scatter_block(given, out, op), out
        if kind == "all_to_all":
            return comm.Ialltoall(given, out), out
        if kind == "message":
            if rank == root:
                return comm.Isend(given, request.to, _DATA), given
            return comm.Irecv(out, root, _DATA), out
        return comm.Ibarrier(), out

    def split(self, color: int | None, colors: list[int | None]) -> Transport | None:
        """Return the transport among the ranks of the same color."""
        comm = self.comm.Split(self.MPI.UNDEFINED if color is None else color, self.rank)
        if comm == self.MPI.COMM_NULL:
            return None
        twin = MPITransport(comm, self.timeout)
        _open.append(twin)
        return twin

    def fail(self, error: BaseException) -> None:
        """Tell the other ranks that this one has raised."""
        text = "".join(traceback.format_exception(error)).encode()[-_TEXT:]
        array = np.frombuffer(text.ljust(1, b"\0"), np.uint8)
        for one in range(self.size):
            if one != self.rank:
                self._leaving.append((array, self.headers.Isend(array, one, _FAILED)))

    def close(self, *given: Any) -> None:
        """Tell the other ranks that this one comes no more."""
        array = np.zeros(1, np.uint8)
        for one in range(self.size):
            if one != self.rank:
                self._leaving.append((array, self.headers.Isend(array, one, _ENDED)))
        if self._bad_news is not None:
            self._bad_news[1].Cancel()
        for work in self.queue:
            for coming in work._coming:
                if coming:
                    coming.Cancel()


_open: list[MPITransport] = []


def world(timeout: float) -> MPITransport:
    """Return the transport among all processes; at its first call, let an error of one end all."""
    MPI = mpi()
    for one in _open:
        if one.comm == MPI.COMM_WORLD:
            one.timeout = timeout
            return one
    transport = MPITransport(MPI.COMM_WORLD, timeout)
    _open.append(transport)
    before = sys.excepthook

    def hook(kind: Any, error: Any, trace: Any) -> None:
        before(kind, error, trace)
        end_all(error)

    if transport.size > 1:
        sys.excepthook = hook
        atexit.register(_close_all)
    return transport


def end_all(error: BaseException) -> None:
    """Tell the other ranks of an error that nobody handles, and end all processes."""
    sys.stdout.flush()
    print(
        f"rank {_open[0].rank} of {_open[0].size} has failed; all ranks end.",
        file=sys.stderr,
        flush=True,
    )
    for transport in _open:
        if not isinstance(error, RankFailedError):
            transport.fail(error)
    end = time.monotonic() + _LAST_WORDS
    while time.monotonic() < end:  # messages leave while MPI is called
        for transport in _open:
            transport.headers.Iprobe(transport.MPI.ANY_SOURCE, _FAILED)
        time.sleep(0.01)
    _open[0].MPI.COMM_WORLD.Abort(1)


def _close_all() -> None:
    for transport in _open:
        transport.close()
