"""Calls that do not fit a function's parameters: errors that say what to write, in place of Python's.

A function is called as it is; only where Python could not give it its arguments is its signature compared. Arguments
that are numbers, fixed when a node is built, are read here, too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, update_wrapper
from typing import Any, Final

from reactgrad._errors import DTypeError, IndexingError, ParameterError, ShapeError
from reactgrad._habits import unknown_keyword
from reactgrad.scheduler import error_text, safe_repr, shortened

_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def misfit(
    call: str, function: Any, args: Iterable[Any], kwargs: Mapping[str, Any]
) -> DTypeError | None:
    """Return the error for arguments that a function cannot take; ``None`` if it can.

    Parameters
    ----------
    call : str
        The function, as ``"rg.sum"``.
    """
    signature = inspect.signature(function)
    try:
        signature.bind(*args, **kwargs)
        return None
    except TypeError as error:
        reason = str(error)  # the error itself would hold this frame, and this frame the error
    parameters = signature.parameters
    by_place = [name for name in kwargs if name in parameters and parameters[name].kind == 0]
    if by_place:
        names = ", ".join(name for name, one in parameters.items() if one.kind == 0)
        return DTypeError(
            f"{call} takes {by_place[0]!r} by its place, not by name. Write {call}({names}, ...)."
        )
    unknown = {name: value for name, value in kwargs.items() if name not in parameters}
    if unknown:
        known = [
            name for name, one in parameters.items() if one.kind in _BY_NAME and name != "self"
        ]
        return unknown_keyword(call, unknown, known)
    taken = signature.replace(parameters=[one for one in parameters.values() if one.name != "self"])
    return DTypeError(f"{call}: {reason}. Its arguments are {taken}.")


# What Python and NumPy raise for arguments that they cannot use; not what derives from these.
_BARE: Final = (
    *(TypeError, ValueError, OverflowError, AttributeError, ZeroDivisionError, IndexError),
    KeyError,
)
# Code of these packages is called for the function; other code is the user's, and so are its errors.
_OURS: Final = ("reactgrad", "reactgrad_scheduler", "numpy")


def unfit(
    call: str,
    function: Any,
    args: Iterable[Any],
    kwargs: Mapping[str, Any],
    error: Exception,
) -> ParameterError | IndexingError | None:
    """Return an error in the place of a bare one of Python or NumPy, which names what was written.

    Return ``None`` for errors of code that the function calls for its user.

    Parameters
    ----------
    call : str
        The function, as ``"rg.sum"``.
    """
    if type(error) not in _BARE or getattr(error, "__notes__", None):  # with a note it is a node's
        return None
    at = error.__traceback__
    while at is not None:
        if at.tb_frame.f_globals.get("__name__", "").partition(".")[0] not in _OURS:
            return None
        at = at.tb_next
    signature = inspect.signature(function)
    given = signature.bind(*args, **kwargs).arguments
    written = ", ".join(
        [f"{name}={_written(value)}" for name, value in given.items() if name != "self"]
    )
    taken = ", ".join(
        [str(one).partition(":")[0] for one in signature.parameters.values() if one.name != "self"]
    )
    reason = error_text(error).rstrip(".")
    if "integer string conversion" in reason:  # of a text that was to name the number
        reason = "a number has more digits than can be written"
    kind = IndexingError if type(error) is IndexError else ParameterError
    return kind(
        f"{call}({written}): {reason:.300}. These are not arguments that it can use; it takes ({taken})."
    )


def _written(value: Any) -> str:
    label = getattr(value, "label", None)
    return shortened(label if isinstance(label, str) else safe_repr(value), 60)


@lru_cache(256)
def _names(function: Callable[..., Any]) -> frozenset[str] | None:
    parameters = inspect.signature(function).parameters
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values()):
        return None
    return frozenset(parameters)


def check_names(kind: type, call: str, args: Iterable[Any], kwargs: Mapping[str, Any]) -> None:
    """Raise ``DTypeError`` for arguments by name that a class does not take, which is being called.

    Parameters
    ----------
    call : str
        The class, as ``"rg.nn.Linear"``.
    """
    known = _names(kind.__init__)
    if known is not None and not known.issuperset(kwargs):
        found = misfit(call, kind.__init__, (None, *args), kwargs)
        if found is not None:
            try:
                raise found
            finally:
                del found  # its traceback holds this frame


def explained(call: str, function: Callable[..., Any], module: str) -> Callable[..., Any]:
    """Return a function whose calls with arguments that it has not say what to write.

    Parameters
    ----------
    call : str
        The function, as ``"rg.sum"``; empty for a constructor.
    module : str
        The name of the module that users import it from.
    """

    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except DTypeError:
            raise
        except _BARE as error:
            name = call or type(args[0]).__name__
            found = misfit(name, function, args, kwargs) if isinstance(error, TypeError) else None
            found = found or unfit(name, function, args, kwargs, error)
            if found is None:  # one of code of the user's
                raise
            try:
                raise found from None
            finally:
                del found  # its traceback holds this frame

    update_wrapper(called, function)
    if "." not in called.__qualname__:  # where pickle finds it
        called.__module__, called.__qualname__ = module, call.rpartition(".")[2]
    return called


def explain_init(kind: type) -> None:
    """Let the constructor of a class of this package say what to write where arguments do not fit."""
    if "__init__" in vars(kind) and kind.__module__.partition(".")[0] == "reactgrad":
        explained_init = explained("", kind.__init__, kind.__module__)
        kind.__init__ = explained_init  # type: ignore[method-assign, misc]


def explain_all(owner: dict[str, Any], module: str, call: str) -> None:
    """Let the public functions of a module say what to write where arguments do not fit."""
    for name, one in list(owner.items()):
        if name[0] != "_" and inspect.isfunction(one):
            owner[name] = explained(f"{call}.{name}", one, module)


def explain_methods(kind: type, names: Iterable[str] = ()) -> None:
    """Let methods of a class do so: those that are named, or else all that are public."""
    own = vars(kind)
    for name in tuple(names) or [one for one in own if one[0] != "_"]:
        method = own[name]
        if inspect.isfunction(method):
            setattr(kind, name, explained(f"x.{name}", method, method.__module__))


_MOST: Final = 2**63 - 1  # of what an array counts
MOST_OF_C: Final = 2**31 - 1  # of what NumPy counts in an int of C, as places of diagonals


def whole(name: str, what: str, value: Any, least: int | None = None, most: int = _MOST) -> int:
    """Return the argument `what` of a function, which is an integer of at least `least` and at most `most`.

    Raises
    ------
    ParameterError
        If it is no integer, or no array can count as far.
    ShapeError
        If it is less.
    """
    try:
        number = int(value.__index__())
    except DTypeError:  # a Var: its text says what to write
        raise
    except (AttributeError, TypeError):  # an array that is no number has the method, and raises
        number = None
    if number is None or isinstance(value, bool):
        raise ParameterError(
            f"{name}: {what}={safe_repr(value):.60}; it is an integer, fixed when the node is built."
        )
    if not -most <= number <= most:
        raise ParameterError(f"{name}: {what}={safe_repr(number):.60}; no array is so large.")
    if least is not None and number < least:
        raise ShapeError(f"{name}: {what}={safe_repr(value):.60}; it must be at least {least}.")
    return number


def one_of(name: str, what: str, value: Any, words: tuple[str, ...]) -> None:
    """Check that the argument `what` of a function is one of some words.

    Raises
    ------
    ParameterError
        If it is none of them.
    """
    if not isinstance(value, str) or value not in words:
        raise ParameterError(
            f"{name}: {what}={safe_repr(value):.60}; it is one of {', '.join(map(repr, words))}."
        )


def memory_order(name: str, order: Any) -> None:
    """Check NumPy's word for how an array lies in memory, which says nothing here.

    Raises
    ------
    ParameterError
        If there is no such order.
    """
    if order is not None:
        one_of(
            name, "order", order.upper() if isinstance(order, str) else order, ("C", "F", "A", "K")
        )


def real_number(name: str, what: str, value: Any) -> float:
    """Return the argument `what` of a function, which is a real number.

    Raises
    ------
    DTypeError
        If it is none.
    """
    try:
        if not isinstance(value, str):
            return float(value)
    except DTypeError:  # a Var: its text says what to write
        raise
    except OverflowError:
        raise ParameterError(
            f"{name}: {what}={safe_repr(value):.60}; no float is so large."
        ) from None
    except (TypeError, ValueError):
        pass
    raise ParameterError(
        f"{name}: {what}={safe_repr(value):.60}; it is a number, fixed when the node is built."
    )
