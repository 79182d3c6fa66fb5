"""The newest checkpoints of a folder stay, and the best one; no kill leaves a file that does not load."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.test_import_walls import ROOT, run_python


def steps(kept: rg.Checkpoints) -> list[int]:
    return [rg.load_checkpoint(one)["step"] for one in kept.paths]


def test_the_last_ones_stay_and_the_best_one(tmp_path: Path) -> None:
    kept = rg.Checkpoints(tmp_path / "run", keep_last=2, monitor="loss")
    assert (kept.paths, kept.last, kept.best) == ([], None, None)
    seen = []
    for step, loss in enumerate([0.5, 0.2, 0.3, float("nan"), 0.4, 0.2]):
        assert kept.save(step=step, loss=loss) == kept.last
        assert kept.best is not None
        seen.append((steps(kept), rg.load_checkpoint(kept.best)["step"]))
    assert seen == [
        ([0], 0),
        ([0, 1], 1),
        ([1, 2], 1),
        ([1, 2, 3], 1),
        ([1, 3, 4], 1),
        ([4, 5], 5),  # as good, and newer
    ]
    assert sorted(os.listdir(tmp_path / "run")) == [
        "step-00000004.safetensors",
        "step-00000005.safetensors",
    ]


def test_best_may_be_highest_and_all_may_stay(tmp_path: Path) -> None:
    kept = rg.Checkpoints(tmp_path, keep_last=None, monitor="accuracy", mode="max")
    for step, accuracy in enumerate([np.float32(0.5), 1, 0.7]):
        kept.save(step=step, accuracy=accuracy)
    assert steps(kept) == [0, 1, 2]
    assert kept.best == kept.paths[1]


def test_newest_is_what_was_saved_last_not_what_has_the_highest_step(tmp_path: Path) -> None:
    kept = rg.Checkpoints(tmp_path, keep_last=2)
    for step in (10, 20, 5):  # went on from an older one
        kept.save(step=step)
    assert steps(rg.Checkpoints(tmp_path)) == [20, 5]
    kept.save(step=20)
    assert steps(kept) == [5, 20]


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    foreign = {"step-00000001.safetensors": b"mine", "notes.txt": b"", "step-1.safetensors": b"x"}
    for name, content in foreign.items():
        (tmp_path / name).write_bytes(content)
    kept = rg.Checkpoints(tmp_path, keep_last=1)
    kept.save(step=7)
    kept.save(step=8)
    assert steps(kept) == [8]
    for name, content in foreign.items():
        assert (tmp_path / name).read_bytes() == content


def call(tmp_path: Path, arguments: dict[str, Any], saved: dict[str, Any]) -> None:
    rg.Checkpoints(tmp_path, **arguments).save(**saved)


@pytest.mark.parametrize(
    ("arguments", "saved", "text"),
    [
        ({"keep_last": 0}, {}, "Checkpoints: keep_last=0 is no number of its kind. Give keep_last=1 or more."),
        ({"mode": "least"}, {}, "Checkpoints: mode='least' is none. Write mode='min' or 'max'."),
        ({}, {"step": 1.5}, "Checkpoints: step=1.5 is no number of its kind. Give step=0 or more."),
        (
            {"monitor": "loss"},
            {"step": 1},
            "Checkpoints.save: loss= is monitored, and was not given. Write save(step=n, loss=number, ...).",
        ),
        (
            {"monitor": "loss"},
            {"step": 1, "loss": "0.5"},
            "Checkpoints.save: loss='0.5' is monitored, and is no number. Write loss=float(y.value) for a node y.",
        ),
    ],
)  # fmt: skip
def test_what_has_no_meaning_is_refused(
    tmp_path: Path, arguments: dict[str, Any], saved: dict[str, Any], text: str
) -> None:
    with pytest.raises(rg.SaveError) as error:
        call(tmp_path, arguments, saved)
    assert str(error.value) == text
    assert os.listdir(tmp_path) == []


# Forked children save the next step, and are killed: at a line of the code that saves, or when the file has got
# so many bytes. After each kill the newest checkpoint loads, and is the former one or the new one.
KILLER = """
import os, signal, sys
import numpy as np
import reactgrad as rg
import reactgrad.io._checkpoint as one, reactgrad.io._checkpoint_folder as folder
import reactgrad.io._format as form, reactgrad.io._whole_file as whole

kept = rg.Checkpoints(sys.argv[1], keep_last=1)
files = {module.__file__ for module in (one, folder, form, whole)}


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def at_line(moment):
    count = 0

    def trace(frame, event, arg):
        nonlocal count
        if frame.f_code.co_filename not in files:
            return None
        if event == "line":
            count += 1
            if count == moment:
                die()
        return trace

    sys.settrace(trace)


def at_byte(moment):
    class File:
        def __init__(self, opened):
            self.opened = opened
            self.left = moment

        def write(self, data):
            data = bytes(data)
            os.write(self.opened, data[: self.left])
            if len(data) > self.left:
                die()
            self.left -= len(data)

        def flush(self):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *error):
            os.close(self.opened)

    whole.os = type(os)("os")
    whole.os.__dict__.update(vars(os), fdopen=lambda opened, mode: File(opened))


def save(step):
    kept.save(step=step, weight=np.full(9, float(step)), text="x" * 50)


save(0)
newest = 0
for how, by in ((at_line, 3), (at_byte, 7)):
    kills, old, moment, killed = 0, 0, 0, True
    while killed:
        moment += by
        child = os.fork()
        if child == 0:
            how(moment)
            try:
                save(newest + 1)
            finally:
                os._exit(0)
        killed = os.WIFSIGNALED(os.waitpid(child, 0)[1])
        found = rg.load_checkpoint(kept.last)
        assert found["step"] in (newest, newest + 1), (found["step"], newest)
        assert found["weight"].tolist() == [found["step"]] * 9
        kills += killed
        old += found["step"] == newest
        newest = found["step"]
        for path in kept.paths[:-1]:  # else each moment would take more lines than the one before
            os.unlink(path)
    print(how.__name__, kills > 20, old > 20)
save(newest + 1)
left = [name for name in os.listdir(sys.argv[1]) if not name.endswith(".tmp")]
print(len(left))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked children")
def test_a_kill_at_any_line_or_byte_leaves_a_checkpoint_that_loads(tmp_path: Path) -> None:
    printed = run_python("-W", "error", "-c", KILLER, str(tmp_path), cwd=ROOT)
    assert printed.split() == ["at_line", "True", "True", "at_byte", "True", "True", "1"]
