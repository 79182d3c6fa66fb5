"""The common part of all optimisers: groups of params, steps that are made as a whole, hooks, and their state."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from numbers import Real
from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from reactgrad._calls import check_names, explain_init
from reactgrad._errors import (
    DeviceError,
    DTypeError,
    GradientError,
    LoadError,
    ParameterError,
    ReactgradError,
)
from reactgrad._habits import answer, check_assigned, present
from reactgrad._names_of_torch import OF_OPTIMIZERS
from reactgrad.change._set_side_by_side import set_side_by_side
from reactgrad.core._moved import hold
from reactgrad.core._notes import UNDO
from reactgrad.optim._arrays import Arrays
from reactgrad.optim._bucket import LARGE, Bucket, carried
from reactgrad.optim._group import ParamGroup
from reactgrad.optim._hooks import Hooks
from reactgrad.optim._params import (
    check_once,
    check_one_graph,
    check_param,
    read_groups,
    read_params,
    unique_names,
)
from reactgrad.optim._training_step import training_step
from reactgrad.scheduler import listed, safe_repr
from reactgrad.values._quiet import as_before, be_quiet, error_state

Group = dict[str, Any]


class Optimizer:
    """Change params by their gradients.

    A subclass declares its options and has a rule for one step. The params of a group lie side by side in
    one array, and so do their gradients and moments: a step is a dozen calls of NumPy, however many params
    there are. It counts as one change of each param that it moves.

    Params without ``.grad`` and frozen params are left out: neither their values nor their moments change.
    A step is made as a whole: an error has changed nothing.

    Parameters
    ----------
    params : iterable
        Params, ``(name, param)`` pairs, or dicts with ``"params"`` and options of their own. Params without a
        name are called by their labels.
    **options
        For groups that do not have their own.

    Attributes
    ----------
    param_groups : list of dict
        The groups: ``"params"``, ``"names"`` and the options. Options may be changed between steps.
    """

    OPTIONS: ClassVar[dict[str, Any]] = {"lr": 1e-3}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        explain_init(cls)

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        if kwargs:
            check_names(cls, cls.__qualname__, args, kwargs)
        return super().__new__(cls)

    def __init__(self, params: Any, **options: Any) -> None:
        who = type(self).__name__
        self.defaults = {**self.OPTIONS, **options}
        self.check_options(self.defaults)
        self.param_groups: list[Group] = []
        self._buckets: list[list[Bucket] | None] = []
        self._own: frozenset[Any] = frozenset()  # the blocks of gradients of these buckets:
        self._own_of: list[list[Bucket] | None] = []
        self._before, self._after = Hooks(), Hooks()
        for group in read_groups(who, params):
            self.add_param_group(group)
        hold(self.params[0]._graph, self)

    def __dir__(self) -> list[str]:
        return present(self)

    def __setattr__(self, name: str, value: Any) -> None:
        if name[:1] != "_" and name not in vars(self) and "param_groups" in vars(self):
            ways: dict[str, str] = {}
            if type(self).__module__.startswith("reactgrad."):
                ways = dict.fromkeys(
                    self.defaults, f"group[{name!r}] = {{value}} for each group of opt.param_groups"
                )
            check_assigned(self, f"a {type(self).__name__}", name, value, ways, vars(self))
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__}:"]
        for group in self.param_groups:
            options = ", ".join(f"{key}={group[key]}" for key in self.defaults)
            lines.append(f"  {len(group['params'])} params: {options}")
        return "\n".join(lines)

    # --- for subclasses --------------------------------------------------------------------------

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Raise ``ParameterError`` for options that make no sense."""
        who = type(self).__name__
        for name in ("lr", "eps", "weight_decay", "momentum", "lr_decay"):
            value = _number(who, name, options.get(name, 0.0))
            if not value >= 0.0:
                raise ParameterError(f"{who}({name}={safe_repr(value)}) must be at least 0.")
        for name in ("rho", "alpha"):
            value = _number(who, name, options.get(name, 0.5))
            if not 0.0 <= value <= 1.0:
                raise ParameterError(f"{who}({name}={safe_repr(value)}) must be from 0 to 1.")
        betas = options.get("betas", (0.0, 0.0))
        if (
            not isinstance(betas, tuple | list)
            or len(betas) != 2
            or not all(0.0 <= _number(who, "betas", value) < 1.0 for value in betas)
        ):
            raise ParameterError(
                f"{who}(betas={safe_repr(betas)}): two numbers, and each must be at least 0 and below 1."
            )

    def moments(self, group: Group) -> list[str]:
        """Return the names of what the rule remembers for each element."""
        return []

    def numbers(self, group: Group) -> list[str]:
        """Return the names of what the rule remembers for each param; see ``RememberingRule``."""
        return []

    def rule(self, group: Group) -> Callable[[int, Arrays], None]:
        """Return the rule of one step with the present options of the group; see ``Bucket.compute``."""
        raise NotImplementedError

    def start(self, group: Group, bucket: Bucket) -> None:
        """Fill new moments, which are zeros, with other numbers to begin with."""

    # --- groups ------------------------------------------------------------------------------------

    @property
    def params(self) -> list[Any]:
        """The params of all groups."""
        return [one for group in self.param_groups for one in group["params"]]

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Add params with options of their own.

        Raises
        ------
        GradientError, GraphError, DTypeError
            If they are no params of the same graph, or there already; nothing has changed then.
        """
        who = type(self).__name__
        unknown = sorted(group.keys() - self.defaults.keys() - {"params", "names", "initial_lr"})
        if unknown or "params" not in group:
            raise ParameterError(
                f"{who}: a group is a dict with 'params' and any of {', '.join(self.defaults)}"
                + (
                    f"; {unknown[0]!r} is none of them."
                    if unknown
                    else "; this one has no 'params'."
                )
            )
        named = read_params(who, group["params"])
        new, old = [param for *_, param in named], self.params
        check_once(who, [*old, *new])
        check_one_graph(who, (old or new)[0]._graph, new)
        options = {**self.defaults, **group}
        self.check_options(options)
        names = unique_names(
            who, named, [name for one in self.param_groups for name in one["names"]]
        )
        values = {**options, "params": new, "names": names}
        self.param_groups.append(ParamGroup(who, tuple(self.defaults), values))
        self._buckets.append(None)

    def follow(self, moved: Mapping[int, Any]) -> None:
        """Go on with other params in place of some, with their moments; called by ``Module.to``.

        If one has moved to a device where optimisers do not work, steps raise ``DeviceError`` from then on.

        Parameters
        ----------
        moved : mapping from int to Var
            The new param, by the slot of the former one.
        """
        if not any(moved.get(one._slot, one) is not one for one in self.params):
            return
        state = self.state_dict()
        for group in self.param_groups:
            group["params"] = [moved.get(one._slot, one) for one in group["params"]]
        self._buckets = [None] * len(self.param_groups)
        vars(self).pop("step", None)
        try:
            for one in self.params:
                check_param(type(self).__name__, one)
        except DeviceError as error:
            self.step = partial(_refuse, error)  # costs nothing where there is nothing to say
            return
        self.load_state_dict(state)

    def resize(self, places: Mapping[Any, Sequence[int | None]]) -> None:
        """Keep the moments of each element of params that have another length now; see ``rg.extend.carry``.

        Moments of new elements are zeros. The number of steps stays that of the param.
        """
        graph = self.param_groups[0]["params"][0]._graph
        for number, buckets in enumerate(self._buckets):
            if buckets is None or not any(one in places for two in buckets for one in two.params):
                continue
            notes = graph._scheduler.notes
            if notes.wants(key := (UNDO, id(self))):
                notes.note(key, self.memento())
            states: dict[Any, Any] = {}
            for bucket in buckets:
                for i, one in enumerate(bucket.params):
                    if bucket.steps[i]:
                        state = bucket.state(i)
                        states[one] = carried(state, places[one]) if one in places else state
            self._buckets[number] = None
            for bucket in self._buckets_of(number):
                found: dict[int, Any] = {}
                for i, one in enumerate(bucket.params):
                    # Of a param that has changed its length without a word, nothing can be kept.
                    if one in states and bucket.fits(i, states[one]):
                        found[i] = bucket.read_state(i, states[one])
                bucket.put_states(found)

    def _buckets_of(self, number: int) -> list[Bucket]:
        """Return the params of a group by dtype, laid out at its first step."""
        found = self._buckets[number]
        if found is None:
            group = self.param_groups[number]
            alike: dict[Any, list[int]] = {}
            for i, param in enumerate(group["params"]):
                alone = i if None not in param.shape and param.size >= LARGE else -1
                alike.setdefault((param.dtype, alone), []).append(i)
            found = []
            for numbers in alike.values():
                params = [group["params"][i] for i in numbers]
                names = [group["names"][i] for i in numbers]
                bucket = Bucket(params, names, self.moments(group), self.numbers(group))
                self.start(group, bucket)
                found.append(bucket)
            self._buckets[number] = found
        return found

    def _all_buckets(self) -> list[tuple[Group, Bucket]]:
        return [
            (group, bucket)
            for number, group in enumerate(self.param_groups)
            for bucket in self._buckets_of(number)
        ]

    # --- steps --------------------------------------------------------------------------------------

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set ``.grad`` of its own params to ``None``, or to zeros."""
        graph = self.param_groups[0]["params"][0]._graph
        with graph._lock:
            host = graph._host
            buckets = [one for group in self._buckets for one in group or ()]
            if host.gradients.blocks and (
                None in self._buckets or not all(one.is_gathered for one in buckets)
            ):
                host.gradients = host.gradients.apart()
            own = [block for one in buckets if (block := one.gathered) is not None]
            some = host.gradients.alone or not set_to_none
            slots = [one._slot for one in self.params if one._graph is graph] if some else []
            if set_to_none:
                host.gradients = host.gradients.without(slots, own)
                return
            grads = host.grads
            for slot in slots:
                old = grads.get(slot)
                if old is not None:
                    zeros = np.zeros_like(old)
                    zeros.flags.writeable = False
                    grads[slot] = zeros.view()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the params by their gradients.

        Parameters
        ----------
        closure : callable, optional
            Called first; it computes the loss and its gradients, and returns the loss.

        Returns
        -------
        object
            Whatever the closure returned.
        """
        if closure is not None and not callable(closure):
            raise DTypeError(
                f"{type(self).__name__}.step({safe_repr(closure):.40}): it takes a function that computes the loss, or "
                "nothing. Write loss.backward() and then opt.step()."
            )
        loss = None if closure is None else closure()
        if self._before:
            self._before.call(self)
        graph = self.param_groups[0]["params"][0]._graph
        with graph._lock:
            graph._scheduler.check_idle()
            self._make_step(graph)
        if self._after:
            self._after.call(self)
        return loss

    def _make_step(self, graph: Any) -> None:
        """Make the step, without hooks; the caller holds the lock."""
        found: list[tuple[Any, Bucket, Any]] = []
        for number, group in enumerate(self.param_groups):
            rule = self.rule(group)
            for bucket in self._buckets[number] or self._buckets_of(number):
                which = bucket.gather()
                if which:
                    found.append((rule, bucket, which))
        if not found:
            return
        before = error_state()
        try:
            try:
                be_quiet()
                parts = [bucket.compute(which, rule) for rule, bucket, which in found]
            finally:
                as_before(before)
        except BaseException:
            as_before(before)
            raise
        took = [bucket for _, bucket, _ in found]

        def accept() -> None:
            for bucket in took:
                bucket.accept()

        left = set_side_by_side(graph, parts, accept, self)
        for bucket, memory in zip(took, left, strict=True):
            bucket.settle(memory)

    def _own_blocks(self) -> frozenset[Any] | None:
        """Return the blocks of gradients that a step empties and reads; ``None`` if a step does more than that."""
        if (
            self._before
            or self._after
            or "step" in vars(self)
            or type(self).step is not Optimizer.step
        ):
            return None
        if self._own_of != self._buckets:
            self._own_of = [*self._buckets]
            self._own = frozenset(
                [one.block_of_gradients for group in self._buckets for one in group or ()]
            )
        return self._own

    def _own_leaves(self) -> list[Any]:
        """Return the params as they are set by a step of all of them."""
        return [one.leaves for group in self._buckets for one in group or ()]

    def training_step(
        self, *wanted: Any, feeds: Collection[Any] = (), max_norm: float | None = None
    ) -> Any:
        """Return a function that sets a batch, differentiates a loss, and makes a step: for loops of many of them.

        A call is what ``g.set``, ``opt.zero_grad()``, ``loss.backward()``, ``loss.value`` and ``opt.step()`` are, in
        this order, in about two thirds of the time on small models.

        Parameters
        ----------
        *wanted : Var or str
            The loss, and nodes to be read with it.
        feeds : sequence of Var or str
            Inputs that each call sets first.
        max_norm : float, optional
            Gradients are clipped to this norm: see ``clip_grad_norm_``.

        Returns
        -------
        TrainingStep
            A function of a value for each feed, that returns the value of the loss from before the step, or a tuple
            if more is wanted.

        Raises
        ------
        GradientError, GraphError, DTypeError, SetError
            If there is no loss, a node is of another graph, or a feed cannot be set.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> x, w = g.input(1.0), g.param(4.0)
        >>> loss = (x * w) ** 2
        >>> step = rg.optim.SGD([w], lr=0.125).training_step(loss, feeds=[x])
        >>> step(1.0), step(2.0)
        (np.float64(16.0), np.float64(36.0))
        >>> w.value
        np.float64(0.0)
        """
        return training_step(self, wanted, feeds, max_norm)

    def memento(self) -> Callable[[], object]:
        """Return a function that gives all moments their present values."""
        undo = [bucket.memento() for group in self._buckets for bucket in group or ()]

        return partial(self._go_back, undo, [*self._buckets])

    def _go_back(self, undo: list[Callable[[], None]], buckets: list[Any]) -> None:
        for one in undo:
            one()
        self._buckets[: len(buckets)] = buckets  # a param may have had another length

    # --- hooks ----------------------------------------------------------------------------------------

    def register_step_pre_hook(self, hook: Callable[[Any], object]) -> Any:
        """Call ``hook(optimizer)`` before each step, with the gradients that it will use.

        Returns
        -------
        object
            With ``remove()``.
        """
        return self._before.add(hook)

    def register_step_post_hook(self, hook: Callable[[Any], object]) -> Any:
        """Call ``hook(optimizer)`` after each step."""
        return self._after.add(hook)

    # --- state ----------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return the options, and the moments of each param by its name.

        Examples
        --------
        >>> import reactgrad as rg
        >>> g = rg.Graph()
        >>> w = g.param([1.0, 2.0], name="w")
        >>> opt = rg.optim.SGD([w], lr=0.1, momentum=0.9)
        >>> run = (w * w).sum().backward()
        >>> opt.step()
        >>> opt.state_dict()["state"]
        {'w': {'step': 1, 'momentum_buffer': array([2., 4.])}}
        """
        state: dict[str, Any] = {}
        for _, bucket in self._all_buckets():
            for i, name in enumerate(bucket.names):
                if bucket.steps[i]:
                    state[name] = bucket.state(i)
        order = [name for group in self.param_groups for name in group["names"]]
        groups = [
            {
                **{k: v for k, v in one.items() if k not in ("params", "names")},
                "params": list(one["names"]),
            }
            for one in self.param_groups
        ]
        return {
            "state": {name: state[name] for name in order if name in state},
            "param_groups": groups,
        }

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> None:
        """Take over what ``state_dict`` returned: moments by the names of the params, options by groups.

        The order of the params does not matter. Options are taken over if there are as many groups.

        Parameters
        ----------
        strict : bool
            ``False`` to leave out params that are only here or only there.

        Raises
        ------
        LoadError
            If the names differ, or something is missing; nothing has changed then.
        ShapeError
            If a moment has another shape than its param; nothing has changed then.
        """
        try:
            ready, options = self._read_state(state_dict, strict)
        except ReactgradError:
            raise
        except Exception as error:
            raise LoadError(
                f"load_state_dict: this is not what opt.state_dict() returned: {type(error).__name__}: {error}"
            ) from error
        for bucket, found in ready:
            bucket.put_states({i: one for i, one in found.items() if one is not None})
        for group, taken in zip(self.param_groups, options, strict=False):
            group.update(taken)

    def _read_state(
        self, state_dict: Mapping[str, Any], strict: bool
    ) -> tuple[list[tuple[Bucket, dict[int, Any]]], list[Group]]:
        """Return the states of each bucket and the options of each group, checked."""
        state, groups = state_dict.get("state"), state_dict.get("param_groups")
        if not isinstance(state, Mapping) or not isinstance(groups, list | tuple):
            raise LoadError(
                "load_state_dict takes what opt.state_dict() returned: a dict with 'state' and 'param_groups'."
            )
        own = {name for group in self.param_groups for name in group["names"]}
        saved = {name for group in groups for name in group["params"]}
        if strict and own != saved:
            sides = [("only here", own - saved), ("only there", saved - own)]
            told = "; ".join(
                f"{side}: {listed(map(repr, sorted(names)))}" for side, names in sides if names
            )
            raise LoadError(
                f'load_state_dict: the names of the params differ. {told}. Name params by pairs, ("layer.w", w), or '
                "pass strict=False to load those that both have."
            )
        options: list[Group] = []
        if len(groups) == len(self.param_groups):
            for old, new in zip(self.param_groups, groups, strict=True):
                taken = {k: v for k, v in new.items() if k in old and k not in ("params", "names")}
                if "initial_lr" in new:
                    taken["initial_lr"] = new["initial_lr"]
                self.check_options({**old, **taken})
                options.append(taken)
        elif strict:
            raise LoadError(
                f"load_state_dict: {len(groups)} groups were saved, and there are {len(self.param_groups)}. Pass "
                "strict=False to keep the present options."
            )
        for group, taken in zip(self.param_groups, options, strict=False):
            if self.moments({**group, **taken}) != self.moments(group):
                raise LoadError(
                    "load_state_dict: the options that were saved need other moments. Make the optimiser with the "
                    "same amsgrad, momentum and centered."
                )
        ready: list[tuple[Bucket, dict[int, Any]]] = []
        for _, bucket in self._all_buckets():
            found: dict[int, Any] = {}
            for i, name in enumerate(bucket.names):
                if name not in saved:
                    continue
                one = state.get(name)
                if one is None:  # it had taken no step
                    found[i] = None
                    continue
                missing = [
                    key for key in ("step", *bucket.moments, *bucket.numbers) if key not in one
                ]
                if missing:
                    raise LoadError(
                        f"load_state_dict: the state of {name!r} has no {missing[0]!r}. Was it saved by another kind "
                        "of optimiser?"
                    )
                found[i] = bucket.read_state(i, one)
            ready.append((bucket, found))
        return ready, options


answer(Optimizer, "opt", OF_OPTIMIZERS)


def _refuse(error: DeviceError, closure: object = None) -> NoReturn:
    raise DeviceError(str(error))


def _number(who: str, name: str, value: Any) -> float:
    """Return an option that is a real number as a float; raise ``ParameterError`` for anything else."""
    try:
        if isinstance(value, Real) or (isinstance(value, np.ndarray) and value.ndim == 0):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ParameterError(f"{who}({name}={safe_repr(value):.60}) must be a number.")


def check_gradients(params: Iterable[Any]) -> None:
    """Raise ``GradientError`` if no param has a gradient."""
    if all(one.grad is None for one in params):
        raise GradientError("no param has a gradient. Write loss.backward() first.")
