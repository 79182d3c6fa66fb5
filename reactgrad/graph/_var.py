"""``Var``, the user's handle to a node."""

from __future__ import annotations

import weakref
from functools import partial
from typing import Any

import numpy as np

from reactgrad import ops
from reactgrad._errors import DTypeError, SetError
from reactgrad._habits import OF_VARS, AbsentError, present, refuse, typing_errors
from reactgrad.autodiff._edges import wanted_leaves
from reactgrad.autodiff._grad import backward
from reactgrad.autodiff._hooks import register_after_grad, register_hook
from reactgrad.change._edit import replace_parent, rewire
from reactgrad.change._leaf import freeze, mutate, set_at, touch, unfreeze
from reactgrad.change._pin import pin, unpin
from reactgrad.change._remove import Grave
from reactgrad.change._set import set_cutoff, set_value
from reactgrad.core._handles import handle, refuse_tuple, tidy
from reactgrad.core._held import announce
from reactgrad.core._names import set_name
from reactgrad.core._notes import note
from reactgrad.core._var_list import VarList
from reactgrad.graph._detached import DetachedVar
from reactgrad.graph._value import Value, absent_of
from reactgrad.graph._verbs import lists_verbs
from reactgrad.nodes._cutoff import read_cutoff
from reactgrad.nodes._op import Leaf
from reactgrad.nodes._site import is_called
from reactgrad.observing._observe import observe
from reactgrad.reading._refresh import refresh
from reactgrad.scheduler import safe_repr


