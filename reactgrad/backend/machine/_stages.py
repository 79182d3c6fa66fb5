"""Instructions in an order in which several threads may share their elements.

A *wide* instruction computes each element of its result from the elements at the same place, so parts
of it may be computed by different threads, each of which goes on with its part. All others are
*narrow*: sums, and instructions of another width. Wide and narrow ones take turns, in stages; whoever
needs more of a result than its own part waits for a later stage.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from reactgrad.backend.machine._code import EXTENT, HEAD, OPERANDS, SIZE

WIDE: Final = 0  # stages of wide instructions are even, those of narrow ones odd


class Stage(NamedTuple):
    """Rows that are played in turn, and how many elements each computes if threads may share these, else 0."""

    rows: list[list[int]]
    width: int


class _Written:
    """A buffer that some instruction writes."""

    __slots__ = ("end", "read", "stage", "step")

    def __init__(self, end: int, step: int, stage: int) -> None:
        self.end = end
        self.step = step
        self.stage = stage
        self.read = stage  # nobody may write it again before this stage


def staged(rows: Sequence[list[int]]) -> list[Stage]:
    """Bring instructions into an order of stages, in which each has its operands as before."""
    work: Counter[int] = Counter()
    for row in rows:
        work[row[SIZE]] += row[SIZE]
    width = work.most_common(1)[0][0]
    buffers: dict[int, _Written] = {}
    begins: list[int] = []
    stages: dict[int, list[list[int]]] = {}

    def buffer_at(address: int) -> tuple[int, _Written | None]:
        place = bisect_right(begins, address) - 1
        if place >= 0 and address < buffers[begins[place]].end:
            return begins[place], buffers[begins[place]]
        return address, None

    for row in rows:
        size, end = row[SIZE], HEAD + row[OPERANDS]
        addresses, steps = row[HEAD:end], row[end:]
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
            target = buffers[out] = _Written(out + row[EXTENT], step, stage)
            insort(begins, out)
        else:
            stage = max(stage, _from(target.read, kind, True))
        target.stage = target.read = stage
        for buffer, own in found:
            buffer.read = max(buffer.read, stage if own else stage + 1)
        stages.setdefault(stage, []).append(row)
    return [Stage(stages[stage], width if stage % 2 == WIDE else 0) for stage in sorted(stages)]


def _from(stage: int, kind: int, own: bool) -> int:
    """The first stage of a kind for what needs something of `stage`; the same one, if it may."""
    if stage % 2 == kind:
        return stage if own else stage + 2
    return stage + 1
