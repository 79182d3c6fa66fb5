"""All workloads, in the order of their numbers."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

import bench
from bench._case import Workload

# Listed here to show that they are planned.
LATER = {
    "B15": "on a GPU: belongs to the work on CuPy",
}


def modules() -> list[str]:
    """Return the names of the modules that hold a workload each."""
    names = sorted(found.name for found in iter_modules(bench.__path__))
    return [f"bench.{name}" for name in names if name[0] == "b" and name[1:3].isdecimal()]


def workload_of(module: str) -> Workload:
    """Return the workload that a module holds."""
    return import_module(module).WORKLOAD


def numbers() -> list[str]:
    """Return all numbers of the table, planned ones included."""
    found = {workload_of(module).number for module in modules()} | set(LATER)
    return sorted(found, key=lambda number: int(number[1:]))
