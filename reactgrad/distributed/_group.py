"""A group: the ranks that work together, and the place of this one among them."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any

import numpy as np

from reactgrad.distributed._errors import DistributedError
from reactgrad.distributed._local import World, run_threads
from reactgrad.distributed._request import Request
from reactgrad.distributed._work import Traffic, Transport

TIMEOUT = 300.0  # seconds


class Group:
    """Ranks that ask for collectives together.

    All ranks of a group ask for the same collectives in the same order. If they do not, if one does not
    come, or if one raises, all of them get an error.

    Attributes
    ----------
    rank : int
        The place of this rank, from 0.
    size : int
        The number of ranks.
    backend : str
        ``"local:4"``, ``"mpi"``.
    traffic : Traffic
        The bytes that this rank has given, and the collectives that were skipped.

    Examples
    --------
    >>> import reactgrad as rg
    >>> rg.distributed.run(lambda group: (group.rank, group.size), "local:2")
    [(0, 2), (1, 2)]
    """

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.rank, self.size = transport.rank, transport.size
        self.backend = transport.name

    def __repr__(self) -> str:
        return f"<group of {self.size} ranks, this is rank {self.rank}, {self.backend}>"

    def __reduce__(self) -> Any:
        raise TypeError(
            "a group is not pickled: it is the place of one process. Call rg.distributed.init there."
        )

    @property
    def traffic(self) -> Traffic:
        """Counts of what this rank has sent."""
        return self.transport.traffic

    @property
    def timeout(self) -> float:
        """The seconds that a rank waits for others."""
        return self.transport.timeout

    def barrier(self) -> None:
        """Wait until all ranks are here."""
        self.move("barrier", np.zeros(0))

    def move(self, kind: str, array: Any, **options: Any) -> np.ndarray:
        """Ask for one collective of a plain array, at once, without nodes. Return what this rank gets, flat.

        Parameters
        ----------
        kind : str
            ``all_reduce``, ``broadcast``, ``all_gather`` and so on.
        array : array_like
        **options
            ``reduction=``, ``root=``, ``to=``.
        """
        given = np.ascontiguousarray(array)
        shapes = () if kind == "barrier" else (given.shape,)
        request = Request(kind, shapes, given.dtype.name, **options)
        return self.transport.post(request, lambda: given.reshape(-1), True).result()

    def all_gather_object(self, value: Any) -> list[Any]:
        """Return the objects of all ranks, by rank; they are pickled.

        Examples
        --------
        >>> import reactgrad as rg
        >>> rg.distributed.run(lambda group: group.all_gather_object("ab"[group.rank]), "local:2")
        [['a', 'b'], ['a', 'b']]
        """
        raw = np.frombuffer(pickle.dumps(value), np.uint8)
        lengths = self.move("all_gather", np.array([len(raw)]))
        padded = np.zeros(int(lengths.max()), np.uint8)
        padded[: len(raw)] = raw
        parts = self.move("all_gather", padded).reshape(self.size, -1)
        return [
            pickle.loads(part[:length].tobytes())
            for part, length in zip(parts, lengths, strict=True)
        ]

    def broadcast_object(self, value: Any, root: int = 0) -> Any:
        """Return the object of one rank on all of them.

        Examples
        --------
        >>> import reactgrad as rg
        >>> rg.distributed.run(lambda group: group.broadcast_object(group.rank, root=1), "local:2")
        [1, 1]
        """
        self.check_rank(root, "root")
        raw = np.frombuffer(pickle.dumps(value if self.rank == root else None), np.uint8)
        length = int(self.move("broadcast", np.array([len(raw)]), root=root)[0])
        given = raw if self.rank == root else np.zeros(length, np.uint8)
        return pickle.loads(self.move("broadcast", given, root=root).tobytes())

    def split(self, color: int | None) -> Group | None:
        """Return the group of the ranks with the same color; all ranks call it together.

        Parameters
        ----------
        color : int or None
            ``None``: this rank is in no such group.

        Examples
        --------
        >>> import reactgrad as rg
        >>> rg.distributed.run(lambda group: group.split(group.rank % 2).size, "local:3")
        [2, 1, 2]
        """
        colors = self.all_gather_object(color)
        transport = self.transport.split(color, colors)
        return None if transport is None else Group(transport)

    def subgroup(self, ranks: Iterable[int]) -> Group | None:
        """Return the group of some ranks, ``None`` on others; all ranks call it together.

        Examples
        --------
        >>> import reactgrad as rg
        >>> rg.distributed.run(lambda group: group.subgroup([0, 2]) is None, "local:3")
        [False, True, False]
        """
        members = sorted(ranks)
        for rank in members:
            self.check_rank(rank, "subgroup")
        return self.split(0 if self.rank in members else None)

    def check_rank(self, rank: int, what: str) -> None:
        """Raise unless this is the number of a rank."""
        if isinstance(rank, bool) or not isinstance(rank, int) or not 0 <= rank < self.size:
            raise DistributedError(
                f"{what}: {rank!r} is no rank of this group of {self.size}. Write a number from 0 to "
                f"{self.size - 1}."
            )


class LocalRanks:
    """Ranks that will run as threads of this process: what ``init("local:4")`` returns outside of them.

    Examples
    --------
    >>> import reactgrad as rg
    >>> ranks = rg.distributed.init("local:2")
    >>> ranks.run(lambda group: group.rank)
    [0, 1]
    """

    def __init__(self, size: int, latency: float, loss: float, timeout: float, seed: int) -> None:
        self.size = size
        self._options = (latency, loss, timeout, seed)

    def __repr__(self) -> str:
        return f"<{self.size} local ranks; .run(function) calls function(group) on each>"

    def run(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Call ``function(group, *arguments)`` on each rank. Return the results by rank."""

        def call(transport: Any) -> Any:
            group = Group(transport)
            _current.set(group)
            return function(group, *arguments)

        return run_threads(World(self.size, *self._options), call)


