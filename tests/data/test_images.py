"""Folders of images: a class for each folder, a file read for each sample, and damage named by its file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reactgrad import data

Image: Any = pytest.importorskip("PIL.Image")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for name, files in {"cats": ["b.png", "a.PNG"], "dogs": ["deep/c.png", "notes.txt"]}.items():
        for file in files:
            path = tmp_path / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            pixels = rng.integers(256, size=(4, 6, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(path, format="PNG")
    (tmp_path / "empty").mkdir()
    return tmp_path


def test_folders_are_classes_and_images_are_arrays(root: Path) -> None:
    dataset = data.ImageFolder(root)
    assert dataset.classes == ["cats", "dogs", "empty"]
    assert dataset.class_to_idx == {"cats": 0, "dogs": 1, "empty": 2}
    assert [Path(path).name for path, _ in dataset.samples] == ["a.PNG", "b.png", "c.png"]
    image, label = dataset[2]
    assert (image.shape, image.dtype, label) == ((3, 4, 6), np.uint8, 1)
    with Image.open(root / "dogs/deep/c.png") as file:
        assert np.array_equal(np.moveaxis(image, 0, -1), np.asarray(file))


def test_batches_are_the_same_with_threads(root: Path) -> None:
    dataset = data.ImageFolder(root, size=(2, 3), mode="L", transform=data.ToFloat())
    found = [
        [(x.tolist(), y.tolist()) for x, y in data.DataLoader(dataset, 2, shuffle=True, workers=n)]
        for n in (0, 2)
    ]
    assert found[0] == found[1]
    x, _ = next(iter(data.DataLoader(dataset, 3)))
    assert (x.shape, x.dtype) == ((3, 1, 2, 3), np.float32)


def test_a_file_that_is_no_image_is_named(root: Path) -> None:
    path = root / "cats" / "a.PNG"
    content = path.read_bytes()
    for wrong in (b"", b"text", content[:40], content[:-30]):
        path.write_bytes(wrong)
        with pytest.raises(data.DataError, match=r"a\.PNG cannot be read as an image"):
            data.ImageFolder(root)[0]


def test_a_folder_without_images_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(data.DataError, match="has no folder with images .* a folder of its own"):
        data.ImageFolder(tmp_path)
    with pytest.raises(FileNotFoundError):
        data.ImageFolder(tmp_path / "none")
