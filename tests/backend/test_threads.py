"""The threads that share blocks: all are done, none is at work any more, errors come through."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.backend.blocks import _jobs, _threads
from reactgrad.backend.blocks._threads import for_each


@pytest.fixture(autouse=True)
def same_count_afterwards() -> Iterator[None]:
    before = rg.get_num_threads()
    yield
    rg.set_num_threads(before)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_each_item_is_worked_on_once(threads: int) -> None:
    seen: list[int] = []
    for_each(seen.append, range(100), threads)
    assert sorted(seen) == list(range(100))


def test_threads_of_the_pool_take_part() -> None:
    both = threading.Barrier(2, timeout=60)  # passed only if two threads work at a time
    for_each(lambda i: both.wait(), range(2), 2)


def test_threads_that_come_too_late_keep_nothing_of_what_was_worked_on() -> None:
    """A budget could not release it, as long as a busy thread had not looked at it."""
    rg.set_num_threads(2)
    busy: list[_jobs.Job] = []
    at_work, go_on = threading.Semaphore(0), threading.Event()
    heard: list[bool] = []

    def wait() -> None:
        at_work.release()
        heard.append(go_on.wait(60))

    _jobs.start(wait, 1, busy)
    _jobs.start(wait, len(_jobs._helpers) - 1, busy)
    assert all(at_work.acquire(timeout=60) for _ in busy)
    array = np.ones(4)
    seen = weakref.ref(array)
    try:
        for_each(array.__getitem__, range(4), 2)
        del array
        assert seen() is None
    finally:
        go_on.set()
    for job in busy:
        job.end()
    assert heard == [True] * len(busy)


@pytest.mark.parametrize("at", [0, 1])
def test_the_first_error_ends_it_when_no_other_call_is_under_way(at: int) -> None:
    both = threading.Barrier(2, timeout=60)
    ended: list[int] = []

    def work(i: int) -> None:
        if i < 2:
            both.wait()
            if i == at:
                raise ValueError("this one")
        time.sleep(0.001)  # so that the other one cannot be through with all before
        ended.append(i)

    with pytest.raises(ValueError, match="this one"):
        for_each(work, range(5000), 2)
    assert 1 - at in ended
    assert len(ended) < 4999
    count = len(ended)
    for_each(lambda i: None, range(10), 2)
    assert len(ended) == count


def test_an_interrupt_waits_for_the_calls_under_way() -> None:
    both, free = threading.Barrier(2, timeout=60), threading.Event()
    ended: list[int] = []

    def work(i: int) -> None:
        both.wait()
        if threading.current_thread() is threading.main_thread():
            threading.Timer(0.05, free.set).start()
            raise KeyboardInterrupt
        free.wait()
        ended.append(i)

    with pytest.raises(KeyboardInterrupt):
        for_each(work, range(2), 2)
    assert len(ended) == 1


def test_calls_see_the_context_of_the_caller() -> None:
    seen: list[str] = []
    both = threading.Barrier(2, timeout=60)

    def work(i: int) -> None:
        both.wait()
        seen.append(np.geterr()["divide"])

    with np.errstate(divide="raise"):
        for_each(work, range(2), 2)
    assert seen == ["raise", "raise"]


@pytest.mark.slow
def test_a_forked_process_works_without_the_threads_of_its_parent() -> None:
    if not hasattr(os, "fork"):
        pytest.skip("no fork here")
    code = """if True:
        import os
        from reactgrad.backend.blocks._threads import for_each
        for_each(lambda i: None, range(10), 4)
        child = os.fork()
        if not child:
            seen = []
            for_each(seen.append, range(10), 4)
            os._exit(0 if sorted(seen) == list(range(10)) else 1)
        assert os.waitpid(child, 0)[1] == 0
    """
    path = os.pathsep.join(sys.path)
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        check=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": path},
    )


@pytest.mark.parametrize("count", [0, -1, 2.5, "2", None, True])
def test_a_count_that_cannot_be(count: object) -> None:
    with pytest.raises(
        rg.ThreadCountError, match=r"is an integer, 1 or more and at most 10,000; 1 computes"
    ):
        rg.set_num_threads(count)  # type: ignore[arg-type]
    assert issubclass(rg.ThreadCountError, ValueError)


@pytest.mark.parametrize(
    ("own", "openmp", "count"),
    [("3", "5", 3), (None, "5", 5), (None, "6,2", 6), ("", "5", 5), (None, None, None)],
)
def test_the_environment_gives_the_first_count(
    monkeypatch: pytest.MonkeyPatch, own: str | None, openmp: str | None, count: int | None
) -> None:
    for name, text in zip(_threads.VARIABLES, (own, openmp), strict=True):
        if text is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, text)
    monkeypatch.setattr(_threads, "_count", None)
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert rg.get_num_threads() == (usable if count is None else count)


@pytest.mark.parametrize("text", ["many", "0", "-2", "1.5"])
def test_a_count_in_the_environment_that_cannot_be_is_ignored_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("REACTGRAD_NUM_THREADS", text)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setattr(_threads, "_count", None)
    with pytest.warns(rg.ReactgradWarning, match=f"REACTGRAD_NUM_THREADS='{text}'"):
        assert rg.get_num_threads() == 3