_current: ContextVar[Group | None] = ContextVar("reactgrad_group", default=None)


def init(
    backend: str = "mpi",
    *,
    timeout: float = TIMEOUT,
    latency: float = 0.0,
    loss: float = 0.0,
    seed: int = 0,
) -> Any:
    """Return the group of all ranks.

    Parameters
    ----------
    backend : str
        ``"mpi"``: the processes that ``mpiexec -n 4 python program.py`` has started. ``"local:4"``: four
        threads of this process; ``init(...).run(function)`` starts them, and in each of them ``init``
        returns its group. ``"nccl"``: processes of MPI whose arrays lie on GPUs.
    timeout : float
        The seconds that a rank waits for another one before all get an error.
    latency : float
        For local ranks: the seconds that a collective takes to arrive.
    loss : float
        For local ranks: the share of messages that are lost, and sent again later.
    seed : int
        Which messages are lost.

    Returns
    -------
    Group, or LocalRanks outside of local ranks

    Raises
    ------
    MissingExtraError
        If a package is missing.
    DistributedError
        If there is no such backend here.

    Examples
    --------
    >>> import reactgrad as rg
    >>> ranks = rg.distributed.init("local:2", latency=0.001)
    >>> ranks.run(lambda group: rg.distributed.group() is group)
    [True, True]
    """
    if not timeout > 0.0 or latency < 0.0 or not 0.0 <= loss < 1.0:
        raise DistributedError(
            f"init(timeout={timeout!r}, latency={latency!r}, loss={loss!r}): seconds above 0, seconds, "
            "and a share below 1."
        )
    name, _, count = backend.partition(":")
    if name == "local" and (count.isdecimal() or not count):
        present = _current.get()
        if present is not None and present.backend.startswith("local"):
            return present
        size = int(count or 2)
        if size < 1:
            raise DistributedError(f'init("{backend}"): at least one rank, as in "local:4".')
        return LocalRanks(size, latency, loss, timeout, seed)
    if backend == "mpi":
        from reactgrad.distributed._mpi import world

        group = Group(world(timeout))
        _current.set(group)
        return group
    if backend == "nccl":
        from reactgrad.distributed._nccl import world as nccl_world

        group = Group(nccl_world(timeout))
        _current.set(group)
        return group
    raise DistributedError(
        f'init({backend!r}): there is no such backend. Write "mpi", "local:4" (threads of this process) or "nccl".'
    )


def group() -> Group:
    """Return the group of this rank that ``init`` has made.

    Raises
    ------
    DistributedError
        Before ``init``.
    """
    found = _current.get()
    if found is None:
        raise DistributedError(
            'there is no group yet: write rg.distributed.init("mpi") first, or pass group=.'
        )
    return found


def run(
    function: Callable[..., Any], backend: str = "mpi", *arguments: Any, **options: Any
) -> list[Any]:
    """Call ``function(group, *arguments)`` on each rank. Return the results, by rank.

    With ``"mpi"`` each process calls it, and the results are gathered on all of them.

    Parameters
    ----------
    function : callable
    backend : str
        As in ``init``.
    *arguments
        Further arguments of the function.
    **options
        Options of ``init``.

    Raises
    ------
    Exception
        What the first rank that failed has raised. Local ranks that are still at work two seconds after
        that are left behind.

    Examples
    --------
    >>> import reactgrad as rg
    >>> def total(group):
    ...     x = rg.Graph().input(group.rank + 1.0)
    ...     return rg.distributed.all_reduce(x, "sum", group).item()
    >>> rg.distributed.run(total, "local:4")
    [10.0, 10.0, 10.0, 10.0]
    """
    made = init(backend, **options)
    if isinstance(made, LocalRanks):
        return made.run(function, *arguments)
    return made.all_gather_object(function(made, *arguments))
