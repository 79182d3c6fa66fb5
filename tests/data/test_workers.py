"""Threads load ahead, in order, and end."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.data._workers import AHEAD


def crew() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name.startswith("reactgrad-data")]


def wait_for(fact: Any) -> None:
    """Wait until something is so; a test that waits for ever is stopped here."""
    for _ in range(1000):
        if fact():
            return
        time.sleep(0.01)
    raise AssertionError("it never happened")


class Watched(rg.data.Dataset):
    """Samples that wait until they may be loaded."""

    def __init__(self, n: int = 40, held: bool = False) -> None:
        self.n = n
        self.loaded: list[int] = []
        self.open = threading.Event()
        if not held:
            self.open.set()

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: int) -> int:
        self.open.wait()
        self.loaded.append(index)
        return index


@pytest.fixture(autouse=True)
def _no_thread_stays() -> Any:
    wait_for(lambda: not crew())
    yield
    wait_for(lambda: not crew())


def test_threads_load_so_far_ahead_and_no_further() -> None:
    dataset = Watched()
    batches = iter(rg.data.DataLoader(dataset, 2, workers=3))
    assert not crew()  # none before the first batch is asked for
    next(batches)
    assert len(crew()) == 3
    ahead = (AHEAD * 3 + 1) * 2
    wait_for(lambda: len(dataset.loaded) == ahead)
    del batches
    wait_for(lambda: not crew())
    assert len(dataset.loaded) == ahead


def test_batches_come_in_their_order_whichever_is_ready_first() -> None:
    class Slow(Watched):
        def __getitem__(self, index: int) -> int:
            if index == 0:
                self.open.wait()
            self.loaded.append(index)
            if len(self.loaded) == 3:
                self.open.set()
            return index

    dataset = Slow(8, held=True)
    found = [one.tolist() for one in rg.data.DataLoader(dataset, 1, workers=2)]
    assert dataset.loaded[0] != 0
    assert found == [[one] for one in range(8)]


def test_threads_end_after_the_last_batch_and_after_an_error() -> None:
    assert len(list(rg.data.DataLoader(Watched(), 4, workers=2))) == 10
    wait_for(lambda: not crew())

    class Bad(Watched):
        def __getitem__(self, index: int) -> int:
            raise SystemExit(f"sample {index}")

    with pytest.raises(SystemExit, match="sample 0"):
        list(rg.data.DataLoader(Bad(), 4, workers=2))


def test_an_iterator_is_dropped_while_its_threads_load() -> None:
    dataset = Watched(held=True)
    batches = iter(rg.data.DataLoader(dataset, 2, workers=2))
    waiting = threading.Thread(target=next, args=(batches,))
    waiting.start()
    wait_for(lambda: len(crew()) == 2)
    dataset.open.set()
    waiting.join()
    del batches, waiting


def test_a_loop_that_raises_leaves_no_thread() -> None:
    with pytest.raises(KeyError):
        for _ in rg.data.DataLoader(Watched(), 2, workers=2):
            raise KeyError


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_in_a_forked_process_an_iterator_says_so_instead_of_waiting() -> None:
    dataset = Watched()
    batches = iter(rg.data.DataLoader(dataset, 2, workers=2))
    next(batches)
    pid = os.fork()
    if pid == 0:
        try:
            for _ in batches:
                pass
        except rg.data.DataError as error:
            os._exit(7 if "before this process was forked" in str(error) else 8)
        finally:
            os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    assert next(batches).tolist() == [2, 3]
    del batches


def test_random_numbers_of_a_batch_do_not_depend_on_the_thread() -> None:
    dataset = rg.data.ArrayDataset(
        np.zeros(32), transform=lambda x: x + rg.data.batch_rng().normal(size=x.shape)
    )
    one, many = (
        np.concatenate([x for (x,) in rg.data.DataLoader(dataset, 4, workers=workers)])
        for workers in (0, 4)
    )
    assert (one == many).all()
    assert len(set(one)) == 32
