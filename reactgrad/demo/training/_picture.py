"""Pictures, drawn with matplotlib, without a window."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from reactgrad._errors import MissingExtraError

_COLUMNS = 5


def check_picture(path: str | os.PathLike[str]) -> None:
    """Raise where a picture could not be drawn or written, before work is done for it.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    OSError
        If there is no such folder, or pictures have no such ending.
    """
    kinds = figure(1.0, 1.0).canvas.get_supported_filetypes()
    folder, name = os.path.split(os.fspath(path))
    if os.path.splitext(name)[1].removeprefix(".").lower() not in kinds:
        raise OSError(f"{os.fspath(path)}: a picture ends in .png, .svg or .pdf")
    if folder and not os.path.isdir(folder):
        raise FileNotFoundError(f"{os.fspath(path)}: there is no folder {folder}")


def figure(width: float, height: float) -> Any:
    """Return an empty figure of so many inches.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError(
            'a picture needs matplotlib, which is not installed: pip install "reactgrad[demo]"'
        ) from error
    return Figure(figsize=(width, height), layout="constrained", dpi=110)


def images_side_by_side(
    place: Any, images: Sequence[Any], titles: Sequence[str] = (), columns: int = _COLUMNS
) -> None:
    """Show square images in rows of five, each under its title."""
    if not len(images):
        return
    rows = -(-len(images) // columns)
    cells = place.subplots(rows, columns, squeeze=False).flat
    for cell in cells:
        cell.axis("off")
    side = round(np.size(images[0]) ** 0.5)
    for i, image in enumerate(images):
        cells[i].imshow(np.reshape(image, (side, side)), cmap="gray_r", vmin=0.0, vmax=1.0)
        if titles:
            cells[i].set_title(titles[i], fontsize=8, pad=2)
