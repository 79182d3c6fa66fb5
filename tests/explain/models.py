"""Small graphs that several tests ask questions about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import reactgrad as rg

# The checkout's folder, which may be called anything.
FOLDER = str(Path(__file__).resolve().parents[2])


def text_of(explained: object) -> str:
    """The text of an explanation or an error; files are named as from the checkout's folder."""
    return str(explained).replace(FOLDER, "")


def named(var: Any, name: str) -> Any:
    """The node, under this name."""
    var.name = name
    return var


def chain_of_three(g: rg.Graph) -> tuple[Any, Any, Any]:
    """``x -> a -> y``."""
    x = g.input(1.0, name="x")
    a = named(x * 2.0, "a")
    return x, a, named(a + 1.0, "y")


def row_of_tanh(x: Any, length: int) -> Any:
    """The last of so many array ops in a row."""
    y = x
    for _ in range(length):
        y = rg.tanh(y)
    return y
