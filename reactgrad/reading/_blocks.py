"""Blocks that go around every run of their thread: anomaly mode and profiles.

While no such block is open in any thread, a run costs one check of an empty set.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from contextvars import ContextVar

from reactgrad.core._core import Core
from reactgrad.scheduler import block

# The open blocks of all threads, and those of this thread or task, innermost last.
open_blocks: set[Block] = set()
_mine: ContextVar[tuple[Block, ...]] = ContextVar("reactgrad_blocks", default=())


class Block(ABC):
    """A ``with`` block that surrounds the runs made inside of it by its thread or task."""

    def __init__(self) -> None:
        self.running: set[int] = set()  # ids of graphs whose present run is surrounded already

    @abstractmethod
    def around(self, graph: Core) -> AbstractContextManager[None]:
        """Return the context manager for one run of `graph`; its lock is held."""

    def open(self) -> None:
        """Surround all runs of this thread from now on."""
        open_blocks.add(self)
        _mine.set((*_mine.get(), self))


def close_block() -> None:
    """Close the innermost block of this thread."""
    *others, block = _mine.get()
    _mine.set(tuple(others))
    open_blocks.discard(block)


def is_open(block: Block) -> bool:
    """Return whether this thread or task is inside of the block."""
    return block in _mine.get()


def blocks_due(graph: Core) -> list[Block]:
    """Return the blocks of this thread that do not surround the present run of `graph` yet."""
    return [block for block in _mine.get() if id(graph) not in block.running]


@block
def surrounded(graph: Core, blocks: list[Block]) -> Iterator[None]:
    """Surround a run with these blocks."""
    for one in blocks:
        one.running.add(id(graph))
    try:
        with ExitStack() as stack:
            for one in blocks:
                stack.enter_context(one.around(graph))
            yield
    finally:
        for one in blocks:
            one.running.discard(id(graph))
