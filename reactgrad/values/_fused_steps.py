"""Which steps of a plan are computed together: large arrays of one shape, block by block.

Steps need not be neighbours. One may move up to an earlier one of its shape if all that it reads is
there by then: from steps that it is computed together with, each block in its turn, or from before
the first of these.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from reactgrad.backend import Blockwise, Elementwise, Reduction, Strip, Turn
from reactgrad.scheduler import Step

Sources = Callable[[int], list[tuple[int, int]]]


_KINDS = frozenset((Elementwise, Reduction))


class _Group:
    """Steps that can be computed together, in the order of the plan."""

    def __init__(self, began: int) -> None:
        self.began = began  # position of the first
        self.steps: dict[int, Blockwise] = {}  # by slot
        self.positions: list[int] = []

    def takes(self, sources: list[tuple[int, int]], position: dict[int, int]) -> bool:
        """Whether a step with these sources can be computed with them."""
        for source, root in sources:
            member = self.steps.get(root)
            if member is not None:
                # A view has other places than its parent; a reduction is there at the end only.
                if source != root or type(member) is Reduction:
                    return False
            elif position.get(root, -1) > self.began:
                return False
        return True


def fuse(
    slots: Sequence[int], steps: list[Step], sources: Sources, stopped: Callable[[], bool]
) -> list[Step]:
    """Steps to be called in place of these, one for one.

    Parameters
    ----------
    slots, steps
        A whole plan.
    sources
        For a slot what its step reads: each parent, with the slot in whose memory its value lies.
    stopped
        Whether the run was cancelled.

    Returns
    -------
    list of callable
        `steps` itself if there is nothing to be computed together.
    """
    if _KINDS.isdisjoint(map(type, steps)):
        return steps
    groups: list[_Group] = []
    open_groups: dict[tuple[int, ...], _Group] = {}
    position: dict[int, int] = {}
    for i, (slot, step) in enumerate(zip(slots, steps, strict=True)):
        position[slot] = i
        if isinstance(step, Elementwise | Reduction):
            group = open_groups.get(step.shape)
            if group is None or not group.takes(sources(slot), position):
                group = open_groups[step.shape] = _Group(i)
                groups.append(group)
            group.steps[slot] = step
            group.positions.append(i)
    fused = steps.copy()
    for group in groups:
        if len(group.steps) > 1:
            strip = Strip(list(group.steps.values()), stopped)
            for i, at in enumerate(group.positions):
                fused[at] = Turn(strip, i)
    return fused


def replaced(fused: list[Step], steps: list[Step], places: Collection[int]) -> bool:
    """Put what some steps are now into what ``fuse`` made of them; ``False``: fuse them again.

    Which ones are computed together depends on their kinds and shapes; what they read is the same.
    """
    for at in places:
        call, step = fused[at], steps[at]
        if type(call) is Turn:
            if not call.becomes(step):
                return False
        elif fused is steps:  # none was computed by blocks
            if type(step) in _KINDS:
                return False
        elif _shape(call) != _shape(step):
            return False
        else:
            fused[at] = step
    return True


def _shape(step: Step) -> tuple[object, ...] | None:
    """What decides with which others a step may be computed."""
    return (type(step), step.shape) if isinstance(step, Elementwise | Reduction) else None
