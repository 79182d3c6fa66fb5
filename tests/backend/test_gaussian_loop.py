"""The bell curve as a compiled loop has the bits of the kernel for NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from reactgrad.backend import find_binder
from reactgrad.backend.machine import _compiled
from reactgrad.backend.machine._find import find_driver

SCALES = [(0.3989422804014327, -0.5), (1.1283791670955126, -1.0), (-2.0, -0.25)]


@pytest.mark.whole  # arrays in blocks have no such call of their own
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("attrs", SCALES)
@pytest.mark.parametrize("size", [1, 7, 256, 257, 5000])
def test_bits(dtype: str, attrs: tuple[float, float], size: int) -> None:
    driver = find_driver()
    if driver is None or "gaussian d" not in driver.LOOPS:
        pytest.skip("the driver has no such loop")
    rng = np.random.default_rng(size)
    x = (rng.normal(size=size) * rng.choice([1e-8, 1.0, 5.0, 9.0, 60.0], size)).astype(dtype)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 7.0, 1e30, 1e-40], dtype)
    if size > len(special):
        x[: len(special)] = special
    out, expected = np.empty_like(x), np.empty_like(x)
    call = _compiled._bind_gaussian((x,), out, attrs)
    assert call is not None
    with np.errstate(all="ignore"):
        call()
        find_binder("gaussian", "cpu")((x,), expected, attrs)()
    assert out.tobytes() == expected.tobytes()
