"""The same laws on processes of MPI, as a user starts them: ``mpiexec -n 2 python program.py``."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.__main__ import ROOT
from tests.distributed.program import LAWS

# What starts programs: beside the interpreter if the wheel `mpich` is installed there.
BESIDE = Path(sys.executable).with_name("mpiexec")
MPIEXEC = str(BESIDE) if BESIDE.exists() else shutil.which("mpiexec")


@pytest.fixture(autouse=True)
def _needs_mpi() -> None:
    if MPIEXEC is not None and find_spec("mpi4py") is not None:
        return
    why = 'no MPI here: pip install "reactgrad[distributed]"'
    if os.environ.get("REACTGRAD_TEST_MPI") == "required":
        pytest.fail(why)
    pytest.skip(why)


def start(names: str, size: int, timeout: float = 60.0) -> tuple[int, str, float]:
    """Run the program on that many processes. Return its exit status, what it wrote, and its seconds."""
    assert MPIEXEC is not None
    environment = dict(os.environ, PYTHONPATH=f"{ROOT}{os.pathsep}{ROOT / 'scheduler'}")
    environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    program = [sys.executable, "-m", "tests.distributed.program", names, str(timeout)]
    before = time.monotonic()
    done = subprocess.run(
        [MPIEXEC, "-n", str(size), *program],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr, time.monotonic() - before


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 4])
def test_laws_hold_on_processes(size: int) -> None:
    status, text, _ = start(",".join(LAWS), size)
    assert status == 0, text
    for law in LAWS:
        for rank in range(size):
            assert f"{law}: rank {rank} of {size} is content" in text


@pytest.mark.slow
def test_an_exception_of_one_process_ends_all_with_its_traceback() -> None:
    status, text, _ = start("raises", 2)
    assert status != 0
    assert "ZeroDivisionError: the second rank cannot go on" in text
    assert 'raise ZeroDivisionError("the second rank cannot go on")' in text
    assert "rank 1 raised, so this rank ends, too" in text  # rank 0 waited for it
    assert "is content" not in text


@pytest.mark.slow
def test_a_mismatch_is_told_by_every_process() -> None:
    status, text, _ = start("differs", 2)
    assert status != 0
    told = (
        "rank 0 asked for broadcast with root 0 of float64 (2,) for 'input_1'; "
        "rank 1 asked for all_reduce(sum) of float64 (2,) for 'input_1'"
    )
    assert text.count("DistributedError: the ranks do not ask for the same: " + told) >= 2, text


@pytest.mark.slow
def test_a_process_that_never_comes_is_named() -> None:
    status, text, _ = start("stays_away", 2)
    assert status != 0
    assert "rank 1 has ended: rank 0 asked for all_reduce(sum) of float64" in text


@pytest.mark.slow
def test_a_process_that_comes_too_late_is_named() -> None:
    status, text, _ = start("too_late", 2, timeout=0.5)
    assert status != 0
    assert "rank 1 did not come within 0.5 s: rank 0 asked for all_reduce(sum)" in text


def test_a_process_that_is_killed_ends_all() -> None:
    status, text, _ = start("killed", 2)
    assert status != 0
    assert "is content" not in text
