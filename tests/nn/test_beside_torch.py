"""Layers and criteria beside PyTorch's, with the same weights in float64: values, gradients, state dicts."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import nn
from tests.nn.cases import LAYERS, LOSSES, operands

torch = pytest.importorskip("torch")


def pair(name: str, args: Any, options: Any, seed: int = 0) -> tuple[Any, Any, rg.Graph]:
    """PyTorch's layer and ours with the same weights."""
    torch.manual_seed(seed)
    theirs = getattr(torch.nn, name)(*args, **options).double()
    for param in theirs.parameters():
        if param.ndim == 1:
            torch.nn.init.uniform_(param, 0.2, 1.0)
    with rg.Graph() as g:
        ours = getattr(nn, name)(*args, **options)
    assert ours.load_state_dict(theirs.state_dict()) == ([], [])
    assert {path: array.shape for path, array in ours.state_dict().items()} == {
        path: tuple(tensor.shape) for path, tensor in theirs.state_dict().items()
    }
    return theirs, ours, g


def close(ours: Any, theirs: Any) -> None:
    np.testing.assert_allclose(np.asarray(ours), theirs.detach().numpy(), rtol=1e-9, atol=1e-9)


def same_gradients(ours: Any, theirs: Any) -> None:
    """The gradients of all params are equal."""
    found = dict(ours.named_parameters())
    for path, param in theirs.named_parameters():
        close(found[path].grad, param.grad)


@pytest.mark.parametrize(("name", "args", "options", "shape"), LAYERS)
def test_a_layer_has_values_and_gradients_of_torch(
    name: str, args: Any, options: Any, shape: tuple[int, ...]
) -> None:
    theirs, ours, g = pair(name, args, options)
    array = np.random.default_rng(1).normal(size=shape)
    x, t = g.input(array), torch.tensor(array, requires_grad=True)
    y, u = ours(x), theirs(t)
    close(y.value, u)
    weights = np.random.default_rng(2).normal(size=tuple(u.shape))
    cost = (y * weights).sum()
    (u * torch.tensor(weights)).sum().backward()
    close(rg.grad(cost, x).value, t.grad)
    if list(theirs.parameters()):
        cost.backward()
        same_gradients(ours, theirs)
    for path, buffer in theirs.named_buffers():
        close(dict(ours.named_buffers())[path].value, buffer)
    close(ours.eval()(x).value, theirs.eval()(t))
    close(y.value, theirs(t))


@pytest.mark.parametrize(("name", "options", "kind"), LOSSES)
def test_a_criterion_has_values_and_gradients_of_torch(
    name: str, options: dict[str, Any], kind: str
) -> None:
    theirs = getattr(torch.nn, name)(
        **{key: torch.tensor(one) if isinstance(one, list) else one for key, one in options.items()}
    ).double()
    ours = getattr(nn, name)(**options)
    g = rg.Graph()
    arrays = operands(kind)
    x, t = g.input(arrays[0]), torch.tensor(arrays[0], requires_grad=True)
    y = ours(x, *arrays[1:])
    u = theirs(t, *map(torch.tensor, arrays[1:]))
    close(y.value, u)
    u.sum().backward()
    close(rg.grad(y.sum(), x).value, t.grad)


