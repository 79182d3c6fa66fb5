"""Sizes that a layer of the package is made with: those that are annotated as integers."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from typing import Any, Final

from reactgrad._errors import ParameterError
from reactgrad.scheduler import safe_repr

# Counts of which there is at least one; of other sizes there may be none, and axes and classes may be negative.
_POSITIVE: Final = frozenset(
    {
        *("in_channels", "out_channels", "groups", "num_groups", "num_heads", "nhead"),
        *("num_layers", "size", "p", "upscale_factor", "downscale_factor", "num_parameters"),
    }
)
_ANY: Final = frozenset({"dim", "start_dim", "end_dim", "ignore_index", "blank", "padding_idx"})


def check_sizes(kind: type, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Raise ``ParameterError`` for a size that is no integer, or too small, before anything is made of it."""
    for at, name in _sizes(kind.__init__):
        value = args[at] if at < len(args) else kwargs.get(name, 1)
        least = 1 if name in _POSITIVE else 0
        try:
            number = value.__index__() if not isinstance(value, bool) else None
        except (AttributeError, TypeError):
            number = None
        if number is None or (name not in _ANY and number < least):
            bound = "" if name in _ANY else f" of at least {least}"
            raise ParameterError(
                f"{kind.__name__}({name}={safe_repr(value):.60}): it is an integer{bound}."
            )


@functools.cache
def _sizes(init: Any) -> tuple[tuple[int, str], ...]:
    """Return places and names of the arguments of an ``__init__`` of the package that are integers."""
    if not init.__module__.startswith("reactgrad.nn."):
        return ()
    names = list(inspect.signature(init).parameters)[1:]
    return tuple(
        (at, name) for at, name in enumerate(names) if init.__annotations__.get(name) == "int"
    )
