"""Folders of images as datasets: a folder for each class."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from reactgrad._errors import MissingExtraError
from reactgrad.data._dataset import Dataset
from reactgrad.data._errors import DataError

Array = np.ndarray[Any, Any]

# Of the names that torchvision takes for images.
ENDINGS = (".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")


class ImageFolder(Dataset):
    """The images below a folder, whose folders are the classes; read by Pillow (extra ``data``).

    Sample `i` is an image of the shape (channels, height, width), of integers of 8 bits, and the number of its class.
    Files are read when they are asked for; ``workers=`` of a loader reads several at once.

    Parameters
    ----------
    root : str or path-like
        A folder of folders.
    size : int or (int, int), optional
        Height and width that each image is resized to, so that they make a batch.
    mode : str, default "RGB"
        That of Pillow: ``"L"`` for one channel of grey.
    transform, target_transform : callable, optional
        Functions of one image, and of one number of a class.

    Attributes
    ----------
    classes : list of str
        The names of the folders, in the order of the alphabet.
    class_to_idx : dict
    samples : list of (str, int)
        Paths and classes.

    Raises
    ------
    DataError
        If there are no images. A sample raises if its file is no image.
    MissingExtraError
        If Pillow is not installed.

    Examples
    --------
    >>> import reactgrad as rg
    >>> pets = rg.data.ImageFolder("pets", size=64, transform=rg.data.ToFloat())  # doctest: +SKIP
    >>> image, label = pets[0]  # doctest: +SKIP
    >>> image.shape, pets.classes[label]  # doctest: +SKIP
    ((3, 64, 64), 'cats')
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        size: int | tuple[int, int] | None = None,
        mode: str = "RGB",
        *,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
    ) -> None:
        _pillow()
        self.root = os.fspath(root)
        self.size = (size, size) if isinstance(size, int) else size
        self.mode = mode
        self.transform = transform
        self.target_transform = target_transform
        with os.scandir(self.root) as entries:
            self.classes = sorted(one.name for one in entries if one.is_dir())
        self.class_to_idx = {name: at for at, name in enumerate(self.classes)}
        self.samples = [
            (path, at) for at, name in enumerate(self.classes) for path in self._images(name)
        ]
        if not self.samples:
            raise DataError(
                f"ImageFolder: {self.root} has no folder with images ({', '.join(ENDINGS)}). Put those of each class "
                "into a folder of its own."
            )

    def _images(self, name: str) -> list[str]:
        found = []
        for folder, folders, files in os.walk(os.path.join(self.root, name)):
            folders.sort()
            found += [
                os.path.join(folder, one) for one in sorted(files) if one.lower().endswith(ENDINGS)
            ]
        return found

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: Any) -> tuple[Any, Any]:
        path, label = self.samples[index]
        image = self._read(path)
        if self.transform is not None:
            image = self.transform(image)
        return image, label if self.target_transform is None else self.target_transform(label)

    def _read(self, path: str) -> Array:
        try:
            with _pillow().open(path) as file:
                image = file if file.mode == self.mode else file.convert(self.mode)
                if self.size is not None and image.size != self.size[::-1]:
                    image = image.resize(self.size[::-1])
                array = np.array(image)
        except (OSError, ValueError, SyntaxError) as error:  # what Pillow raises for damage
            if isinstance(error, FileNotFoundError):
                raise
            raise DataError(
                f"ImageFolder: {path} cannot be read as an image: {error}. Remove it, or name it otherwise."
            ) from error
        return array[None] if array.ndim == 2 else np.moveaxis(array, -1, 0)

    def __repr__(self) -> str:
        return f"ImageFolder({self.root!r}, {len(self)} images, {len(self.classes)} classes)"


def _pillow() -> ModuleType:
    try:
        import PIL.Image
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            'ImageFolder needs the package Pillow, which is not installed: pip install "reactgrad[data]"'
        ) from error
    return PIL.Image
