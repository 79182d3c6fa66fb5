"""Exceptions of user code, read and written without a call of anything that their classes define.

A class may refuse attributes, or raise in ``__getattribute__``, ``__eq__``, ``__bool__`` or ``__init__``. Its
exceptions still have notes, causes and copies: ``BaseException`` itself keeps these.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from types import (
    BuiltinFunctionType,
    FrameType,
    GetSetDescriptorType,
    MemberDescriptorType,
    TracebackType,
)
from typing import Any, cast

from reactgrad_scheduler.texts import fitting

_BASE = vars(BaseException)
set_traceback = _BASE["__traceback__"].__set__
_own = _BASE["__dict__"].__get__
_traceback = _BASE["__traceback__"].__get__
_cause = _BASE["__cause__"].__get__
_context = _BASE["__context__"].__get__
_set_cause = _BASE["__cause__"].__set__
_set_context = _BASE["__context__"].__set__
_args = _BASE["args"].__get__
_set_args = _BASE["args"].__set__
_suppressed = _BASE["__suppress_context__"]


def notes_of(error: BaseException) -> list[str]:
    """Return the notes of an exception, in a list that may be changed."""
    notes = _own(error).get("__notes__")
    return list(cast("list[str]", notes)) if isinstance(notes, list | tuple) else []


def set_notes(error: BaseException, notes: list[str]) -> None:
    """Replace the notes of an exception."""
    if notes:
        _own(error)["__notes__"] = notes
    else:
        _own(error).pop("__notes__", None)


def add_note(error: BaseException, text: str) -> None:
    """Add a note to an exception of any class."""
    notes, text = notes_of(error), fitting(text)
    known = any(type(note) is str and note == text for note in notes)
    if not known:  # one object may be raised often
        set_notes(error, [*notes, text])


def traceback_of(error: BaseException) -> TracebackType | None:
    """Return the traceback of an exception."""
    return _traceback(error)


def without_frames(error: Exception) -> Exception:
    """Return a copy of an error and its causes that keeps no frame, and so no local variable, alive."""
    # Causes may form a graph, even with cycles: first copy each once, then connect the copies.
    twins: dict[int, BaseException] = {}
    found: list[BaseException] = [error]
    for one in found:  # which grows in the loop
        if id(one) not in twins:
            twins[id(one)] = _bare(one)
            found += _links(one)
    for one in {id(one): one for one in found}.values():
        twin = twins[id(one)]
        if twin is not one:
            cause, context = _cause(one), _context(one)
            _set_cause(twin, None if cause is None else twins[id(cause)])
            _set_context(twin, None if context is None else twins[id(context)])
            _suppressed.__set__(twin, _suppressed.__get__(one))
    return cast("Exception", twins[id(error)])


def _links(error: BaseException) -> Iterator[BaseException]:
    for link in (_cause(error), _context(error)):
        if link is not None:
            yield link


def _bare(error: BaseException) -> BaseException:
    """Return a copy of one exception without traceback, or itself if its class allows no copy."""
    kind = type(error)
    # The constructor in C, which knows the layout and calls nothing else.
    base = next(c for c in kind.__mro__ if isinstance(vars(c).get("__new__"), BuiltinFunctionType))
    make: Any = base.__new__
    arguments: tuple[object, ...] = _args(error)
    try:
        if issubclass(base, BaseExceptionGroup):
            group = cast("BaseExceptionGroup[BaseException]", error)
            members = [_bare(one) for one in _MEMBERS.__get__(group)]
            twin: BaseException = make(kind, _MESSAGE.__get__(group), members)
            same = len(arguments) == 2 and isinstance(arguments[1], list | tuple)
            arguments = (arguments[0], members) if same else arguments
        else:
            # Constructors of the class may need any arguments, and do anything.
            twin = make(kind)
    except Exception:
        return error
    _set_args(twin, arguments)
    _own(twin).update(_own(error))
    set_notes(twin, notes_of(error))
    for one in kind.__mro__:
        if one is not BaseException and one is not object:
            _copy_members(one, error, twin)
    return twin


def _copy_members(kind: type, error: BaseException, twin: BaseException) -> None:
    """Copy what a class keeps outside of the ``__dict__``: slots, and the fields of builtin classes."""
    for name, member in vars(kind).items():
        if isinstance(member, MemberDescriptorType | GetSetDescriptorType) and name not in _LEFT:
            try:
                value: Any = member.__get__(error)
                if value is not None:  # an empty field of a builtin class, which reads as None
                    member.__set__(twin, value)
            except Exception:  # an empty slot, or a field that cannot be set
                continue


_MESSAGE: Any = vars(BaseExceptionGroup)["message"]
_MEMBERS: Any = vars(BaseExceptionGroup)["exceptions"]
# `obj` of an AttributeError would keep the object alive.
_LEFT = frozenset(("__dict__", "__weakref__", "obj", "message", "exceptions"))


def is_interrupt(error: BaseException) -> bool:
    """Return whether an exception is nobody's error: no ``Exception``, or raised by a signal handler.

    Python calls a handler with the number of the signal and the frame that it came in. A call of the
    same function by user code that gives another frame, or none, is a call like any other.
    """
    if not isinstance(error, Exception):
        return True
    trace = traceback_of(error)
    # Not the first frame, which still runs: to read its variables would keep them alive in it.
    while trace is not None and (trace := trace.tb_next) is not None:
        if _is_handler(trace.tb_frame):
            return True
    return False


def _is_handler(frame: FrameType) -> bool:
    """Return whether a frame was called by Python for a signal."""
    code, caller = frame.f_code, frame.f_back
    count = code.co_argcount
    starred = bool(code.co_flags & _VARARGS)
    if caller is None or not (count >= 2 or starred):
        return False
    values: Any = frame.f_locals
    given = [values.get(name) for name in code.co_varnames[:count]]
    if starred:
        more = values.get(code.co_varnames[count + code.co_kwonlyargcount])
        given += more if isinstance(more, tuple) else ()
    if isinstance(values, dict):  # up to Python 3.12 a copy, which the frame keeps alive
        values.clear()
    return any(
        one is caller and type(number) is int and 0 < number < _SIGNALS
        for number, one in pairwise(given)
    )


_VARARGS = 4  # inspect.CO_VARARGS
_SIGNALS = 65  # signal.NSIG of Linux, the largest there is
