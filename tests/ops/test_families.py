"""The table of families has the names that exist, and no others."""

from __future__ import annotations

import inspect
from importlib import import_module

import pytest

import reactgrad as rg
from reactgrad.ops import _families


@pytest.mark.parametrize("family", _families.FAMILIES)
def test_a_family_has_the_names_that_are_listed(family: str) -> None:
    package = import_module(f"reactgrad.ops.{family}")
    found = {
        name
        for name, one in vars(package).items()
        if not name.startswith("_") and inspect.isfunction(one)
    }
    assert found == set(_families.FAMILIES[family].split())


def test_no_name_stands_twice() -> None:
    names = [name for many in _families.FAMILIES.values() for name in many.split()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", _families.FAMILY_OF)
def test_a_function_says_what_it_does(name: str) -> None:
    assert inspect.getdoc(getattr(rg, name))
