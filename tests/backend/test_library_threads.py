"""``rg.set_num_threads`` sets the threads of BLAS and numba, too, where it can."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

import reactgrad as rg
from reactgrad import _cli
from reactgrad.backend.blocks import _library_threads, _threads


class Limits:
    """Stands for ``threadpoolctl.threadpool_limits``: one BLAS library and one of another kind."""

    def __init__(self, pools: list[dict[str, Any]], limits: int, user_api: str) -> None:
        self.limited = [pool for pool in pools if pool["user_api"] == user_api]
        self.before = [pool["num_threads"] for pool in self.limited]
        for pool in self.limited:
            pool["num_threads"] = limits

    def restore_original_limits(self) -> None:
        for pool, count in zip(self.limited, self.before, strict=True):
            pool["num_threads"] = count


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_threads, "_count", None)
    monkeypatch.setattr(_threads, "_initial", None)
    monkeypatch.setattr(_library_threads, "_limits", None)
    monkeypatch.setattr(_library_threads, "_numba_before", None)
    monkeypatch.setenv("REACTGRAD_NUM_THREADS", "6")
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.delitem(sys.modules, "numba")


@pytest.fixture
def pools(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    found = [
        {"user_api": "blas", "internal_api": "openblas", "version": "0.3.31", "num_threads": 4},
        {"user_api": "openmp", "internal_api": "openmp", "version": None, "num_threads": 8},
    ]
    stand_in = SimpleNamespace(
        threadpool_limits=lambda limits, user_api: Limits(found, limits, user_api),
        threadpool_info=lambda: found,
    )
    monkeypatch.setitem(sys.modules, "threadpoolctl", stand_in)
    return found


def test_blas_gets_the_number_and_its_former_one_back(pools: list[dict[str, Any]]) -> None:
    before = rg.get_num_threads()
    for count in (1, 3, 1, 2):
        rg.set_num_threads(count)
        assert rg.get_num_threads() == count
        assert [pool["num_threads"] for pool in pools] == [count, 8]
    rg.set_num_threads(before)
    assert rg.get_num_threads() == before == 6
    assert [pool["num_threads"] for pool in pools] == [4, 8]


def test_the_first_number_alone_changes_nothing(pools: list[dict[str, Any]]) -> None:
    rg.set_num_threads(6)
    assert pools[0]["num_threads"] == 4


def test_a_refused_number_changes_nothing(pools: list[dict[str, Any]]) -> None:
    rg.set_num_threads(2)
    with pytest.raises(rg.ThreadCountError):
        rg.set_num_threads(0)
    assert rg.get_num_threads() == pools[0]["num_threads"] == 2


def test_without_threadpoolctl_blas_keeps_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)  # importing it raises
    rg.set_num_threads(1)
    assert rg.get_num_threads() == 1
    assert _cli._blas().endswith("does not set its threads without threadpoolctl")


def test_numba_gets_the_number_if_it_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    counts = [5]
    numba = SimpleNamespace(
        get_num_threads=lambda: counts[-1],
        set_num_threads=counts.append,
        config=SimpleNamespace(NUMBA_NUM_THREADS=5),
    )
    monkeypatch.setitem(sys.modules, "numba", numba)
    for count in (1, 12, 6):
        rg.set_num_threads(count)
    assert counts == [5, 1, 5, 5]


def test_doctor_says_what_holds(pools: list[dict[str, Any]]) -> None:
    rg.set_num_threads(2)
    assert _cli._threads().endswith("; large arrays: 2")
    assert _cli._blas() == "openblas 0.3.31, 2 threads; rg.set_num_threads sets them"
    del pools[0]
    assert "threadpoolctl finds none" in _cli._blas()
