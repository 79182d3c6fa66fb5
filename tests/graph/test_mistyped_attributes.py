"""What is assigned under a mistyped name is refused, and not stored where nothing reads it."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import reactgrad as rg


class Net(rg.nn.Module):
    def __init__(self) -> None:
        self.inner = rg.nn.Linear(2, 3, rng=0)
        self.inner2 = rg.nn.Linear(3, 3, rng=0)

    def forward(self, x: Any) -> Any:
        return self.inner2(self.inner(x))


@pytest.fixture
def net() -> Net:
    with rg.Graph():
        return Net()


GRAPH: list[tuple[str, Any, str]] = [
    ("max_byte", 3, "a Graph has no attribute 'max_byte'. Is it max_bytes?"),
    ("executer", rg.Threads(2), "a Graph has no attribute 'executer'. Is it executor?"),
    ("threads", 2, "a Graph has no attribute 'threads'. Is it executor?"),
    (
        "book",
        3,
        "a Graph has no attribute 'book'. It takes none of your own: keep this in a variable, or write a subclass.",
    ),
    ("seed", 7, "'seed' of a Graph cannot be assigned. Write g.reseed(7)."),
    (
        "device",
        "cuda:0",
        "'device' of a Graph cannot be assigned. Write rg.Graph(device='cuda:0'), or x.to('cuda:0') for one node.",
    ),
    ("eval", True, "'eval' of a Graph cannot be assigned. Write g.train(), or g.eval()."),
]


@pytest.mark.parametrize(("name", "value", "message"), GRAPH)
@pytest.mark.parametrize("kind", ["graph", "fork", "what-if", "loaded"])
def test_of_graphs(kind: str, name: str, value: Any, message: str) -> None:
    g = rg.Graph()
    x = g.input(1.0, name="x")
    of = {
        "graph": lambda: g,
        "fork": g.fork,
        "what-if": lambda: g.whatif({x: 2.0}).__enter__(),
        "loaded": lambda: rg.from_bytes(g.to_bytes()),
    }[kind]()
    with pytest.raises(AttributeError) as caught:
        setattr(of, name, value)
    assert str(caught.value) == message
    assert isinstance(caught.value, rg.ReactgradError)
    assert str(pickle.loads(pickle.dumps(caught.value))) == message
    of.max_bytes, of.jit, of.executor = 10**9, False, rg.Threads(2)  # what there is can be assigned


def test_of_subclasses_of_graphs_only_near_names_of_settings() -> None:
    class Book(rg.Graph):
        trades = 0

    book = Book()
    book.trades, book.desk = 3, "rates"  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"'max_byte'. Is it max_bytes\?"):
        book.max_byte = 3  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "meant"),
    [("nmae", "name"), ("nam", "name"), ("cuttoff", "cutoff"), ("vlaue", "value")],
)
def test_of_nodes(name: str, meant: str) -> None:
    x = rg.Graph().input(1.0)
    with pytest.raises(
        AttributeError, match=rf"^a Var has no attribute '{name}'. Is it {meant}\?$"
    ):
        setattr(x, name, "a")
    assert name not in dir(x)


def test_of_layers_and_modules(net: Net) -> None:
    for of, name, meant in (
        (net.inner, "weigth", "weight"),
        (net.inner, "biaas", "bias"),
        (net.inner, "trainig", "training"),
        (net, "trainig", "training"),
    ):
        with pytest.raises(AttributeError, match=rf"has no attribute '{name}'. Is it {meant}\?$"):
            setattr(of, name, None)
    with pytest.raises(AttributeError, match=r"Write net.train\(False\)."):
        net.train = False  # type: ignore[assignment, method-assign]
    net.inner.is_last = True  # type: ignore[attr-defined]
    net.training = False
    assert not net.inner.training


def test_of_modules_that_were_called_as_well(net: Net) -> None:
    first = net(np.ones(2))
    with pytest.raises(AttributeError, match=r"^a Net has no attribute 'iner'. Is it inner\?$"):
        net.iner = rg.nn.Linear(2, 3)  # type: ignore[attr-defined]
    assert net(np.ones(2)) is first
    with first.graph:
        net.inner3 = rg.nn.Linear(3, 3)  # type: ignore[attr-defined]
        net.inners = [rg.nn.Linear(2, 3)]  # type: ignore[attr-defined]
        net.register_module("iner", rg.nn.Linear(2, 3))
    assert "iner.weight" in dict(net.named_parameters())


def test_of_optimisers(net: Net) -> None:
    opt = rg.optim.SGD(net.parameters(), lr=0.1)
    with pytest.raises(
        AttributeError, match=r"Write group\['lr'\] = 0.5 for each group of opt.param_groups.$"
    ):
        opt.lr = 0.5  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"Is it param_groups\?$"):
        opt.param_group = []  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "meant", "answer"),
    [
        ("weigth", "weight", True),
        ("biaas", "bias", True),
        ("wight", "weight", True),
        ("max_byte", "max_bytes", True),
        ("layer2", "layer", False),
        ("layer2", "layer3", False),
        ("weight", "weight", False),
        ("head", "tail", False),
        ("", "bias", False),
    ],
)
def test_which_names_are_mistyped(name: str, meant: str, answer: bool) -> None:
    from reactgrad._habits import mistyped

    assert mistyped(name, meant) is answer
