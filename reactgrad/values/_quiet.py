"""The context in which kernels run: infinities and NaNs are values like others, and warn of nothing."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any, TypeVar

import numpy as np


def _error_state() -> list[tuple[ContextVar[Any], Any]]:
    """Return the context variables that ``np.errstate`` sets, with their values in such a block."""
    before = copy_context()
    with np.errstate(all="ignore"):
        inside = copy_context()
    return [(one, value) for one, value in inside.items() if before.get(one) is not value]


# NumPy has used one variable in all releases so far; unpacking fails if that changes. Its value is the
# same at every run, and to make it costs ten times as much as to set it.
((_state, _ignored),) = _error_state()

# ``np.errstate(all="ignore")`` at a twentieth of its cost: ``before = error_state()``, then inside of a
# ``try`` ``be_quiet()``, and in its ``finally`` ``as_before(before)``. In this order an interrupt between
# any two of them still restores the state. An ``except BaseException`` around it all restores it again, for
# an error in the ``finally`` itself.
error_state: Callable[[], Any] = _state.get
be_quiet: Callable[[], object] = partial(_state.set, _ignored)
as_before: Callable[[Any], object] = _state.set

T = TypeVar("T")


def quietly(function: Callable[..., T], *args: Any) -> T:
    """Call a function without NumPy's warnings, outside of a run.

    In a context of its own: to leave it takes neither memory nor a line at which an error could come.
    """
    return copy_context().run(_quietly, function, args)


def _quietly(function: Callable[..., T], args: tuple[Any, ...]) -> T:
    be_quiet()
    return function(*args)
