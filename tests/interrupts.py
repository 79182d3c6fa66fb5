"""An interrupt between two lines of the engine, or where a call of something compiled returns to it."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dis import opmap
from functools import partial
from linecache import getline
from pathlib import Path
from types import FrameType
from typing import Any

import reactgrad as rg
import reactgrad_scheduler

ENGINE = tuple(str(Path(one.__file__ or "").parent) for one in (rg, reactgrad_scheduler))


def _leaves_handler(frame: FrameType) -> bool:
    """Whether the line begins by leaving an ``except:``; raised there, an error leaves it half left."""
    return frame.f_code.co_code[frame.f_lasti] == opmap["POP_EXCEPT"]


def interrupted(act: Callable[[], object], at: int) -> bool:
    """Raise in the `at`-th line of the engine; whether `act` has so many.

    Not at a ``try:``, nor where a ``with`` calls what ends it or an ``except:`` is left: there no signal is
    looked at.
    """
    lines = 0

    def enter(frame: FrameType, event: str, argument: object) -> Any:
        latest = 0

        def follow(frame: FrameType, event: str, argument: object) -> Any:
            nonlocal latest, lines
            if event == "line":
                line = getline(frame.f_code.co_filename, frame.f_lineno).split(maxsplit=1)
                deaf = line[0] == "try:" or (line[0] == "with" and latest > frame.f_lineno)
                latest = frame.f_lineno
                lines += not deaf
                if lines >= at and not deaf and not _leaves_handler(frame):
                    sys.settrace(None)
                    raise KeyboardInterrupt
            return follow

        return follow if frame.f_code.co_filename.startswith(ENGINE) else None

    return _raises(act, sys.settrace, enter, sys.gettrace())


def struck(
    act: Callable[[], object],
    at: int,
    error: type[BaseException],
    of: tuple[str, ...] | None = None,
) -> bool:
    """Raise `error` in the `at`-th line of the engine, whatever it is; whether `act` has so many.

    What memory or stack running out there would do; a real one comes in fewer places. With `of`, only lines
    of functions of these names count.
    """
    lines, raised = 0, False

    def follow(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal lines, raised
        if event == "line":
            lines += 1
            if lines == at:
                raised = True
                sys.settrace(None)
                raise error
        return follow

    def enter(frame: FrameType, event: str, argument: object) -> Any:
        code = frame.f_code
        counts = code.co_filename.startswith(ENGINE) and (of is None or code.co_name in of)
        return follow if counts else None

    came = False
    with suppress(error):
        came = _raises(act, sys.settrace, enter, sys.gettrace())
    assert came or not raised or error is not KeyboardInterrupt, "an interrupt had no effect"
    return raised


def lines_of(act: Callable[[], object]) -> int:
    """How many lines of the engine an act runs."""
    lines = 0

    def follow(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return follow

    def enter(frame: FrameType, event: str, argument: object) -> Any:
        return follow if frame.f_code.co_filename.startswith(ENGINE) else None

    _raises(act, sys.settrace, enter, sys.gettrace())
    return lines


def out_of_stack(act: Callable[[], object], frames: int) -> bool:
    """Call `act` with so many frames left; whether they were too few."""
    limit, depth = sys.getrecursionlimit(), 1
    while True:  # the depth counts calls of compiled code, too
        try:
            sys.setrecursionlimit(depth)
            break
        except RecursionError:
            depth += 1
    sys.setrecursionlimit(depth + frames)
    try:
        act()
    except RecursionError:
        return True
    finally:
        sys.setrecursionlimit(limit)
    return False


def interrupted_after(act: Callable[[], object], at: int) -> bool:
    """Raise where the `at`-th call of something compiled returns to the engine; whether `act` has so many.

    There CPython looks at signals, and what was called has done its work: what it returned is lost.
    """
    calls = 0

    def follow(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        if event == "c_return" and frame.f_code.co_filename.startswith(ENGINE):
            calls += 1
            if calls >= at:
                sys.setprofile(None)
                raise KeyboardInterrupt

    return _raises(act, sys.setprofile, follow, sys.getprofile())


def _raises(
    act: Callable[[], object], install: Callable[[Any], None], hook: object, former: object
) -> bool:
    """Whether `act` is interrupted with this hook of the interpreter in place of the former one."""
    gc.disable()  # whose work is not the engine's, though it calls some of it
    install(hook)
    try:
        act()
    except KeyboardInterrupt:
        return True
    finally:
        install(former)
        gc.enable()
    return False


class Strike:
    """An error in the `at`-th line of the engine that its threads run, those that work for the caller.

    Attributes
    ----------
    lines : int
        How many lines there were.
    """

    def __init__(self, at: int, error: type[BaseException]) -> None:
        self.lines = 0
        self._at, self._error, self._caller = at, error, 0
        self._counting = threading.Lock()

    def during(self, act: Callable[[], object], seconds: float = 20.0) -> object:
        """Return what `act` returns, or raise what it raises; it ends, also if a thread does before its time."""
        answer: list[Callable[[], object]] = []
        ending = threading.Thread(target=self._call, args=(act, answer), daemon=True)
        threading.settrace(self._enter)
        try:
            ending.start()
            ending.join(seconds)
        finally:
            threading.settrace(None)  # pyright: ignore[reportArgumentType]
            self._at = 0
        assert not ending.is_alive(), "the call does not end"
        return answer.pop()()

    def _call(self, act: Callable[[], object], answer: list[Callable[[], object]]) -> None:
        self._caller = threading.get_ident()
        sys.settrace(None)
        try:
            result = act()
            answer.append(lambda: result)
        except BaseException as error:
            answer.append(partial(_raise, error))

    def _enter(self, frame: FrameType, event: str, argument: object) -> Any:
        return self._follow if frame.f_code.co_filename.startswith(ENGINE) else None

    def _follow(self, frame: FrameType, event: str, argument: object) -> Any:
        if event == "line" and threading.get_ident() != self._caller:
            with self._counting:
                self.lines += 1
                now = self.lines == self._at
            if now:
                raise self._error
        return self._follow


def _raise(error: BaseException) -> None:
    raise error
