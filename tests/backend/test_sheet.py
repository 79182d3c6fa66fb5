"""Rows that compiled loops compute from rows: the same bits by any number of threads, in any parts."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import extend
from reactgrad.backend.machine import _sheet
from reactgrad.backend.machine._loops import find_loop

pytest.importorskip("numba", reason="the register machine needs it, the extra `jit`")


def loop(ufunc: np.ufunc) -> int:
    found = find_loop(ufunc, "d" * ufunc.nargs)
    assert found is not None
    return found.function


@pytest.mark.parametrize("size", [1, 2, 7, 600])
@pytest.mark.parametrize("threads", [1, 3])
def test_calls_are_made_in_their_order(
    size: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_sheet, "SHARED", 1)
    monkeypatch.setattr(_sheet, "PART", 64)
    monkeypatch.setattr("reactgrad.backend.blocks._threads._count", threads)
    assert rg.get_num_threads() == threads
    sheet = extend.Sheet(size)
    number = extend.Sheet(1).row(0.3)
    start = np.linspace(-1.0, 2.0, size)
    x, y, z = sheet.row(start), sheet.row(), sheet.row()
    add, multiply = loop(np.add), loop(np.multiply)
    expected = start
    for _ in range(5):
        sheet.call(multiply, [x, number], (), y)
        sheet.call(add, [x, y], (), z)
        sheet.call(multiply, [z], (1.5,), x)  # a loop takes numbers as one more operand
        expected = (expected + expected * 0.3) * 1.5
    assert x.array.tolist() == start.tolist()  # nothing is computed before
    sheet.play()
    assert x.array.tolist() == expected.tolist()
    x.array[...] = start
    sheet.play()  # what was played is forgotten
    assert x.array.tolist() == start.tolist()


def test_rows_live_until_they_are_played_and_no_longer() -> None:
    sheet = extend.Sheet(8)
    out = sheet.row()
    x: Any = sheet.row(np.arange(8.0))
    alive = weakref.ref(x.array)
    sheet.call(loop(np.negative), [x], (), out)
    del x
    assert alive() is not None
    sheet.play()
    assert alive() is None
    assert out.array.tolist() == (-np.arange(8.0)).tolist()
