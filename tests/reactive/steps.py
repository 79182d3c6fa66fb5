"""Python functions as steps between nodes."""

from __future__ import annotations

import reactgrad as rg


def plus(x: rg.Var, amount: int = 1) -> rg.Var:
    return rg.lift(lambda v: v + amount)(x)


def total(*sources: rg.Var) -> rg.Var:
    return rg.lift(lambda *values: sum(values))(*sources)


def inverse(x: rg.Var) -> rg.Var:
    return rg.lift(lambda v: 1 / v)(x)
