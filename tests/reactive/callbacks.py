"""Callbacks that write down what they are told."""

from __future__ import annotations

from collections.abc import Callable


def logged(log: list[object], word: object) -> Callable[..., None]:
    return lambda *arguments: log.append((word, *arguments))
