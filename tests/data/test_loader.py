"""Which batches a loader gives, in which order, and that it goes on exactly where it was."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reactgrad as rg
from reactgrad.data import _loader

X = np.arange(60.0).reshape(20, 3)
Y = np.arange(20)


class Listed(rg.data.Dataset):
    """A dataset that is asked sample by sample, and counts."""

    def __init__(self, n: int = 20) -> None:
        self.n = n
        self.asked: list[int] = []

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: int) -> tuple[Any, int]:
        self.asked.append(index)
        return X[index], index


def plain(batches: Any) -> list[Any]:
    return [[np.asarray(part).tolist() for part in batch] for batch in batches]


def test_arrays_are_cut_in_order() -> None:
    loader = rg.data.DataLoader(rg.data.ArrayDataset(X, Y), batch_size=8)
    assert plain(loader) == plain([(X[a : a + 8], Y[a : a + 8]) for a in (0, 8, 16)])
    assert len(loader) == 3
    assert loader.epoch == 1


def test_drop_last_drops_what_is_not_full() -> None:
    for dataset in (rg.data.ArrayDataset(X, Y), Listed()):
        loader = rg.data.DataLoader(dataset, 8, drop_last=True)
        assert [len(y) for _, y in loader] == [8, 8]
        assert len(loader) == 2


def test_a_shuffled_epoch_has_each_sample_once_and_the_next_has_another_order() -> None:
    loader = rg.data.DataLoader(rg.data.ArrayDataset(Y), 6, shuffle=True)
    first, second = (np.concatenate([y for (y,) in loader]).tolist() for _ in range(2))
    assert sorted(first) == sorted(second) == Y.tolist()
    assert first != second


def test_the_order_follows_from_the_seed_alone() -> None:
    def epochs(dataset: Any, **settings: Any) -> list[Any]:
        loader = rg.data.DataLoader(dataset, 6, shuffle=True, **settings)
        return [plain(loader) for _ in range(2)]

    wanted = epochs(rg.data.ArrayDataset(X, Y), rng=5)
    assert epochs(Listed(), rng=5) == wanted
    assert epochs(Listed(), rng=np.random.default_rng(5), workers=3) == wanted
    assert epochs(rg.data.ArrayDataset(X, Y), rng=5, workers=2) == wanted
    assert epochs(rg.data.ArrayDataset(X, Y), rng=6) != wanted


def test_chunks_are_invisible(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = rg.data.Subset(rg.data.ArrayDataset(X, Y), range(19, 2, -1))
    wanted = plain(rg.data.DataLoader(dataset, 4, shuffle=True, rng=3))
    for size in (1, 100, 300, 10_000):
        monkeypatch.setattr(_loader, "CHUNK_BYTES", size)
        assert plain(rg.data.DataLoader(dataset, 4, shuffle=True, rng=3)) == wanted


def test_batches_are_copies() -> None:
    array = X.copy()
    for (batch,) in rg.data.DataLoader(rg.data.ArrayDataset(array), 8):
        batch[:] = -1.0
    assert (array == X).all()


def test_rows_are_taken_and_not_asked_for_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []
    gather = rg.data.ArrayDataset.gather

    def counted(self: Any, indices: Any) -> Any:
        taken.append(len(indices))
        return gather(self, indices)

    monkeypatch.setattr(rg.data.ArrayDataset, "gather", counted)
    monkeypatch.setattr(rg.data.ArrayDataset, "__getitem__", None)
    dataset = rg.data.ArrayDataset(X, Y)
    list(rg.data.DataLoader(dataset, 4, shuffle=True))
    assert taken == [20]  # all batches of this small epoch at once
    list(rg.data.DataLoader(dataset, 8, workers=2))
    assert sorted(taken) == [4, 8, 8, 20]


def test_iterators_at_the_same_time_do_not_disturb_each_other() -> None:
    loader = rg.data.DataLoader(rg.data.ArrayDataset(Y), 5)
    pairs = [(a.tolist(), b.tolist()) for (a,), (b,) in zip(loader, loader, strict=True)]
    assert all(a == b for a, b in pairs)
    assert len(pairs) == 4


@pytest.mark.parametrize("batch_size", [None, 4])
def test_a_dataset_that_only_iterates(batch_size: int | None) -> None:
    class Stream:
        def __iter__(self) -> Iterator[int]:
            return iter(range(6))

    loader = rg.data.DataLoader(Stream(), batch_size)
    found = [np.asarray(batch).tolist() for batch in loader]
    assert found == ([0, 1, 2, 3, 4, 5] if batch_size is None else [[0, 1, 2, 3], [4, 5]])
    with pytest.raises(TypeError, match="so its DataLoader has no length"):
        len(loader)
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    other = rg.data.DataLoader(Stream(), batch_size)
    other.load_state_dict(state)
    assert [np.asarray(one).tolist() for one in other] == found[1:]


def test_samplers_give_the_order() -> None:
    dataset = rg.data.ArrayDataset(Y)
    assert plain(rg.data.DataLoader(dataset, 2, sampler=[3, 1, 2])) == [[[3, 1]], [[2]]]
    assert plain(rg.data.DataLoader(dataset, batch_sampler=[[5], [7, 6]])) == [[[5]], [[7, 6]]]
    keyed = {"a": 1, "b": 2}
    found = [one.tolist() for one in rg.data.DataLoader(keyed, 2, sampler="ba")]
    assert found == [[2, 1]]


def test_collate_fn_gets_the_samples() -> None:
    dataset = rg.data.ArrayDataset(Y)
    got = list(rg.data.DataLoader(dataset, 3, collate_fn=len))
    assert got == [3] * 6 + [2]
    assert list(rg.data.DataLoader([7, 8], None)) == [7, 8]


# --- resume -----------------------------------------------------------------------------------------


def augmented(x: Any) -> Any:
    return x + rg.data.batch_rng().normal(size=x.shape)


MAKES: dict[str, Callable[[], rg.data.DataLoader]] = {
    "arrays": lambda: rg.data.DataLoader(rg.data.ArrayDataset(X, Y), 6, shuffle=True, rng=9),
    "transform": lambda: rg.data.DataLoader(
        rg.data.ArrayDataset(X, Y, transform=augmented), 6, shuffle=True
    ),
    "threads": lambda: rg.data.DataLoader(
        rg.data.ArrayDataset(X, Y, transform=augmented), 6, shuffle=True, workers=3
    ),
    "samples": lambda: rg.data.DataLoader(Listed(), 6, shuffle=True, drop_last=True),
    "mersenne": lambda: rg.data.DataLoader(
        Listed(), 6, shuffle=True, rng=np.random.Generator(np.random.MT19937(3))
    ),
    "sampler": lambda: rg.data.DataLoader(
        rg.data.ArrayDataset(X, Y), 6, sampler=rg.data.RandomSampler(X, rng=4)
    ),
    "weighted": lambda: rg.data.DataLoader(
        Listed(), 5, sampler=rg.data.WeightedRandomSampler(Y + 1.0, 13)
    ),
}


@pytest.mark.parametrize("name", MAKES)
@given(epochs=st.integers(0, 2), batches=st.integers(0, 4))
def test_a_resumed_loader_gives_the_batches_that_were_next(
    name: str, epochs: int, batches: int
) -> None:
    loader = MAKES[name]()
    for _ in range(epochs):
        list(loader)
    under_way = iter(loader)
    for _ in range(batches):
        next(under_way, None)
    state = loader.state_dict()
    other = MAKES[name]()
    list(other)  # whatever it did before
    other.load_state_dict(state)
    assert other.state_dict().keys() == state.keys()
    assert other.epoch == loader.epoch
    # After the last batch, and before the first one is known to be that, what is next is no batch at all.
    over = loader.epoch > epochs
    assert plain(other) == plain(loader if over else under_way)
    assert other.epoch == loader.epoch == epochs + 1 + over
    assert plain(other) == plain(loader)


def test_its_state_is_json() -> None:
    loader = MAKES["arrays"]()
    next(iter(loader))
    again = json.loads(json.dumps(loader.state_dict()))
    assert again == loader.state_dict()
    assert again["batch"] == 1


def test_skipped_batches_are_not_loaded() -> None:
    loader = rg.data.DataLoader(Listed(), 5)
    batches = iter(loader)
    for _ in range(2):
        next(batches)
    dataset = Listed()
    other = rg.data.DataLoader(dataset, 5)
    other.load_state_dict(loader.state_dict())
    list(other)
    assert dataset.asked == list(range(10, 20))


def test_an_epoch_that_was_left_is_not_gone_on_with_unless_it_is_loaded() -> None:
    loader = rg.data.DataLoader(rg.data.ArrayDataset(Y), 5)
    for _ in loader:
        break
    assert loader.epoch == 0
    assert len(list(loader)) == 4
    assert loader.epoch == 2


def test_a_state_of_another_loader_is_refused() -> None:
    loader = MAKES["arrays"]()
    state = loader.state_dict()
    other = rg.data.DataLoader(rg.data.ArrayDataset(X, Y), 7, shuffle=True)
    with pytest.raises(
        rg.data.DataError,
        match="state is that of a loader with batch_size=6, and this one has batch_size=7",
    ):
        other.load_state_dict(state)
    with pytest.raises(rg.data.DataError, match="epoch, batch, seed, sampler, generator missing"):
        loader.load_state_dict({"settings": {}})
    with pytest.raises(rg.data.DataError, match="that of a PCG64, and this loader draws from a MT"):
        mersenne = rg.data.DataLoader(
            rg.data.ArrayDataset(X, Y),
            6,
            shuffle=True,
            rng=np.random.Generator(np.random.MT19937(0)),
        )
        mersenne.load_state_dict(state)


# --- errors -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rg.data.DataLoader(3), "a int has neither __len__ and __getitem__ nor __iter__"),
        (lambda: rg.data.DataLoader(Y, 0), "batch_size=0 is no number of samples. Give 1 or more"),
        (
            lambda: rg.data.DataLoader(Y, 2.5),  # type: ignore[arg-type]
            "batch_size=2.5 is no number",
        ),
        (lambda: rg.data.DataLoader(Y, workers=-1), "workers=-1 is no number of threads"),
        (lambda: rg.data.DataLoader(Y, shuffle=True, sampler=[1]), "both say the order"),
        (lambda: rg.data.DataLoader(Y, 4, batch_sampler=[[1]]), "gives whole batches. Leave out"),
        (lambda: rg.data.DataLoader(iter(Y), shuffle=True), "shuffle=True needs samples by their"),
        (lambda: rg.data.DataLoader(iter(Y), workers=1), "workers=1 needs samples by their index"),
        (lambda: rg.data.DataLoader(Y, None, drop_last=True), "batch_size=None has none"),
    ],
)
def test_arguments_that_do_not_fit(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(rg.data.DataError, match=message):
        make()


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_of_a_sample_names_the_batch_and_the_samples(workers: int) -> None:
    class Bad(Listed):
        def __getitem__(self, index: int) -> Any:
            return 1 // (index - 7)

    loader = rg.data.DataLoader(Bad(), 5, workers=workers)
    batches = iter(loader)
    next(batches)
    with pytest.raises(ZeroDivisionError) as caught:
        next(batches)
    assert caught.value.__notes__ == [
        "While the DataLoader loaded batch 1 of epoch 0, samples [5, 6, 7, 8, 9]."
    ]
    assert caught.traceback[-1].name == "__getitem__"
    assert loader.state_dict()["batch"] == 1  # it can be tried again
    assert next(batches, "over") == "over"
