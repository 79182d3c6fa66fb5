"""Pictures: refused before any work where they cannot be drawn."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from reactgrad import demo
from reactgrad._cli import main


@pytest.mark.parametrize("name", list(demo.TRAINING))
def test_without_matplotlib_it_names_the_extra(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["demo", name]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        f"reactgrad demo {name}: error: a picture needs matplotlib, which is not installed: "
        'pip install "reactgrad[demo]"\n'
    )


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("none/a.png", "none/a.png: there is no folder none"),
        ("a.txt", "a.txt: a picture ends in .png, .svg or .pdf"),
        ("a", "a: a picture ends in .png, .svg or .pdf"),
    ],
)
def test_a_place_for_no_picture_is_refused_before_the_story_begins(
    path: str,
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib: the extra `demo`")
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "learn", "--picture", path]) == 1
    assert capsys.readouterr() == ("", f"reactgrad: error: {said}\n")
