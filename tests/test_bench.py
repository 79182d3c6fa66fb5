"""The benchmarks: all sides of every workload compute the same, and nothing wrong passes unseen."""

from __future__ import annotations

import doctest
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from bench import __main__ as command
from bench import _run
from bench._case import Case, Contest, Count, Peer, Setting, Side, Workload
from bench._goal import Goal, at_most, exactly, faster, within
from bench._measure import QUICK, DifferentOutputs, Here, check
from bench._peers import installed
from bench._summary import summary
from bench._table import Figure, Line, beside, cells, header, printed
from bench._workloads import modules, numbers

ROOT = Path(__file__).resolve().parents[1]

# What other packages warn of when they are imported is not ours to fix.
pytestmark = pytest.mark.filterwarnings("default")


def contests() -> list[Any]:
    """Every contest, and its permuted variant, at sizes that take no time."""
    found = []
    for module in modules():
        for permuted in (False, True):
            setting = Setting(small=True, permuted=permuted)
            workload: Workload = import_module(module).WORKLOAD
            for case in workload.cases(setting):
                name = f"{workload.number}-{case.name}{'-permuted' if permuted else ''}"
                found.append(pytest.param(case, id=name))
    return found


def of_type(kind: type[Case]) -> list[Any]:
    return [one for one in contests() if isinstance(one.values[0], kind)]


@pytest.mark.slow
@pytest.mark.parametrize("contest", of_type(Contest))
def test_all_sides_compute_the_same(contest: Contest) -> None:
    if contest.ours.reports:
        assert Here(contest, contest.ours).seconds(0, 1) > 0
        return
    absent = [side.name for side in contest.sides if side.needs and not installed(side.needs)]
    runners = [(s.name, Here(contest, s)) for s in contest.sides if s.name not in absent]
    if contest.alike:
        check(contest, runners)
    for _, runner in runners:
        assert runner.seconds(0, 2) > 0
    if absent and len(runners) < 2:
        pytest.skip(f"only ours ran: not installed are {', '.join(absent)}")


@pytest.mark.slow
@pytest.mark.parametrize("count", of_type(Count))
def test_what_must_be_exact_is_exact(count: Count) -> None:
    ours, other = count.measure()
    if count.goal is not None and count.goal.kind == "exactly":
        assert ours == other
    else:
        assert ours > 0


def test_every_number_of_the_table_is_there() -> None:
    assert numbers() == [*[f"B{i}" for i in range(1, 29)], "B33"]


