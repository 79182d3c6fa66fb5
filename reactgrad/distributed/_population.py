"""Members of a population in one graph: what they have in common is one node, and runs once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from reactgrad._attributes import OwnAttributes
from reactgrad._errors import EditError, GraphError, ParameterError
from reactgrad.build._computed import add_computed
from reactgrad.core._handles import handle
from reactgrad.nodes._op import CONST, PARAM, Leaf
from reactgrad.transforms._transforms import grad


class Member:
    """One member: the nodes of the model, its own where they differ.

    Attributes
    ----------
    number : int
    """

    def __init__(self, population: Population, number: int) -> None:
        self._population, self.number = population, number
        self._own: dict[int, Any] = {}

    def __repr__(self) -> str:
        return f"<member {self.number}, {len(self._own)} nodes of its own>"

    def __getitem__(self, node: Any) -> Any:
        """Return the node that this member has in the place of one of the model: a shared one, or its own."""
        var = self._population._of_model(node)
        return self._own.get(var._slot, var)

    def __len__(self) -> int:
        """Return how many nodes are its own."""
        return len(self._own)

    @property
    def params(self) -> list[Any]:
        """The params that are its own."""
        host = self._population.graph._host
        return [one for one in self._own.values() if host.ops[one._slot] is PARAM]

    def own(self, *nodes: Any) -> Any:
        """Give the member copies of these nodes, and of all that is computed from them. Return the copies.

        Leaves can be set then, and computed nodes edited, without a change of other members. What it has
        already stays.
        """
        population = self._population
        wanted = [population._of_model(one) for one in nodes]
        missing = [one._slot for one in wanted if one._slot not in self._own]
        if missing:
            self._copy(population._below(missing))
        found = [self._own[one._slot] for one in wanted]
        return found[0] if len(found) == 1 else tuple(found)

    def set(self, values: Mapping[Any, Any]) -> None:
        """Set leaves of this member, which become its own."""
        leaves = list(values)
        self.own(*leaves)
        self._population.graph.set({self[leaf]: values[leaf] for leaf in leaves})

    def copy(self, other: Member) -> None:
        """Take over the values of the params that the other member has of its own."""
        host = self._population.graph._host
        slots = [slot for slot, one in other._own.items() if host.ops[one._slot] is PARAM]
        graph = self._population.graph
        models = [handle(graph, slot) for slot in slots]
        if models:
            self.set({one: other[one].value for one in models})

    def _copy(self, slots: Sequence[int]) -> None:
        graph = self._population.graph
        host, scheduler = graph._host, graph._scheduler
        with graph._lock:
            for slot in slots:
                if slot in self._own:
                    continue
                op = host.ops[slot]
                if isinstance(op, Leaf):
                    model = handle(graph, slot)
                    if op is CONST:
                        raise EditError(f"{model.label!r} is a constant, which all members share.")
                    made: Any = (graph.param if op is PARAM else graph.input)(model.value)
                    if slot in host.frozen:
                        made.freeze()
                else:
                    operands = tuple(
                        [
                            self._own[one]._slot if one in self._own else one
                            for one in scheduler.operands(slot)
                        ]
                    )
                    closed = host.closed.get(slot, ())
                    detached = range(len(operands)) if closed is None else closed
                    made = add_computed(
                        graph, op, host.attrs[slot], host.specs[slot], operands, [*detached]
                    )
                    if slot in host.cutoffs:
                        made.cutoff = host.cutoffs[slot]
                self._own[slot] = made
            # Nodes that it had before and that are computed from what is its own now.
            for slot in slots:
                one = self._own[slot]
                if isinstance(host.ops[slot], Leaf):
                    continue
                for place, parent in enumerate(scheduler.operands(one._slot)):
                    if parent in self._own:
                        one.replace_parent(place, self._own[parent])


class Population(OwnAttributes, Sequence[Member]):
    """Many members of one model, in one graph.

    At first they share all nodes. What a member owns (a param that it trains, a node that it edits) is copied,
    with what is computed from it; all else stays one node for all: one ``set`` of an input reaches all members,
    and a trunk that they share runs once. A read of all members is one plan.

    Parameters
    ----------
    graph : Graph
        The graph of the model. The model itself stays as it is.
    n : int
        The number of members.
    outputs : sequence of Var or str, optional
        What is read: a loss, predictions. By default all nodes that no other node is computed from.
    own : iterable of Var or str
        The leaves that each member has of its own from the start.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input([1.0, 2.0], name="x")
    >>> w = g.param(1.0, name="w")
    >>> loss = (rg.tanh(x) * w).sum()
    >>> population = rg.distributed.Population(g, 3, outputs=[loss], own=[w])
    >>> for i, member in enumerate(population):
    ...     member.set({w: float(i)})
    >>> [round(float(one), 3) for one in population.read(loss)]
    [0.0, 1.726, 3.451]
    >>> x.set([0.5, 0.5])
    >>> population.read(loss)[2].round(3), len(g.last_run.ran)  # tanh once, then two nodes each
    (np.float64(1.848), 7)
    """

    def __init__(
        self, graph: Any, n: int, outputs: Sequence[Any] | None = None, own: Iterable[Any] = ()
    ) -> None:
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise ParameterError(f"Population(n={n!r}): at least one member.")
        self.graph = graph
        if outputs is None:
            topology = graph._scheduler.topology
            last = [slot for slot in topology.slots() if not topology.children[slot]]
            outputs = [handle(graph, slot) for slot in last if topology.parents[slot]]
        self.outputs = [self._var(one) for one in outputs]
        if not self.outputs:
            raise ParameterError("Population(outputs=[]): name the nodes that are read.")
        self._grads: dict[tuple[int, ...], Any] = {}
        self._members = [Member(self, i) for i in range(n)]
        owned = [self._var(one) for one in own]
        if owned:
            for member in self._members:
                member.own(*owned)

    def __getitem__(self, index: Any) -> Any:
        return self._members[index]

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members)

    def __repr__(self) -> str:
        return f"<population of {len(self)} in a graph of {len(self.graph)} nodes>"

    def _var(self, one: Any) -> Any:
        var = self.graph[one] if isinstance(one, str) else one
        if getattr(var, "_graph", None) is not self.graph:
            raise GraphError(f"Population: {one!r:.60} is no node of the model's graph.")
        return var

    def _of_model(self, one: Any) -> Any:
        var = self._var(one)
        if var._slot not in self._above():
            raise GraphError(
                f"Population: the outputs do not depend on {var.label!r}. Name nodes of the model, "
                "not those of a member."
            )
        return var

    def _above(self) -> set[int]:
        return self.graph._scheduler.topology.ancestors([one._slot for one in self.outputs])

    def _below(self, slots: list[int]) -> list[int]:
        """Return these nodes of the model and all computed from them, parents first."""
        topology = self.graph._scheduler.topology
        above = self._above()
        found = topology.descendants(slots, above.__contains__)
        return sorted(found, key=topology.rank.__getitem__)

    def set(self, values: Mapping[Any, Any]) -> None:
        """Set leaves that members share."""
        self.graph.set({self._var(one): value for one, value in values.items()})

    def read(self, output: Any) -> list[Any]:
        """Return the value of an output in each member, read as one plan."""
        nodes = [member[output] for member in self._members]
        self.graph.forward(*nodes)
        return [one.value for one in nodes]

    def backward(self, loss: Any) -> list[dict[Any, Any]]:
        """Return for each member the gradients of its loss by its own params, read as one plan.

        Keys are the member's params. Params that members share get none.
        """
        asked = []
        for member in self._members:
            params = [one for one in member.params if not one.frozen]
            own = member[loss]
            serial = self.graph._scheduler.topology.serial
            key = (serial[own._slot], *[serial[one._slot] for one in params])
            if key not in self._grads:
                self._grads[key] = grad(own, params, allow_unused=True) if params else ()
            pairs = zip(params, self._grads[key], strict=True)
            asked.append({one: node for one, node in pairs if node is not None})
        losses = [member[loss] for member in self._members]
        self.graph.forward(*losses, *[node for one in asked for node in one.values()])
        return [{param: node.value for param, node in one.items()} for one in asked]
