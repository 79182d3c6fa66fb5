"""The gradient programs that the handles of a graph hold, by output."""

from __future__ import annotations

from typing import Any

from reactgrad.core._core import Core


def live_programs(graph: Core) -> list[tuple[int, dict[Any, Any]]]:
    """Return the slots of outputs that have gradient programs, each with its programs by their keys."""
    host = graph._host
    found: dict[int, dict[Any, Any]] = dict(host.twin_programs)
    for program in graph._programs.in_order():
        ref = host.handles[program._output]
        var = ref() if ref is not None else None
        if var is not None and program._output not in host.removed:
            found[var._slot] = {
                key: entry
                for key, entry in var._programs_dict().items()
                if isinstance(entry, tuple)
            }
    return list(found.items())
