"""A graph on many workers: scenarios, sweeps and sensitivities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from reactgrad._errors import DTypeError, GraphError, ParameterError
from reactgrad.core._handles import handle
from reactgrad.distributed._crew import Crew
from reactgrad.distributed._holder import Holder
from reactgrad.distributed._places import LostError, Place
from reactgrad.distributed._shipping import Shipper
from reactgrad.nodes._op import CONST, Leaf

Change = Mapping[Any, Any]


class Farm(Crew):
    """Copies of a graph on the workers of a Dask cluster.

    The graph is shipped once to each worker. A scenario then sends only the leaves that it sets, and what does
    not depend on them is never computed again. Results come in order. A worker that dies is replaced, and what
    it was at is computed again.

    Parameters
    ----------
    graph : Graph
        Its functions need names that the workers can import.
    client : distributed.Client, LocalHosts or int
        A number stands for threads of this process.
    outputs : sequence of Var or str
        The nodes that scenarios read.
    workers : int, optional
        How many workers to use; all by default.
    patience : float
        The seconds to wait for another worker when the last one has died.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> spot, rate = g.input(100.0, name="spot"), g.input(0.02, name="rate")
    >>> forward = spot * rg.exp(rate)
    >>> with rg.distributed.Farm(g, 2, outputs=[forward]) as farm:
    ...     for value in farm.map([{spot: 100.0, rate: 0.0}, {spot: 101.0, rate: 0.0}]):
    ...         print(value)
    ...     print(farm.scenarios({spot: [90.0, 110.0], rate: [0.0, 0.0, 0.0]}).shape)
    ...     print(farm.sensitivities(forward, [spot])["spot"].round(4))
    100.0
    101.0
    (2, 3)
    1.0202
    """

    def __init__(
        self,
        graph: Any,
        client: Any,
        outputs: Sequence[Any],
        *,
        workers: int | None = None,
        patience: float = 30.0,
    ) -> None:
        self.graph = graph
        self._outputs = [self._number(one, "outputs") for one in outputs]
        if not self._outputs:
            raise ParameterError("Farm(outputs=[]): name the nodes that scenarios read.")
        self._shipper = Shipper(graph)
        # A worker that comes later gets the graph as it was at first, and these.
        self._later: list[bytes] = []
        super().__init__(client, Holder, self._shipper.pack(), workers, patience)

    def _begin(self, place: Place) -> None:
        """Bring the copy on a new worker up to date."""
        for data in self._later:
            place.call("take", data)

    def __repr__(self) -> str:
        return f"<farm of {len(self._places)} workers, {len(self._outputs)} outputs>"

    # --- nodes ------------------------------------------------------------------------------------

    def _slot(self, one: Any, what: str) -> int:
        if isinstance(one, str):
            one = self.graph[one]
        if getattr(one, "_graph", None) is not self.graph:
            raise GraphError(
                f"Farm, {what}: {one!r:.60} is no node of the graph that was shipped. Name its nodes."
            )
        return one._slot

    def _number(self, one: Any, what: str) -> int:
        return self.graph._scheduler.topology.number(self._slot(one, what))

    def _sets(self, change: Change) -> dict[int, Any]:
        if not isinstance(change, Mapping):
            raise DTypeError(
                f"a scenario is a dict of leaves and values, such as {{spot: 101.0}}, not {type(change).__name__}."
            )
        sets = {}
        for one, value in change.items():
            slot = self._slot(one, "a scenario")
            op = self.graph._host.ops[slot]
            if not isinstance(op, Leaf) or op is CONST:
                label = handle(self.graph, slot).label
                raise GraphError(
                    f"a scenario sets {label!r}, which is computed, or a constant. Set inputs and params."
                )
            sets[self.graph._scheduler.topology.number(slot)] = value
        return sets

    # --- work -------------------------------------------------------------------------------------

    def map(
        self, changes: Iterable[Change], *, chunk: int | None = None, progress: bool = False
    ) -> Iterator[Any]:
        """Yield the outputs in each scenario, in order.

        Parameters
        ----------
        changes : iterable of mapping
            For each scenario, the leaves to set, by Var or name.
        chunk : int, optional
            How many scenarios one call takes. If their number is known, an eighth of a worker's share by
            default, else 1.
        progress : bool
            Whether to draw a bar.

        Returns
        -------
        iterator
            Of values; of tuples, if there are several outputs. Closing it cancels what has not begun.
        """
        results = self._map("run", changes, (self._outputs,), chunk, progress)
        single = len(self._outputs) == 1
        return (one[0] if single else tuple(one) for one in results)

    def run(self, change: Change) -> Any:
        """Return the outputs in one scenario, by one call of one worker.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x = g.input(1.0)
        >>> with rg.distributed.Farm(g, 1, outputs=[x * 3.0]) as farm:
        ...     farm.run({x: 2.0})
        np.float64(6.0)
        """
        sets = self._sets(change)
        while True:
            self._check_open()
            place = self._places[self.calls % len(self._places)]
            self.calls += 1
            try:
                (values,) = place.call("run", [sets], self._outputs)
            except LostError:
                self._replace(place)
                continue
            return values[0] if len(values) == 1 else tuple(values)

    def scenarios(self, values: Mapping[Any, Sequence[Any]], **options: Any) -> Any:
        """Return the outputs for all combinations of values of some leaves.

        Parameters
        ----------
        values : mapping from Var or name to sequence
        **options
            Of ``map``.

        Returns
        -------
        numpy.ndarray
            With an axis for each leaf, then those of the output; a tuple for several outputs.
        """
        leaves = list(values)
        every = [list(values[leaf]) for leaf in leaves]
        changes = [dict(zip(leaves, one, strict=True)) for one in product(*every)]
        found = list(self._map("run", changes, (self._outputs,), **_read(options)))
        shape = tuple(map(len, every))
        arrays = [
            np.array([np.asarray(one[i]) for one in found]).reshape(
                (*shape, *np.shape(found[0][i])) if found else (*shape,)
            )
            for i in range(len(self._outputs))
        ]
        return arrays[0] if len(arrays) == 1 else tuple(arrays)

    def sensitivities(
        self,
        output: Any,
        inputs: Sequence[Any],
        changes: Sequence[Change] | None = None,
        **options: Any,
    ) -> Any:
        """Return the gradients of an output for some nodes, by their labels.

        Parameters
        ----------
        output : Var or str
            A single number.
        inputs : sequence of Var or str
        changes : sequence of mapping, optional
            Scenarios; then there is a dict for each, in order.

        Returns
        -------
        dict, or list of dict
            Zeros for what the output does not depend on.
        """
        variables = [handle(self.graph, self._slot(one, "sensitivities")) for one in inputs]
        numbers = [self._number(one, "sensitivities") for one in inputs]
        given = [{}] if changes is None else changes
        what = (self._number(output, "sensitivities"), numbers)
        every = [
            {
                one.label: np.zeros(one.shape)[()] if value is None else value
                for one, value in zip(variables, values, strict=True)
            }
            for values in self._map("slopes", given, what, **_read(options))
        ]
        return every[0] if changes is None else every

    def update(self) -> None:
        """Bring all copies up to date with the graph: only changed leaves and edits travel."""
        data = self._shipper.pack()
        with self._lock:
            if self._shipper.whole:
                self._given, self._later = data, []
            else:
                self._later.append(data)
        for place in [*self._places]:
            try:
                place.call("take", data)
            except LostError:
                self._replace(place)

    def _map(
        self,
        method: str,
        changes: Iterable[Change],
        more: tuple[Any, ...],
        chunk: int | None = None,
        progress: bool = False,
    ) -> Iterator[Any]:
        """Yield the results of all scenarios in order, while workers are at the next ones."""
        self._check_open()
        count = len(changes) if isinstance(changes, Sequence) else None
        # Checked here, and not in a thread later, if they are there.
        sets = (
            iter([self._sets(one) for one in changes])
            if count is not None
            else map(self._sets, changes)
        )
        results = self._work(method, sets, more, self._share(count) if chunk is None else chunk)
        if progress:
            from reactgrad.tracking._progress import progress as bar

            return iter(bar(results, desc="scenarios", total=count))
        return results


def _read(options: dict[str, Any]) -> dict[str, Any]:
    unknown = options.keys() - {"chunk", "progress"}
    if unknown:
        raise DTypeError(f"a farm has no option {min(unknown)!r}: chunk= or progress=.")
    return options
