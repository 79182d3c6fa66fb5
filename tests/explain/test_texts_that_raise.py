"""What explains and shows survives errors and values that have no text."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

import reactgrad as rg


def refuse(*args: Any) -> NoReturn:
    raise RuntimeError("no text")


class Thing:
    __repr__ = __str__ = __format__ = refuse


class Things(np.ndarray):
    __repr__ = __str__ = __format__ = refuse


class Wrong(Exception):
    __repr__ = __str__ = __format__ = refuse


TEXT = "Wrong: <whose str raises RuntimeError>"


def test_of_an_error(g: rg.Graph, tmp_path: Path) -> None:
    g.events = True

    def function(value: object) -> object:
        raise Wrong

    x = g.input(1.0)
    y = rg.lift(function)(x)
    z = y + 1.0
    with g.record() as log, rg.profile() as profile:
        for _ in range(2):
            with pytest.raises(Wrong):
                z.value
    assert f"failed: {TEXT};" in str(g.why(y))
    assert TEXT in str(g.why(z))
    assert [one.error for one in g.snapshot().nodes if one.error] == [TEXT]
    assert "Wrong" in g.to_dot(y)
    assert "whose str raises RuntimeError" in y._repr_html_()
    assert TEXT in str(g.events)
    log.to_chrome_trace(tmp_path / "trace.json")
    g.export_html(tmp_path / "page.html")
    for one in (y, z, g, g.last_run, log, profile, g.stats(), g.plan(z), *log.runs):
        repr(one)
        str(one)


class Nameless(type):
    def __getattribute__(cls, name: str) -> Any:
        return refuse() if name in ("__name__", "__qualname__") else super().__getattribute__(name)


class OfNameless(Exception, metaclass=Nameless):
    pass


def test_of_an_error_whose_class_hides_its_name(g: rg.Graph) -> None:
    def function(value: object) -> object:
        raise OfNameless("lost")

    y = rg.lift(function)(g.input(1.0))
    with pytest.raises(OfNameless):
        y.value
    assert "failed: OfNameless: lost;" in str(g.why(y))
    assert [one.error for one in g.snapshot().nodes if one.error] == ["OfNameless: lost"]


@pytest.mark.parametrize(
    "value", [Thing(), [Thing()], np.ones(3).view(Things), np.array([Thing()], dtype=object)]
)
def test_of_a_value(g: rg.Graph, value: Any, tmp_path: Path) -> None:
    x = g.input(1.0)
    y = rg.lift(lambda v, w: w)(x, value)
    y.value
    assert "whose repr raises RuntimeError" in y._repr_html_() or "[1" in y._repr_html_()
    g.snapshot(values=True)
    g.export_html(tmp_path / "page.html")
    for one in (y, g.why(y), g.last_run):
        repr(one)
    with pytest.raises(rg.DTypeError):
        x.set(Thing())
