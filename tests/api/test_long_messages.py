"""Messages have at most some 2,000 letters, however long names and values are."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import reactgrad as rg

NAME = "a" * 1_000_000
WORDS = "net income " * 100_000


def length(error: BaseException) -> int:
    return len(str(error)) + sum(map(len, getattr(error, "__notes__", ())))


@pytest.mark.slow
@pytest.mark.parametrize("name", [NAME, WORDS], ids=["one word", "words"])
def test_of_long_names(g: rg.Graph, name: str, tmp_path: Path) -> None:
    x = g.input(np.ones(2), name=name)
    y = rg.lift(lambda v: 1 / 0)(x)
    y.name = name + "!"
    z = rg.exp(x)
    programs: list[Callable[[], object]] = [
        lambda: g.input(1.0, name=name),
        lambda: y.value,
        lambda: x.set(np.ones(3, "complex")),
        lambda: g[name + "?"],
        lambda: g.remove(x),
        lambda: y.replace_parent(0, y),
        lambda: x + np.ones(3),
        lambda: z.set(1.0),
        lambda: x.item(),
        lambda: rg.grad(y, x),
        lambda: g.input(1.0, name=name * 2, cutoff=3),
        lambda: rg.load(tmp_path / "no"),
    ]
    for program in programs[:-1]:
        with pytest.raises(Exception) as caught:  # noqa: PT011 - any
            program()
        assert length(caught.value) < 3000
    with pytest.raises(rg.ReactgradError, match=r"^the name 'a{49}|^the name 'net income") as taken:
        g.input(1.0, name=name)
    assert str(taken.value).endswith(", exist_ok=True).")
    assert "letters)..." in str(taken.value)


def test_a_long_cycle_is_shown_by_its_ends_and_kept_whole(g: rg.Graph) -> None:
    x = y = rg.exp(g.input(1.0))
    for _ in range(9_999):
        y = y + 1.0
    with pytest.raises(rg.CycleError) as caught:
        x.replace_parent(0, y)
    assert len(str(caught.value)) < 2000
    assert "-> (9,989 more) ->" in str(caught.value)
    assert len(caught.value.path) == 10_001
    assert len(copy.copy(caught.value).path) == 10_001


def test_a_note_counts_operands_that_it_leaves_out(g: rg.Graph) -> None:
    y = rg.lift(lambda *v: 1 / 0)(*[g.input(1.0) for _ in range(1000)])
    with pytest.raises(ZeroDivisionError) as caught:
        y.value
    assert "(988 more)" in caught.value.__notes__[0]
    assert length(caught.value) < 2000


HUGE = 10**4000  # Python refuses to write numbers of more than 4,300 digits
BEYOND = 10**5000


@pytest.mark.parametrize("number", [HUGE, -HUGE, BEYOND], ids=["positive", "negative", "beyond"])
@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x, n: x.sum(axis=n), r"sum: axis=.*; no array is so large"),
        (lambda x, n: rg.moveaxis(x, n, 0), r"moveaxis: axis=.*; no array is so large"),
        (lambda x, n: rg.expand_dims(x, n), r"expand_dims: axis=.*; no array is so large"),
        (lambda x, n: rg.topk(x, n), r"topk: k=.*; no array is so large"),
        (lambda x, n: x[n], r"index .*: no array has so many elements"),
        (lambda x, n: x.reshape(n), r"reshape: .* is no shape that an array can have"),
        (lambda x, n: rg.broadcast_to(x, (n, 2)), r"broadcast_to: .* is no shape"),
    ],
)
def test_of_numbers_that_no_array_has(
    call: Callable[[rg.Var, int], object], words: str, number: int, g: rg.Graph
) -> None:
    with pytest.raises(rg.ReactgradError, match=words) as caught:
        call(g.input(np.ones((2, 2)), name="x"), number)
    assert length(caught.value) < 200
