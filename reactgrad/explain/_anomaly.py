"""The search for the origin of a NaN or an infinity, and for values that were changed behind their
version.

Inside of ``rg.detect_anomaly()`` the scheduler gets another host, which checks values before and
after each node; no plan is stored or replayed. Outside, none of this costs anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ContextDecorator
from functools import partial
from typing import Any, Self

from reactgrad._errors import AnomalyError, DTypeError, MutationError
from reactgrad.autodiff._origin import origin
from reactgrad.backend import own_copy
from reactgrad.core._core import Core
from reactgrad.explain._checksums import Checksums, GraphChecksums
from reactgrad.explain._ranges import array_of, count_text, range_text
from reactgrad.memory._host_in_front import Through, in_front
from reactgrad.nodes._op import Leaf
from reactgrad.nodes._site import site_text
from reactgrad.ops import ALIAS
from reactgrad.reading._blocks import Block, close_block
from reactgrad.scheduler import UNCHANGED, Scheduler, Step, block, is_interrupt, safe_repr
from reactgrad.values._columns import MISSING

_OUTSIDE = "found by rg.detect_anomaly(); outside of it the node is computed as it is"


class AnomalyMode(ContextDecorator):
    """The result of ``rg.detect_anomaly``; may be entered again, nested, and in several threads."""

    __slots__ = ("_inf", "_nan")

    def __init__(self, check_nan: bool, check_inf: bool) -> None:
        self._nan, self._inf = check_nan, check_inf

    def __enter__(self) -> Self:
        _Looking(self._nan, self._inf).open()
        return self

    def __exit__(self, *exc: object) -> None:
        close_block()


def detect_anomaly(check_nan: bool = True, check_inf: bool = True) -> AnomalyMode:
    """Raise where the first NaN or infinity appears, forward or backward.

    A context manager and a decorator, for the runs that this thread makes inside. The error names
    the node, its op, the ranges of its operands and the line that built it; of a gradient also the
    forward node whose rule it is. Where the NaN was in a leaf before, it names the leaf. What is
    clean already does not run, so it is only checked when a node that runs uses it.

    It also finds, by checksum, a value that was changed behind its version since a run inside of
    this block has computed or used it.

    These errors are not kept for later reads as those of a node are, and no observer gets them:
    inside of the block the node runs, and raises, again; outside it has the value that it has. All
    nodes that do not depend on it are up to date. Every run checks every version and every value:
    many times slower. Opened by a function that a graph runs, it does not check that graph.

    Parameters
    ----------
    check_nan, check_inf : bool
        What to look for. A model that computes with infinities on purpose, such as a mask of
        ``-inf``, is checked with ``check_inf=False``.

    Returns
    -------
    context manager

    Raises
    ------
    AnomalyError
        Inside, from reads and ``backward``; also a ``FloatingPointError``.
    MutationError
        Inside, for a value that was changed behind its version; also a ``RuntimeError``.

    Notes
    -----
    ``torch.autograd.detect_anomaly`` checks gradients for NaN only; this also values, and for
    infinities.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input([-1.0, 4.0], name="x")
    >>> y = rg.sqrt(x)
    >>> with rg.detect_anomaly():
    ...     y.value
    Traceback (most recent call last):
    reactgrad.AnomalyError: node 'y', op 'sqrt', gave 1 NaN: float64[2], 2, 1 NaN
      of 'x': float64[2], -1 to 4
      built at <doctest ...>:1: y = rg.sqrt(x)
    found by rg.detect_anomaly(); outside of it the node is computed as it is
    >>> y.value
    array([nan,  2.])
    """
    for what, flag in (("check_nan", check_nan), ("check_inf", check_inf)):
        if not isinstance(flag, bool):
            raise DTypeError(
                f"rg.detect_anomaly({what}={safe_repr(flag):.60}): write True or False; as a decorator "
                "@rg.detect_anomaly(), with parentheses."
            )
    return AnomalyMode(check_nan, check_inf)


class _Looking(Block):
    """One entered block."""

    def __init__(self, nan: bool, inf: bool) -> None:
        super().__init__()
        self._nan, self._inf = nan, inf
        self._sums = GraphChecksums()

    @block
    def around(self, graph: Core) -> Iterator[None]:
        """Run with the inspector as the host."""
        scheduler, sums = graph._scheduler, self._sums.of(graph)
        count = partial(count_text, nan=self._nan, inf=self._inf)
        try:
            # Plans are set aside meanwhile: their steps were bound without the inspector.
            with in_front(scheduler, _Inspector(graph, sums, count)):
                yield
        finally:
            sums.ended()
            self._forget_errors(scheduler)

    @staticmethod
    def _forget_errors(scheduler: Scheduler) -> None:
        """Make nodes that raised only because of the checks run again when they are read."""
        for slot, stored in list(scheduler.errors.items()):
            if issubclass(type(stored.error), AnomalyError | MutationError):
                # By name: a listener must not take it for a touch.
                Scheduler.invalidate(scheduler, slot)


class _Inspector(Through):
    """A host that checks the values that nodes compute from and compute."""

    def __init__(self, graph: Core, sums: Checksums, count: Callable[[Any], str]) -> None:
        super().__init__(graph._scheduler.host)
        self._graph, self._host, self._sums, self._count = graph, graph._host, sums, count
        self._raised: set[int] = set()

    def explain(self, slot: int) -> str:
        return _OUTSIDE if slot in self._raised else self._host.explain(slot)

    def let_go(self, slot: int) -> None:
        """Record the value of a transient node that hooks will return in place of the present one."""
        # What hooks return may be less precise than what they were given: the checksum is that of
        # the value that will come back.
        if slot in self._host.away and self._sums.is_fresh(slot):
            try:
                value = self._host.transient[slot].fetch(self._host, slot)
            except Exception as error:  # raised again when it is read
                if is_interrupt(error):
                    raise
                return
            found = self._host.specs[slot]
            self._sums.comes_back_as(slot, value if found is None else own_copy(found, value))

    def run(self, slot: int, step: Step | None) -> object:
        """Run a step: check the operands before it, and the result after it."""
        host, sums = self._host, self._sums
        for operand in dict.fromkeys(host.scheduler.operands(slot)):
            if sums.changed(operand):
                self._raised.add(slot)
                raise MutationError(self._mutation(operand, slot))
        before = self._before(slot)
        outcome = None if step is None else step()
        if outcome is not UNCHANGED:
            if self._bad(slot):
                message = self._message(slot)
                # A cutoff goes on comparing with the value that readers have.
                if slot in host.cutoffs:
                    host.data[slot] = before
                    host.moved(slot)
                self._raised.add(slot)
                raise AnomalyError(message)
            sums.computed(slot)
        return outcome

    def _before(self, slot: int) -> Any:
        """Return the value that a cutoff compares with; a copy where the step might write into it."""
        host = self._host
        value, found = host.data[slot], host.specs[slot]
        if slot not in host.cutoffs or value is MISSING or found is None or found.weak is not None:
            return value
        return own_copy(found, value)

    def _bad(self, slot: int) -> str:
        """Return what is wrong with a value, in words; an empty string if nothing is."""
        array = array_of(self._host, slot)
        return "" if array is None else self._count(array)

    def _source(self, slot: int) -> int:
        """Return the first node on the way to `slot` that has the same fault."""
        topology = self._host.scheduler.topology
        found = topology.ancestors([slot], lambda at: at == slot or self._bad(at))
        return min(found, key=topology.rank.__getitem__)

    def _message(self, slot: int) -> str:
        """Return the message about a faulty value: its origin, its operands and its gradient."""
        host, source = self._host, self._source(slot)
        name, op = host.label(source), host.describe_op(source)
        bad, holds = self._bad(source), range_text(host, source)
        if isinstance(host.ops[source], Leaf):
            version = host.scheduler.version(source)
            lines = [f"{op} {name!r} holds {bad} at version {version}: {holds}"]
        elif self._came_back(source):
            what = f"the value of {name!r}, {op},"
            lines = [f"{what} came back from unpack of its saved_tensors_hooks with {bad}: {holds}"]
        else:
            lines = [f"node {name!r}, {op}, gave {bad}: {holds}"]
            operands = dict.fromkeys(host.scheduler.topology.parents[source])
            lines += [f"  of {host.label(p)!r}: {range_text(host, p)}" for p in operands]
        lines += [f"  built at {site_text(site)}" for site in [host.sites[source]] if site]
        lines += self._gradient_text(source)
        if source != slot:
            lines.append(
                f"  and node {host.label(slot)!r}, {host.describe_op(slot)}, computes with it: "
                f"{range_text(host, slot)}"
            )
        return "\n".join(lines)

    def _came_back(self, slot: int) -> bool:
        """Return whether the value was taken by hooks and is what they returned."""
        away = self._host.away.get(slot)
        return away is not None and away.version == self._host.scheduler.version(slot)

    def _mutation(self, slot: int, reader: int) -> str:
        """Return the message about a value that was changed behind its version."""
        host = self._host
        name, version = host.label(slot), host.scheduler.version(slot)
        return (
            f"the value of {name!r} was changed behind its version {version}, and node "
            f"{host.label(reader)!r}, {host.describe_op(reader)}, was about to use it as if it were "
            "the same: someone has written to its memory, through an older view of an array given "
            "with set(..., copy=False) or past NumPy. Write with set() or mutate(), or say "
            f"{name}.touch() after such a change."
        )

    def _gradient_text(self, slot: int) -> list[str]:
        """Return lines that name the forward node of a gradient node; none for other nodes."""
        host, place = self._host, origin(self._graph, slot)
        if place is None:
            return []
        forward = f"{host.label(place.slot)!r}, {host.describe_op(place.slot)}"
        if place.tangent:
            lines = [f"  in the tangent of {forward}"]
        elif place.operand is None:
            lines = [f"  in the gradient of {forward}"]
        else:
            operand = place.operand
            while (
                host.ops[operand] is ALIAS and operand not in host.name_of
            ):  # a feed of a subgraph
                (operand,) = host.scheduler.operands(operand)
            lines = [f"  in what {forward}, passes to the gradient of {host.label(operand)!r}"]
        site = host.sites[place.slot]
        return [*lines, f"  which was built at {site_text(site)}"] if site else lines
