"""Runs the cases of a workload, and makes lines of the table from the results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench._apart import Apart
from bench._case import Contest, Count, Later, Setting, Side
from bench._measure import DifferentOutputs, Here, Laps, Pace, Runner, duel
from bench._peers import installed
from bench._table import Figure, Line
from bench._workloads import workload_of

MISSING = "peer not installed: pip install .[bench]"


def lines(module: str, setting: Setting, pace: Pace) -> Iterator[Line]:
    """Measure all cases of the workload in `module`, and yield their lines."""
    workload = workload_of(module)
    for index, case in enumerate(workload.cases(setting)):
        name = f"{workload.title}: {case.name}"
        if isinstance(case, Later):
            yield Line(workload.number, name, "step", False, note=case.reason)
        elif isinstance(case, Count):
            yield _counted(workload.number, name, case, setting)
        else:
            yield from _raced(workload.number, name, case, module, setting, index, pace)


def _counted(number: str, name: str, case: Count, setting: Setting) -> Line:
    try:
        ours, other = case.measure()
    except Exception as error:
        note = f"FAILED: {type(error).__name__}: {error!s:.400}"
        return Line(number, name, case.unit, False, note=note, failed=True)
    return Line(
        number,
        name,
        case.unit,
        False,
        ours=Figure.exact(ours),
        peer_name=case.peer,
        peer=None if other is None else Figure.exact(other),
        ratio=Figure.exact(ours / other) if other else None,
        goal=case.goal,
        verdict=not setting.small,
    )


def _raced(
    number: str,
    name: str,
    contest: Contest,
    module: str,
    setting: Setting,
    index: int,
    pace: Pace,
) -> Iterator[Line]:
    notes: dict[str, str] = {}
    failed = False
    laps: Laps | None = None
    runners: list[tuple[str, Runner]] = []
    try:
        for at, side in enumerate(contest.sides):
            if side.needs is not None and not installed(side.needs):
                notes[side.name] = MISSING
                continue
            try:
                runner = _built(contest, side, module, setting, index, at, pace.cpu)
                if contest.alike:
                    runner.outputs(0)
            except Exception as error:
                if at == 0:
                    raise
                notes[side.name] = _peer_failed(error)
                continue
            runners.append((side.name, OfPeer(side.name, runner) if at else runner))
        while laps is None:
            try:
                laps = duel(contest, runners, pace)
            except PeerError as error:  # the others go on without it
                name, cause = error.args
                notes[name] = _peer_failed(cause)
                at = [one for one, _ in runners].index(name)
                runners.pop(at)[1].close()
    except Exception as error:
        failed = True
        kind = "" if isinstance(error, DifferentOutputs) else f"{type(error).__name__}: "
        notes[contest.ours.name] = f"FAILED: {kind}{error!s:.400}"
    finally:
        for _, runner in runners:
            runner.close()

    ours = None if laps is None else Figure.of(laps.times(0))

    def line(note: str, **known: object) -> Line:
        return Line(
            number,
            name,
            contest.unit,
            True,
            ours=ours,
            note=note,
            verdict=not setting.small,
            failed=failed,
            **known,  # type: ignore[arg-type]
        )

    if failed or not contest.peers or contest.goal is not None:
        yield line(notes.get(contest.ours.name, ""), goal=contest.goal)
    if failed:
        return
    for peer in contest.peers:
        known: dict[str, object] = {"peer_name": peer.side.name, "goal": peer.goal}
        if laps is not None and peer.side.name in laps.sides:
            at = laps.sides.index(peer.side.name)
            known |= {"peer": Figure.of(laps.times(at)), "ratio": Figure.of(laps.ratios(at))}
        yield line(notes.get(peer.side.name, ""), **known)


def _peer_failed(error: Exception) -> str:
    return f"peer failed: {type(error).__name__}: {error!s:.120}"


class PeerError(Exception):
    """A peer raised. Arguments: its name, and its error."""


class OfPeer:
    """A peer's runner, which marks its errors as those of the peer."""

    def __init__(self, name: str, runner: Runner) -> None:
        self._name = name
        self._runner = runner
        self.close = runner.close

    def outputs(self, seed: int) -> list[Any]:
        try:
            return self._runner.outputs(seed)
        except Exception as error:
            raise PeerError(self._name, error) from error

    def seconds(self, seed: int, count: int) -> float:
        try:
            return self._runner.seconds(seed, count)
        except Exception as error:
            raise PeerError(self._name, error) from error


def _built(
    contest: Contest, side: Side, module: str, setting: Setting, index: int, at: int, cpu: bool
) -> Runner:
    # At small sizes thread pools have nothing to do, and starting processes takes long.
    if side.apart and not setting.small:
        return Apart(module, setting, index, at, cpu=cpu)
    return Here(contest, side, cpu=cpu)
