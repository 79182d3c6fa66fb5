"""A host in front of another one, which sees each node run; in place for the length of one run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, cast

from reactgrad.scheduler import Host, Scheduler, Step, block


class Through(ABC):
    """A host that passes all questions on to the one behind it, except those that it overrides.

    See ``reactgrad_scheduler.Host`` for the questions.
    """

    def __init__(self, behind: Host) -> None:
        self._behind = behind

    def __getattr__(self, name: str) -> Any:
        return getattr(self._behind, name)

    def bind(self, slot: int) -> Step:
        return partial(self.run, slot, self._behind.bind(slot))

    def bind_all(self, slots: Sequence[int]) -> tuple[list[Step | None], bool]:
        return [self.bind(slot) for slot in slots], any(map(self._behind.lends, slots))

    def costs(self, slots: Sequence[int]) -> None:
        """Return ``None``: nodes run one after the other, so no costs are needed to share them out."""
        return

    @abstractmethod
    def run(self, slot: int, step: Step | None) -> object:
        """Call ``step``, which computes the value of a node; ``None`` if the node is a view."""


@block
def in_front(scheduler: Scheduler, host: Through) -> Iterator[None]:
    """Let the scheduler use this host for a block.

    Plans hold steps that were bound without it, so none of them is used in the block, and each node
    is bound when it runs.
    """
    former, scheduler.host = scheduler.host, cast("Host", host)
    try:
        with scheduler.plans.aside():
            yield
    finally:
        scheduler.host = former
