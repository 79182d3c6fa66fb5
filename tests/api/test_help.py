"""``help(rg)`` is for users: it begins with what the package does, runs, and names only what exists."""

from __future__ import annotations

import re

import reactgrad as rg


def test_help_names_only_what_exists() -> None:
    text = rg.__doc__ or ""
    for name in re.findall(r"\brg\.(\w+)", text):
        assert hasattr(rg, name), name
    for name in re.findall(r"\bg\.(\w+)", text.replace("rg.", "")):
        assert hasattr(rg.Graph, name), name


def test_help_is_one_screen_of_what_a_user_does() -> None:
    text = rg.__doc__ or ""
    assert len(text.splitlines()) < 50
    assert not re.search(r"``_\w+``", text), "private modules are no help to a user"
