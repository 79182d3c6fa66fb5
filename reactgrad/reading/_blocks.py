"""Blocks that go around every run of their thread: anomaly mode and profiles.

While no such block is open in any thread, a run looks at one empty set and no further.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reactgrad.core._core import Core

# The open blocks of all threads, and those of this thread or task, innermost last.
open_blocks: set[Block] = set()
_mine: ContextVar[tuple[Block, ...]] = ContextVar("reactgrad_blocks", default=())


class Block(ABC):
    """One ``with`` block around the runs that its thread makes inside of it."""

    def __init__(self) -> None:
        self.running: set[int] = set()  # ids of the graphs that it is around

    @abstractmethod
    def around(self, graph: Core) -> AbstractContextManager[None]:
        """What to do around one run of `graph`; its lock is held."""

    def open(self) -> None:
        """Go around all runs of this thread from now on."""
        open_blocks.add(self)
        _mine.set((*_mine.get(), self))


def close_block() -> None:
    """Close the innermost block of this thread."""
    *others, block = _mine.get()
    _mine.set(tuple(others))
    open_blocks.discard(block)


def is_open(block: Block) -> bool:
    """Whether this thread or task is inside of the block."""
    return block in _mine.get()


def blocks_due(graph: Core) -> list[Block]:
    """The blocks of this thread that are not around the present run of `graph` yet."""
    return [block for block in _mine.get() if id(graph) not in block.running]


@contextmanager
def surrounded(graph: Core, blocks: list[Block]) -> Iterator[None]:
    """Have these blocks around a run."""
    for block in blocks:
        block.running.add(id(graph))
    try:
        with ExitStack() as stack:
            for block in blocks:
                stack.enter_context(block.around(graph))
            yield
    finally:
        for block in blocks:
            block.running.discard(id(graph))
