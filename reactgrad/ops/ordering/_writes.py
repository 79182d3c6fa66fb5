"""NumPy's functions that write into an argument: each refuses a Var and names the op to use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from reactgrad._errors import ImplicitValueError


def _refusing(name: str, instead: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise ImplicitValueError(
            f"np.{name} would write a value that no version knows: it works in place, and the value of a Var is "
            f"another one after .set(...) only. The op that returns a new value is {instead}; to change a "
            "leaf, write x.set(...) or with x.mutate() as a: ..."
        )

    refuse.__name__ = name
    return refuse


WRITES: Final[dict[Any, Callable[..., Any]]] = {
    np.put: _refusing("put", "rg.scatter(x.reshape(-1), 0, indices, values).reshape(x.shape)"),
    np.place: _refusing("place", "rg.where(mask, values, x)"),
    np.putmask: _refusing("putmask", "rg.where(mask, values, x)"),
    np.copyto: _refusing("copyto", "rg.where(mask, source, x), or the source itself"),
    np.put_along_axis: _refusing("put_along_axis", "rg.scatter(x, axis, indices, values)"),
}
