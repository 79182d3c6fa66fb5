"""The threads that compute the blocks of large arrays."""

from __future__ import annotations

import os
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from reactgrad._errors import ReactgradError, ReactgradWarning
from reactgrad.backend.blocks import _jobs

T = TypeVar("T")

# The first that is set counts; the second is that of OpenMP, which BLAS libraries follow, too.
VARIABLES = ("REACTGRAD_NUM_THREADS", "OMP_NUM_THREADS")

_count: int | None = None


class ThreadCountError(ReactgradError, ValueError):
    """A number of threads that cannot be."""


def get_num_threads() -> int:
    """How many threads compute the blocks of large arrays.

    Returns
    -------
    int
        What was set last. At first the environment variable ``REACTGRAD_NUM_THREADS``, else
        ``OMP_NUM_THREADS``, else the number of processors that this process may use.

    Examples
    --------
    >>> import reactgrad as rg
    >>> before = rg.get_num_threads()
    >>> rg.set_num_threads(2)
    >>> rg.get_num_threads()
    2
    >>> rg.set_num_threads(before)
    """
    global _count
    if _count is None:
        _count = _count_by_environment()
    return _count


def set_num_threads(count: int) -> None:
    """Let large arrays be computed by so many threads, the calling one among them.

    No result depends on it: each element is computed in the same way, and partial sums are added in
    the same order. The threads of the BLAS library, which computes matrix products, are its own.

    Parameters
    ----------
    count : int
        At least 1, which means: by the calling thread alone.

    Raises
    ------
    ThreadCountError
        If it is no positive integer.

    Examples
    --------
    >>> import reactgrad as rg
    >>> before = rg.get_num_threads()
    >>> rg.set_num_threads(1)
    >>> rg.set_num_threads(before)
    """
    global _count
    try:
        number = count.__index__()
    except AttributeError:
        number = 0
    if number < 1 or isinstance(count, bool):
        raise ThreadCountError(
            f"set_num_threads({count!r}): a number of threads is an integer, 1 or more; 1 computes "
            "in the calling thread alone."
        )
    _count = number


def _count_by_environment() -> int:
    for name in VARIABLES:
        text = os.environ.get(name, "").partition(",")[0].strip()  # OpenMP: one a level of nesting
        if text.isdecimal() and int(text):
            return int(text)
        if text:
            warnings.warn(
                f"{name}={text!r} is no positive number of threads and is ignored.",
                ReactgradWarning,
                stacklevel=2,
            )
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def for_each(work: Callable[[T], object], items: Sequence[T], threads: int) -> None:
    """Call `work` with each of these items, on up to so many threads; raise the first error.

    When it ends, also by an error, no call is under way any more. Calls see the context variables of
    the caller, such as ``numpy.errstate``.
    """
    helpers = min(threads, len(items)) - 1
    if helpers < 1:
        for item in items:
            work(item)
        return
    left = iter(items)  # each item is taken by one thread

    def take() -> None:
        try:
            for item in left:
                work(item)
        except BaseException:
            deque(left, maxlen=0)  # nobody begins another one
            raise

    others: list[_jobs.Job] = []
    try:
        _jobs.start(take, helpers, others)
        take()
    finally:
        _await(others, left)
    errors = [error for error in map(_jobs.Job.take_error, others) if error is not None]
    if errors:
        raise errors[0]


def _await(others: Iterable[_jobs.Job], left: Iterator[Any]) -> None:
    """Come back when none of these is at work: what they write into may be gone afterwards."""
    interrupt: BaseException | None = None
    for other in others:
        while True:
            try:
                other.end()
                break
            except BaseException as error:  # of this thread: somebody pressed Ctrl-C
                deque(left, maxlen=0)
                interrupt = error
    if interrupt is not None:
        raise interrupt
