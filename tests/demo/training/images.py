"""Digits that no package has to bring."""

from __future__ import annotations

import numpy as np

from reactgrad.demo.training._digits import Digits


def made_up(count: int = 40) -> Digits:
    """Return images of 16 pixels: noise, and one pixel of ink that says the digit."""
    rng = np.random.default_rng(0)
    images = 0.1 * rng.random((count, 16))
    labels = np.arange(count) % 10
    images[np.arange(count), labels] += 0.9
    return Digits(images, labels, 4, "made up")
