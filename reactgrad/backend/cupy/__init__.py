"""CuPy's arrays on GPUs, as devices of the kind ``"cuda"``.

Imported when a CuPy array or a device ``"cuda:0"`` is first met. CuPy itself is imported here and nowhere else.

- ``_cupy``: the devices, one for each GPU, and the block in which one of them is current.
- ``_capture``: runs of kernels that are launched as one graph.
- ``_forms``: NumPy's calls that CuPy lacks.
- ``_keys``: indices whose arrays lie on the device.
- ``_kernels``: kernels that are not those of NumPy with CuPy's functions.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from reactgrad._errors import DeviceError


def register() -> None:
    """Register the devices of the kind ``"cuda"``, with their kernels.

    Raises
    ------
    DeviceError
        If CuPy is not installed, or finds no driver or no GPU.
    """
    try:
        cupy: Any = import_module("cupy")
    except ImportError:
        raise DeviceError(
            "devices of kind 'cuda' are arrays of CuPy, which is not installed: "
            "pip install cupy-cuda13x, or cupy-cuda12x."
        ) from None
    # Before anything else: a stream that is made without a driver complains when it is freed.
    if not cupy.cuda.is_available():
        raise DeviceError("CuPy finds no GPU here; it needs one with a driver for its CUDA.")
    from reactgrad.backend.cupy._cupy import register_cupy

    special = import_module("cupyx.scipy.special")
    register_cupy(cupy, special, "cuda")
