"""``with`` blocks written as generators, through which every exception passes untouched.

``contextlib.contextmanager`` assigns ``__traceback__`` to what passes through it. Some classes refuse that,
such as frozen dataclasses, and their exceptions are then replaced by another one (python/cpython#99856).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from types import TracebackType
from typing import Any, Generic, ParamSpec, TypeVar

from reactgrad_scheduler.exceptions import set_traceback

_P = ParamSpec("_P")
_T = TypeVar("_T")
_F = TypeVar("_F", bound=Callable[..., Any])


class Block(Generic[_T]):
    """A ``with`` block that runs a generator to its ``yield`` and, when it ends, from there on.

    As a decorator it surrounds each call by a block of its own.
    """

    __slots__ = ("_arguments", "_keywords", "_make", "_steps")

    def __init__(
        self,
        make: Callable[..., Iterator[_T]],
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
    ) -> None:
        self._make = make
        self._arguments = arguments
        self._keywords = keywords

    def __enter__(self) -> _T:
        self._steps: Any = self._make(*self._arguments, **self._keywords)
        return next(self._steps)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:  # as a checker is told that few blocks swallow an error
        if error is None:
            return next(self._steps, False)
        try:
            self._steps.throw(error)
        except StopIteration as end:
            return end is not error
        except BaseException as raised:
            # A StopIteration leaves a generator as the cause of a RuntimeError.
            if raised is not error and (
                not isinstance(error, StopIteration) or raised.__cause__ is not error
            ):
                raise
            set_traceback(error, trace)  # without the frames of the generator
        return False

    def __call__(self, function: _F) -> _F:
        @wraps(function)
        def inside(*arguments: Any, **keywords: Any) -> Any:
            with Block(self._make, self._arguments, self._keywords):
                return function(*arguments, **keywords)

        return inside  # type: ignore[return-value]


def block(make: Callable[_P, Iterator[_T]]) -> Callable[_P, Block[_T]]:
    """Make a function that returns ``with`` blocks out of a generator function with one ``yield``."""

    @wraps(make)
    def begin(*arguments: _P.args, **keywords: _P.kwargs) -> Block[_T]:
        return Block(make, arguments, keywords)

    return begin
