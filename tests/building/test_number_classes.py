"""Numbers of classes that derive from Python's are operands as the numbers that they are."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
import pytest

import reactgrad as rg


class Side(IntEnum):
    BUY = 1
    SELL = -1


class Price(float): ...


class Phase(complex): ...


@pytest.mark.parametrize(
    ("number", "plain"),
    [(Side.SELL, -1), (Price(2.5), 2.5), (Phase(1j), 1j), (Price("nan"), np.nan)],
)
def test_a_number_of_another_class_is_an_operand(number: Any, plain: Any) -> None:
    x = rg.Graph().param(np.array([3.0, 4.0], "f4"), name="x")
    for y, wanted in (
        (x * number, x * plain),
        (number - x, plain - x),
        (np.add(x, number), x + plain),
    ):
        assert y.dtype == wanted.dtype  # a literal, which changes no dtype
        assert np.array_equal(y.value, wanted.value, equal_nan=True)
    assert rg.where(x > 3.0, x, Side.BUY).value.tolist() == [1.0, 4.0]


def test_a_number_class_with_an_exponent_keeps_the_rule_of_numbers() -> None:
    x = rg.Graph().param(3.0)
    assert rg.grad(x ** Price(2.0), x).value == 6.0
