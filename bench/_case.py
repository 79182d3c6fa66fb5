"""What a workload is made of.

A `Workload` is one row of the list of goals. It has *cases*: a `Contest` times the same work done by
several *sides*, ours and its peers; a `Count` compares numbers that are counted and not timed; `Later`
names what cannot be measured yet.
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
    """Which variant of a workload to make.

    Attributes
    ----------
    small
        Sizes that take no time, to show that all works; figures mean nothing then.
    permuted
        Another topology seed, op order or shape: nothing may be tuned to one graph.
    """

    small: bool = False
    permuted: bool = False

    def size(self, full: int, small: int) -> int:
        """The size for this setting."""
        return small if self.small else full


@dataclass(frozen=True)
class Side:
    """One way to do the work of a contest.

    Attributes
    ----------
    build
        Makes what is there before the first step, and returns the step: from inputs to outputs.
    take
        Brings drawn inputs into the form this side wants; not timed.
    show
        Brings outputs into a form that can be compared: numbers, arrays, sequences; not timed.
    needs
        The package that must be installed, if it is not one of ours.
    apart
        Whether it runs in a process of its own, since its threads would disturb the others', or what
        the others have loaded would disturb it.
    reports
        Whether its step returns the seconds that count, instead of being timed.
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
    """A side to be measured against; without a goal, for information."""

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
        What a figure is the time of, and how many of them one step does.
    keep
        Whether the caller still holds the outputs of a step while the next one runs.
    rtol, atol
        How far outputs may differ.
    constant
        Whether the outputs are the same for all inputs; else they must differ, or to compare them
        would say nothing.
    alike
        Whether all sides compute the same; not where one graph is measured beside a larger one.
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
        """Ours first."""
        return (self.ours, *[peer.side for peer in self.peers])


@dataclass(frozen=True)
class Count:
    """Two numbers that are counted, or one; nothing is timed.

    Attributes
    ----------
    measure
        Returns ours and the other one (``None``: there is no other one).
    """

    name: str
    unit: str
    measure: Callable[[], tuple[float, float | None]]
    peer: str = ""
    goal: Goal | None = None


@dataclass(frozen=True)
class Later:
    """What cannot be measured yet, and which work it belongs to."""

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