@pytest.mark.slow
def test_the_list_names_every_workload() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "bench", "--list"],
        cwd=ROOT,
        env={"PYTHONPATH": "scheduler", "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    named = [line.split()[0] for line in run.stdout.splitlines()]
    assert sorted(set(named)) == sorted(numbers())
    assert "B15  later: " in run.stdout


def toy(*peers: Peer, ours: Callable[[Any], Any] = lambda x: 2.0 * x) -> ModuleType:
    """A module with a workload of one contest."""
    module = ModuleType("toy")
    contest = Contest("twice", lambda rng: rng.normal(), Side("reactgrad", lambda: ours), peers)
    vars(module)["WORKLOAD"] = Workload("B1", "toy", lambda setting: [contest])
    return module


def test_outputs_that_do_not_depend_on_inputs_fail_the_workload(
    measured: Callable[[ModuleType], Any],
) -> None:
    """They would agree with those of anybody: no comparison could fail."""
    faint = Peer(Side("wrong", lambda: lambda x: 0.0))
    (line,) = measured(toy(faint, ours=lambda x: 1e-18 * x))
    assert line.failed
    assert "the same for other inputs" in line.note


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Callable[[ModuleType], Any]:
    """Lines of a toy workload."""

    def measure(module: ModuleType) -> Any:
        monkeypatch.setattr(_run, "workload_of", lambda name: module.WORKLOAD)
        return list(_run.lines("toy", Setting(), QUICK))

    return measure


def test_a_peer_that_computes_something_else_fails_the_workload(
    measured: Callable[[ModuleType], Any],
) -> None:
    wrong = Peer(Side("wrong", lambda: lambda x: 2.0 * x + 1e-3))
    (line,) = measured(toy(wrong))
    assert line.failed
    assert line.note.startswith("FAILED: twice: output 0, wrong: ")
    assert line.ratio is None


def test_a_side_that_computes_nothing_fails_the_workload(
    measured: Callable[[ModuleType], Any],
) -> None:
    empty = Peer(Side("empty", lambda: lambda x: None))
    (line,) = measured(toy(empty, ours=lambda x: None))
    assert line.failed
    (line,) = measured(toy(ours=lambda x: x * np.nan))
    assert line.failed


@pytest.mark.slow
def test_a_peer_that_is_not_installed_says_so_and_fails_nothing(
    measured: Callable[[ModuleType], Any],
) -> None:
    absent = Peer(Side("absent", lambda: lambda x: 2.0 * x, needs="no_such_package"), faster(3.0))
    same = Peer(Side("same", lambda: lambda x: x + x), at_most(1e9))
    first, second = measured(toy(absent, same))
    assert first.note == "peer not installed: pip install .[bench]"
    assert first.ours is not None
    assert (first.ratio, first.met, first.failed) == (None, None, False)
    assert (second.met, second.failed) == (True, False)


@pytest.mark.slow
def test_a_peer_that_raises_is_named_and_fails_nothing(
    measured: Callable[[ModuleType], Any],
) -> None:
    def broken(x: Any) -> Any:
        raise RecursionError("too deep")

    (line,) = measured(toy(Peer(Side("broken", lambda: broken), faster(3.0))))
    assert line.note == "peer failed: RecursionError: too deep"
    assert (line.ratio, line.met, line.failed) == (None, None, False)


@pytest.mark.slow
@pytest.mark.parametrize("at", [2, 4])
def test_a_peer_that_raises_later_is_left_out_from_then_on(
    measured: Callable[[ModuleType], Any], at: int
) -> None:
    calls = iter(range(100))

    def tired(x: Any) -> Any:
        if next(calls) == at:
            raise RecursionError("too deep")
        return 2.0 * x

    found = measured(
        toy(Peer(Side("tired", lambda: tired)), Peer(Side("same", lambda: lambda x: x + x)))
    )
    assert found[0].note == "peer failed: RecursionError: too deep"
    assert found[1].ratio is not None
    assert not any(line.failed for line in found)


def test_what_failed_is_said_again_at_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = Line("B1", "toy: twice", "step", True, note="FAILED: 3 is not 2", failed=True)
    monkeypatch.setattr(_run, "lines", lambda *_: iter([wrong]))
    assert command.main(["--quick", "B1", "B9"]) == 1
    assert capsys.readouterr().out.endswith("B1 toy: twice: FAILED: 3 is not 2\n" * 2)


@pytest.mark.slow
def test_inputs_are_new_at_every_step_and_the_same_for_all_sides(
    measured: Callable[[ModuleType], Any],
) -> None:
    seen: dict[str, list[float]] = {"ours": [], "theirs": []}

    def noting(name: str) -> Callable[[Any], Any]:
        def step(x: Any) -> Any:
            seen[name].append(x)
            return x

        return step

    measured(toy(Peer(Side("theirs", lambda: noting("theirs"))), ours=noting("ours")))
    assert seen["ours"] == seen["theirs"]
    # The first inputs are used twice: to see whether a peer works, and to compare.
    assert len(set(seen["ours"])) == len(seen["ours"]) - 1


@pytest.mark.parametrize(
    ("goal", "ours", "peer", "met"),
    [
        (at_most(1.1), 1.1, 1.0, True),
        (at_most(1.1), 1.2, 1.0, False),
        (faster(6.0), 1.0, 6.0, True),
        (faster(6.0), 1.0, 5.9, False),
        (within(4.0), 4.0, None, True),
        (within(4.0), 4.1, None, False),
        (exactly(), 7.0, 7.0, True),
        (exactly(), 7.0, 8.0, False),
    ],
)
def test_goals(goal: Any, ours: float, peer: float | None, met: bool) -> None:
    assert goal.met(ours, peer) is met


@pytest.mark.slow
def test_the_command_writes_what_it_prints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "fix_threads", lambda: None)
    file = tmp_path / "out.json"
    assert command.main(["b9", "B15", "--quick", "--permuted", "--json", str(file)]) == 0
    printed = capsys.readouterr().out
    content = json.loads(file.read_text())
    assert content["machine"]["numpy"] == np.__version__
    for name in ("lines", "permuted"):
        assert [line["number"] for line in content[name]] == ["B9"] * 3
        assert [line["met"] for line in content[name]] == [None] * 3  # small sizes prove nothing
    assert "the figure above" in content["permuted"][0]["note"]
    assert printed.count("\nB9 ") == 4  # each of two cases, and its variant
    assert "no goal is judged at small sizes" in printed
    assert max(map(len, printed.splitlines())) <= 100
    assert "B15  later: on a GPU" in printed


def test_several_runs_make_one_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / f"{i}.json" for i in range(3)]
    for file, ours in zip(files, (1.0, 4.0, 2.0), strict=True):
        line = Line(
            *("B1", "toy", "step", True, Figure.exact(ours), "by hand", Figure.exact(8.0)),
            ratio=Figure.exact(ours / 8.0),
            goal=faster(4.0),
        )
        content = {"machine": {"cores": "2"}, "lines": [line.as_dict()]}
        file.write_text(json.dumps(content))
    assert command.main(["--spread", *map(str, files)]) == 0
    printed = capsys.readouterr().out
    row = "| B1 | toy | 2.00 s | 8.00 s | by hand | 4× faster (2–8) | ≥ 4× | 2 of 3 |"
    assert row in printed.splitlines()


