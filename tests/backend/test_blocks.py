"""Blocks cover an array once, are small, and depend on its shape, and on how many share them, alone."""

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactgrad.backend.blocks._blocks import blocks, part

SHAPES = st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple)


@given(shape=SHAPES, size=st.integers(1, 100), shares=st.integers(1, 4))
def test_blocks_cover_an_array_once_in_order(
    shape: tuple[int, ...], size: int, shares: int
) -> None:
    places = np.arange(prod(shape)).reshape(shape)
    seen = [places[block] for block in blocks(shape, size, shares)]
    assert all(0 < one.size <= size and one.ndim == len(shape) for one in seen)
    np.testing.assert_array_equal(np.concatenate([one.reshape(-1) for one in seen]), places.flat)


@given(length=st.integers(8, 1000))
def test_all_blocks_but_the_last_are_equal(length: int) -> None:
    sizes = [block[0].stop - block[0].start for block in blocks((length,), 7)]
    assert len(set(sizes[:-1])) == 1
    assert sizes[-1] <= sizes[0]


@pytest.mark.parametrize(
    ("shape", "shares", "number"),
    [
        ((256, 256), 2, 2),
        ((274, 240), 1, 3),
        ((274, 240), 2, 4),
        ((274, 240), 8, 8),
        ((70_000,), 1, 3),
        ((70_000,), 4, 4),
        ((3, 70_000), 2, 12),
        ((3, 30_000), 2, 3),  # rows are not cut where one of them is small enough
    ],
)
def test_threads_have_as_many_blocks_each_where_an_axis_allows_it(
    shape: tuple[int, ...], shares: int, number: int
) -> None:
    assert len(blocks(shape, 32_768, shares)) == number


@given(shape=SHAPES, size=st.integers(1, 50), data=st.data())
def test_the_part_of_an_operand_broadcasts_to_the_block_as_the_whole_does_to_the_result(
    shape: tuple[int, ...], size: int, data: st.DataObject
) -> None:
    kept = [data.draw(st.sampled_from((1, n))) for n in shape][
        data.draw(st.integers(0, len(shape))) :
    ]
    operand = np.arange(prod(kept)).reshape(kept)
    stretched = np.broadcast_to(operand, shape)
    for block in blocks(shape, size):
        expected = stretched[block]
        np.testing.assert_array_equal(
            np.broadcast_to(part(operand, block), expected.shape), expected
        )
