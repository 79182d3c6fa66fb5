"""Groups of steps of a plan that are computed together: large arrays of one shape, block by block.

The steps of a group need not be neighbours. A step may join an earlier one of its shape if all that it
reads is there by then: either it comes from steps of the group, block by block, or from steps before
the first of the group.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from reactgrad.backend import Blockwise, Elementwise, GuardedStep, Launch, Reduction, Strip, Turn
from reactgrad.scheduler import Step

Sources = Callable[[int], list[tuple[int, int]]]


_KINDS = frozenset((Elementwise, Reduction))
_ON_DEVICES = frozenset((GuardedStep, Launch))


class _Group:
    """Steps that can be computed together, in the order of the plan."""

    def __init__(self, began: int) -> None:
        self.began = began  # position of the first step in the plan
        self.steps: dict[int, Blockwise] = {}  # by slot
        self.positions: list[int] = []

    def takes(self, sources: list[tuple[int, int]], position: dict[int, int]) -> bool:
        """Return whether a step with these sources can be computed together with the group."""
        for source, root in sources:
            member = self.steps.get(root)
            if member is not None:
                # A view shifts places between blocks; a reduction has its value only at the end.
                if source != root or type(member) is Reduction:
                    return False
            elif position.get(root, -1) > self.began:
                return False
        return True


def fuse(
    slots: Sequence[int], steps: list[Step], sources: Sources, stopped: Callable[[], bool]
) -> list[Step]:
    """Return steps to be called in place of these, one for one.

    Parameters
    ----------
    slots, steps
        A whole plan.
    sources
        Returns what the step of a slot reads: each parent, with the slot in whose memory its value lies.
    stopped
        Returns whether the run was cancelled.

    Returns
    -------
    list of callable
        ``steps`` itself if nothing can be computed together.
    """
    kinds = set(map(type, steps))
    if not _ON_DEVICES.isdisjoint(kinds):
        from reactgrad.backend.cupy._capture import captured

        steps = captured(steps, stopped)
    if _KINDS.isdisjoint(kinds):
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
    """Exchange steps that were bound anew in a result of ``fuse``. Return whether that was possible.

    Grouping depends on kinds and shapes of steps only, so it stays while these are the same. If not,
    the caller must fuse again.
    """
    for at in places:
        call, step = fused[at], steps[at]
        if isinstance(call, Turn) or hasattr(call, "segment"):
            if not call.becomes(step):
                return False
        elif fused is steps:  # nothing was grouped
            if type(step) in _KINDS or type(step) in _ON_DEVICES:
                return False
        elif _shape(call) != _shape(step):
            return False
        else:
            fused[at] = step
    return True


def _shape(step: Step) -> tuple[object, ...] | None:
    """Return the kind and shape by which a step is grouped; ``None`` if it never is."""
    return (type(step), step.shape) if isinstance(step, Elementwise | Reduction) else None
