"""A cheap ``import reactgrad``: names whose modules are imported when the name is first used.

Few programs need them, and importing their modules at once would be a good part of the cost.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module


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
                raise absent(name, {*has, *places})
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f"reactgrad.{places[name]}")
        # Stored in the module, so that Python finds it without `__getattr__` from now on.
        value: object = module if name == places[name] else getattr(module, name)
        if form is not None:
            value = form(name, value)
        has[name] = value
        return value

    return find, lambda: sorted({*has, *places})
