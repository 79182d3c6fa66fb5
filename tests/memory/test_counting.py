"""An error while the bytes of values are counted costs no count."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.values._ledger import Ledger
from tests.interrupts import struck

pytestmark = pytest.mark.filterwarnings("ignore::reactgrad.BudgetWarning")


def model() -> tuple[rg.Var, rg.Var]:
    """Values of which some fit, none of them up to date."""
    g = rg.Graph(max_bytes=200)
    x = g.input(np.arange(8.0))
    y = rg.lift(lambda v: v.copy())(rg.tanh(x) * 2.0).sum()
    assert y.value > 0.0
    x.set(np.arange(8.0) + 1.0)
    return x, y


@pytest.mark.parametrize("error", [MemoryError, RecursionError, KeyboardInterrupt])
def test_bytes_are_counted_again_after_an_error_at_any_line(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    update, raised = Ledger.update, set[int]()
    for at in range(1, 60):
        x, y = model()

        def cut_short(ledger: Ledger, slots: Any, values: Any, at: int = at) -> None:
            slots = list(slots)
            if at in raised:
                update(ledger, slots, values)
            elif struck(lambda: update(ledger, slots, values), at, error):
                raised.add(at)
                raise error

        with monkeypatch.context() as patch, suppress(error):
            patch.setattr(Ledger, "update", cut_short)
            assert y.value > 0.0
        y.graph.check_invariants()
        x.set(np.zeros(4))  # what was computed before lies in other memory
        assert y.value == 0.0
        y.graph.check_invariants()
    assert len(raised) > 20
