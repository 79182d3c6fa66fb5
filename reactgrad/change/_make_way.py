"""Release of spare nodes, which nothing visible needs, where they block a change."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from reactgrad._errors import ReactgradError, SeedError
from reactgrad.change._change import Change
from reactgrad.change._shape_check import Specs
from reactgrad.core._handles import handle, tidy
from reactgrad.core._live_programs import live_programs

if TYPE_CHECKING:
    from reactgrad.change._former_shapes import Write
    from reactgrad.core._core import Core


def respec(graph: Core, sources: Specs, write: Write) -> None:
    """Give leaves other specs, update all that depends on them, and `write` the new values.

    If anything is refused, nothing changes.
    """
    shapes = graph._shapes
    if shapes.come_back(graph, sources, write):
        return
    # Hold handles meanwhile: a name alone keeps no node alive.
    leaves = [handle(graph, slot) for slot in sources]

    def reshape() -> None:
        graph._scheduler.attend()  # so that marks say which values rules may read
        departure = shapes.leave(graph)
        with Change(graph, departure=departure) as change:
            change.define({}, sources)
            with graph._programs.while_reshaping():
                change.follow()
            write((), change.back_by)
        if departure is not None:
            shapes.arrive(graph, departure)

    making_way(graph, sources, reshape)
    del leaves


def making_way(graph: Core, slots: Collection[int], change: Callable[[], None]) -> None:
    """Make a change of `slots`; as long as it is refused, release spare nodes and try again."""
    tried: set[int] = set()
    while True:
        tidy(graph)  # nodes that nothing holds any longer cannot refuse
        try:
            return change()
        except ReactgradError as error:
            if not _make_way(graph, error, slots, tried):
                raise


def _make_way(graph: Core, refused: ReactgradError, slots: Iterable[int], tried: set[int]) -> bool:
    """Release spare nodes that block a change of `slots`. Return whether any were released.

    Parameters
    ----------
    refused
        The error that refused the change.
    tried
        Outputs whose kept gradients were released before.
    """
    if isinstance(refused, SeedError) and _let_go(graph, refused.output._slot, tried):
        return True
    # Gradients that only the next ``backward`` would use refuse with the errors of their rules.
    went = [
        _let_go(graph, slot, tried)
        for slot, programs in live_programs(graph)
        if "backward" in programs
    ]
    if any(went):
        return True
    if graph._subgraphs is not None:
        # The nodes that refused may be held by nothing but the frames of the error.
        from traceback import clear_frames

        clear_frames(refused.__traceback__)
    return forget_unseen(graph, slots)


def forget_unseen(graph: Core, slots: Iterable[int]) -> bool:
    """Release nodes that only ``g.reuse()`` or ``rg.subgraph`` keeps.

    That is these nodes and what is computed from them. Return whether there were any.
    """
    keepers = [keeper for keeper in (graph._reuse, graph._subgraphs) if keeper is not None]
    return any(keeper.make_way(graph, slots) for keeper in keepers)


def _let_go(graph: Core, slot: int, tried: set[int]) -> bool:
    """Release the gradients that an output keeps.

    Return whether it kept any and was not tried before.
    """
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
        if key != "backward":  # that one is kept for the next backward only
            entry[1].stay()  # it stays while a gradient that it gave out lives
    tried.add(slot)
    return bool(gone)
