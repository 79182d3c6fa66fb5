"""Training steps that are prepared once: set a batch, differentiate, and change the params in one call."""

from __future__ import annotations

from collections.abc import Callable, Collection
from operator import attrgetter
from typing import Any

from reactgrad._errors import DTypeError, GradientError, ParameterError
from reactgrad.change._set import set_many, write_plainly
from reactgrad.core._gradients import Gradients
from reactgrad.core._handles import tidy
from reactgrad.flow._mode import is_grad_enabled
from reactgrad.optim._clip import clip_grad_norm_
from reactgrad.reading._reader import Reader
from reactgrad.reading._refresh import refresh
from reactgrad.reading._value import hand_out
from reactgrad.scheduler import Repeat, safe_repr
from reactgrad.values._columns import MISSING
from reactgrad.values._lending import Lease

_graph_of: Callable[[Any], Any] = attrgetter("_graph")


class TrainingStep:
    """A step of an optimiser with the batch before it; see ``Optimizer.training_step``.

    Invariant: a call does what ``g.set``, ``opt.zero_grad``, ``loss.backward``, ``.value``, ``clip_grad_norm_`` and
    ``opt.step`` do, in this order. It does so one by one, as they are, wherever somebody looks in between.
    """

    __slots__ = (
        "_all",
        "_clip",
        "_fed",
        "_graph",
        "_known",
        "_leaves",
        "_loss",
        "_one",
        "_opt",
        "_slots",
        "_wanted",
    )

    def __init__(
        self, opt: Any, wanted: tuple[Any, ...], feeds: tuple[Any, ...], clip: float | None
    ) -> None:
        self._opt, self._clip = opt, clip
        self._loss, self._wanted, self._leaves = wanted[0], wanted, feeds
        graph = self._graph = self._loss._graph
        self._slots = tuple([one._slot for one in feeds])
        self._all, self._one = (*feeds, *wanted), {graph}
        self._fed = graph._scheduler.leaves(self._slots)
        self._known: tuple[Any, Any, tuple[int, ...], Repeat] = None, None, (), Repeat([])

    def __repr__(self) -> str:
        names = ", ".join([one.label for one in self._leaves])
        return f"<TrainingStep of {type(self._opt).__name__} for {self._loss.label}; feeds {names}>"

    def __call__(self, *values: Any) -> Any:
        """Set the feeds, differentiate the loss, and make the step.

        Parameters
        ----------
        *values : array_like or object
            A value for each feed, in order.

        Returns
        -------
        scalar or tuple
            The loss, from before the step; with other nodes that are wanted a tuple of all.

        Raises
        ------
        DTypeError
            If there are more or fewer values than feeds; nothing has changed then.
        ReactgradError
            As ``g.set``, ``backward`` and ``opt.step``. If a node raises, the feeds are set and no param moves.
        """
        if len(values) != len(self._slots):
            names = ", ".join([one.label for one in self._leaves])
            raise DTypeError(
                f"{self!r} was given {len(values)} values, and it has {len(self._slots)} feeds: pass "
                f"{f'one for each of {names}, in this order' if names else 'none'}."
            )
        graph, opt = self._graph, self._opt
        with graph._lock:
            if not self._may_repeat():
                return self._one_by_one(values)
            again, own, targets, repeat = self._known
            tidy(graph)
            if values and not write_plainly(graph, self._slots, values, self._fed):
                set_many(graph, [*zip(self._slots, values, strict=True)])
            refresh(graph, targets, repeat=repeat)
            found = self._values()
            host = graph._host
            # Those of other params stay, as `zero_grad` of the optimiser leaves them.
            blocks = {one: array for one, array in host.gradients.blocks.items() if one not in own}
            for block, adjoints in again.blocks:
                blocks[block] = block.added(None, list(map(host.data.__getitem__, adjoints)))
            host.gradients = Gradients({}, blocks)
            if self._clip is not None:
                clip_grad_norm_(opt.params, self._clip)
            opt._make_step(graph)
            return found if len(self._wanted) > 1 else found[0]

    def _may_repeat(self) -> bool:
        """Return whether the last ``backward`` may be repeated with its gradients left in blocks; look up how."""
        graph, opt = self._graph, self._opt
        made = self._loss._programs_dict().get(None)
        if made is None or (again := made[1].again) is None or again.alone:
            return False
        own = opt._own_blocks()
        if own is None:
            return False
        if again is not self._known[0] or own is not self._known[1]:
            if not own.issuperset([block for block, _ in again.blocks]):
                return False
            targets = (*again.targets, *[one._slot for one in self._wanted[1:]])
            events = [*opt._own_leaves(), *([self._fed] if self._slots else ())]
            self._known = again, own, targets, Repeat(events)
        return not (
            graph._scheduler.notes
            or graph._lock.gates
            or graph._host.gradients.alone
            or set(map(_graph_of, self._all)) != self._one
            or not again.holds(graph, made[1])
            or not is_grad_enabled(graph)
        )

    def _values(self) -> tuple[Any, ...]:
        graph = self._graph
        handed, found = graph._handed, []
        for var in self._wanted:
            value = handed.get(var._slot, MISSING)
            if value is MISSING or type(value) is Lease:
                value = hand_out(graph, var._slot)
            found.append(value)
        return tuple(found)

    def _one_by_one(self, values: tuple[Any, ...]) -> Any:
        """Do the same by the methods of the graph and of the optimiser."""
        graph, opt = self._graph, self._opt
        if values:
            graph.set(dict(zip(self._leaves, values, strict=True)))
        opt.zero_grad()
        self._loss.backward()
        found = tuple([one.value for one in self._wanted])
        if self._clip is not None:
            clip_grad_norm_(opt.params, self._clip)
        opt.step()
        return found if len(self._wanted) > 1 else found[0]


def training_step(
    opt: Any, wanted: tuple[Any, ...], feeds: Collection[Any], clip: float | None
) -> TrainingStep:
    """Return the step, with its arguments checked."""
    graph = opt.params[0]._graph
    if not wanted:
        raise GradientError(
            "training_step of no loss: write opt.training_step(loss, feeds=[x, labels])."
        )
    checked: Reader = graph.reader(*wanted, feeds=feeds)
    if clip is not None and not clip >= 0.0:
        raise ParameterError(f"training_step(max_norm={safe_repr(clip):.40}) must be at least 0.")
    return TrainingStep(opt, checked._wanted, checked._leaves, clip)