RECURRENT = [
    *[
        (name, options)
        for name in ("RNN", "LSTM", "GRU")
        for options in (
            {},
            {"num_layers": 2, "bidirectional": True},
            {"bias": False, "batch_first": True},
            {"num_layers": 3, "batch_first": True, "bidirectional": True},
        )
    ],
    ("RNN", {"nonlinearity": "relu", "num_layers": 2}),
]


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize(("name", "options"), RECURRENT)
def test_a_recurrent_layer_has_values_and_gradients_of_torch(
    name: str, options: dict[str, Any], given: bool, alone: bool
) -> None:
    theirs, ours, g = pair(name, (3, 4), options)
    rng = np.random.default_rng(1)
    array = rng.normal(size=(5, 3) if alone else (2, 5, 3))
    count = options.get("num_layers", 1) * (1 + options.get("bidirectional", False))
    batch = () if alone else (2 if options.get("batch_first") else 5,)
    states = [rng.normal(size=(count, *batch, 4)) for _ in range(1 + (name == "LSTM"))]
    x, t = g.input(array), torch.tensor(array, requires_grad=True)
    if given:
        mine: Any = tuple(states) if name == "LSTM" else states[0]
        tensors = [torch.tensor(one) for one in states]
        y, last = ours(x, mine)
        u, left = theirs(t, tuple(tensors) if name == "LSTM" else tensors[0])
    else:
        y, last = ours(x)
        u, left = theirs(t)
    close(y.value, u)
    pairs = zip(last, left, strict=True) if name == "LSTM" else [(last, left)]
    for one, other in pairs:
        close(one.value, other)
    weights = rng.normal(size=tuple(u.shape))
    (u * torch.tensor(weights)).sum().backward()
    cost = (y * weights).sum()
    cost.backward()
    close(rg.grad(cost, x).value, t.grad)
    same_gradients(ours, theirs)


@pytest.mark.parametrize("name", ["RNNCell", "LSTMCell", "GRUCell"])
def test_a_cell_has_values_of_torch(name: str) -> None:
    theirs, ours, _ = pair(name, (3, 4), {})
    rng = np.random.default_rng(1)
    x, h, c = rng.normal(size=(2, 3)), rng.normal(size=(2, 4)), rng.normal(size=(2, 4))
    state: Any = (h, c) if name == "LSTMCell" else h
    tensors: Any = tuple(map(torch.tensor, state)) if name == "LSTMCell" else torch.tensor(h)
    for y, u in (
        (ours(x), theirs(torch.tensor(x))),
        (ours(x, state), theirs(torch.tensor(x), tensors)),
    ):
        for one, other in zip(y, u, strict=True) if name == "LSTMCell" else [(y, u)]:
            close(one.value, other)
    close(
        (ours(x[0])[0] if name == "LSTMCell" else ours(x[0])).value,
        theirs(torch.tensor(x[0]))[0] if name == "LSTMCell" else theirs(torch.tensor(x[0])),
    )


