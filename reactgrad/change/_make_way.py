"""Spare nodes that nobody can see, released when they block a change."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from reactgrad._errors import ReactgradError, SeedError
from reactgrad.change._change import Change
from reactgrad.change._shape_check import Specs
from reactgrad.core._handles import handle
from reactgrad.core._lifetime import tidy
from reactgrad.core._live_programs import live_programs

if TYPE_CHECKING:
    from reactgrad.core._core import Core


def respec(graph: Core, sources: Specs, write: Callable[[Collection[int]], None]) -> None:
    """Give leaves other shapes and dtypes, and all that depends on them, and `write` them; or nothing."""
    shapes = graph._shapes
    if shapes.come_back(graph, sources, write):
        return
    leaves = [handle(graph, slot) for slot in sources]  # one that is named may have no other
    tried: set[int] = set()
    while True:
        tidy(graph)  # what nobody holds any more refuses nothing
        graph._scheduler.attend()  # so that marks tell which values rules may look at
        try:
            departure = shapes.leave(graph)
            with Change(graph, departure=departure) as change:
                change.define({}, sources)
                with graph._programs.while_reshaping():
                    change.follow()
                write(())
            if departure is not None:
                shapes.arrive(graph, departure)
            break
        except ReactgradError as error:
            departure = None  # which knows programs
            if not make_way(graph, error, sources, tried):
                raise
    del leaves


def make_way(graph: Core, refused: ReactgradError, slots: Iterable[int], tried: set[int]) -> bool:
    """Let go of what is there, but nobody may hold, and has refused a change of these nodes; whether there
    was something.

    Parameters
    ----------
    tried
        Outputs that were asked before to let go of their gradients.
    """
    if isinstance(refused, SeedError) and _let_go(graph, refused.output._slot, tried):
        return True
    # The gradients of a former backward refuse in words of their rules, and are kept for the next one only.
    went = [
        _let_go(graph, slot, tried)
        for slot, programs in live_programs(graph)
        if "backward" in programs
    ]
    if any(went):
        return True
    if graph._subgraphs is not None:
        # Perhaps only the frames of the error still hold the nodes that have refused.
        from traceback import clear_frames

        clear_frames(refused.__traceback__)
    return forget_unseen(graph, slots)


def forget_unseen(graph: Core, slots: Iterable[int]) -> bool:
    """Forget what is computed from these nodes, and themselves, where only ``g.reuse()`` or ``rg.subgraph`` keep it
    for later; whether there was something."""
    keepers = [keeper for keeper in (graph._reuse, graph._subgraphs) if keeper is not None]
    return any(keeper.make_way(graph, slots) for keeper in keepers)


def _let_go(graph: Core, slot: int, tried: set[int]) -> bool:
    """Let an output go of the gradients that it keeps; whether that was new."""
    if slot in tried:
        return False
    keeping = (handle(graph, slot)._programs_dict(), graph._host.twin_programs.get(slot, {}))
    gone = [
        (key, programs.pop(key))
        for programs in keeping
        for key, entry in [*programs.items()]
        if isinstance(entry, tuple)
    ]
    for key, entry in gone:
        if key != "backward":  # kept for the next backward only
            entry[1].stay()  # as long as somebody uses what it has given out
    tried.add(slot)
    return bool(gone)
