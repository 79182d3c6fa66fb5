"""The machine that figures come from: processor, threads, versions."""

from __future__ import annotations

import os
import platform
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from timeit import repeat

from bench._peers import THREADS

PACKAGES = ("numpy", "torch", "jax", "reaktiv", "loman", "numexpr", "networkx")

# The libraries read these when they are loaded, so they are set before: the same threads for all.
ENVIRONMENT = {
    "OMP_NUM_THREADS": str(THREADS),
    "OPENBLAS_NUM_THREADS": str(THREADS),
    "MKL_NUM_THREADS": str(THREADS),
    "NUMEXPR_NUM_THREADS": str(THREADS),
    "JAX_PLATFORMS": "cpu",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}


def fix_threads() -> None:
    """Give this process and those it starts the same number of threads.

    Call it before NumPy is imported.
    """
    os.environ.update(ENVIRONMENT)


def describe() -> dict[str, str]:
    """Return machine, threads and versions, by name."""
    found = {
        "cpu": _cpu(),
        "cores": str(os.cpu_count()),
        "load": f"{os.getloadavg()[0]:.1f}",
        "a small NumPy call": f"{_yardstick():.0f} ns",
        "threads": str(THREADS),
        "python": platform.python_version(),
        "reactgrad": _version("reactgrad"),
    }
    return found | {name: _version(name) for name in PACKAGES}


def _yardstick() -> float:
    """Return the nanoseconds of the shortest NumPy call on this machine now, to which absolute
    figures relate.
    """
    import numpy as np

    one, out = np.ones(1), np.empty(1)
    call = partial(np.add, one, one, out)
    return median(repeat(call, number=2000, repeat=51)) / 2000 * 1e9


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