@lists_verbs
class Var(Value["Var"]):
    """A node of a graph: its value, its versions, and the operators that build on it.

    Vars are made by ``Graph.input``, ``param`` and ``const``, and by ops on other Vars. A node has one
    Var, so ``is`` and dict keys work; ``==`` compares element by element. A Var keeps its node alive.

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

    # --- verbs: functions of a Var; their docstrings stand beside the code, in the folder of each ------

    # setting
    set = set_value
    set_at = set_at
    touch = touch
    mutate = mutate
    pin = pin
    unpin = unpin

    # observing
    observe = observe

    # gradients
    backward = backward
    freeze = freeze
    unfreeze = unfreeze
    register_hook = register_hook
    register_post_accumulate_grad_hook = register_after_grad

    # edits
    replace_parent = replace_parent
    rewire = rewire

    # --- setting -----------------------------------------------------------------------------

    @property
    def pinned(self) -> bool:
        """True while the value is one that ``pin`` has given."""
        return self._slot in self._graph._host.pins

    @property
    def cutoff(self) -> Any:
        """The rule by which a recomputed or set value counts as unchanged; may be set at any time."""
        return self._graph._host.cutoffs.get(self._slot)

    @cutoff.setter
    def cutoff(self, rule: Any) -> None:
        read = read_cutoff(rule)
        graph = self._graph
        with graph._lock:
            graph._scheduler.check_idle()
            scheduler, slot = graph._scheduler, self._slot
            if slot in scheduler.dropped and read is not None and not scheduler.is_stale(slot):
                refresh(graph, (slot,))  # the cutoff needs the released value to compare with
            note(graph, "cutoffs", slot, graph._host.cutoffs.get(slot))
            scheduler.wholly(
                partial(set_cutoff, graph, slot, read),
                partial(set_cutoff, graph, slot, graph._host.cutoffs.get(slot)),
            )
            announce(graph)

    # --- facts of the node ----------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name that was set, unique in the graph, or a made one like ``tanh_3``."""
        return self._graph._host.name(self._slot)

    @name.setter
    def name(self, name: str | None) -> None:
        with self._graph._lock:
            set_name(self._graph, self._slot, name)

    @property
    def value_version(self) -> int:
        """The number of times that the value was replaced; 0 before the first time."""
        with self._graph._lock:
            self._graph._scheduler.attend()
            return self._graph._scheduler.version(self._slot)

    @property
    def parent_versions(self) -> tuple[int, ...]:
        """The versions of the parents that the value was computed from; zeros before the first time."""
        scheduler = self._graph._scheduler
        with self._graph._lock:
            scheduler.attend()
            record = scheduler.versions.record[self._slot]
            if record is None:
                return (0,) * len(scheduler.topology.parents[self._slot])
            return record

    @property
    def is_stale(self) -> bool:
        """True if a read would find the value out of date. Runs nothing."""
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
        """The operands, in order; a node that is used twice is listed twice.

        For a Python function they are followed by the nodes that it read while it ran. In place of a
        read that was refused stand the nodes on the way round the cycle.
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
            slots = sorted(topology.children[self._slot], key=topology.number)
            gone = graph._host.removed
            return VarList([handle(graph, slot) for slot in slots if slot not in gone])

    # --- gradients -----------------------------------------------------------------------------

    def detach(self) -> DetachedVar[Var]:
        """Return a view of the node for ops that gradients must not pass: same value, no new node.

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
            # Attributes are set directly: `DetachedVar.__init__` refuses, as users must not call it.
            view._graph, view._slot, view.base = self._graph, self._slot, self
            self._detached = weakref.ref(view)
        return view

    @property
    def frozen(self) -> bool:
        """True for a param that was frozen."""
        return self._slot in self._graph._host.frozen

    @property
    def requires_grad(self) -> bool:
        """True if an unfrozen param is reachable over edges that gradients pass."""
        with self._graph._lock:
            return bool(wanted_leaves(self._graph, self._slot))

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        raise SetError(
            f"requires_grad follows from what {self.label!r} is computed from. To take a param out of "
            "training write p.freeze(), to take it back p.unfreeze(); leaves to be trained are made "
            "with g.param."
        )

    @property
    def grad(self) -> Any:
        """The gradient that ``backward`` has left here, read-only; ``None`` before. See ``backward``."""
        found = self._graph._host.gradients.of(self._slot)
        if found is None and is_called(1):
            raise DTypeError(
                f"{self.label}.grad(...): .grad is an array that backward leaves, and no method. For a live gradient "
                f"write rg.grad({self.label}, x), for one of all params {self.label}.backward(), then w.grad."
            )
        return found

    @grad.setter
    def grad(self, value: Any) -> None:
        raise SetError(
            f"a gradient cannot be assigned; {self.label}.zero_grad() clears it, and "
            "backward(gradient=...) says how an output counts."
        )

    def zero_grad(self) -> None:
        """Set ``.grad`` to ``None``."""
        with self._graph._lock:
            self._graph._host.drop_grad(self._slot)

    def overwrite_grad(self) -> None:
        """Make the next backward that reaches this node replace ``.grad``; those after it add to it again.

        Until then ``.grad`` can be read, unlike after ``zero_grad``.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> w = g.param(1.0)
        >>> y = w * 3.0
        >>> run = y.backward()
        >>> w.overwrite_grad()
        >>> grads = [w.grad]
        >>> for _ in range(2):
        ...     run = y.backward()
        ...     grads += [w.grad]
        >>> [float(one) for one in grads]
        [3.0, 3.0, 6.0]
        """
        with self._graph._lock:
            refuse_tuple(self._graph, self._slot, "overwrite_grad")
            self._graph._host.replace_grad(self._slot)

    def retain_grad(self) -> None:
        """Make every backward that passes this node leave its gradient in ``.grad``."""
        with self._graph._lock:
            refuse_tuple(self._graph, self._slot, "retain_grad")
            self._graph._host.retained.add(self._slot)

    def _programs_dict(self) -> dict[Any, Any]:
        try:
            return self._programs
        except AttributeError:
            # A node of a fork begins with the programs that its twin had.
            self._programs: dict[Any, Any] = self._graph._host.twin_programs.get(self._slot, {})
            return self._programs

    # --- as text, copied, pickled ---------------------------------------------------------------

    def __repr__(self) -> str:
        graph = self._graph
        if type(graph) is Grave:
            return f"<Var {graph.removed!r}, removed>"
        with graph._lock:
            host = graph._host
            state = self.state
            text = f"<Var {self.label!r}: {host.describe_op(self._slot)}, "
            marks = [word for word, on in (("frozen", self.frozen), ("pinned", self.pinned)) if on]
            text += ", ".join([host.describe_value(self._slot), *marks, state])
            if state == "clean" and self._slot in graph._scheduler.dropped:
                text += ", value released"
            elif state == "clean":
                with np.printoptions(threshold=6, edgeitems=2, formatter={"object": safe_repr}):
                    value = host.hand_out(self._slot)
                    plain = value.item() if isinstance(value, np.generic) else value
                    shown = " ".join(safe_repr(plain)[:200].split())
                text += f", value {shown[:77] + '...' if len(shown) > 80 else shown}"
            return text + ">"

    def __str__(self) -> str:
        """Return an array of three and more axes as its matrices, computed if needed; else the line of ``repr``.

        Examples
        --------
        >>> import numpy as np, reactgrad as rg
        >>> x = rg.Graph().input(np.arange(4.0).reshape(1, 2, 2))
        >>> print(x * 0.5)  # doctest: +NORMALIZE_WHITESPACE
        (0,.,.) =
             0.      0.5
             1.      1.5
        <BLANKLINE>
         Var(shape=[1, 2, 2], dtype=float64, device=cpu)
        """
        value = self._to_print()
        from reactgrad.graph._slices import in_slices  # imported late: few programs print arrays

        return repr(self) if value is None else in_slices(value, self.device)

    def _to_print(self) -> Any:
        """Return a value of three and more axes as an array of NumPy; ``None`` for others, or if there is none."""
        graph = self._graph
        if type(graph) is Grave:
            return None
        with graph._lock:
            found, state = graph._host.specs[self._slot], self.state
            if found is None and state != "clean":  # a Python function's result may be anything
                return None
            if found is not None and len(found.shape) < 3:
                return None
            if graph._computing:  # a function that prints reads nothing, and so does not follow it
                there = state == "clean" and self._slot not in graph._scheduler.dropped
                value = graph._host.hand_out(self._slot) if there else None
                return value if isinstance(value, np.ndarray) and value.ndim > 2 else None
        try:
            value = self._to_host()
        except Exception:  # repr shows the state, and a read raises the error
            return None
        return value if isinstance(value, np.ndarray) and value.ndim > 2 else None

    def __dir__(self) -> list[str]:
        return present(self)

    def __copy__(self) -> Var:
        return self

    def __deepcopy__(self, memo: Any) -> Var:
        raise DTypeError(
            "a Var cannot be copied without its graph; v.snapshot() makes a constant of its value."
        )

    def __reduce__(self) -> Any:
        from reactgrad.io._bytes import number_of, var_of

        return var_of, (self._graph, number_of(self))

    def _repr_html_(self) -> str:
        """Return the HTML that notebooks show."""
        from reactgrad.viz._html import html

        return html(self)


# Methods that NumPy's arrays have, and ops that PyTorch's tensors have as methods.
_METHODS = [name for name in dir(np.ndarray) if callable(vars(np).get(name))]
_OPS = [name for name in vars(ops) if name[0] != "_" and callable(vars(np).get(name))]
_OF_TENSORS = (
    "relu",
    "sigmoid",
    "softmax",
    "log_softmax",
    "erf",
    "erfc",
    "norm_cdf",
    "split",
    "unbind",
)
refuse(Var, [*OF_VARS, *_METHODS, *_OPS, *_OF_TENSORS, *ops.PLACES], absent_of)

# A ``__setattr__`` could say it of all names, but would slow down each node that is built.
_SETTABLE = ("name", "cutoff", "value", "grad")
refuse(
    Var,
    [typed for name in _SETTABLE for typed in typing_errors(name)],
    lambda var, name: AbsentError(f"a Var has no attribute {name!r}.", name, _SETTABLE),
)
