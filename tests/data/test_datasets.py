"""Datasets, samplers, transforms, and samples as batches."""

from __future__ import annotations

from collections import Counter, namedtuple
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import data

X = np.arange(12.0).reshape(6, 2)
Y = np.arange(6)


def test_subsets_and_concatenations_are_taken_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = data.ArrayDataset(X, Y), data.ArrayDataset(X + 100, Y + 10)
    both = one + two
    monkeypatch.setattr(data.ArrayDataset, "__getitem__", None)
    x, y = both.take([7, 0, 11, 5])
    assert y.tolist() == [11, 0, 15, 5]
    assert x.tolist() == [[102, 103], [0, 1], [110, 111], [10, 11]]
    (batch,) = data.DataLoader(data.Subset(both, [11, 1]), 2)
    assert batch[1].tolist() == [15, 1]
    assert data.Subset(both, [11, 1, 0])[1:][1].tolist() == [1, 0]


def test_datasets_of_others_are_asked_for_samples() -> None:
    class Foreign:
        def __len__(self) -> int:
            return 3

        def __getitem__(self, index: int) -> dict[str, Any]:
            return {"x": index, "name": f"n{index}"}

        def take(self, n: int) -> None:  # has another meaning elsewhere
            raise AssertionError

    (batch,) = data.DataLoader(data.ConcatDataset([Foreign(), Foreign()]), 6)
    assert batch["x"].tolist() == [0, 1, 2, 0, 1, 2]
    assert batch["name"] == ["n0", "n1", "n2", "n0", "n1", "n2"]


def test_an_array_is_a_dataset_of_its_rows() -> None:
    assert [one.tolist() for one in data.DataLoader(X, 4)] == [X[:4].tolist(), X[4:].tolist()]


def test_random_split_shares_nothing() -> None:
    parts = data.random_split(data.ArrayDataset(Y), [0.5, 0.3, 0.2])
    assert [len(one) for one in parts] == [4, 1, 1]
    assert sorted(int(y) for one in parts for (y,) in one) == Y.tolist()
    again = data.random_split(Y, [4, 1, 1])
    assert [len(part) for part in data.random_split(Y[:1], [0.5, 0.5])] == [1, 0]
    assert [one.indices.tolist() for one in again] == [one.indices.tolist() for one in parts]
    with pytest.raises(data.DataError, match=r"\[3, 4\] do not add up to the 6 samples"):
        data.random_split(Y, [3, 4])


def test_weighted_samples_follow_the_weights() -> None:
    drawn = Counter(data.WeightedRandomSampler([1.0, 0.0, 3.0], 4000, rng=0))
    assert drawn[1] == 0
    assert drawn[2] / 4000 == pytest.approx(0.75, abs=0.05)
    once = list(data.WeightedRandomSampler([1, 2, 0, 3], 3, replacement=False, rng=0))
    assert sorted(once) == [0, 1, 3]


def test_random_samplers() -> None:
    assert len(set(data.RandomSampler(Y, num_samples=4, rng=0))) == 4
    longer = list(data.RandomSampler(Y, num_samples=15, rng=0))
    assert sorted(longer[:6]) == sorted(longer[6:12]) == Y.tolist()
    assert set(data.RandomSampler(Y, replacement=True, num_samples=100, rng=0)) == set(Y.tolist())
    batches = data.BatchSampler(data.SequentialSampler(Y), 4, drop_last=True)
    assert list(batches) == [[0, 1, 2, 3]]
    assert len(batches) == 1


def test_an_empty_dataset_has_no_batches() -> None:
    for shuffle in (False, True):
        loader = data.DataLoader(data.ArrayDataset(np.zeros((0, 3))), 4, shuffle=shuffle)
        assert list(loader) == []
        assert len(loader) == 0


Pair = namedtuple("Pair", "x y")


