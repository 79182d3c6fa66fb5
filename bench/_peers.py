"""Packages of the ``bench`` extra, which may be absent."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

THREADS = 2


def installed(package: str) -> bool:
    """Return whether a package can be imported, without importing it.

    Examples
    --------
    >>> installed("numpy"), installed("no_such_package")
    (True, False)
    """
    return find_spec(package) is not None


def load(package: str) -> Any:
    """Import a peer, set up for a fair comparison: the same threads, and 64-bit floats where ours
    has them.
    """
    module: Any = import_module(package)
    if package == "torch":
        module.set_num_threads(THREADS)
    elif package == "jax":
        module.config.update("jax_enable_x64", True)
    elif package == "numexpr":
        module.set_num_threads(THREADS)
    return module
