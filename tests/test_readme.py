"""The README's ten lines print what their comments say."""

from __future__ import annotations

import linecache
import re
from pathlib import Path

import pytest

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
CODE = re.search(r"```python\n(.*?)```", README, re.DOTALL)
MORE = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_code_prints_what_its_comments_say(capsys: pytest.CaptureFixture[str]) -> None:
    assert CODE is not None
    linecache.cache["README.py"] = (len(CODE[1]), None, CODE[1].splitlines(True), "README.py")
    exec(compile(CODE[1], "README.py", "exec"), {})  # as from a file, whose lines name nodes
    printed = capsys.readouterr().out.splitlines()
    said = [
        line.partition("# ")[2].partition(": ")[0]
        for line in CODE[1].splitlines()
        if line.startswith("print")
    ]
    assert len(said) == 3
    assert printed == said


def test_what_follows_runs_after_it(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    for code in MORE:
        exec(compile(code, "README.md", "exec"), names)
    capsys.readouterr()
    assert names["y"].value == {"spot": 102.0}  # type: ignore[attr-defined]
