"""Errors of work on several ranks."""

from __future__ import annotations

from collections.abc import Mapping

from reactgrad._errors import ReactgradError


class DistributedError(ReactgradError, RuntimeError):
    """Ranks that asked for different things, or work that a group cannot do.

    Attributes
    ----------
    asked : dict of int to str
        For each rank that came, what it asked for.
    """

    __module__ = "reactgrad.distributed"

    def __init__(self, message: str, asked: Mapping[int, str] | None = None) -> None:
        super().__init__(message)
        self.asked = dict(asked or {})


class RankTimeoutError(DistributedError, TimeoutError):
    """A rank did not come to a collective in time."""

    __module__ = "reactgrad.distributed"

    # Of its two built-in bases the one that has fields: Dask's pickles make errors by this.
    def __new__(cls, *args: object) -> RankTimeoutError:
        return TimeoutError.__new__(cls, *args)


class RankFailedError(DistributedError):
    """Another rank raised, or ended, while this one needed it.

    Attributes
    ----------
    rank : int
        The rank that failed. Its traceback is in the message.
    """

    __module__ = "reactgrad.distributed"

    def __init__(self, message: str, rank: int = -1) -> None:
        super().__init__(message)
        self.rank = rank
