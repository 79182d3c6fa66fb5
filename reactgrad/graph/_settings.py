"""Settings of a graph: limits, executors, modes; and the checks of its tables."""

from __future__ import annotations

from reactgrad.core._core import Core
from reactgrad.core._handles import tidy
from reactgrad.flow._mode import GradMode
from reactgrad.flow._training import mode_of
from reactgrad.graph._var import Var
from reactgrad.reading._limits import (
    read_executor,
)
from reactgrad.reading._run import Run, Running
from reactgrad.scheduler import (
    Serial,
    Threads,
    check_invariants,
)


class Settings(Core[Var]):
    """The part of ``Graph`` that holds its settings."""

    @property
    def executor(self) -> Serial | Threads:
        """The way in which nodes run: one after the other, or independent ones at the same time.

        May be set; for one read, ``forward(executor=...)``. All results are the same: values, versions,
        the nodes that ran and their order, failures, and the calls of observers. With ``Threads``,
        Python functions run in other threads than the reading one, with its context variables and grad
        mode, and may still read nodes and wait for each other's values. If functions read each other in
        a cycle, another one of them may be refused its read.

        Nodes run one after the other anyway if each is watched: while ``record``, ``events`` or
        ``rg.profile`` is on, in anomaly mode, under ``saved_tensors_hooks`` and ``checkpoint``, and
        with ``max_bytes``. Forks inherit the executor. Files do not hold it, since it belongs to the
        machine.

        Examples
        --------
        >>> import threading
        >>> import reactgrad as rg
        >>> meeting = threading.Barrier(2)  # which nobody passes alone
        >>> meet = rg.lift(lambda v: meeting.wait(10))
        >>> g = rg.Graph(executor=rg.Threads(2))
        >>> x = g.input(1)
        >>> (meet(x) + meet(x)).item()
        1
        """
        return self._scheduler.executor or Serial()

    @executor.setter
    def executor(self, executor: Serial | Threads) -> None:
        with self._lock:
            self._scheduler.check_idle()
            self._scheduler.executor = read_executor(executor)

    @property
    def running(self) -> Running | None:
        """The run under way, or ``None``. Other threads may ask without waiting for it.

        Examples
        --------
        >>> import reactgrad as rg
        >>> rg.Graph().running is None
        True
        """
        return Running(self._scheduler) if self._computing else None

    @property
    def last_run(self) -> Run:
        """The record of the latest read of this graph."""
        with self._lock:
            return Run(self, self._scheduler.last_run)

    @property
    def max_bytes(self) -> int | None:
        """The memory that values may take, in bytes; ``None``: no limit.

        Above the limit, values are released that cost little to compute again for the memory they take,
        and that have not been used for long: before a node needs memory, and after a read. They keep
        their versions, and are computed again at these versions when something needs them
        (``run.rebuilt``). Values and the nodes that run stay the same, except that gradients run anew
        after leaves come back to a former shape. Never released are leaves, pinned and observed values,
        values with a cutoff, values that ``backward(retain_graph=True)`` keeps, and values that callers
        hold without a copy. If these alone, with the operands of one node, need more, reads go on, and
        ``BudgetWarning`` says so once. May be set at any time. Forks and saved graphs have the same
        limit, each for itself.

        A Python function whose value was released is called again for it, and must return the same. A
        cutoff that is set on a stale node whose value was released has nothing to compare with: the
        next value is a change. Scratch memory of kernels and cutoffs is not counted.

        Examples
        --------
        >>> import numpy as np
        >>> import reactgrad as rg
        >>> g = rg.Graph(max_bytes=40_000)
        >>> x = g.input(np.ones(1000))
        >>> chain = [x + 1.0]
        >>> for _ in range(99):
        ...     chain.append(chain[-1] + 1.0)
        >>> chain[-1].value[0]
        np.float64(101.0)
        >>> g.stats().peak_bytes, g.stats().evicted
        (40000, 96)
        >>> run = g.forward(chain[50])
        >>> len(run.ran), chain[50] in run.rebuilt, chain[50].value_version
        (0, True, 1)
        """
        return self._host.limit

    @max_bytes.setter
    def max_bytes(self, limit: int | None) -> None:
        from reactgrad.memory._budget import set_limit  # imported late: few graphs have a limit

        set_limit(self, limit)

    @property
    def jit(self) -> int:
        """The number of threads that run small kernels in a row as one call; ``False`` if off.

        This is for graphs of scalars and short vectors. When a read repeats, neighbours in its plan that
        compute with floats (and booleans) of at most 8,192 elements, element by element or as a sum of
        all elements, become a program for one compiled loop, the *driver*; values and adjoints alike.
        The loop is the same for all graphs, so an edit compiles nothing, and it calls what NumPy itself
        would call, so values have the same bits. Versions and the nodes that run are the same, too.
        Other nodes, nodes after a cutoff, and reads that happen once run as before. The driver is
        compiled when the package is built, where there is a C compiler; ``reactgrad doctor`` says
        whether it is there. It is on by default then, for plans that have run 16 times. Without it numba
        does the same, where it is installed and ``jit`` is set, and everything works without both. Ops with
        compiled loops of their own (``rg.extend``) are computed by these, with any number of elements,
        whether the read repeats or not: ``rg.norm_cdf``, ``rg.erf`` and ``rg.erfc``, with the same bits,
        and the neurons of ``reactgrad.neat``, whose documentation says how far they agree with NumPy's.

        ``True`` is 1: the reading thread only. With a larger number, so many threads share the elements
        where this pays, from some 500,000 elements in a row of steps on. The bits stay the same.

        May be set at any time, ``None`` for the default. Forks inherit it. Files do not hold it, since it
        belongs to the machine.

        Warns
        -----
        MissingExtraWarning
            If there is neither the driver nor numba; ``jit`` then stays off.
            ``pip install "reactgrad[jit]"``.

        Examples
        --------
        >>> import reactgrad as rg
        >>> def last_of_five(jit):
        ...     g = rg.Graph(jit=jit)
        ...     x = g.input(1.0)
        ...     y = x
        ...     for w in (0.1, 0.2, 0.3):
        ...         y = rg.tanh(y * w)
        ...     for number in range(5):
        ...         x.set(float(number))
        ...         value = y.value
        ...     return value, y.value_version
        >>> last_of_five(jit=None) == last_of_five(jit=False)
        True
        """
        registers = self._host.registers
        return False if registers is None else registers.threads

    @jit.setter
    def jit(self, jit: int | None) -> None:
        from reactgrad.memory._jit import set_jit  # imported late, with the first graph

        set_jit(self, jit)

    def no_grad(self) -> GradMode:
        """Do what ``rg.no_grad`` does, for this graph only: in a ``with`` block or a decorated function.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g, other = rg.Graph(), rg.Graph()
        >>> w, v = g.param(2.0), other.param(2.0)
        >>> with g.no_grad():
        ...     y, z = w * w, v * v
        >>> y.requires_grad, z.requires_grad
        (False, True)
        """
        return GradMode(False, self)

    def enable_grad(self) -> GradMode:
        """Do what ``rg.enable_grad`` does, for this graph only.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> with rg.no_grad(), g.enable_grad():
        ...     rg.is_grad_enabled(g), rg.is_grad_enabled()
        (True, False)
        """
        return GradMode(True, self)

    @property
    def mode(self) -> Var:
        """The node that is true in train mode: nodes computed from it follow the mode.

        A graph begins in train mode. The mode belongs to the graph, not to a thread, and has nothing to
        do with ``no_grad``. Forks and files keep it. It is not among ``inputs``.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(3.0)
        >>> y = rg.switch(g.mode, x * 2.0, x)
        >>> y.value
        np.float64(6.0)
        >>> _ = g.eval()
        >>> y.value
        3.0
        """
        return mode_of(self)

    @property
    def training(self) -> bool:
        """True in train mode. A function that reads this runs again when the mode changes.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> g.training
        True
        """
        return self.mode.value

    def check_invariants(self) -> None:
        """Check all tables against each other; for tests and bug reports.

        Raises
        ------
        InvariantError
            If they contradict each other.

        Examples
        --------
        >>> import reactgrad as rg
        >>> rg.Graph().check_invariants()
        """
        with self._lock:
            tidy(self)
            self._shapes.clear(self)
            check_invariants(self._scheduler)
            self._host.check()
            self._generations.check_invariants(self)

    def forget_marks(self) -> None:
        """Erase all marks and cached plans, so that versions alone decide what runs (rule E16).

        Values, versions and the nodes that run stay the same; only the next reads take longer.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> y = g.input(1.0) + 1.0
        >>> run = g.forward(y)
        >>> g.forget_marks()
        >>> len(g.forward(y).ran)
        0
        """
        with self._lock:
            self._scheduler.forget()
