"""Measures the sides of a contest in turns, after a check that their outputs are equal.

All sides do a stretch of steps each, then all do the next one in the opposite order, and so on:
disturbances on the machine hit all of them alike. A ratio is the median over the rounds of ours /
theirs within one round.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil
from time import perf_counter, process_time
from typing import Any, Protocol

import numpy as np
from pytest_benchmark.stats import Stats

from bench._case import Contest, Side, Step

CHECKS = 3  # the number of steps that are compared before anything is timed
# The number of steps before the clock starts: plans are cached, buffers allocated, code compiled.
WARM = 4


@dataclass(frozen=True)
class Pace:
    """The length of measurements.

    Attributes
    ----------
    stretch
        The least seconds of one side's steps before the next side's turn.
    budget
        Seconds for a contest, once it has had its least number of rounds.
    least, most
        Bounds of the number of rounds.
    cpu
        True if CPU seconds of all threads count instead of elapsed ones. On a busy machine these
        vary less; they are unfair to sides that use several threads.
    """

    stretch: float
    budget: float
    least: int
    most: int
    cpu: bool = False


FULL = Pace(stretch=3e-3, budget=4.0, least=7, most=201)
QUICK = Pace(stretch=0.0, budget=0.1, least=3, most=5)


class DifferentOutputs(Exception):
    """Two sides do not compute the same."""


class Runner(Protocol):
    """A side that was built."""

    def outputs(self, seed: int) -> list[Any]:
        """Do one step, on the inputs of this seed, and return its outputs for comparing."""
        ...

    def seconds(self, seed: int, count: int) -> float:
        """Do `count` steps on new inputs, and return the seconds of one of them."""
        ...

    def close(self) -> None:
        """Release everything."""
        ...


class Here:
    """A side in this process."""

    def __init__(self, contest: Contest, side: Side, *, cpu: bool = False) -> None:
        self._contest = contest
        self._side = side
        self._clock = process_time if cpu else perf_counter
        self._step: Step = side.build()
        self._former: list[Any] = []  # inputs that the side may still hold

    def _inputs(self, seed: int, count: int) -> list[Any]:
        rng = np.random.default_rng(seed)
        return [self._side.take(self._contest.draw(rng)) for _ in range(count)]

    def outputs(self, seed: int) -> list[Any]:
        (inputs,) = self._inputs(seed, 1)
        return flat(self._side.show(self._step(inputs)))

    def seconds(self, seed: int, count: int) -> float:
        inputs = self._inputs(seed, count)
        if self._side.reports:
            return sum(self._step(one) for one in inputs) / count
        took = timed(self._step, inputs, self._contest.keep, self._clock)
        self._former = inputs  # kept, so that freeing them is not timed in a later step of any side
        return took / count

    def close(self) -> None:
        del self._step


def timed(step: Step, inputs: Sequence[Any], keep: bool, clock: Callable[[], float]) -> float:
    """Return the seconds that `step` takes for all of `inputs`."""
    if not keep:
        began = clock()
        for one in inputs:
            step(one)
        return clock() - began
    result: Any = None
    began = clock()
    for one in inputs:
        result = step(one)
    ended = clock()
    del result  # after the clock: freeing is no part of building
    return ended - began


def flat(outputs: Any) -> list[Any]:
    """Return nested sequences of numbers and arrays as a list of arrays.

    Examples
    --------
    >>> flat((1.0, [2.0, 3.0]))
    [array(1.), array(2.), array(3.)]
    """
    found: list[Any] = []
    stack = [outputs]
    while stack:
        one = stack.pop()
        if isinstance(one, tuple | list):
            stack.extend(reversed(one))
        elif one is not None:
            found.append(np.asarray(one).copy())
    return found


def compare(contest: Contest, name: str, ours: list[Any], theirs: list[Any]) -> None:
    """Raise ``DifferentOutputs`` unless the outputs agree."""
    if len(ours) != len(theirs):
        raise DifferentOutputs(f"{contest.name}: {len(ours)} outputs here, {len(theirs)} of {name}")
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        try:
            np.testing.assert_allclose(a, b, rtol=contest.rtol, atol=contest.atol)
        except AssertionError as error:
            raise DifferentOutputs(f"{contest.name}: output {i}, {name}: {error}") from None


def check(contest: Contest, runners: Sequence[tuple[str, Runner]]) -> None:
    """Compare the outputs of all runners with those of the first, for several inputs."""
    former: list[Any] = []
    for seed in range(CHECKS):
        ours = runners[0][1].outputs(seed)
        if not ours or not all(np.isfinite(one).all() for one in ours):
            raise DifferentOutputs(f"{contest.name}: outputs are {ours!r:.200}")
        if former and not contest.constant and agree(contest, former, ours):
            raise DifferentOutputs(
                f"{contest.name}: outputs are the same for other inputs, {ours!r:.200}; to compare them "
                "says nothing."
            )
        for name, runner in runners[1:]:
            compare(contest, name, ours, runner.outputs(seed))
        former = ours


def agree(contest: Contest, ours: list[Any], theirs: list[Any]) -> bool:
    """Return whether the outputs count as equal."""
    try:
        compare(contest, "", ours, theirs)
    except DifferentOutputs:
        return False
    return True


@dataclass
class Laps:
    """The times of the sides of a contest, round by round, in seconds a unit."""

    sides: list[str]
    rounds: list[list[float]] = field(default_factory=list[list[float]])

    def times(self, side: int) -> Stats:
        """Return the statistics of one side."""
        return _stats(lap[side] for lap in self.rounds)

    def ratios(self, side: int) -> Stats:
        """Return the statistics of ours / theirs within each round."""
        return _stats(lap[0] / lap[side] for lap in self.rounds)


def _stats(data: Iterator[float]) -> Stats:
    stats = Stats()
    for one in data:
        stats.update(one)
    return stats


def duel(contest: Contest, runners: Sequence[tuple[str, Runner]], pace: Pace) -> Laps:
    """Check that the outputs agree, then measure in turns."""
    if contest.alike:
        check(contest, runners)
    gc.collect()
    gc.freeze()  # so that no side pays for a collection that scans the other's objects
    try:
        counts = [_count(runner, pace) for _, runner in runners]
        laps = Laps([name for name, _ in runners])
        began = perf_counter()
        order = list(range(len(runners)))
        while len(laps.rounds) < pace.most and (
            len(laps.rounds) < pace.least or perf_counter() - began < pace.budget
        ):
            lap = [0.0] * len(runners)
            seed = 1000 + len(laps.rounds)
            for i in order:
                lap[i] = runners[i][1].seconds(seed, counts[i]) / contest.per
            laps.rounds.append(lap)
            order.reverse()
    finally:
        gc.unfreeze()
    return laps


def _count(runner: Runner, pace: Pace) -> int:
    """Return the number of steps that make a stretch; warms up on the way."""
    if not pace.stretch:
        return 1
    best = runner.seconds(10, 1)
    for seed in range(11, 11 + WARM):
        if best < 0.3:
            best = min(best, runner.seconds(seed, 1))
    return max(1, min(2000, ceil(pace.stretch / max(best, 1e-9))))
