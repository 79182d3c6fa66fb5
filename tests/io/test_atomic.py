"""At every moment the old file or the new one is there, whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.io import _save, _whole_file
from tests.test_import_walls import ROOT

pytest.importorskip("safetensors")


def graph_of(number: float, size: int = 50) -> rg.Graph:
    """All values of this graph are `number`."""
    g = rg.Graph()
    x = g.keep(g.input(np.full(size, float(number)), name="x"))
    for i in range(20):
        x = g.keep(x * 1.0)
        x.name = f"x{i}"
    x.value
    return g


def number_in(path: Path) -> float:
    """The number of the graph in a file, which is that of all its values."""
    g = rg.load(path)
    assert len(g) == 22
    numbers = {float(n) for name in ("x", "x0", "x19") for n in g[name].value}
    assert len(numbers) == 1
    return numbers.pop()


# Forked children save graphs one after the other, and are killed: at a line of the code that saves
# (each line that runs is one moment), or after a random time. Between two kills the file is read.
KILLER = """
import os, random, signal, sys, time
from pathlib import Path
from tests.io.test_atomic import graph_of, number_in
import reactgrad.io._format as form
import reactgrad.io._save as saving
import reactgrad.io._whole_file as whole

path = Path(sys.argv[1])
graph_of(0).save(path)
seen = 0.0
middle = 0


def child(act):
    global seen, middle
    pid = os.fork()
    if pid == 0:
        try:
            act()
        finally:
            os._exit(0)
    return pid


def check(pid):
    global seen, middle
    status = os.waitpid(pid, 0)[1]
    number = number_in(path)
    assert seen <= number <= seen + 1000, (seen, number)
    left = [one for one in path.parent.iterdir() if one != path]
    middle += bool(left)
    for one in left:
        assert one.name.startswith("." + path.name) and one.name.endswith(".tmp"), one
    assert len(left) <= 1, "a save did not clear what the killed one before it has left"
    seen = number
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def at_line(moment):
    count = 0

    def trace(frame, event, arg):
        nonlocal count
        if frame.f_code.co_filename not in (form.__file__, saving.__file__, whole.__file__):
            return None
        if event == "line":
            count += 1
            if count == moment:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    new = graph_of(seen + 1)
    sys.settrace(trace)
    new.save(path)


lines = 0
graph_of(0).save(path)
moment = 0
killed = True
while killed:
    moment += int(sys.argv[3])
    before = seen
    killed = check(child(lambda: at_line(moment)))
    lines += killed
    assert seen in (before, before + 1)

large = [graph_of(0, 8_000)]
rng = random.Random(3)


def forever():
    number = seen
    while True:
        number += 1
        large[0]["x"].set([number] * 8_000)
        large[0]["x19"].value
        large[0].save(path)


began = time.perf_counter()
pid = child(lambda: [large[0].save(path) for _ in range(10)])
os.waitpid(pid, 0)
one = (time.perf_counter() - began) / 10
seen = number_in(path)
for _ in range(int(sys.argv[2])):
    pid = child(forever)
    time.sleep(rng.random() * 4.0 * one)
    os.kill(pid, signal.SIGKILL)
    assert check(pid)
print(lines, middle, seen)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and kill -9")
def test_a_kill_at_any_moment_leaves_a_whole_file(tmp_path: Path) -> None:
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "scheduler")]),
        "OPENBLAS_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", KILLER, str(tmp_path / "graph.safetensors"), "200", "8"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines, middle, seen = map(float, done.stdout.split())
    assert lines >= 70, "the code that saves was not interrupted line by line"
    assert middle > 5, "no kill fell between the first byte written and the last"
    assert seen > 10, "the children saved nothing"


class Trouble(Exception):
    """What goes wrong."""