@pytest.mark.parametrize(
    "masked", ["none", "pairs", "padding", "both", "floats", "heads", "causal"]
)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch_first": True},
        {"kdim": 5, "vdim": 6},
        {"bias": False, "batch_first": True},
        {"add_bias_kv": True, "add_zero_attn": True, "kdim": 5, "vdim": 6},
        {"add_bias_kv": True, "batch_first": True},
    ],
)
def test_attention_has_values_and_gradients_of_torch(options: dict[str, Any], masked: str) -> None:
    theirs, ours, g = pair("MultiheadAttention", (8, 2), options)
    rng, first = np.random.default_rng(1), options.get("batch_first")
    n, length, keys = 3, 4, 5
    arrays = [
        rng.normal(size=(n, size, width) if first else (size, n, width))
        for size, width in (
            (length, 8),
            (keys, options.get("kdim", 8)),
            (keys, options.get("vdim", 8)),
        )
    ]
    pairs = rng.uniform(size=(length, keys)) > 0.7
    pairs[:, 0] = False
    padding = rng.uniform(size=(n, keys)) > 0.7
    padding[:, 0] = False
    masks: dict[str, Any] = {
        "none": {},
        "pairs": {"attn_mask": pairs},
        "padding": {"key_padding_mask": padding},
        "both": {"attn_mask": pairs, "key_padding_mask": padding},
        "floats": {"attn_mask": rng.normal(size=(length, keys))},
        "heads": {"attn_mask": rng.normal(size=(2 * n, length, keys))},
        "causal": {"attn_mask": np.triu(np.ones((length, keys), bool), 1), "is_causal": True},
    }[masked]
    tensors = [torch.tensor(one, requires_grad=True) for one in arrays]
    given = {
        key: torch.tensor(one) if isinstance(one, np.ndarray) else one for key, one in masks.items()
    }
    for average in (True, False):
        y, weights = ours(*arrays, **masks, average_attn_weights=average)
        u, parts = theirs(*tensors, **given, average_attn_weights=average)
        close(y.value, u)
        close(weights.value, parts)
    q = g.input(arrays[0])
    cost = rg.square(ours(q, *arrays[1:], **masks, need_weights=False)[0]).sum()
    u.square().sum().backward()
    cost.backward()
    close(rg.grad(cost, q).value, tensors[0].grad)
    same_gradients(ours, theirs)
    if masked == "causal" and "add_bias_kv" not in options:
        close(ours(*arrays, is_causal=True)[0].value, u)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_transformers_have_values_and_gradients_of_torch(norm_first: bool, activation: str) -> None:
    options: dict[str, Any] = {"norm_first": norm_first, "activation": activation}
    options |= {"batch_first": True, "dropout": 0.0}
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a fast path of its own
        theirs = torch.nn.Transformer(8, 2, 2, 2, 16, **options).double()
    with rg.Graph() as g:
        ours = nn.Transformer(8, 2, 2, 2, 16, **options)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict(theirs.state_dict())
    rng = np.random.default_rng(1)
    src, tgt = rng.normal(size=(3, 5, 8)), rng.normal(size=(3, 4, 8))
    mask = np.triu(np.ones((4, 4), bool), 1)
    padding = np.zeros((3, 5), bool)
    padding[1, 3:] = True
    x, t = g.input(src), torch.tensor(src, requires_grad=True)
    y = ours(x, tgt, tgt_mask=mask, src_key_padding_mask=padding)
    u = theirs(
        t,
        torch.tensor(tgt),
        tgt_mask=torch.tensor(mask),
        src_key_padding_mask=torch.tensor(padding),
    )
    close(y.value, u)
    u.square().sum().backward()
    cost = rg.square(y).sum()
    cost.backward()
    close(rg.grad(cost, x).value, t.grad)
    same_gradients(ours, theirs)


def test_embeddings_have_values_and_gradients_of_torch() -> None:
    theirs, ours, _ = pair("Embedding", (10, 3), {"padding_idx": 2})
    numbers = np.array([[1, 2], [1, 9]])
    y, u = ours(numbers), theirs(torch.tensor(numbers))
    close(y.value, u)
    rg.square(y).sum().backward()
    u.square().sum().backward()
    same_gradients(ours, theirs)


@pytest.mark.parametrize("mode", ["mean", "sum", "max"])
def test_bags_have_values_and_gradients_of_torch(mode: str) -> None:
    theirs, ours, _ = pair("EmbeddingBag", (10, 3), {"mode": mode})
    numbers, offsets = np.array([1, 2, 4, 5, 4, 3]), np.array([0, 2, 5])
    close(ours(numbers.reshape(2, 3)).value, theirs(torch.tensor(numbers.reshape(2, 3))))
    y, u = ours(numbers, offsets), theirs(torch.tensor(numbers), torch.tensor(offsets))
    close(y.value, u)
    rg.square(y).sum().backward()
    u.square().sum().backward()
    same_gradients(ours, theirs)


def test_bilinear_and_distances_have_values_of_torch() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(5, 3)), rng.normal(size=(5, 4))
    theirs, ours, _ = pair("Bilinear", (3, 4, 2), {})
    close(ours(a, b).value, theirs(torch.tensor(a), torch.tensor(b)))
    c = rng.normal(size=(5, 3))
    for name in ("CosineSimilarity", "PairwiseDistance"):
        theirs, ours, _ = pair(name, (), {})
        close(ours(a, c).value, theirs(torch.tensor(a), torch.tensor(c)))


