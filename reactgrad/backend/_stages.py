"""Instructions in an order in which several threads may share their elements.

A *wide* instruction computes each element of its result from the elements at the same place, so parts
of it may be computed by different threads, each of which goes on with its part. All others are
*narrow*: sums, and instructions of another width. Wide and narrow ones take turns, in stages; whoever
needs more of a result than its own part waits for a later stage.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter
from typing import Any, Final, NamedTuple

import numpy as np

from reactgrad.backend._instructions import MOST_OPERANDS

WIDE: Final = 0  # stages of wide instructions are even, those of narrow ones odd
_ADDRESSES: Final = slice(3, 3 + MOST_OPERANDS)
_STEPS: Final = slice(3 + MOST_OPERANDS, 3 + 2 * MOST_OPERANDS)


class Stage(NamedTuple):
    """Consecutive rows, and how many elements each computes if threads may share these, else 0."""

    begin: int
    end: int
    width: int


class _Written:
    """A buffer that some instruction writes."""

    __slots__ = ("end", "read", "stage", "step")

    def __init__(self, end: int, step: int, stage: int) -> None:
        self.end = end
        self.step = step
        self.stage = stage
        self.read = stage  # nobody may write it again before this stage


def staged(code: np.ndarray[Any, np.dtype[np.int64]]) -> tuple[Any, list[Stage]]:
    """Bring rows of instructions into stages.

    Returns
    -------
    code, stages
        The rows in another order, in which each has its operands as before.
    """
    work: Counter[int] = Counter()
    for size in code[:, 2].tolist():
        work[size] += size
    width = work.most_common(1)[0][0]
    buffers: dict[int, _Written] = {}
    begins: list[int] = []
    stages: list[int] = []

    def buffer_at(address: int) -> tuple[int, _Written | None]:
        place = bisect_right(begins, address) - 1
        if place >= 0 and address < buffers[begins[place]].end:
            return begins[place], buffers[begins[place]]
        return address, None

    for row in code.tolist():
        size, addresses = row[2], [address for address in row[_ADDRESSES] if address]
        steps = row[_STEPS][: len(addresses)]
        out, step = addresses[-1], steps[-1]
        kind = WIDE if size == width and step else 1
        stage = kind
        found: list[tuple[_Written, bool]] = []
        for address, each in zip(addresses, steps, strict=True):
            begin, buffer = buffer_at(address)
            if buffer is None:
                continue
            # A thread has computed itself what it needs of this, or nobody shares either.
            own = kind != WIDE or (address == begin and each == buffer.step)
            stage = max(stage, _from(buffer.stage, kind, own))
            found.append((buffer, own))
        begin, target = buffer_at(out)
        if target is None:
            target = buffers[out] = _Written(out + max(size * step, 1), step, stage)
            insort(begins, out)
        else:
            stage = max(stage, _from(target.read, kind, True))
        target.stage = target.read = stage
        for buffer, own in found:
            buffer.read = max(buffer.read, stage if own else stage + 1)
        stages.append(stage)
    order = np.argsort(stages, kind="stable")
    ends = [*(np.flatnonzero(np.diff(np.sort(stages))) + 1).tolist(), len(stages)]
    found_stages = [
        Stage(begin, end, 0 if stages[order[begin]] % 2 else width)
        for begin, end in zip([0, *ends], ends, strict=False)
    ]
    return np.ascontiguousarray(code[order]), found_stages


def _from(stage: int, kind: int, own: bool) -> int:
    """The first stage of a kind for what needs something of `stage`; the same one, if it may."""
    if stage % 2 == kind:
        return stage if own else stage + 2
    return stage + 1
