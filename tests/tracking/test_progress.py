"""A bar shows batches, rates and numbers, and runs nothing for that."""

from __future__ import annotations

import io
import sys
from typing import Any

import numpy as np
import pytest

import reactgrad as rg


class Screen(io.StringIO):
    def last(self) -> str:
        return self.getvalue().rstrip("\n").split("\r")[-1]


@pytest.fixture
def screen() -> Screen:
    return Screen()


def options(screen: Screen, **more: Any) -> dict[str, Any]:
    return {"file": screen, "mininterval": 0, "ncols": 80, **more}


def test_batches_pass_and_are_counted(screen: Screen) -> None:
    bar = rg.progress(range(5), "train", options=options(screen))
    assert len(bar) == 5
    assert list(bar) == [0, 1, 2, 3, 4]
    assert screen.last().startswith("train: 100%|")
    assert " 5/5 [" in screen.last()
    assert "it/s" in screen.last()


def test_iterables_without_a_length_are_counted(screen: Screen) -> None:
    assert list(rg.progress(iter("abc"), options=options(screen))) == ["a", "b", "c"]
    assert screen.last().startswith("3it [")


def test_nodes_are_shown_as_they_are_read_and_not_run(screen: Screen) -> None:
    g = rg.Graph()
    ran = []

    @rg.lift
    def square(x: Any) -> Any:
        ran.append(float(x))
        return x * x

    with g:
        x = g.input(0.0)
        loss = square(x)
    for step in rg.progress(range(4), loss=loss, options=options(screen)):
        x.set(step + 1.0)
        if step % 2:
            loss.value
            assert f"loss={(step + 1) ** 2}]" not in screen.last()
        x.set(step + 100.0)
    assert ran == [2.0, 4.0], "the bar has run something"
    assert screen.last().endswith("loss=16]")
    assert "loss=4]" in screen.getvalue()
    x.set(5.0)
    loss.value
    assert screen.last().endswith("loss=16]"), "it is still observed"


def test_numbers_functions_and_nodes_are_shown_when_asked(screen: Screen) -> None:
    with rg.Graph():
        x = rg.input(2.0)
        y = x * 3.0
        y.value
        bar = rg.progress(range(3), options=options(screen), rate=lambda: 0.125)
        for step in bar:
            bar.show(step=step, y=y, one=np.ones((1, 1)))
        assert screen.last().endswith("rate=0.125, step=2, y=6, one=1]")
        bar = rg.progress(range(1), options=options(screen), y=y)
        for _ in bar:
            bar.show(y=0.25)
            x.set(7.0)
            y.value
        assert screen.last().endswith("y=0.25]")


def test_a_loader_that_goes_on_begins_in_the_middle(screen: Screen) -> None:
    loader = rg.data.DataLoader(range(10), 2, shuffle=True)
    list(loader)
    batches = iter(loader)
    for _ in range(2):
        next(batches)
    other = rg.data.DataLoader(range(10), 2, shuffle=True)
    other.load_state_dict(loader.state_dict())
    assert len(list(rg.progress(other, options=options(screen)))) == 3
    assert " 2/5 [" in screen.getvalue().split("\r")[1]
    assert screen.last().startswith("epoch 1: 100%|")
    assert " 5/5 [" in screen.last()


def test_a_bar_ends_with_its_loop_however_that_ends(screen: Screen) -> None:
    with rg.Graph():
        x = rg.input(1.0)
        y = x + 1.0
    for _ in rg.progress(range(3), y=y, options=options(screen)):
        break
    with pytest.raises(KeyError):
        for _ in rg.progress(range(3), y=y, options=options(screen)):
            raise KeyError
    shown = screen.getvalue()
    x.set(2.0)
    y.value
    assert screen.getvalue() == shown


def test_what_is_no_number_is_named(screen: Screen) -> None:
    with pytest.raises(rg.ShapeError) as error:
        rg.progress(range(3), loss=[1.0, 2.0])
    assert str(error.value) == (
        "loss= has the shape (2,), and one number is shown. Give its mean(), or another number."
    )
    with pytest.raises(rg.ShapeError, match="loss= is a str, and one number is shown"):
        rg.progress(range(3), loss="small")


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(rg.DTypeError) as error:
        list(rg.progress(range(3), options={"colour": "red"}))
    assert str(error.value).startswith(
        "progress(options={'colour': ...}): a bar has no such option. There are delay, desc, disable,"
    )


def test_no_package_draws_it(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("tqdm", "tqdm.auto", "rich"):
        monkeypatch.setitem(sys.modules, package, None)
    assert list(rg.progress(range(3), options=options(screen))) == [0, 1, 2]
    assert " 3/3 [" in screen.last()
