"""The command line: what it prints, where, and with which exit code."""

import json
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from types import SimpleNamespace

import pytest

import reactgrad
from reactgrad import _cli, demo
from reactgrad._cli import main
from tests.__main__ import ROOT
from tests.viz.book import held

COMMAND = [sys.executable, "-X", "dev", "-W", "error", "-m", "reactgrad"]
GOOD = "symbol,date,price\nA,Jan 1 2000,10\nA,Feb 1 2000,11\nA,Mar 1 2000,10.5\n"


def _environment(**more: str) -> dict[str, str]:
    """Let a subprocess find what this process found."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **more}


def _run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        env=_environment(**more),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
    )


@pytest.fixture
def quick(monkeypatch, story: demo.Story) -> None:
    """Tell a story that was told before, where the telling is not under test."""
    monkeypatch.setattr(demo, "tell", lambda *_: story)


@pytest.mark.slow
def test_the_demo_as_text(capsys) -> None:
    assert main(["demo"]) == 0
    out, _ = capsys.readouterr()
    first = "A book of 10,080 options on 5 stocks. One number changes: what must be computed again?"
    assert out.startswith(first + "\n\n  quantity IBM 7m, one call +10\n")
    assert re.search(r"\n  (\d\d) of \d,\d{3} nodes ran, [\d.]+ ms instead of [\d.]+: ", out)
    assert out.index("ratio  difference") < out.index("ok      largest") < out.index("live Greek")
    for words in (
        "prices: stocks.csv (vega_datasets 0.9.0)\n",
        "book:   5 stocks x 24 months x 42 strikes x 2 = 10,080 European calls and puts, seed 0",
        "ok      largest difference from a fresh graph: 0.0 (must be 0.0)",
        "ok      largest relative difference of 132 Greeks: ",
    ):
        assert words in out
    assert "FAILED" not in out
    assert out.isascii()
    assert max(map(len, out.splitlines())) <= 100


@pytest.mark.slow
def test_the_demo_in_a_process_of_its_own_warns_of_nothing() -> None:
    done = _run("demo", "--json", "--seed", "3")
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"(reactgrad demo: step . of 7, .*\n)*", done.stderr)
    found = json.loads(done.stdout)
    assert found["seed"] == 3
    assert found["book"]["options"] >= 10_000
    assert [change["difference"] for change in found["changes"]] == [0.0] * 5
    assert found["changes"][-1]["nodes_run"] == 0
    assert all(0 <= change["nodes_run"] < change["nodes"] for change in found["changes"])
    assert all(change["ratio"] > 0 for change in found["changes"])
    greeks = found["greeks"] + found["expiry_vegas"]
    assert len(greeks) == 132
    assert all(greek["relative_difference"] <= 1e-9 for greek in greeks)
    assert found["checks"]["holds"] is True
    assert list(found) == [
        "source",
        "seed",
        "stocks",
        "book",
        "graph",
        "changes",
        "greeks",
        "expiry_vegas",
        "checks",
        "seconds",
    ]


@pytest.mark.slow
def test_your_own_prices(price_file, capsys) -> None:
    path = price_file(GOOD)
    assert main(["demo", "--data", path, "--seed", "9", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["source"] == path
    assert [(stock["symbol"], stock["spot"]) for stock in found["stocks"]] == [("A", 10.5)]
    assert found["book"]["options"] >= 10_000
    assert found["checks"]["holds"] is True


@pytest.mark.parametrize("json_too", [[], ["--json"]])
def test_bad_prices_end_in_one_line(price_file, capsys, json_too: list[str]) -> None:
    path = price_file(GOOD + "A,Apr 1 2000,-3\n")
    assert main(["demo", "--data", path, *json_too]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        f"reactgrad demo: error: {path}, line 5, column 'price': expected a positive number such "
        "as 39.81, from 1e-09 to 1e+12, found '-3'\n"
    )


@pytest.mark.slow
def test_bad_prices_in_a_process_of_its_own(tmp_path) -> None:
    done = _run("demo", "--data", str(tmp_path / "none.csv"))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        f"reactgrad demo: error: {tmp_path / 'none.csv'}: expected a CSV file with the columns "
        "symbol,date,price, but there is no such file\n"
    )


@pytest.mark.parametrize("seed", ["-1", "x", "1.5", "", "9" * 5000, "٣"])
def test_a_bad_seed_is_refused(capsys, seed: str) -> None:
    assert main(["demo", "--seed", seed]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert f"argument --seed: expected a whole number of 0 or more, found {seed[:40]!r}\n" in err


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_a_large_seed_is_accepted(capsys) -> None:
    assert main(["demo", "--seed", "9" * 40]) == 0


def test_a_failed_check_is_an_error(monkeypatch, capsys, story: demo.Story) -> None:
    wrong = replace(story, steps=(replace(story.steps[0], difference=1e-9), *story.steps[1:]))
    monkeypatch.setattr(demo, "tell", lambda *_: wrong)
    assert main(["demo"]) == 1
    out, err = capsys.readouterr()
    assert "FAILED  largest difference from a fresh graph: 1e-09" in out
    assert err == "reactgrad demo: error: a check failed; please report it\n"


def test_no_command_shows_help(capsys) -> None:
    assert main([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("usage: reactgrad")


@pytest.mark.parametrize("arguments", [["--help"], ["demo", "--help"], ["doctor", "--help"]])
def test_help_is_output(capsys, arguments: list[str]) -> None:
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert out.startswith("usage: reactgrad")
    assert err == ""


def test_an_unknown_command_is_refused(capsys) -> None:
    assert main(["dance"]) == 2
    assert "invalid choice: 'dance'" in capsys.readouterr().err


def test_version(capsys) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"reactgrad {reactgrad.__version__}\n"


def test_an_interrupt_is_no_traceback(monkeypatch, capsys) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "tell", interrupt)
    assert main(["demo"]) == 130
    assert capsys.readouterr() == ("", "reactgrad: interrupted\n")


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_traceback() -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [*COMMAND, "doctor"],
            env=_environment(),
            stdout=write,
            stderr=subprocess.PIPE,
            timeout=300,
        )
    finally:
        os.close(write)
    assert done.stderr == b""
    assert done.returncode == 141


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_is_one_line() -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, "doctor"],
            env=_environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=300,
        )
    assert done.stderr == "reactgrad: error: [Errno 28] No space left on device\n"
    assert done.returncode == 1


@pytest.mark.slow
def test_a_symbol_that_stdout_cannot_show_is_escaped(price_file) -> None:
    path = price_file(GOOD.replace("A,", "É,"))
    done = _run("demo", "--data", path, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert r"delta \xc9" in done.stdout


@pytest.mark.slow
def test_doctor_names_what_is_there(capsys) -> None:
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    lines = dict(line.split(maxsplit=1) for line in out.splitlines() if line[0] != " ")
    import networkx
    import numpy

    assert lines["reactgrad"].startswith(f"{reactgrad.__version__} in ")
    assert lines["python"].startswith(".".join(map(str, sys.version_info[:3])))
    assert lines["numpy"] == numpy.__version__
    assert lines["networkx"] == networkx.__version__
    assert lines["backend"].startswith("numpy")
    assert re.match(r"[1-9]\d* of [1-9]\d* cores usable; ", lines["threads"])
    assert list(lines) == [
        "reactgrad",
        "python",
        "numpy",
        "networkx",
        "optional",
        "absent",
        "backend",
        "gpu",
        "driver",
        "networks",
        "threads",
        "blas",
    ]


def test_doctor_says_which_extra_brings_what_is_absent(monkeypatch, capsys) -> None:
    monkeypatch.setattr(_cli, "_version", lambda name: None if name != "numba" else "1.0")
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "\n           pygraphviz, for pictures of graphs: pip install 'reactgrad[viz]'\n" in out
    assert "\noptional   numba 1.0\n" in out
    assert "reactgrad[jit]" not in out
    assert max(map(len, re.findall("^ .*", out, re.MULTILINE))) <= 100


def test_each_extra_that_doctor_names_brings_the_package() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    other = {"cupy": "cupy-cuda13x", "neat": "neat-python"}
    for name, (extra, _) in _cli._OPTIONAL.items():
        assert any(one.startswith(other.get(name, name) + ">=") for one in extras[extra]), name


def test_doctor_shows_thread_limits(monkeypatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert "OMP_NUM_THREADS=3" in _cli._threads()


def _cupy(monkeypatch, **runtime: object) -> None:
    """Put a CuPy in place whose runtime answers like this."""
    fake = SimpleNamespace(cuda=SimpleNamespace(runtime=SimpleNamespace(**runtime)))
    fake.__spec__ = SimpleNamespace(name="cupy")
    monkeypatch.setitem(sys.modules, "cupy", fake)


def test_doctor_names_a_gpu(monkeypatch) -> None:
    _cupy(
        monkeypatch,
        getDeviceCount=lambda: 1,
        getDeviceProperties=lambda i: {"name": b"NVIDIA H200", "totalGlobalMem": 139 * 2**30},
        runtimeGetVersion=lambda: 12090,
    )
    assert _cli._gpu() == "NVIDIA H200, 139 GiB; CUDA 12.9"


def test_doctor_survives_a_broken_gpu(monkeypatch) -> None:
    def fail() -> int:
        raise RuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected\nmore")

    _cupy(monkeypatch, getDeviceCount=fail)
    expected = "none (RuntimeError: cudaErrorNoDevice: no CUDA-capable device is detected)"
    assert _cli._gpu() == expected


def test_doctor_without_cupy(monkeypatch) -> None:
    monkeypatch.setattr(_cli.importlib.util, "find_spec", lambda name: None)
    assert _cli._gpu() == "none (cupy is not installed)"


@pytest.mark.slow
def test_the_demo_as_a_page(capsys, tmp_path) -> None:
    pytest.importorskip("pygraphviz", reason="lays out, extra viz")
    path = tmp_path / "book.html"
    data = tmp_path / "prices.csv"
    months = [f"S,2020-{month:02d}-01,{100 + month}" for month in range(1, 13)]
    data.write_text("\n".join(["symbol,date,price", *months]))
    assert main(["demo", "--data", str(data), "--html", str(path)]) == 0
    assert str(path) in capsys.readouterr().out
    recorded = held(path)
    runs = [run for frame in recorded["frames"] for run in frame["runs"]]
    assert len(runs) == 6  # all, and five changes
    assert len(runs[0]["ran"]) == runs[0]["nodes"]
    assert all(len(run["ran"]) < run["nodes"] for run in runs[1:])
    assert not runs[-1]["ran"], "the same value again"
    assert {box["key"] for box in recorded["views"][0]["boxes"]} >= {"S/"}
    assert main(["demo", "--html", str(tmp_path / "no" / "book.html")]) == 1
