"""A fork that is set and read point by point: what no point changes is computed once."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, Literal

import reactgrad as rg
from reactgrad.whatif._errors import ScenarioError
from reactgrad.whatif._points import BASE, Points

BLOCK = 64  # points that a worker takes at a time, at most
MOST_READERS = 256  # of different sets of inputs that change together
Errors = Literal["raise", "keep"]


class Missing:
    """The class of ``MISSING``: a scenario that has not been computed, or has raised."""

    def __repr__(self) -> str:
        return "missing"


MISSING: Any = Missing()


class Sweep:
    """Points, the fork that they are set in, and what has been read.

    Invariant: position `i` of each list is ``MISSING`` or the value of scenario `i`; ``left`` has the
    positions that are not done.
    """

    def __init__(
        self,
        graph: rg.Graph,
        outputs: dict[str, rg.Var],
        points: Points,
        wanted: Sequence[rg.Var],
        *,
        workers: int = 1,
        progress: bool | None = None,
        errors: Errors = "raise",
        desc: str = "scenarios",
    ) -> None:
        n = points.n
        self.outputs = outputs
        self.points = points
        self.workers = workers
        self.progress = progress
        self.keep_errors = errors == "keep"
        self.desc = desc
        self.errors: dict[int, Exception] = {}
        self.values: dict[str, list[Any]] = {label: [MISSING] * n for label in outputs}
        self.fork = graph.fork()
        self.outputs_in_fork = [self.fork[var] for var in outputs.values()]
        self._targets = list(self.outputs_in_fork)
        self.rows: list[list[Any]] = list(self.values.values())
        self.gradients: dict[tuple[str, str], list[Any]] = {}
        self.wanted = [self.fork[var] for var in wanted]
        self._add_gradients(n)
        self.leaves = [self.fork[var] for var in points.inputs]
        self.base = [None if var.state == "unset" else var.value for var in self.leaves]
        self._refuse_unset()
        self._order = self._find_order()
        self.left: dict[int, None] = dict.fromkeys(self._order)
        self.batch: Any = None  # a Batch, which `_batch` puts here

    @property
    def done(self) -> int:
        """The number of points that are done."""
        return self.points.n - len(self.left)

    # --- what is read --------------------------------------------------------------------------

    def _add_gradients(self, n: int) -> None:
        if not self.wanted:
            return
        for label, y in zip(self.outputs, list(self._targets), strict=True):
            if y.shape != ():
                raise ScenarioError(
                    f"gradients of {label!r} were asked for, and it has the shape {y.shape}. Ask for those of "
                    "one number: reduce it, such as y.sum(), or choose an element, such as y[0]."
                )
            slopes = rg.grad(y, self.wanted, allow_unused=True)
            for x, slope in zip(self.wanted, slopes, strict=True):
                column: list[Any] = [MISSING] * n
                self.gradients[label, x.label] = column
                if slope is None:
                    zero = 0.0 * x.value
                    column[:] = [zero] * n
                else:
                    self._targets.append(slope)
                    self.rows.append(column)

    def _refuse_unset(self) -> None:
        for var, base, column in zip(self.leaves, self.base, self.points.columns, strict=True):
            if base is None and (lacking := [i for i, v in enumerate(column) if v is BASE]):
                raise ScenarioError(
                    f"{var.label!r} has no value in the graph, and scenario {lacking[0]} gives it none. Set it "
                    "before, or give it a value in each scenario."
                )

    # --- the order of a grid --------------------------------------------------------------------

    def _find_order(self) -> Sequence[int]:
        """Return the points so that the input that reaches most nodes changes most rarely."""
        axes, shape = self.points.axes, self.points.shape
        if len(axes) < 2:
            return range(self.points.n)
        self.fork.forward(*self._targets)
        reach: list[int] = []
        for leaf, base, axis in zip(self.leaves, self.base, axes, strict=True):
            fork = self.fork.fork()
            if axis:
                fork[leaf].set(base if base is not None else axis[0])
            reach.append(len(fork.plan(*[fork[y] for y in self._targets])))
        by_reach = sorted(range(len(axes)), key=lambda j: -reach[j])
        if by_reach == [*range(len(axes))]:
            return range(self.points.n)
        import numpy as np

        order = np.arange(self.points.n).reshape(shape).transpose(by_reach)
        return order.ravel().tolist()

    # --- runs -----------------------------------------------------------------------------------

    def run(self) -> None:
        """Compute what is left. Ctrl-C ends it, and keeps what is done."""
        left = list(self.left)
        try:
            if self.batch is not None:
                for compute in bar(self.batch.blocks(left), self.desc, self.progress):
                    compute()
            elif self.workers > 1:
                self._run_in_threads(left)
            else:
                step = self.stepper(self.fork, self.leaves, self._targets)
                for i in bar(left, self.desc, self.progress):
                    step(i)
        except KeyboardInterrupt:
            pass

    def stepper(
        self, graph: rg.Graph, leaves: Sequence[rg.Var], targets: Sequence[rg.Var]
    ) -> Callable[[int], None]:
        """Return the function that computes one point in `graph`."""
        columns, base, rows = self.points.columns, self.base, self.rows
        last: list[Any] = [MISSING] * len(leaves)
        left, count = self.left, range(len(leaves))
        # A prepared read for each set of inputs that change together: in a grid there are few of them.
        readers: dict[tuple[int, ...], Callable[..., tuple[Any, ...]]] = {}

        def step(i: int) -> None:
            moved: tuple[int, ...] = ()
            values: list[Any] = []
            for j in count:
                value = columns[j][i]
                if value is BASE:
                    value = base[j]
                if value is not last[j] and not (type(value) is float and value == last[j]):
                    moved = (*moved, j)
                    values.append(value)
            try:
                for j in moved:
                    last[j] = MISSING  # a point that raises half-way is set anew
                read = readers.get(moved)
                if read is None:
                    if len(readers) > MOST_READERS:
                        readers.clear()
                    read = graph.reader(*targets, feeds=[leaves[j] for j in moved])
                    readers[moved] = read
                found = read(*values)
                for j, value in zip(moved, values, strict=True):
                    last[j] = value
                for row, value in zip(rows, found, strict=True):
                    row[i] = value
            except Exception as error:
                for row in rows:
                    row[i] = MISSING
                if not self.keep_errors:
                    error.add_note(f"in scenario {i}: {self._told(i)}; errors='keep' goes on.")
                    raise
                self.errors[i] = error
            del left[i]

        return step

    def _told(self, i: int) -> str:
        pairs = zip(self.points.inputs, self.points.columns, strict=True)
        return ", ".join(f"{var.label} = {column[i]!r}" for var, column in pairs)

    def _run_in_threads(self, left: list[int]) -> None:
        """Compute blocks of points in threads, each with a fork of its own."""
        size = max(1, min(BLOCK, len(left) // (4 * self.workers) + 1))
        blocks = [left[k : k + size] for k in range(0, len(left), size)]
        stop = threading.Event()
        local = threading.local()
        forks = [self.fork.fork() for _ in range(self.workers)]
        spare = list(forks)

        def work(block: list[int]) -> int:
            if not hasattr(local, "step"):
                fork = spare.pop()
                twins = [fork[x] for x in self.leaves], [fork[y] for y in self._targets]
                local.step = self.stepper(fork, *twins)
            for i in block:
                if stop.is_set():
                    break
                local.step(i)
            return len(block)

        with ThreadPoolExecutor(self.workers) as pool:
            # In the caller's context: gradient modes and reuse blocks are those of the caller.
            futures = [pool.submit(copy_context().run, work, block) for block in blocks]
            try:
                done = (one.result() for one in futures)
                for _ in bar(done, self.desc, self.progress, total=len(blocks)):
                    pass
            finally:
                stop.set()
                for one in futures:
                    one.cancel()


def bar(
    steps: Iterable[Any], desc: str, progress: bool | None, total: int | None = None
) -> Iterator[Any]:
    """Return the steps, with a bar.

    Parameters
    ----------
    progress
        ``None`` shows one after a second, on a terminal or in a notebook.
    """
    if progress is False:
        return iter(steps)
    options: dict[str, Any] = {} if total is None else {"total": total}
    if progress is None:
        options |= {"disable": None if "ipykernel" not in sys.modules else False, "delay": 1.0}
    return iter(rg.progress(steps, desc, options=options))
