"""One number, from whatever a loop has at hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from reactgrad._errors import ShapeError
from reactgrad.graph._var import Var


def number(what: str, given: Any) -> float:
    """Return the only number of a node, an array or a number; for `what`, which an error names."""
    value = given.value if isinstance(given, Var) else given
    try:
        array = np.asarray(value)
        if array.size == 1:
            return float(array.reshape(()))
        found = f"has the shape {array.shape}"
    except (TypeError, ValueError):
        found = f"is a {type(value).__name__}"
    raise ShapeError(
        f"{what} {found}, and one number is shown. Give its mean(), or another number."
    )
