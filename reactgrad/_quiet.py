"""What kernels run inside of: infinities and NaNs are values like others, no reason to warn."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, Token, copy_context
from functools import partial
from typing import Any

import numpy as np


def _error_state() -> list[tuple[ContextVar[Any], Any]]:
    """The context variables that ``np.errstate`` sets, and what it sets them to."""
    before = copy_context()
    with np.errstate(all="ignore"):
        inside = copy_context()
    return [(one, value) for one, value in inside.items() if before.get(one) is not value]


# One, in all releases of NumPy up to now. To make its value costs NumPy ten times as much as to set
# it, and it is the same at every run.
((_state, _ignored),) = _error_state()

# As ``np.errstate(all="ignore")`` between the two, at a twentieth of its cost: ``before = be_quiet()``, and
# ``as_before(before)`` at the end.
be_quiet: Callable[[], Token[Any]] = partial(_state.set, _ignored)
as_before: Callable[[Token[Any]], None] = _state.reset
