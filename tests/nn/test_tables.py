"""Tables of vectors and bags of their rows: each option by its formula, and beside PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import nn

TABLE = np.random.default_rng(0).normal(size=(6, 3)) * 2.0
NUMBERS = np.array([[1, 4, 4], [5, 1, 4], [2, 2, 2]])
FLAT, OFFSETS = np.array([1, 4, 4, 2, 5, 1, 2, 2]), np.array([0, 3, 3, 6])


def layer(kind: str, **options: Any) -> Any:
    with rg.Graph():
        made = getattr(nn, kind)(6, 3, rng=0, **options)
    made.weight.set(TABLE)
    return made


def shortened(table: Any, which: Any, limit: float, power: float = 2.0) -> Any:
    """The table with some of its rows at most so long."""
    found = table.copy()
    for i in np.unique(which):
        norm = (np.abs(found[i]) ** power).sum() ** (1.0 / power)
        if norm > limit:
            found[i] *= limit / (norm + 1e-7)
    return found


@pytest.mark.parametrize("power", [1.0, 2.0, 3.5])
def test_rows_are_given_out_at_most_so_long(power: float) -> None:
    one = layer("Embedding", max_norm=1.5, norm_type=power)
    expected = shortened(TABLE, NUMBERS, 1.5, power)
    y = one(NUMBERS)
    np.testing.assert_allclose(y.value, expected[NUMBERS], rtol=1e-12)
    np.testing.assert_allclose(one.weight.value, expected, rtol=1e-12)  # by the call
    one.weight.set(TABLE)
    np.testing.assert_allclose(y.value, expected[NUMBERS], rtol=1e-12)
    np.testing.assert_array_equal(one.weight.value, TABLE)  # a read has changed nothing
    one.update_statistics()
    np.testing.assert_allclose(one.weight.value, expected, rtol=1e-12)


def test_only_a_call_in_train_mode_changes_a_table_that_learns() -> None:
    for change in ("eval", "freeze"):
        one = layer("Embedding", max_norm=1.0)
        getattr(one, change)()
        y = one(NUMBERS)
        np.testing.assert_allclose(y.value, shortened(TABLE, NUMBERS, 1.0)[NUMBERS], rtol=1e-12)
        np.testing.assert_array_equal(one.weight.value, TABLE)
        assert one.weight.value_version == 2


def test_short_rows_give_no_new_version() -> None:
    one = layer("Embedding", max_norm=100.0)
    one(NUMBERS)
    assert one.weight.value_version == 2


def test_calls_do_not_grow_the_graph() -> None:
    one, sizes = layer("Embedding", max_norm=1.0, scale_grad_by_freq=True), []
    for i in range(8):
        rg.sum(one((NUMBERS + i) % 6)).backward()
        sizes.append(len(one.weight.graph))
    assert len(set(sizes[3:])) == 1


def test_the_function_changes_no_leaf() -> None:
    g = rg.Graph()
    table = g.param(TABLE)
    y = rg.embedding(NUMBERS, table, max_norm=1.0)
    np.testing.assert_allclose(y.value, shortened(TABLE, NUMBERS, 1.0)[NUMBERS], rtol=1e-12)
    assert table.value_version == 1


def test_gradients_by_frequency() -> None:
    one = layer("Embedding", scale_grad_by_freq=True, padding_idx=2)
    rg.sum(one(NUMBERS)).backward()
    expected = np.zeros((6, 3))
    expected[[1, 4, 5]] = 1.0  # each is counted as once, and the padding not at all
    np.testing.assert_array_equal(one.weight.grad, expected)


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_gradients_of_bags_by_frequency(mode: str) -> None:
    """PyTorch documents this; its kernel for CPUs takes the counts of other rows."""
    one = layer("EmbeddingBag", mode=mode, scale_grad_by_freq=True)
    rg.sum(one(NUMBERS)).backward()
    expected = np.zeros((6, 3))
    expected[np.unique(NUMBERS)] = 1.0 if mode == "sum" else 1.0 / 3.0
    np.testing.assert_allclose(one.weight.grad, expected, rtol=1e-15)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [2, -2])
def test_padding_is_in_no_bag(mode: str, padding: int) -> None:
    one = layer("EmbeddingBag", mode=mode, padding_idx=padding)
    join = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode]
    rows = [[k for k in bag if k != padding % 6] for bag in NUMBERS.tolist()]
    expected = [join(TABLE[bag], axis=0) if bag else np.zeros(3) for bag in rows]
    np.testing.assert_allclose(one(NUMBERS).value, expected, rtol=1e-12)
    flat = one(NUMBERS.ravel(), np.array([0, 3, 6]))
    np.testing.assert_allclose(flat.value, expected, rtol=1e-12)


REFUSED = [
    ("Embedding", {"sparse": True}, "gradients of tables are whole arrays"),
    ("EmbeddingBag", {"sparse": True}, "gradients of tables are whole arrays"),
    ("Embedding", {"max_norm": 0.0}, r"Embedding\(max_norm=0.0\) must be above 0"),
    ("Embedding", {"norm_type": -1.0}, r"norm_type=-1.0\) must be above 0"),
    ("EmbeddingBag", {"mode": "min"}, "'mean', 'sum' or 'max'"),
]


@pytest.mark.parametrize(("kind", "options", "told"), REFUSED)
def test_misuse_is_told(kind: str, options: dict[str, Any], told: str) -> None:
    with pytest.raises(rg.ParameterError, match=told):
        layer(kind, **options)


def test_of_a_maximum_there_is_no_frequency() -> None:
    one = layer("EmbeddingBag", mode="max", scale_grad_by_freq=True)
    with pytest.raises(rg.ParameterError, match="scale_grad_by_freq is for 'mean' and 'sum'"):
        one(NUMBERS)
    with pytest.raises(rg.ShapeError, match="offsets"):
        layer("EmbeddingBag")(FLAT)


OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("Embedding", {"padding_idx": 4}),
    ("Embedding", {"max_norm": 1.5}),
    ("Embedding", {"max_norm": 1.5, "norm_type": 1.0, "padding_idx": -2}),
    ("Embedding", {"max_norm": 1.5, "norm_type": float("inf")}),
    ("Embedding", {"scale_grad_by_freq": True, "padding_idx": 1}),
    ("Embedding", {"scale_grad_by_freq": True, "max_norm": 2.0}),
    *[
        ("EmbeddingBag", {"mode": mode, "padding_idx": padding, "max_norm": limit})
        for mode in ("sum", "mean", "max")
        for padding in (None, 2, -2)
        for limit in (None, 1.5)
    ],
    ("EmbeddingBag", {"mode": "sum", "include_last_offset": True}),
    ("EmbeddingBag", {"mode": "mean", "include_last_offset": True, "padding_idx": 4}),
]


@pytest.mark.parametrize(("kind", "options"), OPTIONS, ids=str)
def test_training_equals_pytorchs(kind: str, options: dict[str, Any]) -> None:
    """Values, gradients and 10 steps, in which rows grow beyond the norm again and again."""
    torch: Any = pytest.importorskip("torch")
    ours = layer(kind, **options)
    theirs = getattr(torch.nn, kind)(6, 3, **options).double()
    theirs.load_state_dict({"weight": torch.tensor(TABLE)})
    calls: list[tuple[Any, ...]] = [(NUMBERS,)]
    if kind == "EmbeddingBag":
        last = options.get("include_last_offset")
        calls.append((FLAT, np.append(OFFSETS, len(FLAT)) if last else OFFSETS))
    opt = rg.optim.SGD(ours.parameters(), lr=0.3, momentum=0.5)
    their = torch.optim.SGD(theirs.parameters(), lr=0.3, momentum=0.5)
    for args in calls * 5:
        y, u = ours(*args), theirs(*map(torch.tensor, args))
        np.testing.assert_allclose(y.value, u.detach().numpy(), rtol=1e-9, atol=1e-9)
        factors = np.cos(np.arange(u.numel())).reshape(u.shape)
        opt.zero_grad()
        rg.sum(y * factors).backward()
        their.zero_grad()
        (u * torch.tensor(factors)).sum().backward()
        np.testing.assert_allclose(ours.weight.grad, theirs.weight.grad.numpy(), atol=1e-9)
        opt.step()
        their.step()
        np.testing.assert_allclose(
            ours.weight.value, theirs.weight.detach().numpy(), rtol=1e-9, atol=1e-9
        )


def test_bags_take_factors_as_pytorchs() -> None:
    torch: Any = pytest.importorskip("torch")
    ours = layer("EmbeddingBag", mode="sum", padding_idx=2)
    theirs = torch.nn.EmbeddingBag(6, 3, mode="sum", padding_idx=2).double()
    theirs.load_state_dict({"weight": torch.tensor(TABLE)})
    factors = np.linspace(-1.0, 1.0, len(FLAT))
    y = ours(FLAT, OFFSETS, factors)
    u = theirs(*map(torch.tensor, (FLAT, OFFSETS, factors)))
    np.testing.assert_allclose(y.value, u.detach().numpy(), rtol=1e-12)
    rg.sum(y * y).backward()
    (u * u).sum().backward()
    np.testing.assert_allclose(ours.weight.grad, theirs.weight.grad.numpy(), rtol=1e-12)


@pytest.mark.parametrize("options", [{"scale_grad_by_freq": True}, {"max_norm": np.inf}])
def test_numbers_that_are_not_finite_come_out_as_they_are(options: dict[str, Any]) -> None:
    table = np.array([[1.0, np.inf], [-np.inf, np.nan]])
    y = rg.nn.functional.embedding([0, 1, 0], rg.Graph().param(table), **options)
    np.testing.assert_array_equal(y.value, table[[0, 1, 0]])
