"""Threads that begin together, and what they leave behind."""

from __future__ import annotations

import faulthandler
import threading
import time
from collections.abc import Callable
from tempfile import TemporaryFile
from typing import Any

import pytest

THREADS = 8
PATIENCE = 50.0  # seconds after which a thread that has not ended counts as a deadlock


def stacks() -> str:
    """Where every thread stands."""
    with TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        return file.read()


def together(*tasks: Callable[[], object]) -> list[Any]:
    """Run tasks in threads that begin at the same time; their results, or the first error."""
    begin = threading.Barrier(len(tasks))
    results: list[Any] = [None] * len(tasks)
    errors: list[BaseException] = []

    def work(i: int) -> None:
        try:
            begin.wait(PATIENCE)
            results[i] = tasks[i]()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(len(tasks))]
    for thread in threads:
        thread.start()
    patience = time.monotonic() + PATIENCE
    for thread in threads:
        while thread.is_alive() and not errors:
            thread.join(0.1)
            if time.monotonic() > patience:
                pytest.fail("deadlock:\n" + stacks())
    if errors:
        raise errors[0]
    return results


class Rollback(Exception):
    """Raised inside transactions that shall fail."""
