"""What kernels run inside of: infinities and NaNs are values like others, no reason to warn."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, copy_context
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

# As ``np.errstate(all="ignore")``, at a twentieth of its cost: ``before = error_state()``, then in a ``try``
# ``be_quiet()``, and at its end ``as_before(before)``. An interrupt between any two of them loses nothing.
error_state: Callable[[], Any] = _state.get
be_quiet: Callable[[], object] = partial(_state.set, _ignored)
as_before: Callable[[Any], object] = _state.set