def test_hardsigmoid_has_values_of_torch_whose_slope_is_rounded_to_float32() -> None:
    theirs, ours, g = pair("Hardsigmoid", (), {})
    array = np.linspace(-4.0, 4.0, 9)
    x, t = g.input(array), torch.tensor(array, requires_grad=True)
    close(ours(x).value, theirs(t))
    theirs(t).sum().backward()
    found = rg.grad(ours(x).sum(), x).value
    np.testing.assert_allclose(found, t.grad.numpy(), rtol=1e-7)


def test_a_transposed_convolution_takes_the_size_of_its_result() -> None:
    theirs, ours, _ = pair("ConvTranspose2d", (3, 4, 3), {"stride": 2, "padding": 1})
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 5))
    y = ours(x, output_size=(8, 9))
    close(y.value, theirs(torch.tensor(x), output_size=(8, 9)))
    with pytest.raises(rg.ShapeError, match="is no size that an input of shape"):
        ours(x, output_size=(12, 9))


def test_statistics_of_several_steps_are_those_of_torch() -> None:
    torch.manual_seed(0)
    theirs = torch.nn.Sequential(
        torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3), torch.nn.ReLU(), torch.nn.Flatten(),
        torch.nn.Linear(27, 4), torch.nn.BatchNorm1d(4),
    ).double()  # fmt: skip
    with rg.Graph() as g:
        ours = nn.Sequential(
            *(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten()),
            *(nn.Linear(27, 4), nn.BatchNorm1d(4)),
        )
    ours.load_state_dict(theirs.state_dict())
    rng, criterion, sizes = np.random.default_rng(0), nn.CrossEntropyLoss(), []
    for _ in range(8):
        x, labels = rng.normal(size=(6, 2, 5, 5)), rng.integers(0, 4, 6)
        loss = criterion(ours(x), labels)
        cost = torch.nn.functional.cross_entropy(theirs(torch.tensor(x)), torch.tensor(labels))
        close(loss.value, cost)
        ours.zero_grad()
        theirs.zero_grad()
        loss.backward()
        cost.backward()
        same_gradients(ours, theirs)
        g.set({param: param.value - 0.1 * param.grad for param in ours.parameters()})
        with torch.no_grad():
            for param in theirs.parameters():
                param -= 0.1 * param.grad
        sizes.append(len(g))
    for path, tensor in theirs.state_dict().items():
        close(ours.state_dict()[path], tensor)
    x = rng.normal(size=(1, 2, 5, 5))
    close(ours.eval()(x).value, theirs.eval()(torch.tensor(x)))
    assert len(set(sizes[4:])) == 1


@pytest.mark.parametrize(
    ("name", "args", "options"),
    [
        *[("LSTM", (3, 4), {"num_layers": 2, "dropout": 0.5}), ("Linear", (3, 4), {})],
        *[("Conv2d", (3, 4, 3), {"groups": 1}), ("MultiheadAttention", (8, 2), {})],
        *[("Embedding", (50, 20), {}), ("ConvTranspose1d", (4, 6, 3), {"groups": 2})],
    ],
)
def test_first_values_have_the_bounds_and_the_deviation_of_torch(
    name: str, args: Any, options: Any
) -> None:
    torch.manual_seed(0)
    samples: dict[str, tuple[list[Any], list[Any]]] = {}
    for seed in range(200 if name != "Embedding" else 4):
        theirs = getattr(torch.nn, name)(*args, **options)
        with rg.Graph(rng=seed):
            ours = getattr(nn, name)(*args, **options).state_dict()
        for path, tensor in theirs.state_dict().items():
            mine, other = samples.setdefault(path, ([], []))
            mine.append(ours[path].ravel())
            other.append(tensor.numpy().ravel())
    for path, (mine, other) in samples.items():
        a, b = np.concatenate(mine), np.concatenate(other)
        assert abs(a.std() - b.std()) <= 0.06 * b.std(), path
        if name != "Embedding":
            assert abs(np.abs(a).max() - np.abs(b).max()) <= 0.03 * np.abs(b).max(), path
