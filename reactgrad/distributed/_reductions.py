"""The meaning of every collective, in NumPy: each rank's part of what all ranks give."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from reactgrad.distributed._request import Request

REDUCTIONS: dict[str, Any] = {
    "sum": np.add,
    "avg": np.add,  # divided by the number of ranks afterwards
    "max": np.maximum,
    "min": np.minimum,
    "product": np.multiply,
}


def combined(request: Request, given: Sequence[np.ndarray]) -> Any:
    """Return what all ranks share of a result: computed once, by the rank that comes last."""
    if request.kind in ("all_reduce", "reduce", "reduce_scatter"):
        total = reduce(REDUCTIONS[request.reduction or "sum"], given)
        return total / len(given) if request.reduction == "avg" else total
    if request.kind in ("gather", "all_gather"):
        return np.concatenate(given)
    return None


def part(request: Request, rank: int, whole: Any, given: Sequence[np.ndarray]) -> np.ndarray:
    """Return what a rank gets, in memory of its own."""
    kind, size, dtype = request.kind, len(given), np.dtype(request.dtype)
    if kind == "all_gather":
        return whole.copy()
    if kind == "all_reduce":
        return np.array(whole, dtype)
    if kind == "reduce":
        return np.array(whole, dtype) if rank == request.root else np.zeros(request.size, dtype)
    if kind == "gather":
        return whole.copy() if rank == request.root else np.zeros(len(whole), dtype)
    if kind == "reduce_scatter":
        return np.array(np.split(whole, size)[rank], dtype)
    if kind == "message":  # of two ranks, the sender first
        return given[0].copy()
    if kind == "broadcast":
        return given[request.root or 0].copy()
    if kind == "scatter":
        return np.split(given[request.root or 0], size)[rank].copy()
    if kind == "all_to_all":
        return np.concatenate([np.split(one, size)[rank] for one in given])
    return np.zeros(0, dtype)
