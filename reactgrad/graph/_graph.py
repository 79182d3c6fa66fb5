"""The graph: owner of nodes, values, versions and the lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from reactgrad._errors import (
    BlockError,
    DTypeError,
    SetError,
)
from reactgrad.autodiff import find_program, wanted_leaves
from reactgrad.build._computed import add_computed, apply
from reactgrad.build._functions import call_lifted, outputs
from reactgrad.build._leaf import new_leaf
from reactgrad.build._reuse import ReuseBlock
from reactgrad.change._edit import Edits, insert, remove, void_inside
from reactgrad.change._former_shapes import Shapes
from reactgrad.change._make_way import forget_unseen
from reactgrad.change._remove import settle
from reactgrad.change._rollback import give_back
from reactgrad.change._set import set_many, write_plainly, write_together
from reactgrad.core._arguments import named, own_each, own_slot, own_slots
from reactgrad.core._core import Core
from reactgrad.core._handles import handle
from reactgrad.core._held import held
from reactgrad.core._lifetime import slots_in_order, tidy
from reactgrad.core._names import by_name
from reactgrad.core._twins import twin_of
from reactgrad.core._var_list import VarList
from reactgrad.flow import GradMode, mode_of
from reactgrad.graph._detached import DetachedVar
from reactgrad.graph._fork import WhatIf, fork
from reactgrad.graph._var import Var
from reactgrad.memory._host import Host
from reactgrad.nodes._handle import Handle, enter, leave, on_default
from reactgrad.nodes._leaf import CONST, INPUT, PARAM, Leaf
from reactgrad.nodes._scope import Scope
from reactgrad.observing._stabilize import stabilize
from reactgrad.observing._tell import deliver
from reactgrad.reading._limits import (
    left_to_run,
    raise_cancelled,
    read_executor,
    read_timeout,
    running_by,
    within,
)
from reactgrad.reading._plan import planned
from reactgrad.reading._refresh import refresh
from reactgrad.reading._run import Plan, Run, Running
from reactgrad.reading._value import value
from reactgrad.scheduler import (
    Scheduler,
    Serial,
    Threads,
    check_invariants,
)
from reactgrad.values._set_together import FEW
from reactgrad.values._storage import MISSING

if TYPE_CHECKING:
    from reactgrad.explain._event import Event
    from reactgrad.explain._record import Recording
    from reactgrad.explain._snapshot import Snapshot
    from reactgrad.explain._stats import Stats
    from reactgrad.explain._why import Why


class Graph(Core[Var]):
    """A dataflow graph whose nodes know the versions they were computed from.

    Building and setting compute nothing; reading recomputes exactly the stale ancestors of what
    is read. ``with graph:`` makes it the current graph for ``rg.input``, ``rg.param``,
    ``rg.const`` and for ops on plain arrays.

    Parameters
    ----------
    rng : int
        A seed that belongs to the graph: ``graph.seed``, which forks and saved graphs have, too. No op
        draws numbers by itself; functions may, ``np.random.default_rng(graph.seed)``.
    max_bytes : int, optional
        Memory budget of its values; see ``max_bytes``.
    jit : bool or int
        Whether small kernels in a row run as one call, and in how many threads; see ``jit``.
    executor : Serial or Threads, optional
        How its nodes run; see ``executor``.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input([1.0, 2.0], name="x")
    >>> w = g.param(3.0, name="w")
    >>> y = (x * w).sum()
    >>> y.value
    np.float64(9.0)
    >>> w.set(4.0)
    >>> y.value
    np.float64(12.0)
    """

    def __init__(
        self,
        rng: int = 0,
        max_bytes: int | None = None,
        jit: int = False,
        executor: Serial | Threads | None = None,
    ) -> None:
        if isinstance(rng, bool) or not isinstance(rng, int) or rng < 0:
            raise DTypeError(f"Graph(rng={rng!r}): the seed is an integer of at least 0.")
        host = Host(self)
        self._open(rng, host)
        self._adopt(Scheduler(host))
        self.max_bytes = max_bytes
        if jit:
            self.jit = jit
        if executor is not None:
            self.executor = executor

    def _open(self, seed: int, host: Host) -> None:
        super()._open(seed, host)
        self._shapes = Shapes()

    def __copy__(self) -> Graph:
        raise DTypeError("a graph is copied with g.fork(), which shares all values.")

    def __deepcopy__(self, memo: Any) -> Graph:
        raise DTypeError("a graph is copied with g.fork(), which shares all values.")

    def __reduce__(self) -> Any:
        raise DTypeError("a graph is not pickled; write it with g.save(path).")

    # The ports, see ``Core``.

    _var = Var
    _detached_var = DetachedVar
    _handle = handle
    _apply = apply
    _add_computed = add_computed
    _call_lifted = call_lifted
    _outputs = outputs
    _deliver = deliver
    _forget_unseen = forget_unseen
    _value = value

    # --- leaves ------------------------------------------------------------------------------

    def input(
        self,
        value: Any = MISSING,
        name: str | None = None,
        *,
        shape: Sequence[int | None] | int | None = None,
        dtype: Any = None,
        cutoff: Any = None,
    ) -> Var:
        """A leaf whose value may be set.

        Parameters
        ----------
        value : array_like or object, optional
            Arrays are copied. Lists of numbers become arrays; Python numbers and other objects stay what
            they are. Left out: the input is read as an error until it is set.
        name : str, optional
            Unique in the graph.
        shape : sequence of int or None, optional
            What values must have; ``None`` for a length that may differ from set to set.
        dtype : dtype_like, optional
            Converts the value; what later values are cast to.
        cutoff : None, "equal", rg.tolerance(...) or callable
            When a set value counts as unchanged.

        Returns
        -------
        Var

        Raises
        ------
        ShapeError
            For ragged lists, or a value that does not fit `shape`.
        DTypeError
            For arrays of objects or strings, or a value that cannot be cast to `dtype`.
        GraphError
            If the name is taken.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(shape=(None, 2), dtype="f4")
        >>> y = x.sum(axis=1)
        >>> y.shape
        (None,)
        >>> x.set([[1, 2], [3, 4], [5, 6]])
        >>> y.value
        array([ 3.,  7., 11.], dtype=float32)
        """
        return new_leaf(self, INPUT, value, name, shape, dtype, cutoff)

    def param(
        self,
        value: Any = MISSING,
        name: str | None = None,
        *,
        shape: Sequence[int | None] | int | None = None,
        dtype: Any = None,
        cutoff: Any = None,
    ) -> Var:
        """A trainable leaf: an array of floats that ``backward`` gives a ``.grad``.

        Parameters
        ----------
        value : array_like
            Copied; floats.
        name, shape, dtype, cutoff
            As for ``input``.

        Returns
        -------
        Var

        Raises
        ------
        DTypeError
            If the value is not made of floats.
        ShapeError, GraphError
            As for ``input``.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> w = g.param([1.0, 2.0])
        >>> _ = (w * w).sum().backward()
        >>> w.grad
        array([2., 4.])
        """
        return new_leaf(self, PARAM, value, name, shape, dtype, cutoff)

    def const(self, value: Any, name: str | None = None) -> Var:
        """A leaf whose value never changes.

        Parameters
        ----------
        value : array_like or object
            Copied.
        name : str, optional
            Unique in the graph.

        Returns
        -------
        Var

        Raises
        ------
        ShapeError, DTypeError, GraphError
            As for ``input``.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> (g.const(2.0) * 3.0).value
        np.float64(6.0)
        """
        return new_leaf(self, CONST, value, name, None, None, None)

    # --- building: blocks around what is written ---------------------------------------------

    def reuse(self) -> ReuseBlock:
        """Let the same op on the same operands give the node that is there already, in a block.

        For loops that write their model anew at every step: the second step builds nothing, and so
        does its ``backward``, and the graph does not grow. In the block of one thread, an op with
        the same attributes on the same nodes, detached in the same places and in the same grad
        mode, returns the node that the same call has returned in this block or in one of the last
        four of the graph, which are kept for that. Such nodes are shared: to edit, hook or pin one
        means all who built it; one that was given a hook, a cutoff, a pin, ``retain_grad`` or
        ``keep`` is not given to others any more, and is built anew.

        Leaves are always new, and what is built on them, too: make inputs before the loop and set
        them in it. Python numbers are no leaves in this sense; an array that is written into an
        expression is one, so make it a const before the loop. Nodes of indices that hold arrays, of
        functions that were given a list or an array, and of ``detach_node``, what a subgraph or
        ``insert`` builds, and what gradients are built of, are never shared. What nobody but these blocks
        keeps any more refuses nothing: its name is free, and its shapes are nobody's.

        Returns
        -------
        context manager

        Raises
        ------
        BlockError
            If the block is left in another thread or task than it was entered in.

        See Also
        --------
        subgraph : Does the same for functions whose arguments are other nodes at each call.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x, w = g.input([1.0, 2.0]), g.param(0.5)
        >>> for batch in ([1.0, 2.0], [3.0, 4.0], [5.0, 6.0]):
        ...     x.set(batch)
        ...     with g.reuse():
        ...         loss = ((x * w) ** 2).sum()
        ...         run = loss.backward()
        ...     print(len(g), loss.value, w.grad)
        11 1.25 5.0
        11 6.25 30.0
        11 15.25 91.0
        """
        return ReuseBlock(self)

    def scope(self, name: str) -> Scope:
        """A block, or a decorated function, whose nodes are a named part of the model.

        Pictures draw a frame around them, and fold it: ``g.draw("x.svg", fold=1)``. The names of nodes
        that are made inside begin with the scope's: those of leaves that are given one, ``name="w"``,
        and those that nobody has named. Scopes nest, are of their thread, and come along to forks and
        files. A name set later, ``y.name = "h"``, is taken as it is; with slashes, ``"layer1/h"``, it puts
        the node into that scope, in pictures, if all of its parts are non-empty (so ``"https://a.b"`` is in
        none). A constant that nobody has named, the 2.0 of ``2.0 * x``, is drawn in each scope that uses it.
        Nodes of gradients belong to none.

        Parameters
        ----------
        name : str
            Not empty; ``"block1/attention"`` is a scope in a scope.

        Returns
        -------
        context manager and decorator

        Raises
        ------
        GraphError
            If it is no such name.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input([1.0, 2.0])
        >>> with g.scope("layer1"):
        ...     w = g.param([3.0, 4.0], name="w")
        ...     y = rg.tanh(w * x)
        >>> w.name, y.name, g["layer1/w"] is w
        ('layer1/w', 'layer1/tanh_4', True)
        """
        return Scope(self, name)

    # --- handles, names, lifetime --------------------------------------------------------------

    def __getitem__(self, name: str | Var) -> Var:
        """The node with this name; in a fork also the twin of a node."""
        if isinstance(name, Handle):
            return twin_of(self, name)
        return named(self, name)

    def __setitem__(self, name: str | Var, value: Any) -> NoReturn:
        raise SetError(f"g[{name!r}] is a node, not a place: write g[{name!r}].set({value!r:.40}).")

    def __contains__(self, item: object) -> bool:
        """Whether a Var, or a node with this name, belongs to the graph."""
        with self._lock:
            tidy(self)
            if isinstance(item, str):
                return by_name(self, item) is not None
            return isinstance(item, Handle) and item._graph is self

    def __iter__(self) -> Iterator[Var]:
        """All nodes in order of creation."""
        return iter(self.nodes)

    def keep(self, var: Var) -> Var:
        """Keep a node alive as long as the graph, and return its Var.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> y = g.keep(g.input(1.0) + 1.0)
        >>> len(g.nodes)
        3
        """
        slot = own_slot(self, var, "keep")
        with self._lock:
            var = handle(self, slot)
            self._host.kept[slot] = var
        return var

    @property
    def nodes(self) -> VarList[Var]:
        """All nodes in order of creation."""
        with self._lock:
            tidy(self)
            self._shapes.clear(self)
            return VarList([handle(self, slot) for slot in slots_in_order(self)])

    def _leaves(self, kind: Leaf) -> VarList[Var]:
        with self._lock:
            tidy(self)
            host, serial = self._host, self._scheduler.topology.serial
            slots = [slot for slot, op in enumerate(host.ops) if op is kind]  # few of all nodes
            slots.sort(key=serial.__getitem__)
            return VarList([handle(self, slot) for slot in slots if slot not in host.removed])

    @property
    def inputs(self) -> VarList[Var]:
        """All inputs in order of creation."""
        return self._leaves(INPUT)

    @property
    def params(self) -> VarList[Var]:
        """All params in order of creation."""
        return self._leaves(PARAM)

    def __len__(self) -> int:
        """Number of nodes, constants included."""
        with self._lock:
            tidy(self)
            self._shapes.clear(self)
            return len(self._scheduler.topology) - len(self._host.removed)

    def __bool__(self) -> bool:
        return True

    def __enter__(self) -> Graph:
        enter(self)
        return self

    def __exit__(self, *exc: object) -> None:
        leave()

    def __repr__(self) -> str:
        with self._lock:
            return f"<Graph: {len(self)} nodes; inputs {self.inputs!r}, params {self.params!r}>"

    # --- setting -----------------------------------------------------------------------------

    def set(self, values: Mapping[Any, Any]) -> None:
        """Set several leaves at once: all of them, or none if one value does not fit.

        Parameters
        ----------
        values : mapping from Var or name to array_like
            New values, copied. Shapes are checked together.

        Raises
        ------
        SetError, ShapeError, DTypeError
            As ``Var.set``; nothing has changed then.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> a, b = g.input(1.0), g.input(2.0)
        >>> g.set({a: 3.0, b: 4.0})
        >>> (a + b).value
        np.float64(7.0)
        """
        with self._lock:
            if type(values) is not dict and not isinstance(values, Mapping):
                raise DTypeError(
                    f"g.set takes a mapping, g.set({{x: 1.0, y: 2.0}}), not {type(values).__name__}."
                )
            many = len(values) > FEW
            if many and self._host.together and write_together(self, values):
                return
            slots, given = own_each(self, values, "set"), list(values.values())
            if DetachedVar in map(type, values):
                next(var for var in values if type(var) is DetachedVar).set(None)  # says why not
            if not slots or not write_plainly(self, slots, given):
                set_many(self, [*zip(slots, given, strict=True)])
            elif many:
                self._host.remember(values, slots)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make the sets and edits of a block all-or-nothing.

        Reads inside see the new values; other threads see nothing before the end. An exception
        inside gives back the values of leaves, the topology, removed nodes, pins, names, cutoffs
        and what is frozen, with new versions, and is passed on. Nodes that were built inside stay,
        without the names they got there; what ``backward`` has added to ``.grad`` stays, too.
        Transactions nest.

        What was given back counts as changed: what depends on it runs again. The block belongs to its
        thread and holds the graph: no ``await`` in it, which would let other tasks of the thread in, no
        waiting for threads that use the graph, which would be for ever, and threads that need several
        graphs in transactions enter them in the same order.

        Raises
        ------
        BlockError
            If it ends before a block that was opened inside of it, as two generators may do: all is
            given back that was done in both.
        BusyError
            Inside a node that is being computed.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(1.0)
        >>> try:
        ...     with g.transaction():
        ...         x.set(2.0)
        ...         raise ValueError
        ... except ValueError:
        ...     pass
        >>> x.value
        1.0
        """
        observers = self._observers
        with held(self):
            ran, queued = observers.ran, len(observers.queue)
            # Inside a block of edits, those that are collected here go with what is set here.
            first = self._edits is None  # else what is edited here goes into the block around
            collected = nullcontext() if first else Edits(self)
            try:
                with self._scheduler.transaction(partial(give_back, self)), collected:
                    yield
                    if first and self._edits is not None:
                        raise BlockError.of("a transaction")
            except BaseException:
                if first:
                    void_inside(self, None)
                # What was computed in the block, from nothing that was given back, is new.
                leaf, stale = self._scheduler.leaf, self._scheduler.is_stale
                observers.ran = ran or any(
                    not (leaf[slot] or stale(slot)) for slot in observers.news
                )
                del observers.queue[queued:]
                raise
            finally:
                settle(self)
            observers.ran = True
            observers.join(queued)

    # --- reading -----------------------------------------------------------------------------

    def forward(
        self,
        *targets: Var | str,
        retry: bool = False,
        timeout: float | None = None,
        executor: Serial | Threads | None = None,
    ) -> Run:
        """Make nodes clean, running exactly their stale ancestors.

        Parameters
        ----------
        *targets : Var or str
            Nodes of this graph, or their names; none does nothing.
        retry : bool
            Whether nodes that raised run again although their parents are unchanged; also those
            whose error a function handled that the targets need.
        timeout : float, optional
            Seconds after which no further node is begun; 0 or less: none is begun at all.
        executor : Serial or Threads, optional
            How the nodes run, for this read in place of the graph's own ``executor``. A read inside
            of a function runs as the read does that the function is part of.

        Returns
        -------
        Run

        Raises
        ------
        Cancelled
            After `timeout`, or by ``cancel``; what had not run is stale, the rest is done.
        DTypeError
            If `timeout` is no number, or `executor` none.
        Exception
            The first error of a node, after all that does not depend on it has run.
            ``last_run.failed`` has all.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(1.0)
        >>> a, b = x + 1.0, x + 2.0
        >>> len(g.forward(a, b).ran)
        2
        """
        limit = None if timeout is None else read_timeout(timeout)
        if executor is not None:
            with self._lock, running_by(self, executor):
                return self.forward(*targets, retry=retry, timeout=timeout)
        with self._lock:
            tidy(self)
            slots = own_slots(self, targets, "forward")
            if limit is None:
                return Run(self, refresh(self, slots, retry=retry))
            if limit <= 0.0:
                left = left_to_run(self, slots, retry)
                if left:
                    self._scheduler.cancel()  # also the run that this is read in
                    raise_cancelled(self, left)
                return Run(self, refresh(self, slots))
            with within(limit, self._scheduler.cancel):
                return Run(self, refresh(self, slots, retry=retry))

    @property
    def executor(self) -> Serial | Threads:
        """How nodes run: one after the other, or independent ones at the same time.

        May be set; for one read, ``forward(executor=...)``. What comes out is the same: values,
        versions, what ran in which order, what failed, what observers hear. With ``Threads`` Python
        functions run in other threads than the one that reads, with its context variables and grad
        mode, and may still read nodes and wait for each other's values. Which function of a cycle
        that is made by reading is refused its read may differ.

        One after the other they run anyway where each is looked at: while ``record``, ``events`` or
        ``rg.profile`` is on, in anomaly mode, under ``saved_tensors_hooks`` and ``checkpoint``, and
        with ``max_bytes``. Forks inherit it; files do not hold it, since it belongs to the machine.

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

    def cancel(self) -> None:
        """Stop the run under way before its next node; called from another thread.

        The read raises ``Cancelled``; what had run is kept, the rest is stale. Does nothing if no
        run is under way.

        Examples
        --------
        >>> import reactgrad as rg
        >>> rg.Graph().cancel()
        """
        self._scheduler.cancel()

    @property
    def running(self) -> Running | None:
        """The run under way, or ``None``; for other threads, which need not wait to ask.

        Examples
        --------
        >>> import reactgrad as rg
        >>> rg.Graph().running is None
        True
        """
        return Running(self._scheduler) if self._computing else None

    def _value_for_rule(self, slot: int) -> Any:
        """The value of a function's node for a rule that is built anew when it is so no more."""
        return self._value(slot)

    def _rule_saw(self, program: Any) -> None:
        """Hear that a rule has read what only this program will build anew when it is so no more."""

    def stabilize(self) -> int:
        """Bring all observed nodes up to date, and call their observers, until nothing is left to do.

        Each pass reads all nodes that are observed (for removal only does not count) and calls who
        has to hear of something; another one follows if observers have changed anything. What
        observers of errors are told of is not raised; whatever fails or raises, all other nodes are
        brought up to date and all other observers called. Inside a transaction nobody is called
        before its end; inside an observer it does nothing.

        Returns
        -------
        int
            The number of passes; 0 inside an observer.

        Raises
        ------
        ExceptionGroup
            What observers raised in all passes, and behind that what else would be raised.
        StabilizeError
            If observers still change what is observed after 100 passes.
        Exception
            The error of the first observed node that the last pass leaves without a value and that
            has no observer of errors.
        BusyError
            Inside a node that is being computed.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(1.0)
        >>> y = x * 2.0
        >>> observer = y.observe(lambda old, new: print(old, "->", new))
        >>> _ = g.stabilize()
        None -> 2.0
        >>> x.set(3.0)
        >>> _ = g.stabilize()
        2.0 -> 6.0
        """
        with self._lock:
            return stabilize(self)

    @property
    def last_run(self) -> Run:
        """What the latest read of this graph did."""
        with self._lock:
            return Run(self, self._scheduler.last_run)

    def plan(self, *targets: Var | str, gradient: bool = False) -> Plan:
        """What a read would run; runs nothing.

        Of a choice whose condition is up to date, the branch that it takes is planned. What else a
        function reads while it runs nobody knows before: the plan takes it to read what it read the
        last time, and is a guess where it does not.

        Parameters
        ----------
        *targets : Var or str
            What would be read; nodes or their names.
        gradient : bool
            Whether to plan ``backward`` of one target instead: its stale adjoints, and the
            values they need.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(1.0, name="x")
        >>> y = x + 1.0
        >>> len(g.plan(y)), y.is_stale
        (1, True)
        """
        with self._lock:
            slots = [own_slot(self, target, "plan") for target in targets]
            if gradient:
                for target in [handle(self, slot) for slot in slots]:
                    leaves = wanted_leaves(self, target._slot)
                    program, held = find_program(target, None)
                    slots += [var._slot for var in program.adjoints(leaves, held)]
            stale = planned(self, slots)
            serial, mean = self._scheduler.topology.serial, self._measured.mean
            times = [mean(slot, serial[slot]) for slot in stale]
            return Plan([handle(self, slot) for slot in stale], times)

    # --- explaining --------------------------------------------------------------------------

    def why(self, var: Var | str) -> Why:
        """Why a node is clean or stale, ran, was cut off, failed, or has no gradient.

        Runs nothing. While ``events`` is on, it also knows the line of every set and edit, and
        all versions exactly.

        Parameters
        ----------
        var : Var or str
            A node of this graph, or its name.

        Returns
        -------
        Why

        Raises
        ------
        DTypeError, GraphError
            If `var` is no node of this graph.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(1.0, name="x")
        >>> a = x * 2.0
        >>> b = a + 1.0
        >>> a.name, b.name = "a", "b"
        >>> _ = b.value
        >>> x.set(2.0)
        >>> print(g.why(b))
        b is stale (version 1):
          b depends on a, which is stale
          a depends on x: version 1 -> 2
        because
          x was set: version 1 -> 2
        (g.events = True, before a change, keeps the line that made it)
        """
        from reactgrad.explain._search import explain

        return explain(self, handle(self, own_slot(self, var, "why")))

    def record(self, *, snapshots: bool = False) -> Recording:
        """Record every run of a ``with`` block, node by node.

        Nothing is recorded, and nothing is paid, outside of such blocks.

        Parameters
        ----------
        snapshots : bool
            Whether to keep a snapshot of the whole graph after each run, too: for ``export_html``.

        Returns
        -------
        Recording
            With ``runs``, ``calls``, ``table()``, ``str()`` and ``to_chrome_trace(path)``.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> y = rg.tanh(g.input(1.0)) + 1.0
        >>> with g.record() as log:
        ...     _ = y.value
        >>> [call.op for call in log.calls], len(log.runs)
        (['tanh', 'add'], 1)
        """
        from reactgrad.explain._record import Recording

        return Recording(self, snapshots)

    def stats(self) -> Stats:
        """The graph in figures: size, memory, and what all its runs did.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input([1.0, 2.0])
        >>> y = x.sum()
        >>> _ = y.value
        >>> print(g.stats())
        nodes      2 (1 of them leaves), 1 edges
        values     24 B
        runs       1: ran 1, cut off 0, rebuilt 0, failed 0
        plans      0 cached, 0 hits, 1 misses
        observers  0
        """
        from reactgrad.explain._stats import take_stats  # imported where it is used: seldom wanted

        return take_stats(self)

    @property
    def max_bytes(self) -> int | None:
        """The memory that values may take, in bytes; ``None``: no limit.

        Above it, values that cost little to compute again for the memory they take, and have not been
        used for long, are released: before a node needs memory, and after a read. They keep their
        versions, and are computed again, at these versions, when something needs them
        (``run.rebuilt``); what is read and what runs stays the same, but for gradients after leaves come
        back to a shape, which run anew. Never released are leaves, pinned and observed values, values
        with a cutoff, what ``backward(retain_graph=True)`` is to keep, and what callers hold without a
        copy. Where these alone, with what one node is computed from, need more, reads go on and
        ``BudgetWarning`` tells once. May be set at any time; forks and saved graphs have the same
        limit, each for itself.

        A Python function whose value was released is called again for it, and must return the same.
        A cutoff that is set on a stale node whose value was released has nothing to compare with: the
        next value is a change.
        Scratch memory of kernels and cutoffs is not counted.

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
        from reactgrad.memory._budget import (
            set_limit,  # imported where it is used: few graphs have one
        )

        set_limit(self, limit)

    @property
    def jit(self) -> int:
        """Whether small kernels in a row run as one call, for graphs of scalars and short vectors.

        Off by default. When a read repeats, neighbours in its plan that compute with floats (and
        booleans) of at most 8,192 elements, element by element or as a sum of all elements, become a
        program for one loop that numba has compiled; values and adjoints alike. The loop is the same
        for all graphs, so an edit compiles nothing, and it calls what NumPy itself would call, so
        values have the same bits; versions and what runs are the same, too. Other nodes, nodes behind a
        cutoff, and reads that happen once, run as ever. The first use in a process imports numba.
        Ops that have compiled loops of their own (``rg.extend``) are computed by these, with any number
        of elements, whether the read repeats or not: ``rg.norm_cdf``, ``rg.erf`` and ``rg.erfc``, with the
        same bits, and the neurons of ``reactgrad.neat``, which say how far they agree with NumPy's.

        ``True`` is 1: the thread that reads. A larger number: so many threads share the elements
        where this pays, from some 500,000 elements in a row of steps on; the bits stay the same.

        May be set at any time. Forks have it, too; files do not hold it, since it belongs to the
        machine.

        Warns
        -----
        MissingExtraWarning
            If numba is not there: then it stays off. ``pip install "reactgrad[jit]"``.

        Examples
        --------
        >>> from importlib.util import find_spec
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
        >>> last_of_five(jit=find_spec("numba") is not None) == last_of_five(jit=False)
        True
        """
        registers = self._host.registers
        return False if registers is None else registers.threads

    @jit.setter
    def jit(self, jit: int) -> None:
        from reactgrad.memory._jit import set_jit  # imported where it is used: few graphs have it

        set_jit(self, jit)

    @property
    def events(self) -> tuple[Event, ...] | None:
        """What happened to the graph, in order; ``None`` unless it was switched on.

        ``g.events = True`` begins the log, ``g.events = 500`` also limits it to the latest 500
        events (10,000 by default), ``g.events = False`` ends and drops it. Off, it costs nothing.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(1.0, name="x")
        >>> y = x + 1.0
        >>> y.name = "y"
        >>> g.events = True
        >>> x.set(2.0)
        >>> _ = y.value
        >>> [(event.kind, event.node, event.after) for event in g.events]
        [('set', 'x', 2), ('run', 'y', 0), ('ran', 'y', 1)]
        """
        if self._events is None:
            return None
        from reactgrad.explain._events import events_of

        return events_of(self)

    @events.setter
    def events(self, on: bool | int) -> None:
        from reactgrad.explain._events import switch_events

        switch_events(self, on)

    # --- edits ---------------------------------------------------------------------------------

    def edit(self) -> AbstractContextManager[Any]:
        """Collect the edits of a block and make them together at its end.

        Reads inside see the old graph. What counts is the graph that the edits lead to: an edge may
        be turned round, and shapes may fit each other only in the end. Where that graph would have
        a cycle, or shapes that do not fit, or gradients that exist already would not any more, and
        where an exception ends the block, none of the edits is made.

        Sets, pins and everything else but ``replace_parent``, ``rewire``, ``insert`` and ``remove``
        act at once, and stay if the block fails; put the block into ``g.transaction()`` to have all
        of it undone. Blocks nest: an inner one hands its edits to the outer one, and so does a
        transaction inside a block, unless it fails.

        Raises
        ------
        CycleError
            With the whole cycle in ``.path``.
        EditError
            If a node that is removed is still used.
        ShapeError, DTypeError
            If operands do not fit a node or what depends on it.
        BlockError
            If it ends before a block that was opened inside of it, as two generators may do.
        BusyError
            Inside a node that is being computed.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(1.0)
        >>> a = x + 1.0
        >>> b = a * 10.0
        >>> with g.edit():  # x -> a -> b becomes x -> b -> a
        ...     a.replace_parent(0, b)
        ...     b.replace_parent(0, x)
        >>> b.value, a.value
        (np.float64(10.0), np.float64(11.0))
        """
        return Edits(self)

    def insert(
        self,
        parent: Var,
        child: Var,
        build: Callable[[Any], Any],
        position: int | None = None,
    ) -> Var:
        """Split the edge from one node to another by a new node.

        Costs the new nodes, however large the graph is; a detached edge stays detached.

        Parameters
        ----------
        parent, child : Var
            The ends of the edge.
        build : callable
            Builds what `child` shall take instead of `parent`, from `parent`.
        position : int, optional
            Which operand of `child`; by default all that are `parent`.

        Returns
        -------
        Var
            What `build` returned.

        Raises
        ------
        EditError
            If there is no such edge.
        CycleError, ShapeError, DTypeError
            As ``Var.replace_parent``; nothing has changed then.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x, w = g.input(2.0), g.param(0.0)
        >>> y = x * 3.0
        >>> h = g.insert(x, y, lambda v: rg.tanh(v * w))
        >>> y.parents[0] is h, y.value
        (True, np.float64(0.0))
        """
        return insert(self, parent, child, build, position)

    def remove(self, *variables: Var) -> None:
        """Take nodes that nobody uses out of the graph.

        Their Vars are of no use afterwards and say so, their names are free, their observers of
        kind ``"removed"`` are called, the others end. Gradients that were built on a removed node
        go on. Nodes that are simply not held any more go by themselves.

        Raises
        ------
        EditError
            If a node that stays is computed from one of them; nothing has changed then.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(1.0)
        >>> y = x + 1.0
        >>> y.name = "y"
        >>> g.remove(y)
        >>> "y" in g, y
        (False, <Var 'y', removed>)
        """
        remove(self, variables)

    # --- gradients -----------------------------------------------------------------------------

    def no_grad(self) -> GradMode:
        """``rg.no_grad`` for this graph only: for a ``with`` block or a decorated function.

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
        """``rg.enable_grad`` for this graph only.

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
        """Whether the graph is in train mode, as a node: nodes computed from it follow it.

        A graph begins in train mode. The mode belongs to the graph, not to a thread, has nothing to
        do with ``no_grad``, and comes along to forks and files; it is none of ``inputs``.

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
        """Whether the graph is in train mode; a function that asks runs again when it changes.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> g.training
        True
        """
        return self.mode.value

    def train(self, mode: bool = True) -> Graph:
        """Switch to train mode; what was computed from the mode becomes stale if that is news.

        It stays so until the next switch; to evaluate for a while only, evaluate a fork.

        Parameters
        ----------
        mode : bool
            ``False`` for eval mode.

        Returns
        -------
        Graph
            Itself.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(1.0)
        >>> noisy = rg.lift(lambda x, training: x + 0.5 if training else x)(x, g.mode)
        >>> with g.whatif() as w:
        ...     w.eval()[noisy].value
        1.0
        >>> noisy.value
        1.5
        """
        if self.training is not mode:
            self.mode.set(mode)
        return self

    def eval(self) -> Graph:
        """Switch to eval mode; see ``train``."""
        return self.train(False)

    def zero_grad(self) -> None:
        """Set ``.grad`` of every node to ``None``.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> w = g.param(1.0)
        >>> _ = (w * w).backward()
        >>> g.zero_grad()
        >>> w.grad is None
        True
        """
        with self._lock:
            self._host.grads.clear()

    # --- forks ---------------------------------------------------------------------------------

    def fork(self) -> Graph:
        """A twin of this graph that shares all values until one side recomputes them.

        Names, versions, staleness, train or eval mode, frozen, pinned and detached marks, gradients
        with their hooks, the seed and the memory budget come along; observers and ``.grad`` do not.
        Copies neither arrays nor tables: both graphs share all rows of these until they write them, so
        that a fork costs the same in a graph of any size, and a what-if what it touches. ``fork[var]``
        is the twin of a node of this graph; the twins are kept as long as the fork.

        Python functions of the fork that read nodes of this graph by ``.value`` read their twins. A
        thread of a pool that such a function waits for does so if it runs in a copy of the function's
        context, as ``asyncio.to_thread`` does: ``contextvars.copy_context().run``; else it reads the
        graph that it names.

        Returns
        -------
        Graph

        Raises
        ------
        BusyError
            Inside a node that is being computed.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(1.0)
        >>> y = x * 2.0
        >>> h = g.fork()
        >>> h[x].set(5.0)
        >>> h[y].value, y.value
        (np.float64(10.0), np.float64(2.0))
        """
        return fork(self)

    def whatif(self, changes: Mapping[Any, Any] | None = None) -> WhatIf:
        """A fork for the length of a block, with some leaves set.

        Parameters
        ----------
        changes : mapping from Var or name to array_like, optional
            What to set in the fork.

        Returns
        -------
        context manager
            Gives the fork.

        Raises
        ------
        DTypeError
            If `changes` is no mapping.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(1.0)
        >>> y = x * 2.0
        >>> with g.whatif({x: 7.0}) as w:
        ...     w[y].value
        np.float64(14.0)
        >>> x.value
        1.0
        """
        if changes is not None and not isinstance(changes, Mapping):
            raise DTypeError(
                "g.whatif takes a mapping, g.whatif({x: 1.0, y: 2.0}), not "
                f"{type(changes).__name__}."
            )
        return WhatIf(self, dict(changes or {}))

    # --- files ---------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the graph to a file, from which ``rg.load`` makes it again.

        Topology, names, values, versions, what is stale, frozen, pinned, detached, kept: all stays
        as it is; ``.grad``, stored errors, hooks and gradients that nobody holds do not. Gradients
        that are held come back as the ops that compute them: they follow values, but no edits of
        what they were the gradients of; after one ask ``rg.grad`` again. Values of computed nodes
        that have no form in a file are computed again when they are read. The file is replaced all
        at once: whatever happens, the old one or the new one is there.

        Parameters
        ----------
        path : str or path-like
            The file, in the safetensors format.

        Raises
        ------
        SaveError
            If a node calls a function that has no name to be found by (a lambda, a local function,
            a partial, a bound method), or a leaf holds an object that has no form in a file.
        OSError
            If the file cannot be written; the old one is untouched then.
        MissingExtraError
            If the package safetensors is not installed.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> y = rg.lift(lambda a: a + 1.0)(g.input(1.0))
        >>> g.save("graph.safetensors")  # doctest: +SKIP
        Traceback (most recent call last):
        SaveError: node 'lambda_2', function 'lambda', cannot be saved: it is a lambda, which ...
        """
        from reactgrad.io import save

        save(self, path)

    # --- pictures ----------------------------------------------------------------------------

    def snapshot(self, run: Run | None = None, *, values: bool = False) -> Snapshot:
        """The graph as it is now, outside of the engine: nodes, edges, states, versions, times.

        Runs nothing, holds no node and no value, and never changes. All pictures are drawn from it.

        Parameters
        ----------
        run : Run, optional
            The run whose outcome each node shows; by default the last one.
        values : bool
            Whether each clean node has its value as text, too, in a few characters.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> y = rg.tanh(g.input(1.0, name="x"))
        >>> before = g.snapshot()
        >>> y.value
        np.float64(0.7615941559557649)
        >>> before.nodes[1].state, g.snapshot().nodes[1].state, g.snapshot().nodes[1].outcome
        ('stale', 'clean', 'ran')
        """
        from reactgrad.explain._snapshot import snapshot

        return snapshot(self, None if run is None else run._run, values)

    def to_dot(
        self,
        of: Any = None,
        *,
        since: Graph | Snapshot | None = None,
        layer: Literal["values", "gradients", "all"] = "values",
        fold: int | None = None,
        limit: int = 500,
    ) -> str:
        """The graph, or a part of it, as text in the DOT language of Graphviz; runs nothing.

        A node's shape and colour say whether it is clean, stale, running, has run, was cut off, has
        failed, or is unset; its label has its version, dtype and shape, its marks, and the time it
        takes if ``record`` has measured it. A dashed edge that ends in a bar is detached; a dotted
        one a function found by reading. Names that hold slashes, ``"layer1/w"``, are in scopes; see
        ``scope``.

        Parameters
        ----------
        of : Var, str, Plan or Run, optional
            What to show with its direct operands: a node, or its name, and all that depends on it;
            what a plan holds; what a run reached. By default everything.
        since : Graph or Snapshot, optional
            What to compare with: a snapshot of before, or the graph that this one was forked from.
            Nodes and edges that were added, removed or changed since are marked.
        layer : str
            ``"values"``, ``"gradients"`` (with the values they are computed from) or ``"all"``.
        fold : int, optional
            Scopes at this depth are one box each.
        limit : int
            The most nodes that are shown. Beyond, the picture shows those that are not clean and
            what is around them, and counts what it leaves out.

        Raises
        ------
        VizError
            If there is no such picture.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(1.0, name="x")
        >>> y = rg.tanh(x)
        >>> print(g.to_dot(x))  # doctest: +ELLIPSIS
        digraph {
        ...
          "1" -> "2"
        }
        """
        from reactgrad.viz import asked, dot_text

        shown, title = asked(self, of, since=since, layer=layer, fold=fold, limit=limit)
        return dot_text(shown, title)

    def draw(
        self,
        path: str | os.PathLike[str],
        of: Any = None,
        *,
        since: Graph | Snapshot | None = None,
        layer: Literal["values", "gradients", "all"] = "values",
        fold: int | None = None,
        limit: int = 500,
    ) -> None:
        """Write a picture of the graph, or of a part of it; see ``to_dot`` for what it shows.

        Parameters
        ----------
        path : str or path-like
            Ends in ``.svg``, ``.png``, ``.pdf`` or ``.dot``.
        of, since, layer, fold, limit
            As in ``to_dot``.

        Raises
        ------
        VizError
            If the ending is another one, or more than 3,000 nodes would be laid out.
        MissingExtraError
            If the package pygraphviz is not installed; not for ``.dot``.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> y = rg.tanh(g.input(1.0))
        >>> g.draw("graph.svg")  # doctest: +SKIP
        """
        from reactgrad.viz import asked, dot_text, draw

        shown, title = asked(self, of, since=since, layer=layer, fold=fold, limit=limit)
        draw(path, dot_text(shown, title), len(shown.boxes))

    def explore(
        self,
        *targets: Var | str,
        bounds: Mapping[Any, tuple[float, float]] | None = None,
        since: Graph | Snapshot | None = None,
        layer: Literal["values", "gradients", "all"] = "values",
        fold: int | None = None,
        limit: int = 200,
    ) -> Any:
        """Show the graph in a notebook: change inputs, and see what is stale, what ran, and why.

        What changes elsewhere shows, too. Computing happens in a thread of its own, and may be
        cancelled on the page. While no page is open nothing is watched.

        Parameters
        ----------
        *targets : Var or str
            What a change on the page brings up to date; by default every node that nothing else is
            computed from.
        bounds : dict of Var or str to (float, float), optional
            Where the sliders of inputs begin and end; by default from 0 to twice the value.
        since, layer, fold, limit
            As in ``to_dot``. The page may show the other layers, open folded scopes, and go to what
            is hidden.

        Returns
        -------
        anywidget.AnyWidget
            Displays itself; ``close()`` ends it.

        Raises
        ------
        MissingExtraError
            If anywidget or pygraphviz is not installed.
        VizError
            If there is no such picture, or it would have more than 3,000 boxes.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> y = rg.tanh(g.input(1.0, name="x"))
        >>> g.explore(y, bounds={"x": (-3.0, 3.0)})  # doctest: +SKIP
        """
        from reactgrad.viz import explore

        options: Any = {"since": since, "layer": layer, "fold": fold, "limit": limit}
        return explore(self, targets, bounds=bounds or {}, **options)

    def export_html(
        self,
        path: str | os.PathLike[str],
        log: Recording | None = None,
        *,
        targets: Sequence[Var | str] = (),
        title: str = "",
        since: Graph | Snapshot | None = None,
        layer: Literal["values", "gradients", "all"] = "values",
        fold: int | None = None,
        limit: int = 200,
    ) -> None:
        """Write one HTML file with the page of ``explore`` over recorded runs.

        It opens from disk in any browser, and loads nothing from anywhere.

        Parameters
        ----------
        path : str or path-like
            An existing file is replaced; it appears whole or not at all.
        log : Recording, optional
            What ``with g.record(snapshots=True) as log`` has seen; by default only the present state
            and the last run.
        targets
            What is read, for the preview of a change; by default what nothing else is computed from.
        title : str
            Stands above the page.
        since, layer, fold, limit
            As in ``to_dot``.

        Raises
        ------
        MissingExtraError
            If pygraphviz is not installed.
        VizError
            If `log` has no snapshots or is of another graph, or there is no such picture.
        OSError
            If it cannot be written.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(1.0, name="x")
        >>> y = rg.tanh(x)
        >>> with g.record(snapshots=True) as log:
        ...     for value in (1.0, 2.0):
        ...         x.set(value)
        ...         _ = y.value
        >>> g.export_html("tanh.html", log)  # doctest: +SKIP
        """
        from reactgrad.viz import export_html

        options: Any = {"since": since, "layer": layer, "fold": fold, "limit": limit}
        export_html(self, path, log, targets=targets, title=title, **options)

    def _repr_html_(self) -> str:
        """What notebooks show."""
        from reactgrad.viz import html

        return html(self)

    # --- checks ------------------------------------------------------------------------------

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

    def forget_marks(self) -> None:
        """Erase all marks and cached plans, so that versions alone decide what runs (rule E16).

        Values, versions and what runs stay the same; the next reads only take longer.

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


on_default(Graph)
