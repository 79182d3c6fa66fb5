"""Public names that are loaded when they are asked for.

They are seldom wanted, and their modules would be a good part of what ``import reactgrad`` costs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def later(
    package: str, places: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a module, some of whose names lie in others.

    Parameters
    ----------
    package : str
        The module.
    places : mapping of str to str
        Names, and the modules of reactgrad that have them; a module itself under its own name.
    """
    has = vars(sys.modules[package])

    def find(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f"reactgrad.{places[name]}")
        value = has[name] = module if name == places[name] else getattr(module, name)
        return value

    return find, lambda: sorted({*has, *places})
