"""The threads that compute the blocks of large arrays."""

from __future__ import annotations

import os
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar

from reactgrad._errors import ReactgradError, ReactgradWarning

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

T = TypeVar("T")

# The first that is set counts; the second is that of OpenMP, which BLAS libraries follow, too.
VARIABLES = ("REACTGRAD_NUM_THREADS", "OMP_NUM_THREADS")

_count: int | None = None
_pool: ThreadPoolExecutor | None = None
_pool_size = 0


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
    if number < 1:
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

    others: list[Future[None]] = []
    try:
        _start(take, helpers, others)
        take()
    finally:
        _await(others, left)
        # The pool has `take` until a thread comes by; what it would work on may be wanted back now.
        work = _none_left
    for other in others:
        if not other.cancelled():
            other.result()


def _none_left(item: object) -> None:
    """The work of those who come when all is done."""


def _start(take: Callable[[], None], count: int, started: list[Future[None]]) -> None:
    """Let so many threads of the pool take part, if they come to it."""
    global _pool, _pool_size
    if _pool is None or _pool_size < count:
        from concurrent.futures import ThreadPoolExecutor

        _pool, _pool_size = ThreadPoolExecutor(count, "reactgrad"), count
    try:
        # One by one: what was started is known, also if the next one cannot be.
        started.extend(_pool.submit(copy_context().run, take) for _ in range(count))
    except RuntimeError:  # the interpreter is shutting down, and starts no threads any more
        pass


def _await(others: Iterable[Future[None]], left: Iterator[Any]) -> None:
    """Come back when none of these is at work: what they write into may be gone afterwards."""
    interrupt: BaseException | None = None
    for other in others:
        while not other.cancel() and not other.done():
            try:
                other.exception()
            except BaseException as error:  # of this thread: somebody pressed Ctrl-C
                deque(left, maxlen=0)
                interrupt = error
    if interrupt is not None:
        raise interrupt


def _forget_pool() -> None:
    """A forked process has none of its parent's threads."""
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
