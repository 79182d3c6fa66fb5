"""The threads of other libraries: those of BLAS, through threadpoolctl, and those of numba."""

from __future__ import annotations

import importlib
import sys
from typing import Any

# What was there before the first limit: by it all former numbers of threads of BLAS are put back.
_limits: Any = None
_numba_before: int | None = None


def limit(count: int | None) -> None:
    """Give the libraries that are loaded this number of threads; ``None``: as many as they had before.

    BLAS keeps its number where threadpoolctl is not installed.
    """
    global _limits
    if _limits is not None:
        _limits.restore_original_limits()
        _limits = None
    threadpoolctl = controller()
    if threadpoolctl is not None and count is not None:
        _limits = threadpoolctl.threadpool_limits(limits=count, user_api="blas")
    _limit_numba(count)


def _limit_numba(count: int | None) -> None:
    global _numba_before
    numba: Any = sys.modules.get("numba")
    if numba is None:
        return
    if _numba_before is None:
        _numba_before = numba.get_num_threads()
    # It cannot have more than it was started with.
    most = numba.config.NUMBA_NUM_THREADS
    numba.set_num_threads(_numba_before if count is None else min(count, most))


def controller() -> Any:
    """Return the module threadpoolctl, ``None`` where it is not installed."""
    try:
        return importlib.import_module("threadpoolctl")
    except ImportError:
        return None


def blas_pools() -> list[dict[str, Any]] | None:
    """Return what threadpoolctl says of each BLAS library; ``None`` where it is not installed."""
    threadpoolctl = controller()
    if threadpoolctl is None:
        return None
    return [pool for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]
