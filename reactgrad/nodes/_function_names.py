"""Functions by name: a saved graph holds names instead of code.

A function of a module is found again as ``module:qualname``. The program that loads a file decides
which names the file may use: functions that the program itself has given to ``rg.lift`` or as a
cutoff, and functions of modules that the caller trusts by name.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Collection
from functools import partial
from types import MethodType, ModuleType
from typing import Any, NamedTuple

from reactgrad.scheduler import error_text, is_interrupt, safe_repr

# At most so many decorators around a function, such as ``rg.lift`` itself, are unwrapped.
MOST_WRAPPERS = 8

_known: set[str] = set()  # names of functions that this program has used in graphs


class FunctionName(NamedTuple):
    """The way to a function: its name, and how many decorators to unwrap there."""

    text: str
    wrappers: int


class UnnamedError(Exception):
    """A function cannot be found by a name; the message says why and what to write instead."""


class UntrustedError(Exception):
    """A file names a function that the program has neither used nor trusted."""


def remember(function: Any) -> None:
    """Note that the program itself uses `function` in graphs, so that files may use it."""
    module, qualname = getattr(function, "__module__", None), getattr(function, "__qualname__", "<")
    if isinstance(module, str) and isinstance(qualname, str) and "<" not in qualname:
        _known.add(f"{module}:{qualname}")


def name_of(function: Callable[..., Any]) -> FunctionName:
    """Return the name under which `function` is found.

    Raises
    ------
    UnnamedError
        If there is none, or if it leads to another object.
    """
    if isinstance(function, partial):
        raise UnnamedError(
            "it is a functools.partial, which has no name. Lift the function itself and pass the "
            "fixed arguments in the call: rg.lift(f)(x, 3.0)"
        )
    owner = getattr(function, "__self__", None)
    if isinstance(function, MethodType) or not (owner is None or isinstance(owner, ModuleType)):
        raise UnnamedError(
            "it is a method bound to an object, which a name cannot bring back. Write a function "
            "at the top level of a module that takes what it needs as arguments"
        )
    module, qualname = (
        getattr(function, "__module__", None),
        getattr(function, "__qualname__", None),
    )
    if not isinstance(module, str) or not isinstance(qualname, str):
        raise UnnamedError(
            f"it is an object of class {type(function).__qualname__}, not a function of a module. "
            "Write a function at the top level of a module"
        )
    if "<lambda>" in qualname:
        raise UnnamedError(
            "it is a lambda, which has no name to be found by. Write it as a def at the top level "
            "of a module"
        )
    if "<locals>" in qualname:
        raise UnnamedError(
            f"it is defined inside of another function ({qualname}). Move it to the top level of "
            "its module and pass what it needs as arguments: rg.lift(f)(x, 3.0)"
        )
    text = f"{module}:{qualname}"
    try:
        found = _walk(text, sys.modules.get(module))
    except LookupError as error:
        raise UnnamedError(
            f"{text} is not there ({error.args[0]}). Define it at the top level of an importable "
            "module, under its own name"
        ) from None
    for wrappers in range(MOST_WRAPPERS + 1):
        if found is function:
            return FunctionName(text, wrappers)
        found = getattr(found, "__wrapped__", None)
    raise UnnamedError(
        f"{text} is another object than the function in the graph: it was redefined or reloaded. "
        "Build the node with the present one"
    )


def find(name: FunctionName, trust: Collection[str]) -> Callable[..., Any]:
    """Return the function of this name.

    Parameters
    ----------
    name
        A name from a file, which may be anything.
    trust
        Modules and packages that may be imported and whose functions may be used.

    Raises
    ------
    UntrustedError
        If the program has neither used nor trusted this function. Nothing was imported.
    LookupError
        If there is no such function, or it is one of another module.
    """
    text, wrappers = name
    module, colon, qualname = text.partition(":")
    if (
        not colon
        # The program itself, and no `__main__` of a package, which would run with the import.
        or not (module == "__main__" or all(map(_plain, module.split("."))))
        or not all(map(_plain, qualname.split(".")))
    ):
        raise LookupError(f"{text!r} is not of the form module:function")
    trusted = any(module == one or module.startswith(one + ".") for one in trust)
    if not trusted and text not in _known:
        raise UntrustedError(text)
    if trusted and module not in sys.modules:
        try:
            importlib.import_module(module)
        except (Exception, SystemExit) as error:  # whatever its lines raise
            if isinstance(error, Exception) and is_interrupt(error):
                raise
            raise LookupError(f"{module} cannot be imported: {error_text(error)}") from error
    found = _walk(text, sys.modules.get(module))
    for _ in range(wrappers):
        found = getattr(found, "__wrapped__", None)
    if not callable(found):
        raise LookupError(f"{text} is {'wrapped otherwise' if wrappers else 'no function'} here")
    # A trusted module also holds what it has imported from others: the function must be its own.
    try:
        same = name_of(found)[0] == text
    except UnnamedError:
        same = False
    if not same:
        raise LookupError(f"{text} belongs to another module or has another name")
    return found


def _plain(part: str) -> bool:
    return part.isidentifier() and not part.startswith("__")


def _walk(text: str, module: ModuleType | None) -> Any:
    """Return the object of this name, which may lie in classes of the module.

    The way never leads through a module inside of the module, which has a name of its own.
    """
    if module is None:
        raise LookupError("its module is not imported")
    found: Any = module
    for part in text.partition(":")[2].split("."):
        if found is not module and not isinstance(found, type):
            raise LookupError(f"{text} goes through something that is no class")
        found = vars(found).get(part)
        if found is None or isinstance(found, ModuleType):
            raise LookupError(f"it has no function {safe_repr(part)}")
    return found.__func__ if isinstance(found, staticmethod) else found
