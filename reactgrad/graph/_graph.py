"""The graph: owner of nodes, values, versions and the lock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Never, NoReturn

from reactgrad._errors import (
    DTypeError,
    ParameterError,
    SetError,
)
from reactgrad._habits import OF_GRAPHS, SETTINGS_OF_GRAPHS, absent, check_assigned, present, refuse
from reactgrad.autodiff._nested import gradient_of, tangent_of
from reactgrad.autodiff._plan import plan
from reactgrad.backend import read_device
from reactgrad.build._computed import add_computed, apply
from reactgrad.build._functions import call_lifted, outputs
from reactgrad.build._generations import NONE, Generations
from reactgrad.build._reuse import reuse
from reactgrad.change._edit import edit, insert, remove
from reactgrad.change._former_shapes import Shapes
from reactgrad.change._leaf import reseed
from reactgrad.change._make_way import forget_unseen
from reactgrad.change._set import set_values
from reactgrad.change._transaction import transaction
from reactgrad.core._arguments import named, own_slot
from reactgrad.core._gradients import Gradients
from reactgrad.core._handles import dtype_kind, handle, slots_in_order, tidy
from reactgrad.core._names import by_name
from reactgrad.core._twins import twin_of
from reactgrad.core._var_list import VarList
from reactgrad.flow._training import evaluate, train
from reactgrad.graph._detached import DetachedVar
from reactgrad.graph._fork import fork, whatif
from reactgrad.graph._leaves import add_const, add_input, add_param
from reactgrad.graph._pictures import Pictures
from reactgrad.graph._questions import Questions
from reactgrad.graph._settings import Settings
from reactgrad.graph._var import Var
from reactgrad.graph._verbs import lists_verbs
from reactgrad.memory._host import Host
from reactgrad.nodes._handle import Handle, enter, leave, on_default
from reactgrad.nodes._op import INPUT, PARAM, Leaf
from reactgrad.nodes._scope import scope
from reactgrad.observing._stabilize import stabilize
from reactgrad.observing._tell import deliver
from reactgrad.reading._forward import cancel, forward
from reactgrad.reading._reader import reader
from reactgrad.reading._value import value
from reactgrad.scheduler import (
    Scheduler,
    Serial,
    Threads,
    safe_repr,
)


@lists_verbs
class Graph(Pictures, Questions, Settings):
    """A dataflow graph whose nodes know the versions that they were computed from.

    Building and setting compute nothing. Reading a node recomputes exactly its stale ancestors, and
    the node if it is stale. ``with graph:`` makes the graph the current one for ``rg.input``,
    ``rg.param``, ``rg.const`` and for ops on plain arrays.

    Parameters
    ----------
    rng : int
        The seed of the graph, ``graph.seed``, which forks and saved graphs have, too. No op draws random
        numbers by itself; functions may, with ``np.random.default_rng(graph.seed)``.
    max_bytes : int, optional
        The memory budget of its values; see ``max_bytes``.
    jit : bool or int, optional
        True, or a number of threads, to run small kernels in a row as one call; see ``jit``. True by
        default where the package has its compiled driver.
    executor : Serial or Threads, optional
        The way in which its nodes run; see ``executor``.
    device : str
        The device of its leaves and constants that are given as lists or as arrays of the host, such as
        ``"cuda:0"``; ``rg.devices()`` lists them. Arrays of another device stay where they are.

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
        jit: int | None = None,
        executor: Serial | Threads | None = None,
        device: str = "cpu",
        **unknown: Never,
    ) -> None:
        if unknown:
            from reactgrad._habits import unknown_keyword

            known = ("rng", "max_bytes", "jit", "executor", "device")
            raise unknown_keyword("rg.Graph", unknown, known)
        if isinstance(rng, bool) or not isinstance(rng, int) or rng < 0:
            raise ParameterError(
                f"Graph(rng={safe_repr(rng)}): the seed is an integer of at least 0."
            )
        host = Host(self)
        self._open(rng, host)
        self._generations = host.generations = Generations()
        self._adopt(Scheduler(host))
        if max_bytes is not None:
            self.max_bytes = max_bytes
        self.jit = jit
        if executor is not None:
            self.executor = executor
        if device != "cpu":
            self._device = read_device("rg.Graph", device)

    def _open(self, seed: int, host: Host) -> None:
        super()._open(seed, host)
        self._generations = host.generations = NONE
        self._shapes = Shapes()

    def __copy__(self) -> Graph:
        raise DTypeError("a graph is copied with g.fork(), which shares all values.")

    def __deepcopy__(self, memo: Any) -> Graph:
        raise DTypeError("a graph is copied with g.fork(), which shares all values.")

    def __reduce__(self) -> Any:
        from reactgrad.io._bytes import to_bytes

        return _unpickled, (to_bytes(self),)

    # The ports: functions that lower floors call, see ``Core``.

    _var = Var
    _detached_var = DetachedVar
    _handle = handle
    _dtype_kind = dtype_kind
    _gradient = gradient_of
    _tangent = tangent_of
    _apply = apply
    _add_computed = add_computed
    _call_lifted = call_lifted
    _outputs = outputs
    _deliver = deliver
    _forget_unseen = forget_unseen
    _value = value

    def _value_for_rule(self, slot: int) -> Any:
        """Return the value of a function's node for a rule, which must be built anew if it changes."""
        return self._value(slot)

    def _rule_saw(self, program: Any) -> None:
        """Do nothing. A traced graph notes here which program follows the values that a rule has read."""

    # --- verbs: functions of a graph; their docstrings stand beside the code, in the folder of each ---

    # leaves
    input = add_input
    param = add_param
    const = add_const

    # building: blocks around code that builds
    reuse = reuse
    scope = scope

    # setting
    set = set_values
    transaction = transaction

    # reading
    forward = forward
    reader = reader
    cancel = cancel
    plan = plan
    stabilize = stabilize

    # edits
    edit = edit
    insert = insert
    remove = remove

    # gradients and modes
    train = train
    eval = evaluate
    reseed = reseed

    # forks
    fork = fork
    whatif = whatif

    # --- handles, names, lifetime --------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        if name[:1] != "_" and name not in _SETTINGS:
            has = None if type(self) is Graph else _SETTINGS
            check_assigned(self, "a Graph", name, value, SETTINGS_OF_GRAPHS, has)
        object.__setattr__(self, name, value)

    def __dir__(self) -> list[str]:
        return present(self)

    def __delitem__(self, name: str | Var) -> NoReturn:
        raise SetError(f"g[{name!r}] is a node, not a place: write g.remove(g[{name!r}]).")

    def __getitem__(self, name: str | Var) -> Var:
        """Return the node with this name; in a fork also the twin of a node, or a table, of its origin."""
        if isinstance(name, Handle):
            return twin_of(self, name)
        twin = getattr(name, "_twin_in", None)  # of what is made of nodes, as a table
        return named(self, name) if twin is None else twin(self)

    def __setitem__(self, name: str | Var, value: Any) -> NoReturn:
        raise SetError(
            f"g[{name!r}] is a node, not a place: write g[{name!r}].set({safe_repr(value):.40})."
        )

    def __contains__(self, item: object) -> bool:
        """Return whether a Var, or a node with this name, belongs to the graph."""
        with self._lock:
            tidy(self)
            if isinstance(item, str):
                return by_name(self, item) is not None
            return isinstance(item, Handle) and item._graph is self

    def __iter__(self) -> Iterator[Var]:
        """Iterate over all nodes in order of creation."""
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
            host = self._host
            slots = [slot for slot, op in enumerate(host.ops) if op is kind]  # few of all nodes
            slots.sort(key=self._scheduler.topology.number)
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
        """Return the number of nodes, constants included."""
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

    # --- gradients -----------------------------------------------------------------------------

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
            self._host.gradients = Gradients({}, {})


_SETTINGS = ("events", "executor", "jit", "max_bytes")
on_default(Graph)


refuse(Graph, OF_GRAPHS, lambda graph, name: absent("a Graph", "x", name, OF_GRAPHS))


def _unpickled(data: bytes) -> Graph:
    """Return the graph in a pickle."""
    from reactgrad.io._bytes import unpickled

    return unpickled(data, Graph)
