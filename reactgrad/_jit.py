"""Switching the register machine of a graph on and off."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from reactgrad._errors import MissingExtraWarning
from reactgrad._site import user_level
from reactgrad.backend import find_play

if TYPE_CHECKING:
    from reactgrad._graph import Graph


def set_jit(graph: Graph, jit: bool) -> None:
    """Run small kernels in a row as one call from now on, or each by itself; see ``Graph.jit``."""
    play = find_play() if jit else None
    with graph._lock:
        graph._scheduler.check_idle()
        graph._scheduler.plans.unbind()
        graph._host.play = play
    if jit and play is None:
        warnings.warn(
            "Graph(jit=True) needs the package numba, which is not installed. Everything works without "
            'it, at the speed of single NumPy calls; pip install "reactgrad[jit]".',
            MissingExtraWarning,
            stacklevel=user_level(),
        )
