"""Segments of a plan that run on a GPU as one graph.

A run of kernels that neither allocate memory nor call a library that refuses to be captured (cuBLAS, cuSOLVER,
cuSPARSE, cuRAND) is captured once and then launched by one call. Kernels between such runs are called as
before. A graph computes the same bits as its kernels do alone (rule E18).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, Final

from reactgrad.backend._registry import Binder, GuardedStep, Launch
from reactgrad.backend.numpy._in_turn import InTurn

# Ops whose bound steps only write into memory that they were bound to.
CAPTURED: Final = (
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "isnan", "isfinite"),
    *("logical_and", "logical_or", "logical_not", "add", "subtract", "multiply", "divide", "power"),
    *("floor_divide", "remainder", "hypot", "arctan2", "logaddexp", "negative", "absolute", "sign"),
    *("floor", "ceil", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "square"),
    *("reciprocal", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh"),
    *("maximum", "minimum", "relu", "relu_grad", "sigmoid", "tanh_backward", "sigmoid_backward"),
    *("one_minus_square", "unit", "chain_times", "chain_over", "astype", "where", "accumulate"),
    *("alias", "detach", "scale_grad", "transpose", "broadcast_to", "expand_dims", "squeeze"),
    *("split", "array_split", "unbind", "real", "imag", "broadcast_like"),
)

# So many kernels pay for a graph.
FEWEST: Final = 2
# The runs before a segment is captured again double each time that its memory has moved, up to this.
_LONGEST_WAIT: Final = 64

# One stream for each device, to capture on: the default stream cannot be captured.
_streams: dict[tuple[int, int], Any] = {}
_capturing = threading.Lock()  # threads of several graphs share these streams


class Launching:
    """A binder whose steps may be captured, if they are calls of the library alone."""

    __slots__ = ("binder", "xp")

    def __init__(self, binder: Binder, xp: Any) -> None:
        self.binder, self.xp = binder, xp

    def __call__(
        self, inputs: Sequence[Any], out: Any, attrs: tuple[Any, ...]
    ) -> Callable[[], object]:
        step = self.binder(inputs, out, attrs)
        # A Python function may allocate memory, which a later launch would not own.
        return Launch(step, self.xp) if isinstance(step, InTurn | partial) else step


class Segment:
    """Steps of one device that follow each other and may be captured together.

    Parameters
    ----------
    steps
        In their order.
    stopped
        Returns whether the run was cancelled.
    """

    __slots__ = ("_done", "_graph", "_left", "_never", "_stopped", "_wait", "steps")

    def __init__(self, steps: Sequence[Any], stopped: Callable[[], bool]) -> None:
        self.steps = list(steps)
        self._stopped = stopped
        self._graph: Any = None
        self._done = False
        self._never = False  # it could not be captured
        self._wait = self._left = (
            1  # runs before it is captured; the first one compiles the kernels
        )

    def first(self) -> None:
        """Launch all steps, or run the first one."""
        self._done = False
        if self._graph is None and not self._never:
            if self._left:
                self._left -= 1
            else:
                self._capture()
        if self._graph is None or self._stopped():
            self.steps[0]()
            return
        guard, _ = _parts(self.steps[0])
        with guard or nullcontext():
            self._graph.launch()
        self._done = True

    def next(self, i: int) -> None:
        """Run step `i` unless the first turn has launched it."""
        if not self._done:
            self.steps[i]()

    def replace(self, i: int, step: Any) -> None:
        """Replace step `i`, which is bound to other memory now."""
        self.steps[i] = step
        self._graph = None
        self._wait = self._left = min(2 * self._wait, _LONGEST_WAIT)

    def _capture(self) -> None:
        guard, launch = _parts(self.steps[0])
        with _capturing, guard or nullcontext():
            self._graph = self._captured(launch.xp)
        self._never = self._graph is None

    def _captured(self, xp: Any) -> Any:
        """Return the graph of the steps, or ``None`` if one of them cannot be captured."""
        key = (id(xp), xp.cuda.runtime.getDevice())
        stream = _streams.get(key)
        if stream is None:
            stream = _streams[key] = xp.cuda.Stream(non_blocking=True)
        graph = None
        with stream:
            stream.begin_capture()
            try:
                for step in self.steps:
                    _parts(step)[1].call()
                fine = True
            except Exception:  # it is raised again when the step runs by itself
                fine = False
            finally:
                try:
                    graph = stream.end_capture()
                except Exception:  # what was captured so far is void
                    fine = False
        if not fine:
            _streams.pop(key, None)  # whatever state it is left in
        return graph if fine else None


class CapturedTurn:
    """One step of a segment, as a plan calls it."""

    __slots__ = ("_place", "segment")

    def __init__(self, segment: Segment, place: int) -> None:
        self.segment, self._place = segment, place

    def __call__(self) -> None:
        if self._place:
            self.segment.next(self._place)
        else:
            self.segment.first()

    def becomes(self, step: Any) -> bool:
        """Let `step` take this turn if it may be captured on the same device. Return whether it does."""
        place = place_of(step)
        if place is None or place != place_of(self.segment.steps[self._place]):
            return False
        self.segment.replace(self._place, step)
        return True


def _parts(step: Any) -> tuple[Any, Any]:
    return (step.guard, step.step) if type(step) is GuardedStep else (None, step)


def place_of(step: Any) -> int | None:
    """Return a number for the device on which a step may be captured; ``None`` if it may not be."""
    guard, inner = _parts(step)
    return id(guard) if type(inner) is Launch else None


def captured(steps: list[Any], stopped: Callable[[], bool]) -> list[Any]:
    """Return steps to be called in place of these, one for one: runs that may be captured launch together."""
    found = steps.copy()
    begin = 0
    while begin < len(steps):
        place = place_of(steps[begin])
        end = begin + 1
        while place is not None and end < len(steps) and place_of(steps[end]) == place:
            end += 1
        if place is not None and end - begin >= FEWEST:
            segment = Segment(steps[begin:end], stopped)
            found[begin:end] = [CapturedTurn(segment, i) for i in range(end - begin)]
        begin = end
    return found
