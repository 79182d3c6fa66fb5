"""The threads that compute the blocks of large arrays."""

from __future__ import annotations

import os
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from reactgrad._errors import ReactgradError, ReactgradWarning
from reactgrad.backend.blocks import _jobs
from reactgrad.scheduler import safe_repr

T = TypeVar("T")

# The first one that is set counts. The second is that of OpenMP, which BLAS libraries follow, too.
VARIABLES = ("REACTGRAD_NUM_THREADS", "OMP_NUM_THREADS")

_count: int | None = None
_initial: int | None = None  # the number before the first one that was set


class ThreadCountError(ReactgradError, ValueError):
    """A number of threads that is no positive integer."""


def get_num_threads() -> int:
    """Return the number of threads that compute the blocks of large arrays.

    Returns
    -------
    int
        The number that was set last. Before the first time: the environment variable
        ``REACTGRAD_NUM_THREADS``, else ``OMP_NUM_THREADS``, else the number of processors that this
        process may use.

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


_MOST = 10_000  # threads: more than any machine runs at the same time


def set_num_threads(count: int) -> None:
    """Set the number of threads that compute large arrays, the calling one among them.

    No result of reactgrad's own kernels depends on it: each element is computed in the same way, and
    partial sums are added in the same order. The BLAS libraries that are loaded, which compute matrix
    products, get the same number if threadpoolctl is installed (``pip install reactgrad[threads]``),
    and so does numba if it is loaded. The number that was there first gives back theirs.

    Parameters
    ----------
    count : int
        1 or more; 1 computes in the calling thread alone.

    Raises
    ------
    ThreadCountError
        If `count` is no positive integer.

    Examples
    --------
    >>> import reactgrad as rg
    >>> before = rg.get_num_threads()
    >>> rg.set_num_threads(1)
    >>> rg.set_num_threads(before)
    """
    global _count, _initial
    try:
        number = count.__index__()
    except (AttributeError, TypeError):
        number = 0
    if not 1 <= number <= _MOST or isinstance(count, bool):
        raise ThreadCountError(
            f"set_num_threads({safe_repr(count)}): a number of threads is an integer, 1 or more "
            f"and at most {_MOST:,}; 1 computes in the calling thread alone."
        )
    if _initial is None:
        _initial = _count or _count_by_environment(warn=False)
    from reactgrad.backend.blocks._library_threads import limit

    limit(None if number == _initial else number)
    _count = number


def _count_by_environment(*, warn: bool = True) -> int:
    for name in VARIABLES:
        text = os.environ.get(name, "").partition(",")[0].strip()  # OpenMP: one a level of nesting
        if text.isdecimal() and int(text):
            return int(text)
        if text and warn:
            warnings.warn(
                f"{name}={text!r} is no positive number of threads and is ignored.",
                ReactgradWarning,
                stacklevel=2,
            )
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows lack it
        return os.cpu_count() or 1


def for_each(work: Callable[[T], object], items: Sequence[T], threads: int) -> None:
    """Call `work` with each of these items, on up to `threads` threads; raise the first error.

    When this call ends, also by an error, no call of `work` is under way. Calls see the context
    variables of the caller, such as ``numpy.errstate``.
    """
    helpers = min(threads, len(items)) - 1
    if helpers < 1:
        for item in items:
            work(item)
        return
    left = iter(items)  # shared: the iterator gives each item to one thread only

    def take() -> None:
        try:
            for item in left:
                work(item)
        except BaseException:
            deque(left, maxlen=0)  # use the iterator up, so that no thread begins another item
            raise

    others: list[_jobs.Job] = []
    try:
        _jobs.start(take, helpers, others)
        take()
    finally:
        _await(others, left)
    errors = [error for error in map(_jobs.Job.take_error, others) if error is not None]
    if errors:
        try:
            raise errors[0]
        finally:
            errors.clear()  # the tracebacks hold this frame


def _await(others: Iterable[_jobs.Job], left: Iterator[Any]) -> None:
    """Wait until none of these jobs is at work, even through interrupts; then raise the interrupt.

    The jobs write into arrays that the caller may release or reuse afterwards.
    """
    interrupt: BaseException | None = None
    for other in others:
        while True:
            try:
                other.end()
                break
            except BaseException as error:  # raised in this thread by Ctrl-C
                deque(left, maxlen=0)
                interrupt = error
    if interrupt is not None:
        try:
            raise interrupt
        finally:
            del interrupt  # its traceback holds this frame
