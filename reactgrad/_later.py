"""A cheap ``import reactgrad``: names whose modules are imported when the name is first used.

Few programs need them, and importing their modules at once would be a good part of the cost.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from opcode import opmap


def later(
    package: str,
    places: Mapping[str, str],
    absent: Callable[[str, Iterable[str]], AttributeError] | None = None,
    form: Callable[[str, object], object] | None = None,
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a module that has some of its names from others.

    Parameters
    ----------
    package : str
        The name of the module, which is being imported.
    places : mapping of str to str
        For each name the module below ``reactgrad`` that defines it. A name that equals its entry
        is that module itself.
    absent : callable, optional
        Returns the error for a name that the module does not have, given the names that it has.
    form : callable, optional
        Returns what the module has of a name, given the name and what was found.
    """
    has = vars(sys.modules[package])

    def find(name: str) -> object:
        if name not in places:
            if absent is not None:
                raise as_found(absent(name, {*has, *places}), package) from None
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f"reactgrad.{places[name]}")
        # Stored in the module, so that Python finds it without `__getattr__` from now on.
        value: object = module if name == places[name] else getattr(module, name)
        if form is not None:
            value = form(name, value)
        has[name] = value
        return value

    return find, lambda: sorted({*has, *places})


def as_found(error: AttributeError, module: str) -> AttributeError | ImportError:
    """Return the error for a name that a module does not have, from the function that was asked for the name.

    ``from module import name`` drops the text of an ``AttributeError``, so there it is an ``ImportError``.
    """
    frame = sys._getframe(2)
    if frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"]:
        return ImportError(str(error), name=module)
    return error
