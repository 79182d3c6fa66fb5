"""Gradients follow what they were built for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactgrad.change._change import Change

if TYPE_CHECKING:
    from reactgrad.core._core import Core
    from reactgrad.core._programs import Program


def update_program(graph: Core, program: Program, slots: set[int]) -> None:
    """Build gradients anew whose operands' shapes show only in values."""
    programs = graph._programs
    # But in the midst of an edit rules may look at values: nothing else changes.
    following, programs.following = programs.following, not programs.changing
    try:
        with Change(graph) as change:
            change.update(program, slots, slots)
            change.follow()
    finally:
        programs.following = following
