"""The parts of a workload.

A `Workload` is one row of the list of goals. It has *cases*: a `Contest` times the same work done
by several *sides*, ours and its peers; a `Count` compares numbers that are counted and not timed;
`Later` names what cannot be measured yet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench._goal import Goal

Step = Callable[[Any], Any]


def same(value: Any) -> Any:
    """Return `value` as it is."""
    return value


@dataclass(frozen=True)
class Setting:
    """A variant of a workload.

    Attributes
    ----------
    small
        True for sizes that take no time, to show that all works; figures mean nothing then.
    permuted
        True for another topology seed, op order or shape: nothing may be tuned to one graph.
    """

    small: bool = False
    permuted: bool = False

    def size(self, full: int, small: int) -> int:
        """Return the size for this setting."""
        return small if self.small else full


@dataclass(frozen=True)
class Side:
    """One way to do the work of a contest.

    Attributes
    ----------
    build
        Prepares everything before the first step, and returns the step: from inputs to outputs.
    take
        Brings drawn inputs into the form this side wants; not timed.
    show
        Brings outputs into a form that can be compared: numbers, arrays, sequences; not timed.
    needs
        The package that must be installed, if it is not one of ours.
    apart
        True if it runs in a process of its own, since its threads would disturb the others', or what
        the others have loaded would disturb it.
    reports
        True if its step returns the seconds that count, instead of being timed.
    """

    name: str
    build: Callable[[], Step]
    take: Callable[[Any], Any] = same
    show: Callable[[Any], Any] = same
    needs: str | None = None
    apart: bool = False
    reports: bool = False


@dataclass(frozen=True)
class Peer:
    """A side to be compared with; without a goal, for information only."""

    side: Side
    goal: Goal | None = None


@dataclass(frozen=True)
class Contest:
    """The same work, done by ours and by its peers, in turns.

    Attributes
    ----------
    draw
        New random inputs of one step.
    goal
        For ours alone.
    unit, per
        The unit whose time a figure is, and the number of them in one step.
    keep
        True if the caller still holds the outputs of a step while the next one runs.
    rtol, atol
        The allowed difference of outputs.
    constant
        True if the outputs are the same for all inputs; else they must differ, or to compare them
        would say nothing.
    alike
        True if all sides compute the same; false where one graph is measured beside a larger one.
    """

    name: str
    draw: Callable[[np.random.Generator], Any]
    ours: Side
    peers: tuple[Peer, ...] = ()
    goal: Goal | None = None
    unit: str = "step"
    per: float = 1.0
    keep: bool = True
    rtol: float = 1e-9
    atol: float = 1e-12
    constant: bool = False
    alike: bool = True

    @property
    def sides(self) -> tuple[Side, ...]:
        """All sides, ours first."""
        return (self.ours, *[peer.side for peer in self.peers])


@dataclass(frozen=True)
class Count:
    """Two numbers that are counted, or one; nothing is timed.

    Attributes
    ----------
    measure
        Returns our number and the other one (``None`` if there is none).
    """

    name: str
    unit: str
    measure: Callable[[], tuple[float, float | None]]
    peer: str = ""
    goal: Goal | None = None


@dataclass(frozen=True)
class Later:
    """A case that cannot be measured yet, and the work that it waits for."""

    name: str
    reason: str


Case = Contest | Count | Later


@dataclass(frozen=True)
class Workload:
    """One row of the list of goals, or a part of one.

    Attributes
    ----------
    number, title
        Such as ``"B4"`` and ``"reactive grid"``.
    cases
        Makes the cases; builds nothing large before a side's ``build`` is called.
    """

    number: str
    title: str
    cases: Callable[[Setting], list[Case]]
