"""Results in a dtype that the caller names, where that of the operands allows it."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._errors import DTypeError
from reactgrad.ops._astype import astype
from reactgrad.ops._deferred import deferred
from reactgrad.scheduler import safe_repr


@deferred
def cast_result(name: str, joined: Any, wanted: Any, casting: Any) -> Any:
    """Return what `name` has joined, in a dtype to which a rule of NumPy allows the conversion."""
    wanted = np.dtype(wanted)
    if not np.can_cast(joined.dtype, wanted, casting):
        raise DTypeError(
            f"{name}(dtype={wanted}) of values of {joined.dtype} is no {safe_repr(casting)} conversion; write "
            "casting='unsafe' if it is meant."
        )
    return astype(joined, wanted)
