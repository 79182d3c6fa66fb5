"""Threads that load the next batches while one is used.

Batches come in their order, whichever thread is done first. The threads hold the queue of jobs and nothing of the
iterator, so they end when it is dropped, exhausted or closed, or when loading raised: each of these puts one ``None``
for each thread into the queue. A job that waits in the queue by then is not done.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from queue import SimpleQueue
from typing import Any

from reactgrad.data._errors import DataError

# Jobs that are done or under way for each thread.
AHEAD = 2
# Seconds between two looks at whether the threads live: they do not in a process that was forked, and one ends
# where an error comes between two of its jobs.
PATIENCE = 1.0


class _Job:
    __slots__ = ("done", "error", "number", "result", "task")

    def __init__(self, number: int, task: Any) -> None:
        self.number = number
        self.task = task
        self.done = threading.Event()
        self.result: Any = None
        self.error: BaseException | None = None


def prefetched(
    tasks: Iterable[tuple[int, Any]], load: Callable[[int, Any], Any], workers: int
) -> Iterator[Any]:
    """Iterate over ``load(number, task)`` of all tasks, in their order, computed by threads.

    An exception comes where its result would have been, with the traceback of its thread.
    """
    queue: SimpleQueue[_Job | None] = SimpleQueue()
    dropped = threading.Event()
    crew = [
        threading.Thread(
            target=_work, args=(queue, load, dropped), name=f"reactgrad-data-{at}", daemon=True
        )
        for at in range(workers)
    ]
    process = os.getpid()
    coming = iter(tasks)
    waiting: deque[_Job] = deque()

    def order(most: int) -> None:
        for number, task in itertools.islice(coming, most):
            job = _Job(number, task)
            waiting.append(job)
            queue.put(job)

    try:
        for thread in crew:
            thread.start()
        order(AHEAD * workers)
        while waiting:
            job = waiting.popleft()
            while not job.done.wait(PATIENCE):
                if os.getpid() != process:
                    raise DataError(
                        "The threads of this iterator over a DataLoader are gone: it was made before this process "
                        "was forked. Write iter(loader) in the process that uses it."
                    )
                if not all(thread.is_alive() for thread in crew):
                    # An error between two jobs has ended the thread that may have had this one.
                    _do(job, load)
            if job.error is not None:
                error, job.error = job.error, None
                try:
                    raise error
                finally:
                    del error  # else its traceback would hold this frame, and this frame the error
            result, job.result = job.result, None
            order(1)
            yield result
            del result
    finally:
        dropped.set()
        for _ in crew:
            queue.put(None)


def _work(
    queue: SimpleQueue[_Job | None], load: Callable[[int, Any], Any], dropped: threading.Event
) -> None:
    while (job := queue.get()) is not None:
        if not dropped.is_set():
            _do(job, load)
        del job


def _do(job: _Job, load: Callable[[int, Any], Any]) -> None:
    try:
        job.result = load(job.number, job.task)
    except BaseException as error:  # also SystemExit: whoever waits has to hear of it
        job.error = error
    finally:
        job.done.set()
        del job  # the traceback of its error holds this frame
