"""Arrays of pixels as PNG files."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np

_COLOURS = {1: 0, 2: 4, 3: 2, 4: 6}  # of the format, by the number of channels


def png(pixels: np.ndarray[Any, Any]) -> bytes:
    """Return a PNG file of pixels in 8 bits, of the shape (height, width, channels)."""
    height, width, channels = pixels.shape
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # each begins with its filter: none
    rows[:, 1:] = pixels.reshape(height, -1)
    head = struct.pack(">IIBBBBB", width, height, 8, _COLOURS[channels], 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
