"""CuPy's arrays on GPUs, as devices of the kind ``"cuda"``.

Imported when a CuPy array or a device ``"cuda:0"`` is first met. CuPy itself is imported here and nowhere else.
"""

from __future__ import annotations

from reactgrad._errors import DeviceError


def register() -> None:
    """Register the devices of the kind ``"cuda"``, with their kernels.

    Raises
    ------
    DeviceError
        If CuPy is not installed, or finds no driver or no GPU.
    """
    try:
        import cupy
    except ImportError:
        raise DeviceError(
            "devices of kind 'cuda' are arrays of CuPy, which is not installed: "
            "pip install cupy-cuda13x, or cupy-cuda12x."
        ) from None
    # Before anything else: a stream that is made without a driver complains when it is freed.
    if not cupy.cuda.is_available():
        raise DeviceError("CuPy finds no GPU here; it needs one with a driver for its CUDA.")
