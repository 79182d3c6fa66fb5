"""Public names, how they are called, and where errors are found: what they were in release 0.1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import reactgrad as rg
from tests.api.surface import MODULES, surface, thing

LISTED: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_name("surface.json").read_text(encoding="utf-8")
)


@pytest.mark.trusting  # the other configurations put a scheduler of their own in its place
@pytest.mark.whole
@pytest.mark.parametrize("module", MODULES)
def test_what_is_public_is_what_is_listed(module: str) -> None:
    """On purpose? Then `python -m tests.api.surface > tests/api/surface.json`, and a line in the changelog."""
    listed, present = LISTED[module], surface()[module]
    assert sorted(present) == sorted(listed)
    for name, one in listed.items():
        assert present[name].get("members", {}).keys() == one.get("members", {}).keys(), name
        assert present[name] == one, name


def test_every_module_is_listed() -> None:
    assert set(LISTED) == set(MODULES)
    assert len(LISTED["reactgrad"]) > 150
    assert len(LISTED["reactgrad"]["Graph"]["members"]) > 50


@pytest.mark.parametrize(
    "name", [name for name, one in LISTED["reactgrad"].items() if "module" in one]
)
def test_errors_are_found_where_tracebacks_say(name: str) -> None:
    error = getattr(rg, name)
    assert (error.__module__, error.__qualname__) == ("reactgrad", name)


class Bare:
    def go(self, a: int, /, b: int = 1, *rest: int, c: object = len, **more: int) -> None: ...
    @classmethod
    def make(cls, a: int = 2) -> None: ...
    @staticmethod
    def of(a: int) -> None: ...
    @property
    def size(self) -> int:
        return 0


class Pair(NamedTuple):
    first: int
    second: int = 0


Bare.__module__ = Pair.__module__ = "reactgrad"


def test_each_part_of_a_signature_is_seen() -> None:
    assert thing(Bare) == {
        "members": {
            "go": {"method": ["/ a", "b = 1", "* rest", "= c = len", "** more"]},
            "make": {"classmethod": ["a = 2"]},
            "of": {"staticmethod": ["a"]},
            "size": "attribute",
        }
    }
    assert thing(Pair)["call"] == ["first", "second = 0"]
