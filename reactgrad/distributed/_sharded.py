"""An optimiser whose moments are divided among the ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from reactgrad._attributes import OwnAttributes
from reactgrad._errors import DTypeError
from reactgrad.distributed._group import Group
from reactgrad.distributed._group import group as present_group
from reactgrad.distributed._in_step import by_dtype, spread
from reactgrad.optim._optimizer import Optimizer
from reactgrad.optim._params import read_params, unique_names


class ShardedOptimizer(OwnAttributes):
    """Make the step of an optimiser for a part of the params on each rank, and share the new values.

    Each rank keeps the moments of its own params only (Rajbhandari et al., 2020, stage 1). ``.grad`` is to be
    the same on all ranks, as ``DataParallel`` leaves it.

    Parameters
    ----------
    kind : type
        An optimiser of ``rg.optim``.
    params : iterable
        Params, or ``(name, param)`` pairs, in the same order on all ranks.
    group : Group, optional
    **options
        Options of the optimiser.

    Attributes
    ----------
    owners : dict of str to int
        By the name of a param, the rank that keeps its moments.
    optimizer : Optimizer or None
        The optimiser of this rank's own params; ``None`` if there are fewer params than ranks.

    Examples
    --------
    >>> import reactgrad as rg
    >>> def train(group):
    ...     g = rg.Graph()
    ...     a, b = g.param([1.0, 2.0], name="a"), g.param(3.0, name="b")
    ...     opt = rg.distributed.ShardedOptimizer(rg.optim.Adam, [a, b], group, lr=0.5)
    ...     (a.sum() * b).backward()
    ...     opt.step()
    ...     return opt.owners, a.value.round(3).tolist(), b.value.round(3).item()
    >>> for one in rg.distributed.run(train, "local:2"):
    ...     print(one)
    ({'a': 0, 'b': 1}, [0.5, 1.5], 2.5)
    ({'a': 0, 'b': 1}, [0.5, 1.5], 2.5)
    """

    def __init__(
        self, kind: type[Optimizer], params: Any, group: Group | None = None, **options: Any
    ) -> None:
        if not (isinstance(kind, type) and issubclass(kind, Optimizer)):
            raise DTypeError(
                f"ShardedOptimizer({kind!r:.60}): the first argument is an optimiser's class, such as rg.optim.Adam."
            )
        self.group = present_group() if group is None else group
        named = read_params("ShardedOptimizer", params)
        names = unique_names("ShardedOptimizer", named, ())
        self._params = dict(zip(names, [one[-1] for one in named], strict=True))
        self.owners = self._divided()
        own = [(n, p) for n, p in self._params.items() if self.owners[n] == self.group.rank]
        self._kind, self._options = kind, options
        self.optimizer = kind(own, **options) if own else None

    def _divided(self) -> dict[str, int]:
        """Return the owner of each param: the largest first, to the rank that has least."""
        loads = [0] * self.group.size
        owners: dict[str, int] = {}
        for name, param in sorted(
            self._params.items(), key=lambda one: -int(np.prod(one[1].shape))
        ):
            rank = loads.index(min(loads))
            owners[name] = rank
            loads[rank] += int(np.prod(param.shape)) * param.dtype.itemsize
        return {name: owners[name] for name in self._params}

    def __repr__(self) -> str:
        return f"ShardedOptimizer({self.optimizer!r}, {self.group!r})"

    @property
    def params(self) -> list[Any]:
        """All params, of all ranks."""
        return list(self._params.values())

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """The groups of this rank's own optimiser, whose options may be changed on all ranks alike."""
        return [] if self.optimizer is None else self.optimizer.param_groups

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set ``.grad`` of all params to ``None``, or this rank's own to zeros."""
        if self.optimizer is not None:
            self.optimizer.zero_grad(set_to_none)
        for name, param in self._params.items():
            if self.owners[name] != self.group.rank:
                param.zero_grad()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change this rank's params by their gradients, and take the new values of all others."""
        loss = None if closure is None else closure()
        if self.optimizer is not None:
            self.optimizer.step()
        for variables in by_dtype(self._params):
            self._share(variables)
        return loss

    def _share(self, variables: list[Any]) -> None:
        """Bring params of one dtype up to date, by one message."""
        group = self.group
        mine = {
            id(self._params[name]) for name, owner in self.owners.items() if owner == group.rank
        }
        places = {id(param): self.owners[name] for name, param in self._params.items()}
        dtype = variables[0].dtype
        sizes = [0] * group.size
        for var in variables:
            sizes[places[id(var)]] += int(np.prod(var.shape))
        given = np.zeros(max(sizes), dtype)
        at = 0
        for var in variables:
            if id(var) in mine:
                value = np.asarray(var.value).reshape(-1)
                given[at : at + value.size] = value
                at += value.size
        every = group.move("all_gather", given).reshape(group.size, -1)
        starts = [0] * group.size
        others, values, parts = [], [], []
        for var in variables:
            owner, size = places[id(var)], int(np.prod(var.shape))
            start = starts[owner]
            starts[owner] += size
            if owner != group.rank:
                others.append(var)
                values.append(np.asarray(var.value))
                parts.append(every[owner, start : start + size])
        if others:
            spread(others, values, np.concatenate(parts))

    def state_dict(self) -> dict[str, Any]:
        """Return the state of all ranks, on all of them: it loads in one process as well.

        All ranks call it together.
        """
        own = None if self.optimizer is None else self.optimizer.state_dict()
        every = [one for one in self.group.all_gather_object(own) if one is not None]
        state: dict[str, Any] = {}
        for one in every:
            state |= one["state"]
        first = dict(every[0]["param_groups"][0])
        first["params"] = list(self._params)
        return {
            "state": {name: state[name] for name in self._params if name in state},
            "param_groups": [first],
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over this rank's part of what ``state_dict`` returned, here or in one process."""
        if self.optimizer is None:
            return
        own = {name for name, owner in self.owners.items() if owner == self.group.rank}
        groups = [
            {**one, "params": [name for name in one["params"] if name in own]}
            for one in state_dict["param_groups"]
        ]
        state = {name: one for name, one in state_dict["state"].items() if name in own}
        self.optimizer.load_state_dict({"state": state, "param_groups": groups})
