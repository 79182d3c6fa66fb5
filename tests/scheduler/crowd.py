"""Threads that meet, and what they leave behind."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import reactgrad as rg


def within_time(act: Callable[[], Any]) -> Any:
    """The outcome of something that, if it hangs, shall fail."""
    outcome: list[Any] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(act())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(60.0)
    assert not thread.is_alive(), "it hangs"
    if errors:
        raise errors[0]
    return outcome[0]


def plus(number: int) -> Callable[[rg.Var], rg.Var]:
    return rg.lift(lambda value: value + number)


def pair(g: rg.Graph, *functions: Callable[..., Any]) -> list[rg.Var]:
    """Nodes that may run at the same time."""
    x = g.input(1)
    return [rg.lift(function)(x) for function in functions]
