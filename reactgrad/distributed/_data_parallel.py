"""A module that trains on the batches of all ranks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from reactgrad._attributes import OwnAttributes
from reactgrad._errors import DTypeError, ParameterError
from reactgrad.distributed._buckets import Buckets
from reactgrad.distributed._collectives import all_reduce
from reactgrad.distributed._group import Group
from reactgrad.distributed._group import group as present_group
from reactgrad.distributed._in_step import by_dtype, check_same_model, take_values
from reactgrad.distributed._rounds import Rounds
from reactgrad.functions._lift import lift
from reactgrad.graph._var import Var
from reactgrad.nn._module import Module

BUCKET_BYTES = 25 * 2**20
FIRST_BUCKET_BYTES = 2**20


def _rows(value: Any) -> float:
    """Return the length of a batch."""
    return float(np.shape(value)[0]) if np.ndim(value) else 1.0


class DataParallel(OwnAttributes):
    """A module whose gradients are those of the batches of all ranks.

    Each rank calls it with its own batch. ``backward`` of any loss behind it then leaves in ``.grad`` what one
    process would have for all batches together, and optimisers make the same step on all ranks. Gradients
    travel in buckets, each as soon as its adjoints are clean, while this rank computes the others. They are
    nodes: where nothing has changed on any rank, as for frozen layers, nothing travels.

    Params and buffers take the values of rank 0 when it is made, and the graph its seed. Before each call in
    train mode buffers take the values of rank 0 again. All else is the module's: ``net.state_dict()`` has the
    names that it has in one process.

    Parameters
    ----------
    module : Module
    group : Group, optional
        That of ``init`` by default.
    bucket_bytes, first_bucket_bytes : int
        The size of a bucket, and of the first one.
    reduction : {"mean", "sum"}
        What the loss does with its batch. For means each rank counts by the length of its batch: of the
        first argument of its last call.
    broadcast_buffers : bool
        Whether buffers are kept in step.
    find_unused_parameters : bool
        Whether the ranks ask each other at each ``backward`` which params they reach. Without it they ask
        when a rank reaches others than before, and all ranks must do so at the same time.

    Examples
    --------
    >>> import numpy as np
    >>> import reactgrad as rg
    >>> def train(group):
    ...     with rg.Graph(rng=group.rank):
    ...         net = rg.nn.Linear(2, 1)
    ...     net = rg.distributed.DataParallel(net, group)
    ...     opt = rg.optim.SGD(net.parameters(), lr=0.1)
    ...     batch = np.full((3, 2), group.rank + 1.0)
    ...     loss = (net(batch) ** 2).mean()
    ...     loss.backward()
    ...     opt.step()
    ...     return net.weight.value.round(6).tolist()
    >>> first, second = rg.distributed.run(train, "local:2")
    >>> first == second
    True
    """

    def __init__(
        self,
        module: Module,
        group: Group | None = None,
        *,
        bucket_bytes: int = BUCKET_BYTES,
        first_bucket_bytes: int = FIRST_BUCKET_BYTES,
        reduction: str = "mean",
        broadcast_buffers: bool = True,
        find_unused_parameters: bool = False,
    ) -> None:
        if not isinstance(module, Module):
            raise DTypeError(
                f"DataParallel takes a module of rg.nn, not {type(module).__name__}. Functions of Vars: "
                "average gradients by rg.distributed.all_reduce."
            )
        if reduction not in ("mean", "sum"):
            raise DTypeError(f'DataParallel(reduction={reduction!r}): "mean" or "sum".')
        params = dict(module.named_parameters())
        if not params:
            raise ParameterError(
                "DataParallel: the module has no params, so there is nothing to average."
            )
        self.module = module
        self.group = present_group() if group is None else group
        self._graph: Any = next(iter(params.values()))._graph
        self._mean, self._find_unused = reduction == "mean", find_unused_parameters
        self._broadcast_buffers = broadcast_buffers
        buffers = dict(module.named_buffers())
        check_same_model(self.group, {**params, **buffers})
        for one in (params, buffers):
            for variables in by_dtype(one):
                take_values(self.group, variables)
        seed = self.group.broadcast_object(self._graph.seed)
        if seed != self._graph.seed:
            self._graph.reseed(seed)
        self._buckets = Buckets(self.group, params, first_bucket_bytes, bucket_bytes)
        self._given = self._graph.input(
            1.0, cutoff="equal"
        )  # the length of a batch that is an array
        self._shares: dict[int, tuple[Any, Any]] = {}
        self._share = self._share_of(self._given)
        self._quiet = False
        self._unsynced: set[int] = set()
        self._kept: dict[int, Any] = {}
        self._token: object = object()
        Rounds.of(self._graph).exchangers.append(self)

    def __repr__(self) -> str:
        return f"DataParallel({self.module!r}, {self.group!r})"

    def __getattr__(self, name: str) -> Any:
        if name == "module":
            raise AttributeError(name)
        return getattr(self.module, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module with this rank's batch."""
        if self._broadcast_buffers and self.module.training:
            for variables in by_dtype(dict(self.module.named_buffers())):
                take_values(self.group, variables)
        first = next(iter([*args, *kwargs.values()]), None)
        if isinstance(first, Var):
            self._share = self._share_of(first)
        else:
            self._given.set(_rows(first))
            self._share = self._share_of(self._given)
        return self.module(*args, **kwargs)

    def _share_of(self, source: Any) -> Any:
        """Return the node that has what this rank's gradients count."""
        if not self._mean:
            source = self._given
        slot = source._slot
        found = self._shares.get(slot)
        if found is None or found[0] is not source:
            graph = self._graph
            if not self._mean:
                share = graph.input(1.0)
            else:
                rows = source
                if source is not self._given:
                    rows = lift(_rows, cutoff="equal", shape=())(source)
                share = rows / all_reduce(rows, "sum", self.group)
            while len(self._shares) > 16:
                del self._shares[next(iter(self._shares))]
            found = self._shares[slot] = (source, share)
        return found[1]

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Let gradients of the ``backward`` calls in this block stay on this rank.

        The next ``backward`` outside of it gives the sum to the others. Until then ``.grad`` is this rank's
        part of the mean.

        Examples
        --------
        >>> import numpy as np
        >>> import reactgrad as rg
        >>> def train(group):
        ...     with rg.Graph():
        ...         net = rg.distributed.DataParallel(rg.nn.Linear(1, 1, bias=False), group)
        ...     with net.no_sync():
        ...         net(np.full((1, 1), 1.0)).sum().backward()
        ...     before = net.weight.grad.item()
        ...     net(np.full((1, 1), 1.0 + group.rank)).sum().backward()
        ...     return before, net.weight.grad.item()
        >>> rg.distributed.run(train, "local:2")
        [(0.5, 2.5), (0.5, 2.5)]
        """
        before, self._quiet, self._token = self._quiet, True, object()
        try:
            yield
        finally:
            self._quiet, self._token = before, object()

    # --- what ``Rounds`` asks ------------------------------------------------------------------------

    @property
    def token(self) -> object:
        """Another object after each change of what ``backward`` has to read."""
        share = self._share
        return (self._token, share._slot, id(share), object() if self._find_unused else None)

    def exchanged(self, adjoints: dict[int, Any]) -> dict[int, Any]:
        """Return the nodes that ``backward`` reads in place of these adjoints."""
        names = self._buckets.names
        own = {slot: var for slot, var in adjoints.items() if slot in names}
        if not own and not self._unsynced:
            return adjoints
        frozen = self._graph._host.frozen
        if self._quiet:
            self._unsynced |= own.keys()
            scaled = {slot: var * self._share.astype(var.dtype) for slot, var in own.items()}
            self._buckets.latest = None
            return {**adjoints, **scaled}
        kept: dict[int, Any] = {}
        if self._unsynced:
            kept = {slot: self._so_far(slot) for slot in names if slot in self._unsynced}
            self._unsynced.clear()
            self._token = object()  # the next one has nothing to add
        reduced = self._buckets.reduced(own, self._share, kept, self._find_unused)
        return {
            **adjoints,
            **{slot: var for slot, var in reduced.results.items() if slot not in frozen},
        }

    def _so_far(self, slot: int) -> Any:
        """Return a node with the gradient that has not travelled yet; the next one replaces it."""
        param = self._buckets.params[self._buckets.names[slot]]
        value = param.grad
        value = np.zeros(param.shape, param.dtype) if value is None else np.array(value)
        if slot in self._kept:
            self._kept[slot].set(value)
        else:
            self._kept[slot] = self._graph.input(value)
        if param.grad is not None:
            param.overwrite_grad()
        return self._kept[slot]

    @property
    def buckets(self) -> list[list[str]]:
        """The names of the params in each bucket of the last ``backward``, in the order in which they started."""
        latest = self._buckets.latest
        names = self._buckets.names
        return [] if latest is None else [[names[slot] for slot in one] for one in latest.buckets]