@pytest.mark.parametrize("what", ["os.replace", "os.fsync", "os.chmod", "write", "interrupt"])
def test_a_failure_leaves_the_old_file_and_nothing_else(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "g"
    graph_of(1).save(path)
    before = path.read_bytes()
    error: type[BaseException] = KeyboardInterrupt if what == "interrupt" else Trouble

    def fail(*args: Any, **named: Any) -> None:
        raise error

    if what == "write":
        monkeypatch.setattr(_save, "write_tensors", fail)
    else:
        monkeypatch.setattr(os, what.rpartition(".")[2] if "." in what else "replace", fail)
    with pytest.raises(error):
        graph_of(2).save(path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert [*tmp_path.iterdir()] == [path]
    graph_of(2).save(path)
    assert number_in(path) == 2.0


def test_what_is_written_reaches_the_disk_before_it_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    fsync, replace = os.fsync, os.replace

    def watched_fsync(opened: int) -> None:
        done.append("sync folder" if os.path.isdir(f"/proc/self/fd/{opened}") else "sync")
        fsync(opened)

    def watched_replace(source: Any, target: Any) -> None:
        done.append("replace")
        replace(source, target)

    monkeypatch.setattr(_save.os, "fsync", watched_fsync)
    monkeypatch.setattr(_save.os, "replace", watched_replace)
    graph_of(1).save(tmp_path / "g")
    assert [what.partition(" ")[0] for what in done][-3:] == ["sync", "replace", "sync"]


@pytest.mark.skipif(os.name == "nt", reason="locks of POSIX")
def test_a_save_clears_what_killed_ones_have_left_and_no_file_of_a_living_one(
    tmp_path: Path,
) -> None:
    path = tmp_path / "g"
    opened, living = _whole_file._beside(tmp_path, "g", 0o600)
    dead = tmp_path / ".g.0123456789abcdef.tmp"
    others = [tmp_path / name for name in (".g.tmp", ".g.0123.tmp", ".gg.0123456789abcdef.tmp")]
    for one in (dead, *others):
        one.write_bytes(b"half")
    dead.chmod(0o444)
    graph_of(1).save(path)
    assert {*tmp_path.iterdir()} == {path, living, *others}
    os.close(opened)
    graph_of(2).save(path)
    assert {*tmp_path.iterdir()} == {path, *others}


STARVED = """
import resource, sys
import reactgrad as rg, numpy as np
import safetensors.numpy
g = rg.Graph()
g.keep(g.input(np.zeros(1_000_000), name="x"))
g.save(sys.argv[1])
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
failed = 0
for room in range(0, 20_000_000, 250_000):
    resource.setrlimit(resource.RLIMIT_AS, (used + room, resource.RLIM_INFINITY))
    try:
        g.save(sys.argv[1])
    except MemoryError:
        failed += 1
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert rg.load(sys.argv[1])["x"].value.shape == (1_000_000,)
print(failed)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of Linux")
def test_a_save_that_runs_out_of_memory_raises(tmp_path: Path) -> None:
    """The package for the format, which was used before, ended the process then."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "scheduler")]),
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [sys.executable, "-c", STARVED, str(tmp_path / "g")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [*tmp_path.iterdir()] == [tmp_path / "g"]


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_permissions_are_those_of_the_old_file_or_of_new_ones(tmp_path: Path) -> None:
    path = tmp_path / "g"
    (tmp_path / "plain").touch()
    graph_of(1).save(path)
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode
    path.chmod(0o640)
    graph_of(2).save(path)
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.skipif(os.name == "nt", reason="links of POSIX")
def test_a_link_goes_on_pointing_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    real, link = tmp_path / "folder" / "real", tmp_path / "link"
    graph_of(1).save(real)
    link.symlink_to(real)
    graph_of(2).save(link)
    assert link.is_symlink()
    assert number_in(real) == number_in(link) == 2.0


def test_saving_where_there_is_no_folder_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as absent:
        graph_of(1).save(tmp_path / "absent" / "g")
    with pytest.raises(OSError, match="directory|Is a directory|denied") as folder:
        graph_of(1).save(tmp_path)
    for caught, path in (absent, tmp_path / "absent" / "g"), (folder, tmp_path):
        assert caught.value.filename == str(path)
        assert caught.value.filename2 is None
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("name", ["字" * 85, "😀" * 63, "x" * 255])
def test_a_name_may_be_as_long_as_names_may_be(name: str, tmp_path: Path) -> None:
    graph_of(3).save(tmp_path / name)
    assert [one.name for one in tmp_path.iterdir()] == [name]
    assert rg.load(tmp_path / name)["x"].value[0] == 3


def test_a_full_disk_is_an_error_of_the_system(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    path = tmp_path / "g"
    graph_of(1).save(path)
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(OSError, match="g'"):
            graph_of(2).save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["g"]


def test_signals_are_named_here() -> None:
    """The program above is text: what it uses exists."""
    assert hasattr(signal, "SIGKILL") or os.name == "nt"
