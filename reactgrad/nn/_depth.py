"""The number of layers of a module, one upon the other."""

from __future__ import annotations

from typing import Any

from reactgrad._errors import ParameterError
from reactgrad.scheduler import safe_repr

_MOST = 100_000  # each layer is a module with params of its own


def number_of_layers(module: object, given: Any) -> int:
    """Return the number of layers that a caller wrote.

    Raises
    ------
    ParameterError
        If it is no integer, or more than any memory holds.
    """
    if isinstance(given, bool) or not isinstance(given, int) or given > _MOST:
        raise ParameterError(
            f"{type(module).__name__}(num_layers={safe_repr(given):.60}): it is the number of layers, an integer of "
            f"at most {_MOST:,}; each layer is a module of its own."
        )
    return given
