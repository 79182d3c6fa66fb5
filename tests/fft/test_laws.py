"""The laws of every transform."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.ops.case import LAWS, Case, Law, of_case, of_law


def one(name: str, shape: tuple[int, ...], *args: Any, **more: Any) -> Case:
    options = {key: more.pop(key) for key in list(more) if key not in Case.__annotations__}
    ours, numpys = getattr(rg.fft, name), getattr(np.fft, name)
    shown = ", ".join([f"{name}{shape}", *map(str, args), *map(str, options.values())])
    return Case(
        shown,
        lambda x: ours(x, *args, **options),
        lambda x: numpys(x, *args, **options),
        [shape],
        **more,
    )


# NumPy scales half floats by a factor that is rounded to a half float, and rounds spectra of float32.
HALF: dict[str, Any] = {"tolerance": {"e": 4e-3, "f": 2e-6, "F": 2e-6, "d": 1e-12, "D": 1e-12}}
COMPLEX: dict[str, Any] = {"dtypes": "DFdfei?", **HALF}
REAL: dict[str, Any] = {"dtypes": "dfei?", **HALF}

CASES = [
    *[one(name, (3, 4), **COMPLEX) for name in ("fft", "ifft", "irfft", "hfft")],
    *[one(name, (3, 5), **REAL) for name in ("rfft", "ihfft")],
    *[one(name, (3, 5), norm="ortho", **COMPLEX) for name in ("fft", "ifft", "irfft", "hfft")],
    *[one(name, (3, 4), norm="ortho", **REAL) for name in ("rfft", "ihfft")],
    *[one(name, (3, 4), norm="forward", **COMPLEX) for name in ("fft", "ifft", "irfft", "hfft")],
    *[one(name, (3, 4), norm="forward", **REAL) for name in ("rfft", "ihfft")],
    *[one(name, (3, 4), n, **COMPLEX) for name in ("fft", "ifft", "irfft", "hfft") for n in (3, 6)],
    *[one(name, (3, 4), n, **REAL) for name in ("rfft", "ihfft") for n in (3, 7)],
    *[one(name, (3, 4), None, 0, **COMPLEX) for name in ("fft", "ifft", "irfft")],
    one("rfft", (3, 4), None, 0, **REAL),
    one("fft", (3,), 1, **COMPLEX),
    one("irfft", (3,), 1, **COMPLEX),
    one("rfft", (3,), 1, **REAL),
    *[one(name, (3, 4), **COMPLEX) for name in ("fft2", "ifft2", "irfft2", "fftn", "ifftn", "irfftn")],
    *[one(name, (3, 4), **REAL) for name in ("rfft2", "rfftn")],
    *[one(name, (2, 3, 4), axes=(0, 2), **COMPLEX) for name in ("fftn", "ifftn", "irfftn", "fft2")],
    one("rfftn", (2, 3, 4), axes=(2, 0), **REAL),
    *[one(name, (2, 3, 4), (4, -1, 3), (0, 1, 2), **COMPLEX) for name in ("fftn", "ifftn", "irfftn")],
    one("rfftn", (2, 3, 4), (3, 2, 5), (2, 1, 0), norm="ortho", **REAL),
    one("irfftn", (2, 3, 4), (3, 5), (2, 1), norm="forward", **COMPLEX),
    one("fftn", (2, 3), axes=(1, 1), **COMPLEX),
    one("irfftn", (3, 3), axes=(1, 0, 1), **COMPLEX),
    *[one(name, (3, 4), dtypes="DdeFfi?") for name in ("fftshift", "ifftshift")],
    *[one(name, (3, 5, 2), 1, dtypes="di") for name in ("fftshift", "ifftshift")],
    *[one(name, (3, 5, 2), (-1, 0), dtypes="di") for name in ("fftshift", "ifftshift")],
    Case("batch of none", rg.fft.rfft, np.fft.rfft, [(3, 4)], dtypes="d", empty=[(0, 4)]),
    Case(
        "a real loss",
        lambda x: abs(rg.fft.rfft(x)) ** 2,
        lambda x: abs(np.fft.rfft(x)) ** 2,
        [(3, 5)],
        dtypes="df",
        tolerance={"f": 1e-5},
    ),
    Case(
        "a filter",
        lambda x, w: rg.fft.irfft(rg.fft.rfft(x) * rg.fft.rfft(w), 6),
        lambda x, w: np.fft.irfft(np.fft.rfft(x) * np.fft.rfft(w), 6),
        [(3, 6), (3, 6)],
        dtypes="df",
        tolerance={"f": 1e-5},
    ),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS, ids=of_law)
@pytest.mark.parametrize("case", CASES, ids=of_case)
def test_laws(case: Case, law: Law) -> None:
    law(case)
