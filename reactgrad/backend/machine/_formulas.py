"""The constants of ``numpy._erf``, laid out in memory for the loops of the driver."""

from __future__ import annotations

from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np

from reactgrad.backend.machine._loops import address_of, find_loop
from reactgrad.backend.numpy import _erf, _gaussian


class Formula(NamedTuple):
    """A loop of the driver, and its last argument: the address of a ``Formula`` of ``_driver.c``."""

    loop: int
    data: int


_PARTS: Final[dict[str, tuple[Any, Any, tuple[float, float, float]]]] = {
    "norm_cdf": (
        _erf.NORM_NEAR,
        _erf.FAR,
        (-0.5, _erf.NORM.far_scale, _erf.EXPONENT_REACH),
    ),
    "erfc": (_erf.ERFC_NEAR, _erf.FAR, (-1.0, _erf.ERFC.far_scale, _erf.EXPONENT_REACH)),
    "erf": (_erf.ERF_NEAR, _erf.ERFC_NEAR, (0.0, 0.0, _erf.ERF_REACH)),
}

_kept: Final[list[Any]] = []  # loops read these arrays as long as the process lives


def formula(name: str, dtype: str, loops: dict[str, int]) -> Formula | None:
    """Return the loop for this function of floats of a dtype; ``None`` if there is none.

    Parameters
    ----------
    name : {"norm_cdf", "erf", "erfc"}
        The function.
    dtype : str
        The character of the dtype.
    loops : dict
        The addresses of the loops of the driver.
    """
    loop, data = loops.get(f"{name} {dtype}"), _data(name)
    return None if loop is None or data is None else Formula(loop, data)


def bell(scale: float, rate: float, dtype: str, loops: dict[str, int]) -> Formula | None:
    """Return the loop for ``scale * exp(rate * x**2)`` of floats of a dtype; ``None`` if there is none."""
    loop, data = loops.get(f"gaussian {dtype}"), _bell(scale, rate)
    return None if loop is None or data is None else Formula(loop, data)


@cache
def _bell(scale: float, rate: float) -> int | None:
    exp = find_loop(np.exp, "dd")
    if exp is None:
        return None
    numbers = np.array([rate, scale, _erf.EXPONENT_REACH, np.sqrt(_gaussian.END / rate)])
    words = [*exp, *[0] * 6, address_of(_keep(numbers))]
    return address_of(_keep(np.array(words, np.int64)))


@cache
def _data(name: str) -> int | None:
    exp = find_loop(np.exp, "dd")
    if exp is None:
        return None
    near, far, numbers = _PARTS[name]
    words = [*exp, *_ratio(near), *_ratio(far), address_of(_keep(np.array(numbers)))]
    return address_of(_keep(np.array(words, np.int64)))


def _ratio(ratio: Any) -> list[int]:
    """Return the words of a ``Ratio``: both lengths, and the address of the coefficients."""
    top, bottom = [*map(float, ratio.numerator)], [1.0, *map(float, ratio.denominator)]
    return [len(top), len(bottom), address_of(_keep(np.array(top + bottom)))]


def _keep(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    _kept.append(array)
    return array
