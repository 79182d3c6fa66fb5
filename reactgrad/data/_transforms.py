"""Functions of arrays for datasets. They work along the last axes, so one call serves a sample or a whole batch.

What is random is drawn from ``batch_rng``, for each sample on its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from reactgrad._attributes import OwnAttributes
from reactgrad.data._batch_rng import batch_rng
from reactgrad.data._errors import DataError

Array = np.ndarray[Any, Any]


class Compose(OwnAttributes):
    """Several transforms, one after the other.

    Examples
    --------
    >>> import numpy as np
    >>> import reactgrad as rg
    >>> rg.data.Compose([rg.data.ToFloat(), rg.data.Normalize(0.5, 0.5)])(np.uint8([0, 255]))
    array([-1.,  1.], dtype=float32)
    """

    def __init__(self, transforms: Any) -> None:
        self.transforms: list[Callable[[Any], Any]] = list(transforms)
        for one in self.transforms:
            if not callable(one):
                raise DataError(
                    f"Compose: {one!r:.60} cannot be called. Give functions of one array."
                )

    def __call__(self, array: Any) -> Any:
        for one in self.transforms:
            array = one(array)
        return array

    def __repr__(self) -> str:
        return f"Compose({self.transforms!r})"


class Normalize(OwnAttributes):
    """``(x - mean) / std``, in the dtype of `x` if that is of floats, else in float64.

    Parameters
    ----------
    mean, std : array_like
        Of each channel, or of each feature; shapes that broadcast against the last axes.
    axis : int, default -1
        The axis that one-dimensional `mean` and `std` lie along, counted from the end: -3 for channels of images.

    Examples
    --------
    >>> import numpy as np
    >>> import reactgrad as rg
    >>> X = np.array([[0.0, 10.0], [2.0, 30.0]])
    >>> rg.data.Normalize.of(X)(X)
    array([[-1., -1.],
           [ 1.,  1.]])
    """

    def __init__(self, mean: Any, std: Any, axis: int = -1) -> None:
        if axis >= 0:
            raise DataError(
                f"Normalize: axis={axis} is counted from the start, where a batch has one axis more. Count it from "
                "the end: axis=-3 for channels of images."
            )
        self.axis = axis
        self.mean, self.std = (
            one.reshape(*one.shape, *[1] * (-axis - 1)) if one.ndim == 1 else one
            for one in (np.asarray(mean, np.float64), np.asarray(std, np.float64))
        )
        if not (
            np.isfinite(self.mean).all() and np.isfinite(self.std).all() and (self.std > 0).all()
        ):
            raise DataError(
                f"Normalize: std is {np.array2string(self.std.ravel(), threshold=6)}, and x is divided by it. Give "
                "finite numbers, and 1 where a feature never changes."
            )

    @classmethod
    def of(cls, array: Any, axis: int = -1) -> Normalize:
        """Return the transform with the mean and the deviation of an array along `axis`; 1 for a deviation of 0."""
        array = np.asarray(array, np.float64)
        others = tuple(one for one in range(array.ndim) if one != array.ndim + axis)
        std = array.std(axis=others)
        return cls(array.mean(axis=others), np.where(std > 0, std, 1.0), axis)

    def __call__(self, array: Any) -> Array:
        array = np.asarray(array)
        dtype = array.dtype if array.dtype.kind == "f" else np.dtype(np.float64)
        return (array - self.mean.astype(dtype)) / self.std.astype(dtype)


class ToFloat(OwnAttributes):
    """Floats from 0 to 1 for integers of 8 or 16 bits and booleans; other numbers as floats of the same size.

    Examples
    --------
    >>> import numpy as np
    >>> import reactgrad as rg
    >>> rg.data.ToFloat()(np.uint8([0, 51]))
    array([0. , 0.2], dtype=float32)
    """

    def __init__(self, dtype: Any = np.float32) -> None:
        self.dtype = np.dtype(dtype)

    def __call__(self, array: Any) -> Array:
        array = np.asarray(array)
        made = array.astype(self.dtype)
        if array.dtype.kind == "u" and array.itemsize <= 2:
            made /= np.iinfo(array.dtype).max
        return made


class Flatten(OwnAttributes):
    """The last `ndim` axes as one.

    Examples
    --------
    >>> import numpy as np
    >>> import reactgrad as rg
    >>> rg.data.Flatten(2)(np.zeros((5, 8, 8))).shape
    (5, 64)
    """

    def __init__(self, ndim: int) -> None:
        self.ndim = ndim

    def __call__(self, array: Any) -> Array:
        array = np.asarray(array)
        return array.reshape(*array.shape[: array.ndim - self.ndim], -1)


class OneHot(OwnAttributes):
    """Numbers of classes as rows with a single 1.

    Examples
    --------
    >>> import reactgrad as rg
    >>> rg.data.OneHot(3)([2, 0])
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """

    def __init__(self, classes: int, dtype: Any = np.float64) -> None:
        self.rows = np.eye(classes, dtype=dtype)

    def __call__(self, labels: Any) -> Array:
        labels = np.asarray(labels)
        n = len(self.rows)
        if labels.dtype.kind not in "iu" or (
            labels.size and not 0 <= labels.min() <= labels.max() < n
        ):
            raise DataError(
                f"OneHot({n}): the labels are {labels.dtype} from {labels.min()} to {labels.max()}, and have to be "
                f"integers from 0 to {n - 1}."
            )
        return self.rows[labels]


class RandomHorizontalFlip(OwnAttributes):
    """The last axis reversed, for each image with probability `p`.

    Parameters
    ----------
    p : float, default 0.5
    ndim : int, default 3
        The axes of one image: 3 for channels, height and width; 2 without channels.

    Examples
    --------
    >>> import numpy as np
    >>> import reactgrad as rg
    >>> rg.data.RandomHorizontalFlip(p=1.0, ndim=1)(np.arange(3))
    array([2, 1, 0])
    """

    def __init__(self, p: float = 0.5, ndim: int = 3) -> None:
        self.p = p
        self.ndim = ndim

    def __call__(self, images: Any) -> Array:
        images = np.asarray(images)
        outer = images.shape[: images.ndim - self.ndim]
        flipped = (batch_rng().random(outer) < self.p).reshape(outer + (1,) * self.ndim)
        return np.where(flipped, images[..., ::-1], images)


class RandomCrop(OwnAttributes):
    """A window of `size` at a random place of each image, after `padding` zeros on each side.

    Parameters
    ----------
    size : int or (int, int)
        Height and width.
    padding : int, default 0
    ndim : int, default 3
        The axes of one image: 3 for channels, height and width; 2 without channels.

    Examples
    --------
    >>> import numpy as np
    >>> import reactgrad as rg
    >>> rg.data.RandomCrop(8, padding=1)(np.ones((4, 1, 8, 8))).shape
    (4, 1, 8, 8)
    """

    def __init__(self, size: int | tuple[int, int], padding: int = 0, ndim: int = 3) -> None:
        self.size = (size, size) if isinstance(size, int) else tuple(size)
        self.padding = padding
        self.ndim = ndim

    def __call__(self, images: Any) -> Array:
        images = np.asarray(images)
        if self.padding:
            around = (self.padding, self.padding)
            images = np.pad(images, [*[(0, 0)] * (images.ndim - 2), around, around])
        (height, width), (h, w) = images.shape[-2:], self.size
        if h > height or w > width:
            raise DataError(
                f"RandomCrop({self.size}): the images have {height} by {width} pixels with their padding. Crop less, "
                "or pad more."
            )
        outer = images.shape[: images.ndim - self.ndim]
        flat = images.reshape(-1, *images.shape[images.ndim - self.ndim :])
        rng = batch_rng()
        tops = rng.integers(height - h + 1, size=len(flat))
        lefts = rng.integers(width - w + 1, size=len(flat))
        windows = np.lib.stride_tricks.sliding_window_view(flat, (h, w), axis=(-2, -1))
        if self.ndim == 2:
            made = windows[np.arange(len(flat)), tops, lefts]
        else:
            made = np.moveaxis(windows, (-4, -3), (1, 2))[np.arange(len(flat)), tops, lefts]
        return made.reshape(*outer, *made.shape[1:])