@pytest.mark.parametrize(
    ("goal", "seconds", "ratio", "said"),
    [
        (faster(10.0), True, 0.00028, "3,571× faster"),
        (faster(2.0), True, 1.25, "1.25× slower"),
        (None, True, 0.2, "5× faster"),
        (None, False, 0.2, "5× fewer"),
        (None, False, 3.0, "3× more"),
        (None, False, 1.0, "1×"),
        (at_most(1.1), True, 1.25, "1.25×"),
        (at_most(1.1), True, 0.8, "0.8×"),
    ],
)
def test_a_ratio_says_who_is_ahead(
    goal: Goal | None, seconds: bool, ratio: float, said: str
) -> None:
    line = Line("B1", "toy", "step", seconds, ratio=Figure.exact(ratio), goal=goal)
    assert cells(line)[5] == said


def test_the_table_fits_100_columns_and_ends_with_what_it_comes_to() -> None:
    long = "a case with a name that goes on and on: " * 4
    figure = Figure(0.123456, 0.1, 0.2, 9)
    ratio = Figure(1234.0, 1100.0, 1300.0, 9)
    missed = Line(
        *("B3", long, "step", True, figure, "a peer with a very long name", figure),
        ratio=ratio,
        goal=faster(2.0),
        note="peer failed: " + "x " * 90,
    )
    met = replace(missed, ratio=Figure(0.2, 0.19, 0.21, 9), note="")
    absent = replace(met, peer=None, ratio=None, peer_name="loman", note="peer not installed: pip")
    text = [header(), printed(missed), printed(met, missed), printed(absent, met)]
    text += summary([missed, met, absent], [], quick=False, seconds=130.0)
    lines = "\n".join(text).splitlines()
    assert max(map(len, lines)) <= 100
    assert sum(line.startswith("B3") for line in lines) == 1  # the case is named once
    assert any(line.endswith(" missed") for line in lines)
    assert any(line.endswith(" met") for line in lines)
    told = " ".join(" ".join(lines[lines.index("1 case in 2 minutes") :]).split())
    assert "1 of 2 goals met" in told
    assert "missed: B3 a case with" in told
    assert (
        "1,234\u00d7 slower (1,100\u20131,300) beside a peer with a very long name, goal \u2265 2\u00d7"
        in told
    )
    assert "not installed, so not measured: loman" in told


def test_help_needs_no_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pytest_benchmark", None)
    with pytest.raises(SystemExit) as left:
        command.main(["--help"])
    assert left.value.code == 0
    assert "--permuted" in capsys.readouterr().out


def test_the_command_without_its_extra_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pytest_benchmark", None)
    assert command.main(["--list"]) == 2
    assert 'pip install -e ".[bench]"' in capsys.readouterr().err


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"machine": {}, "lines": [{}]}'])
def test_what_is_no_run_is_refused(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "other.json"
    file.write_text(content)
    with pytest.raises(SystemExit):
        command.main(["--spread", str(file)])
    assert f"{file} was not written by python -m bench --json" in capsys.readouterr().err


@pytest.mark.parametrize(("median", "said"), [(1.2, ""), (1.3, ", TOO MUCH")])
def test_a_permuted_variant_that_costs_too_much_says_so(median: float, said: str) -> None:
    figure = Line("B1", "toy", "step", True, ours=Figure.exact(1.0))
    line = beside(replace(figure, ours=Figure.exact(median)), figure)
    assert line.note == f"permuted: {median:.2f}× the figure above{said}"
    assert line.permuted == median
    small = beside(replace(figure, ours=Figure.exact(9.0), verdict=False), figure)
    assert "TOO MUCH" not in small.note


def test_an_unknown_workload_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["B99"])
    assert "no workload B99; there are B1, B2" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["_goal", "_calls", "_measure", "_peers", "_table"])
def test_examples(name: str) -> None:
    result = doctest.testmod(import_module(f"bench.{name}"))
    assert result.attempted > 0
    assert not result.failed


def test_different_outputs_are_told_apart_by_number_and_value() -> None:
    contest = toy().WORKLOAD.cases(Setting())[0]
    runners = [(name, _Fixed(outputs)) for name, outputs in (("a", [1.0, 2.0]), ("b", [1.0]))]
    with pytest.raises(DifferentOutputs, match="2 outputs here, 1 of b"):
        check(contest, runners)


class _Fixed:
    def __init__(self, outputs: list[float]) -> None:
        self._outputs = outputs

    def outputs(self, seed: int) -> list[Any]:
        return self._outputs

    def seconds(self, seed: int, count: int) -> float:
        return 1.0

    def close(self) -> None:
        pass
