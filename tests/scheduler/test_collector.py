"""The garbage collector runs again after a pause, whatever ends it."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import suppress
from types import FrameType
from typing import Any

import pytest

from reactgrad_scheduler import CollectorPause
from reactgrad_scheduler import collector as module


@pytest.fixture(autouse=True)
def running() -> Iterator[None]:
    assert gc.isenabled()
    yield
    gc.enable()


def test_a_pause_ends_with_its_outermost_block() -> None:
    with CollectorPause():
        assert not gc.isenabled()
        with CollectorPause():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    with CollectorPause():
        assert not gc.isenabled()
    assert not gc.isenabled()


def test_a_pause_that_another_thread_ends_is_no_reason_to_stop_it_for_ever() -> None:
    """The one begins while the other lasts, and enters its block once that has ended."""
    for _ in range(2):
        with CollectorPause():
            later = CollectorPause()
        assert gc.isenabled()
        with later:
            pass
        del later
        assert gc.isenabled()


def test_an_error_in_the_block_passes_and_ends_the_pause() -> None:
    with pytest.raises(ZeroDivisionError) as error, CollectorPause():
        raise ZeroDivisionError
    assert error.value.__traceback__ is not None  # which keeps the frame, and not the pause
    assert gc.isenabled()


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, RecursionError])
def test_no_error_at_a_call_or_line_of_the_pause_leaves_the_collector_off(
    error: type[BaseException],
) -> None:
    """Python looks at signals where a function begins, so also before the first line of an ``__exit__``."""
    at, there, kept = 0, True, []
    while there:
        at, there, events = at + 1, False, 0

        def follow(frame: FrameType, event: str, argument: object, at: int = at) -> Any:
            nonlocal events, there
            if frame.f_code.co_filename != module.__file__:
                return None
            events += 1
            if events == at:
                there = True
                sys.settrace(None)
                raise error
            return follow

        former = sys.gettrace()
        sys.settrace(follow)
        try:
            with CollectorPause():
                len("")
        except error as raised:
            kept.append(raised)  # with the frames that it passed
        finally:
            sys.settrace(former)
        assert gc.isenabled(), at
    assert at > 2


def test_a_pause_ends_where_the_stack_has_ended() -> None:
    def deeper() -> None:
        with CollectorPause():
            deeper()

    with suppress(RecursionError):
        deeper()
    assert gc.isenabled()
