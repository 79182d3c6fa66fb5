"""An order of instructions in which several threads may share their elements.

A *wide* instruction computes each element of its result from the elements at the same place. So
different threads may compute parts of it, and each may go on to the next wide instruction with its own
part. All other instructions are *narrow*: sums, and those of another number of elements. Stages of wide
and of narrow instructions take turns, and all threads wait between them. An instruction that needs more
of a result than the thread's own part belongs to a later stage than that result.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from reactgrad.backend.machine._code import EXTENT, HEAD, OPERANDS, SIZE

WIDE: Final = 0  # stages of wide instructions are even, those of narrow ones odd


class Stage(NamedTuple):
    """Instructions to do in this order, and their width.

    The width is the number of elements of each instruction if threads may share them, and otherwise 0.
    """

    rows: list[list[int]]
    width: int


class _Written:
    """A buffer that an instruction writes: its end, its step, the stage that wrote it last."""

    __slots__ = ("end", "read", "stage", "step")

    def __init__(self, end: int, step: int, stage: int) -> None:
        self.end = end
        self.step = step
        self.stage = stage
        self.read = stage  # it may not be written again before this stage


def staged(rows: Sequence[list[int]]) -> list[Stage]:
    """Sort instructions into stages such that each still finds its operands as in the given order."""
    # The width is the number of elements on which the instructions do the most work together.
    work: Counter[int] = Counter()
    for row in rows:
        work[row[SIZE]] += row[SIZE]
    width = work.most_common(1)[0][0]
    buffers: dict[int, _Written] = {}
    begins: list[int] = []
    stages: dict[int, list[list[int]]] = {}

    # Buffers by their first address, in order: operands may begin inside of one that was written.
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
            # True if a thread needs only what it has computed itself, or if no thread shares this one.
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
    """Return the first stage of a kind for an instruction that depends on one of `stage`.

    It is the same stage if that has the kind, and the instruction needs only the thread's `own` part.
    """
    if stage % 2 == kind:
        return stage if own else stage + 2
    return stage + 1
