"""Chains of nodes that edits are tried with."""

from __future__ import annotations

from typing import Any

import reactgrad as rg


class Abort(Exception):
    """What ends a block."""


def names(nodes: Any) -> list[str]:
    return [var.name for var in nodes]


def called(**nodes: Any) -> tuple[Any, ...]:
    """Give nodes names."""
    for name, var in nodes.items():
        var.name = name
    return tuple(nodes.values())


def chain(g: rg.Graph) -> tuple[rg.Var, ...]:
    """x -> a -> b -> c, clean."""
    x = g.input(1.0)
    a = x + 1.0
    b = a * 10.0
    c = b - 3.0
    c.value
    return called(x=x, a=a, b=b, c=c)