def test_samples_keep_their_form_in_a_batch() -> None:
    batch = data.default_collate(
        [Pair(1.0, {"n": "a", "v": [1, 2]}), Pair(2.0, {"n": "b", "v": [3, 4]})]
    )
    assert type(batch) is Pair
    assert batch.x.tolist() == [1.0, 2.0]
    assert batch.y["n"] == ["a", "b"]
    assert [one.tolist() for one in batch.y["v"]] == [[1, 3], [2, 4]]
    assert data.default_collate([np.float32(1)]).dtype == np.float32
    assert data.default_collate([True, False]).dtype == bool


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ([np.zeros(2), np.zeros(3)], r"shapes \(2,\) and \(3,\) \(places 0 and 1\)"),
        ([(1, 2), (1, 2, 3)], "lengths 2 and 3"),
        ([{"a": 1}, {"b": 1}], r"keys \['a'\] and \['b'\]"),
        ([(1, {"k": np.zeros(1)}), (1, {"k": np.zeros(2)})], r"samples\[1\]\['k'\] of a batch"),
        ([(1,), 2], "is a tuple first, and a int at place 1"),
        ([None, None], "is a NoneType, of which there are no arrays. Give collate_fn="),
        ([], "got no samples"),
    ],
)
def test_samples_that_are_no_batch(samples: Any, message: str) -> None:
    with pytest.raises(data.DataError, match=message):
        data.default_collate(samples)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: data.ArrayDataset(), "has no arrays"),
        (lambda: data.ArrayDataset(X, Y[:-1]), "lengths 6, 5, and a sample has a row of each"),
        (lambda: data.ArrayDataset(X, 3), "argument 1 is the number 3"),
        (lambda: data.ArrayDataset([[1], [1, 2]]), "argument 0 is a list, and no array"),
        (lambda: data.ArrayDataset(X, target_transform=abs), "there is one. Write transform="),
        (lambda: data.ArrayDataset(rg.Graph().input([1.0])), "y.value for a node y"),
        (lambda: data.Subset(Y, [6]), "no sample 6 in a dataset of 6"),
        (lambda: data.Subset(Y, Y > 2), r"Write np.flatnonzero\(mask\)"),
        (lambda: data.ConcatDataset([]), "has no datasets"),
        (lambda: data.WeightedRandomSampler([0.0, -1.0], 2), "finite and not negative"),
        (lambda: data.WeightedRandomSampler([0, 1], 2, replacement=False), "and 1 have a weight"),
        (lambda: data.Normalize(0.0, [1.0, 0.0]), r"std is \[1\. 0\.\], and x is divided by it"),
        (lambda: data.Normalize(0.0, 1.0, axis=0), "counted from the start"),
        (lambda: data.OneHot(2)([0, 2]), "from 0 to 2, and have to be integers from 0 to 1"),
        (lambda: data.RandomCrop(9)(np.zeros((1, 8, 8))), "8 by 8 pixels"),
        (lambda: data.Compose([3]), "3 cannot be called"),
    ],
)
def test_bad_datasets_are_refused_with_one_clear_error(make: Any, message: str) -> None:
    with pytest.raises(data.DataError, match=message):
        make()


# --- transforms -------------------------------------------------------------------------------------


def test_a_transform_does_the_same_to_a_batch_and_to_each_sample() -> None:
    images = np.random.default_rng(0).integers(0, 256, (5, 3, 8, 6), dtype=np.uint8)
    whole = data.Compose(
        [data.ToFloat(), data.Normalize([0.1, 0.2, 0.3], [1.0, 2.0, 3.0], axis=-3), data.Flatten(3)]
    )
    batch = whole(images)
    assert batch.dtype == np.float32
    assert batch.shape == (5, 144)
    assert (batch == np.stack([whole(one) for one in images])).all()
    by_hand = (images[1, 2] / 255 - 0.3) / 3.0
    np.testing.assert_allclose(batch[1].reshape(3, 8, 6)[2], by_hand, rtol=1e-5, atol=1e-7)


def test_random_transforms_treat_each_image_on_its_own() -> None:
    images = np.arange(200 * 2 * 4 * 5).reshape(200, 2, 4, 5)
    flipped = data.RandomHorizontalFlip(0.5)(images)
    same = [(a == b).all() for a, b in zip(flipped, images)]
    turned = [(a == b[..., ::-1]).all() for a, b in zip(flipped, images)]
    assert all(a != b for a, b in zip(same, turned))
    assert 60 < sum(turned) < 140
    crops = data.RandomCrop((3, 2))(images)
    assert crops.shape == (200, 2, 3, 2)
    offsets = {int(crop[0, 0, 0]) - 40 * at for at, crop in enumerate(crops)}
    assert offsets == {5 * top + left for top in range(2) for left in range(4)}
    assert (np.diff(crops, axis=-1) == 1).all()
    assert (crops[:, 1] - crops[:, 0] == 20).all()
    assert data.RandomCrop(3, ndim=2)(images[0, 0]).shape == (3, 3)


def test_targets_have_a_transform_of_their_own() -> None:
    dataset = data.ArrayDataset(X, Y % 2, transform=lambda x: -x, target_transform=data.OneHot(2))
    x, y = dataset[1]
    assert x.tolist() == [-2.0, -3.0]
    assert y.tolist() == [0.0, 1.0]
    ((x, y),) = data.DataLoader(dataset, 6)
    assert (x == -X).all()
    assert y.shape == (6, 2)
