"""The user's handle to a node."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from reactgrad._errors import (
    DTypeError,
    GradientError,
    SetError,
)
from reactgrad.autodiff import backward, wanted_leaves
from reactgrad.autodiff._hooks import HookHandle, register_after_grad, register_hook
from reactgrad.change._edit import replace_parent, rewire
from reactgrad.change._pin import pin, unpin
from reactgrad.change._remove import Grave
from reactgrad.change._set import set_cutoff, set_many, write_one_plainly
from reactgrad.core._handles import handle, refuse_tuple
from reactgrad.core._held import announce
from reactgrad.core._lifetime import tidy
from reactgrad.core._names import set_name
from reactgrad.core._notes import note_cutoff, note_frozen
from reactgrad.core._observer import Observer
from reactgrad.core._var_list import VarList
from reactgrad.graph._detached import DetachedVar
from reactgrad.graph._value import Value
from reactgrad.nodes._cutoff import read_cutoff
from reactgrad.nodes._leaf import CONST, PARAM, Leaf
from reactgrad.nodes._output import Output
from reactgrad.observing._observe import observe
from reactgrad.reading._refresh import refresh
from reactgrad.reading._run import Run
from reactgrad.values._brief import told
from reactgrad.values._storage import MISSING


class Var(Value["Var"]):
    """A node of a graph: its value, its versions, and what can be built on it.

    Vars are made by ``Graph.input``, ``param`` and ``const``, and by ops on other Vars. A node has
    one Var: ``is`` and dict keys work; ``==`` compares element by element. Holding the Var keeps
    the node alive.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input([1.0, 2.0], name="x")
    >>> y = rg.tanh(x) * 2.0
    >>> y.shape, y.dtype, y.value_version
    ((2,), dtype('float64'), 0)
    >>> _ = y.value
    >>> y.value_version
    1
    """

    __slots__ = ("_detached", "_programs")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise DTypeError("Vars are made by g.input(...), g.param(...), g.const(...), or by ops.")

    # --- setting -----------------------------------------------------------------------------

    def set(self, value: Any, copy: bool = True) -> None:
        """Replace the value of an input or param.

        Parameters
        ----------
        value : array_like or object
            Cast to the leaf's dtype if nothing but precision can be lost. In place of a Python number
            a number stays what it is, as where it stands in a formula: ops compute with integers
            after ``x.set(2)`` (unless gradients were asked for), with floats after ``x.set(2.0)``.
            Another shape is checked against all that depends on the leaf before anything changes. What
            followed from the last shapes, four to sixteen of them, gradients and plans included, is kept
            for when they come again, until nodes are built, edited, or listed (``len(g)``, ``g.nodes``,
            a picture).
        copy : bool
            ``False`` adopts a contiguous array of the leaf's dtype that owns its memory, which
            becomes read-only, instead of copying it; others are copied. Views of it that were made
            before remain writable, which NumPy cannot change: write to none of them.

        Raises
        ------
        SetError
            If this is a constant or a computed node.
        ShapeError, DTypeError
            If the value does not fit the leaf or what depends on it; nothing has changed then.
        BusyError
            If a node of the graph is being computed.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input([1.0, 2.0])
        >>> x.set([3.0, 4.0])
        >>> x.value, x.value_version
        (array([3., 4.]), 2)
        """
        graph = self._graph
        if not write_one_plainly(graph, self._slot, value, not copy):
            with graph._lock:
                set_many(graph, ((self._slot, value),), adopt=not copy)

    def observe(self, callback: Callable[..., Any], kind: str = "changed") -> Observer:
        """Call a function when something has happened to this node.

        ==========  ===================  =====================================================
        kind        called               when
        ==========  ===================  =====================================================
        "changed"   callback(old, new)   after a run (any read, ``stabilize``, the end of a
                                         transaction) that leaves the node clean, if its value
                                         was replaced since; `old` is what the observer knew,
                                         ``None`` if there was no value
        "error"     callback(error)      after a run that leaves the node without a value, since
                                         it or one of its operands raised; once for each error
        "stale"     callback(var)        after a change that made the clean node stale; once,
                                         until it has been clean again
        "removed"   callback(var)        after ``g.remove``; the Var is of no other use then
        ==========  ===================  =====================================================

        Callbacks are called when everything else is done, nodes in topological order, those of one
        node as they were attached, and never inside a transaction or while nodes are computed. Inside
        of them reads give present values. Sets are checked at once and made when all have been
        called; touches, pins and edits are made at once. Who is attached hears of what happens from
        then on; who is cancelled is not called any more. What callbacks raise stops no other one, and
        reaches the caller as an ``ExceptionGroup``.

        The observer keeps the node alive until it is cancelled. Forks have no observers.

        Parameters
        ----------
        callback : callable
            What to call.
        kind : {"changed", "stale", "error", "removed"}
            When to call it.

        Returns
        -------
        Observer
            ``cancel()`` ends it.

        Raises
        ------
        DTypeError
            For another kind, or if `callback` cannot be called.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(1.0)
        >>> y = x + 1.0
        >>> observer = y.observe(lambda old, new: print(new))
        >>> _ = y.value
        2.0
        >>> observer.cancel()
        """
        return observe(self, callback, kind)

    def pin(self, value: Any) -> None:
        """Give a computed node a value of its own until ``unpin``: what-if on an intermediate.

        What it would be computed from does not run for it any more; gradients treat it as a leaf.

        Parameters
        ----------
        value : array_like or object
            Of the node's shape, and of a dtype that can be cast to its own; for a Python function
            without a declared result any object, as the function might return it. Arrays are copied.

        Raises
        ------
        SetError
            For leaves, which are set.
        ShapeError, DTypeError
            If the value does not fit.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(2.0)
        >>> y = x * 3.0
        >>> z = y + 1.0
        >>> y.pin(10.0)
        >>> z.value
        np.float64(11.0)
        >>> y.unpin()
        >>> z.value
        np.float64(7.0)
        """
        pin(self._graph, self, value)

    def unpin(self) -> None:
        """Let a pinned node be computed again; others are left as they are.

        Raises
        ------
        CycleError
            If its operands were made to depend on it while it was pinned; it stays pinned then.
        """
        unpin(self._graph, self)

    @property
    def pinned(self) -> bool:
        """Whether the value was given by ``pin``."""
        return self._slot in self._graph._host.pins

    def touch(self) -> None:
        """Assume that the value changed: what depends on it runs again at its next read.

        A computed node runs again itself, for example a function that reads a file.

        Raises
        ------
        SetError
            If this is a constant, a pinned node or an output of one, or a leaf without a value.
        """
        graph = self._graph
        with graph._lock:
            graph._scheduler.check_idle()
            host = graph._host
            op = host.ops[self._slot]
            if op is CONST:
                raise SetError(f"{self.name!r} is a constant: it never changes.")
            if isinstance(op, Leaf):
                if host.data[self._slot] is MISSING:
                    raise SetError(f"{self.name!r} has no value yet; set it first.")
                graph._scheduler.touched(self._slot)
                announce(graph, (self._slot,))
            else:
                # Of one output the function is what runs again.
                node = self.parents[0] if isinstance(op, Output) and not self.pinned else self
                if node.pinned:
                    raise SetError(
                        f"{node.name!r} is pinned: pin it to another value, or unpin it."
                    )
                graph._scheduler.invalidate(node._slot)
                announce(graph)

    @contextmanager
    def mutate(self) -> Iterator[Any]:
        """Edit a copy of the array of a leaf, which becomes its value when the block ends.

        An exception inside leaves the value as it was.

        Raises
        ------
        SetError
            If this is a constant or a computed node.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input([1.0, 2.0])
        >>> with x.mutate() as a:
        ...     a[0] = 5.0
        >>> x.value
        array([5., 2.])
        """
        graph = self._graph
        op = graph._host.ops[self._slot]
        if op is CONST or not isinstance(op, Leaf):
            raise SetError(f"{self.name!r} cannot be edited: only inputs and params can.")
        found = graph._host.specs[self._slot]
        if found is None or (found.weak is not None and graph._host.data[self._slot] is MISSING):
            raise SetError(f"{self.name!r} holds no array to edit; write {self.name}.set(value).")
        with graph._lock:  # what is set is what was read, with the edit
            array = self.numpy()
            yield array
            self.set(array)

    @property
    def cutoff(self) -> Any:
        """When a recomputed or set value counts as unchanged; may be set at any time."""
        return self._graph._host.cutoffs.get(self._slot)

    @cutoff.setter
    def cutoff(self, rule: Any) -> None:
        read = read_cutoff(rule)
        graph = self._graph
        with graph._lock:
            graph._scheduler.check_idle()
            scheduler, slot = graph._scheduler, self._slot
            if slot in scheduler.dropped and read is not None and not scheduler.is_stale(slot):
                refresh(graph, (slot,))  # to have its value there, which the cutoff compares with
            note_cutoff(graph, self._slot)
            set_cutoff(graph, self._slot, read)
            announce(graph)

    # --- what is known -------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name: the one that was set, unique in the graph, or one like ``tanh_3``."""
        return self._graph._host.name(self._slot)

    @name.setter
    def name(self, name: str | None) -> None:
        with self._graph._lock:
            set_name(self._graph, self._slot, name)

    @property
    def value_version(self) -> int:
        """How often the value was replaced; 0 before the first time."""
        with self._graph._lock:
            self._graph._scheduler.attend()
            return self._graph._scheduler.version(self._slot)

    @property
    def parent_versions(self) -> tuple[int, ...]:
        """The versions of the parents that the value was computed from; 0 before the first time."""
        scheduler = self._graph._scheduler
        with self._graph._lock:
            scheduler.attend()
            record = scheduler.versions.record[self._slot]
            if record is None:
                return (0,) * len(scheduler.topology.parents[self._slot])
            return record

    @property
    def is_stale(self) -> bool:
        """Whether a read would find the value out of date; runs nothing."""
        with self._graph._lock:
            return self._graph._scheduler.is_stale(self._slot)

    @property
    def state(self) -> str:
        """``"clean"``, ``"stale"``, ``"unset"`` (a leaf without value) or ``"error"``."""
        graph = self._graph
        with graph._lock:
            stale = graph._scheduler.is_stale(self._slot)
            if isinstance(graph._host.ops[self._slot], Leaf):
                return "unset" if stale else "clean"
            if graph._scheduler.error(self._slot) is not None:
                return "error"
            return "stale" if stale else "clean"

    @property
    def parents(self) -> VarList[Var]:
        """The operands, in order; a node that is used twice stands here twice.

        For a Python function, behind its arguments, what it read while it ran; in place of a read
        that was refused, what had led round the cycle.
        """
        graph = self._graph
        with graph._lock:
            pinned = graph._host.pins.get(self._slot)
            if pinned is not None:
                return VarList(pinned.parents)
            slots = graph._scheduler.topology.parents[self._slot]
            return VarList([handle(graph, slot) for slot in slots])

    @property
    def children(self) -> VarList[Var]:
        """The nodes that use this one, in order of creation."""
        graph = self._graph
        with graph._lock:
            tidy(graph)
            graph._shapes.clear(graph)
            topology = graph._scheduler.topology
            slots = sorted(topology.children[self._slot], key=topology.serial.__getitem__)
            gone = graph._host.removed
            return VarList([handle(graph, slot) for slot in slots if slot not in gone])

    # --- gradients -----------------------------------------------------------------------------

    def detach(self) -> DetachedVar[Var]:
        """The node as seen by ops that gradients shall not pass: same value, no new node.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> w = g.param(3.0)
        >>> rg.grad(w.detach() * w, w).value
        np.float64(3.0)
        """
        ref = getattr(self, "_detached", None)
        view = ref() if ref is not None else None
        if view is None:
            view = DetachedVar.__new__(DetachedVar)
            view._graph, view._slot, view.base = self._graph, self._slot, self
            self._detached = weakref.ref(view)
        return view

    def freeze(self) -> Any:
        """Take a param out of training: no ``.grad``; gradients still pass to what is before it.

        Returns
        -------
        Var
            Itself.

        Raises
        ------
        GradientError
            If this is not a param.
        """
        with self._graph._lock:
            self._check_param("freeze")
            note_frozen(self._graph, self._slot)
            self._graph._host.frozen.add(self._slot)
            self._graph._host.grads.pop(self._slot, None)
        return self

    def unfreeze(self) -> Any:
        """Make a frozen param trainable again; returns it."""
        with self._graph._lock:
            self._check_param("unfreeze")
            note_frozen(self._graph, self._slot)
            self._graph._host.frozen.discard(self._slot)
        return self

    def _check_param(self, what: str) -> None:
        if self._graph._host.ops[self._slot] is not PARAM:
            raise GradientError(
                f"{what}: {self.name!r} is no param, and only params are trained. Use detach() to "
                "stop a gradient at another node."
            )

    @property
    def frozen(self) -> bool:
        """Whether this is a param that was frozen."""
        return self._slot in self._graph._host.frozen

    @property
    def requires_grad(self) -> bool:
        """Whether an unfrozen param is reachable over edges that gradients pass."""
        with self._graph._lock:
            return bool(wanted_leaves(self._graph, self._slot))

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        raise SetError(
            f"requires_grad follows from what {self.name!r} is computed from. To take a param out of "
            "training write p.freeze(), to take it back p.unfreeze(); leaves to be trained are made "
            "with g.param."
        )

    @property
    def grad(self) -> Any:
        """What backward left here: read-only, ``None`` before; see ``backward``."""
        return self._graph._host.grads.get(self._slot)

    @grad.setter
    def grad(self, value: Any) -> None:
        raise SetError(
            f"a gradient cannot be assigned; {self.name}.zero_grad() clears it, and "
            "backward(gradient=...) says how an output counts."
        )

    def zero_grad(self) -> None:
        """Set ``.grad`` to ``None``."""
        with self._graph._lock:
            self._graph._host.grads.pop(self._slot, None)

    def retain_grad(self) -> None:
        """Let every backward that passes this node leave its gradient in ``.grad``."""
        with self._graph._lock:
            refuse_tuple(self._graph, self._slot, "retain_grad")
            self._graph._host.retained.add(self._slot)

    def register_hook(self, hook: Callable[[Any], Any]) -> HookHandle:
        """Call a function with the gradient of this node, and let it replace the gradient.

        By every ``backward`` that passes this node, once, with the sum of what all consumers
        contribute; by a read of a gradient from ``rg.grad`` only where it is stale. What is computed
        from the gradient sees what the hook returned: ``.grad``, gradients of nodes before this one.
        Several hooks follow each other in order of registration. Where nothing needs the gradient of
        this node, it is not computed, and the hook not called.

        The hook is part of the gradient: it comes along to forks (not to files), a transaction
        takes it back, and what other nodes' ``.value`` it reads is depended on. Where it raises, no
        ``.grad`` has changed, and the next ``backward`` calls it again. It cannot change the graph.

        To differentiate through it, for gradients of gradients, it is called once with a Var
        without a value: operators and NumPy's functions work on both; what it takes from ``.value``
        of other nodes counts as constant then.

        Parameters
        ----------
        hook : callable
            ``hook(gradient)`` gets an array, read-only, in the shape and dtype of this node, and
            returns the gradient to go on with, or ``None`` to leave it.

        Returns
        -------
        HookHandle
            ``remove()`` takes the hook away.

        Raises
        ------
        DTypeError
            If `hook` cannot be called, or the node is not made of floats.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> w = g.param([3.0, -4.0])
        >>> y = (w * w).sum()
        >>> handle = w.register_hook(lambda gradient: gradient.clip(-1.0, 1.0))
        >>> _ = y.backward()
        >>> w.grad
        array([ 1., -1.])
        """
        return register_hook(self, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Any], Any]) -> HookHandle:
        """Call a function with this leaf after each ``backward`` that has added to its ``.grad``.

        After all ``.grad``s of that backward, in order of creation of the leaves, then of
        registration. The function may change the graph: set the leaf, clear its ``.grad``. An error
        takes nothing back and keeps no other hook from being called; the first one is raised. Such
        hooks do not come along to forks.

        Parameters
        ----------
        hook : callable
            ``hook(leaf)``; what it returns is not looked at.

        Returns
        -------
        HookHandle
            ``remove()`` takes the hook away.

        Raises
        ------
        GradientError
            If this is neither a param nor an input.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> w = g.param(3.0)
        >>> y = w * w
        >>> handle = w.register_post_accumulate_grad_hook(lambda w: w.set(w.value - 0.1 * w.grad))
        >>> _ = y.backward()
        >>> w.value
        np.float64(2.4)
        """
        return register_after_grad(self, hook)

    def backward(
        self,
        gradient: Any = None,
        retain_graph: bool | None = None,
        inputs: Any = None,
    ) -> Run:
        """Add the gradient of this node to ``.grad`` of the params it depends on.

        Evaluates the same nodes as ``rg.grad`` and creates none at the second call. If a node
        raises, no ``.grad`` has changed.

        Parameters
        ----------
        gradient : array_like or Var, optional
            The gradient of what follows, in the shape of this value; needed unless it is a single
            number.
        retain_graph : bool, optional
            ``False`` releases the values in between, large ones as soon as nothing in this run reads them
            any more, also if it fails then; ``True`` shows the gradients of all nodes in
            between in their ``.grad`` until the next backward that passes them.
        inputs : Var or sequence of Var, optional
            The nodes whose ``.grad`` is wanted instead of all unfrozen params.

        Returns
        -------
        Run
            What ran.

        Raises
        ------
        ShapeError
            If there are several elements and no `gradient`.
        GradientError
            If there is nothing trainable to reach.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> w = g.param([1.0, 2.0])
        >>> run = (w * 3.0).sum().backward()
        >>> w.grad
        array([3., 3.])
        """
        return backward(self, gradient, retain_graph, inputs)

    def _programs_dict(self) -> dict[Any, Any]:
        try:
            return self._programs
        except AttributeError:
            # In a fork the gradients that the node's twin had are there already.
            self._programs: dict[Any, Any] = self._graph._host.twin_programs.get(self._slot, {})
            return self._programs

    # --- edits ---------------------------------------------------------------------------------

    def replace_parent(self, position: int, parent: Any) -> None:
        """Let this node take its operand at `position` from another node.

        Several edits that only fit together are made in a block, ``with g.edit():``. Gradients that
        were built follow; those of other parts keep their nodes and values.

        Parameters
        ----------
        position : int
            Which of ``parents``.
        parent : Var or DetachedVar
            The new operand.

        Raises
        ------
        CycleError
            If `parent` depends on this node; nothing has changed then.
        EditError
            If there is no such operand: what a function reads while it runs is none.
        ShapeError, DTypeError
            If the new operand does not fit this node or what depends on it.
        GradientError
            If a gradient that was built would not exist any more.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> a, b = g.input(1.0), g.input(5.0)
        >>> y = a + 1.0
        >>> y.replace_parent(0, b)
        >>> y.value
        np.float64(6.0)
        """
        replace_parent(self._graph, self, position, parent)

    def rewire(self, *operands: Any, **attributes: Any) -> None:
        """Let this node take all its operands from other nodes, in one edit.

        A node that takes any number of operands may get more or fewer: ``rg.concatenate``,
        ``rg.stack``, and functions that were called with Vars only.

        Parameters
        ----------
        *operands : Var or DetachedVar
            All of them, in order.
        **attributes
            Of an op made with ``rg.extend.primitive``: what it takes besides operands, where it changes.

        Raises
        ------
        CycleError, EditError, ShapeError, DTypeError
            As ``replace_parent``; nothing has changed then.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> a, b, c = g.input(1.0), g.input(2.0), g.input(4.0)
        >>> y = a - b
        >>> y.rewire(c, a)
        >>> y.value
        np.float64(3.0)
        >>> total = rg.lift(lambda *values: sum(values))(a, b)
        >>> total.rewire(a, b, c)
        >>> total.value
        7.0
        """
        rewire(self._graph, self, operands, attributes)

    def __repr__(self) -> str:
        graph = self._graph
        if type(graph) is Grave:
            return f"<Var {graph.removed!r}, removed>"
        with graph._lock:
            host = graph._host
            state = self.state
            text = f"<Var {self.name!r}: {host.describe_op(self._slot)}, "
            marks = [word for word, on in (("frozen", self.frozen), ("pinned", self.pinned)) if on]
            text += ", ".join([host.describe_value(self._slot), *marks, state])
            if state == "clean" and self._slot in graph._scheduler.dropped:
                text += ", value released"
            elif state == "clean":
                with np.printoptions(threshold=6, edgeitems=2, formatter={"object": told}):
                    value = host.hand_out(self._slot)
                    plain = value.item() if isinstance(value, np.generic) else value
                    shown = " ".join(told(plain)[:200].split())
                text += f", value {shown[:77] + '...' if len(shown) > 80 else shown}"
            return text + ">"

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else str(self)

    def __copy__(self) -> Var:
        return self

    def __deepcopy__(self, memo: Any) -> Var:
        raise DTypeError(
            "a Var cannot be copied without its graph; v.snapshot() makes a constant of its value."
        )

    def __reduce__(self) -> Any:
        raise DTypeError("a Var cannot be pickled; pickle v.numpy().")

    def _repr_html_(self) -> str:
        """What notebooks show."""
        from reactgrad.viz import html

        return html(self)
