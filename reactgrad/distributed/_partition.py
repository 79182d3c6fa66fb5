"""A graph whose parts lie on different workers: each change goes to the parts that it concerns."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

from reactgrad._errors import EditError, GraphError, ParameterError
from reactgrad.distributed._holder import Holder
from reactgrad.distributed._places import Hosts, LostError, Place, hosts_of, start
from reactgrad.nodes._op import CONST, Leaf


class _Part:
    """Some nodes of the cut, with all that they are computed from, on one worker."""

    def __init__(self, cut: list[Any]) -> None:
        self.cut = cut
        self.numbers: list[int] = []
        self.leaves: set[int] = set()
        self.sets: dict[int, Any] = {}  # since it was shipped
        self.waiting: dict[int, Any] = {}
        self.data = b""
        self.place: Any = None
        self.is_known = False  # whether the values of the cut are here


class Partition:
    """A distributed graph: what ``partition`` returns.

    Attributes
    ----------
    calls : list of int
        How often each worker was asked.
    lost : list of str
        The workers that have died.
    """

    def __init__(self, graph: Any, cut: Sequence[Any], hosts: Hosts, patience: float) -> None:
        self.graph, self._hosts, self._patience = graph, hosts, patience
        self.lost: list[str] = []
        names = hosts.names()[: len(cut)]
        self._parts = [_Part(list(cut[i :: len(names)])) for i in range(len(names))]
        self.calls = [0] * len(self._parts)
        topology = graph._scheduler.topology
        self._above: set[int] = set()
        with graph._lock:
            for part in self._parts:
                slots = topology.ancestors([one._slot for one in part.cut])
                order = [slot for slot in topology.slots() if slot in slots]
                from reactgrad.io._bytes import part_to_bytes

                part.data = pickle.dumps(("graph", part_to_bytes(graph, order)))
                part.numbers = [topology.number(one._slot) for one in part.cut]
                part.leaves = {slot for slot in slots if graph._scheduler.leaf[slot]}
                self._above |= slots
        # What lies behind the cut is computed here, from values that the workers have sent.
        self.here = graph.fork()
        for part, name in zip(self._parts, names, strict=True):
            part.place = hosts.place(name, Holder, part.data)
        self._pool = ThreadPoolExecutor(len(self._parts), thread_name_prefix="partition")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<partition of {sum(len(part.cut) for part in self._parts)} nodes on {len(self._parts)} workers>"

    def close(self) -> None:
        """Release the parts."""
        self._pool.shutdown(wait=True)
        for part in self._parts:
            part.place.close()

    def set(self, changes: Mapping[Any, Any]) -> None:
        """Set leaves, by Var or name. Nothing is sent before the next read.

        The graph that was partitioned does not change.
        """
        here: dict[Any, Any] = {}
        sent: list[tuple[int, Any]] = []
        number = self.graph._scheduler.topology.number
        for one, value in changes.items():
            var = self.graph[one] if isinstance(one, str) else one
            if getattr(var, "_graph", None) is not self.graph:
                raise GraphError(
                    f"Partition.set: {one!r:.60} is no node of the graph that was partitioned."
                )
            op = self.graph._host.ops[var._slot]
            if not isinstance(op, Leaf) or op is CONST:
                raise GraphError(
                    f"Partition.set: {var.label!r} is computed, or a constant. Set inputs and params."
                )
            here[self.here[var]] = value
            sent.append((var._slot, value))
        self.here.set(here)  # checks all values before anything is sent
        for slot, value in sent:
            for part in self._parts:
                if slot in part.leaves:
                    part.waiting[number(slot)] = value

    def __getitem__(self, node: Any) -> Any:
        """Return the value of a node behind the cut, or of the cut, by Var or name."""
        return self.read([node])[0]

    def read(self, nodes: Sequence[Any]) -> list[Any]:
        """Return values of nodes behind the cut, or of the cut.

        Workers whose leaves were not set since the last read are not asked.
        """
        variables = [self.graph[one] if isinstance(one, str) else one for one in nodes]
        cut = {one._slot for part in self._parts for one in part.cut}
        for var in variables:
            if var._slot in self._above and var._slot not in cut:
                raise GraphError(
                    f"Partition: {var.label!r} is computed on a worker. Read nodes of the cut, or behind it."
                )
        due = [i for i, part in enumerate(self._parts) if part.waiting or not part.is_known]
        for _ in self._pool.map(self._bring, due):
            pass
        return [self.here[var].value for var in variables]

    def _bring(self, at: int) -> None:
        """Send a part its changes, and take the values of its nodes of the cut."""
        part = self._parts[at]
        sets, part.waiting = part.waiting, {}
        try:
            while True:
                try:
                    self.calls[at] += 1
                    values = part.place.call("set", sets, part.numbers)
                    break
                except LostError:
                    part.place = self._replaced(part)
                    sets = {**part.sets, **sets}
        except BaseException:
            part.waiting = {**sets, **part.waiting}
            raise
        part.sets |= sets
        for var, value in zip(part.cut, values, strict=True):
            self.here[var].pin(value)
        part.is_known = True

    def _replaced(self, part: _Part) -> Place:
        self.lost.append(part.place.host)
        # Another part may live there, too: a worker with two parts is better than none.
        return start(self._hosts, Holder, lambda: part.data, {part.place.host}, self._patience)


def partition(graph: Any, cut: Sequence[Any], client: Any, *, patience: float = 30.0) -> Partition:
    """Distribute a graph over workers, and combine the parts here.

    Each worker gets some nodes of the cut with all that they are computed from, and nothing else. What lies
    behind them, such as their sum, is computed in this process. A change goes to the workers whose nodes it
    concerns; if each underlying of a book is a part, one quote goes to one worker. Workers that die are
    replaced.

    Parameters
    ----------
    graph : Graph
    cut : sequence of Var
        The nodes whose values travel: none is computed from another one, and all that is read lies behind
        them.
    client : distributed.Client, LocalHosts or int
    patience : float
        The seconds to wait for another worker.

    Returns
    -------
    Partition

    Raises
    ------
    EditError
        If a node of the cut is computed from another one.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> spots = [g.input(100.0 + i, name=f"spot{i}") for i in range(4)]
    >>> books = [(spot * 2.0) ** 2 for spot in spots]
    >>> total = books[0] + books[1] + books[2] + books[3]
    >>> with rg.distributed.partition(g, books, 4) as parts:
    ...     print(parts[total], parts.calls)
    ...     parts.set({spots[2]: 0.0})
    ...     print(parts[total], parts.calls)
    164856.0 [1, 1, 1, 1]
    123240.0 [1, 1, 2, 1]
    """
    variables = list(cut)
    if not variables:
        raise ParameterError("partition(cut=[]): name the nodes at which the graph is cut.")
    for one in variables:
        if getattr(one, "_graph", None) is not graph:
            raise GraphError(f"partition: {one!r:.60} is no node of this graph.")
    topology = graph._scheduler.topology
    inside = {one._slot for one in variables}
    for one in variables:
        above = topology.ancestors([one._slot]) - {one._slot}
        if above & inside:
            raise EditError(
                f"partition: {one.label!r} is computed from another node of the cut. Leave one of them out."
            )
    return Partition(graph, variables, hosts_of(client), patience)
