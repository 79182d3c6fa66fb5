"""What is assigned under a mistyped name is refused, and not stored where nothing reads it."""

from __future__ import annotations

import copy
import pickle
from typing import Any, ClassVar

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


def table() -> Any:
    pytest.importorskip("pandas")
    return rg.Table({"price": [10.0, 20.0]})


def loader() -> Any:
    return rg.data.DataLoader(rg.data.ArrayDataset(np.ones(4)), batch_size=2)


def scenarios() -> Any:
    g = rg.Graph()
    x = g.input(1.0, name="x")
    return rg.scenarios({"y": x * 2.0}, {x: [1.0, 2.0]})


def ranking() -> Any:
    g = rg.Graph()
    x = g.input(1.0, name="x")
    return rg.tornado(x * 2.0, [x], 0.1)


def optimiser() -> Any:
    g = rg.Graph()
    return rg.optim.SGD([g.param([1.0], name="w")], lr=0.1)


def schedule() -> Any:
    return rg.optim.StepLR(optimiser(), 10)


OBJECTS = [
    (table, "grpah", 1, "a Table has no attribute 'grpah'. Is it graph?"),
    (
        table,
        "sales",
        1,
        "a Table has no attribute 'sales'. A column is assigned by t['sales'] = values.",
    ),
    (
        loader,
        "batchsize",
        3,
        "a DataLoader has no attribute 'batchsize'. Is it batch_size?",
    ),
    (loader, "num_workers", 2, "a DataLoader has no attribute 'num_workers'. Is it workers?"),
    (
        rg.GradScaler,
        "scale",
        4.0,
        "'scale' of a GradScaler cannot be assigned. Write scaler.update(4.0).",
    ),
    (
        rg.GradScaler,
        "growth_factor",
        4.0,
        "'growth_factor' of a GradScaler cannot be assigned. Write rg.GradScaler(growth_factor=4.0).",
    ),
    (rg.GradScaler, "step", 4.0, "'step' of a GradScaler is a method and cannot be assigned."),
    (scenarios, "error", {}, "a Scenarios has no attribute 'error'. Is it errors?"),
    (
        scenarios,
        "book",
        "a",
        "a Scenarios has no attribute 'book'. It takes none of your own: keep this in a variable, or write a subclass.",
    ),
    (ranking, "row", (), "a Tornado has no attribute 'row'. Is it rows?"),
    (
        schedule,
        "lr",
        0.5,
        "'lr' of a StepLR cannot be assigned. Write group['lr'] = 0.5 for each group of opt.param_groups.",
    ),
    (schedule, "stepsize", 5, "a StepLR has no attribute 'stepsize'. Is it step_size?"),
]


@pytest.mark.parametrize(("make", "name", "value", "message"), OBJECTS)
def test_of_other_objects(make: Any, name: str, value: Any, message: str) -> None:
    thing = make()
    for one in (thing, copy.copy(thing)):
        with pytest.raises(AttributeError) as caught:
            setattr(one, name, value)
        assert str(caught.value) == message
        assert isinstance(caught.value, rg.ReactgradError)


def test_what_there_is_can_be_assigned_and_subclasses_add_their_own() -> None:
    one = loader()
    one.batch_size = 4

    class Named(rg.data.DataLoader):
        def __init__(self) -> None:
            super().__init__(rg.data.ArrayDataset(np.ones(4)), batch_size=2)
            self.title = "training"

    named = Named()
    named.note = "mine"  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"'batch_sizee'. Is it batch_size\?"):
        named.batch_sizee = 3  # type: ignore[attr-defined]

    class Own(rg.data.Dataset):
        def __init__(self) -> None:
            self.inputs, self.input = [1.0], 2.0

    assert Own().input == 2.0


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (
            lambda group: group.__setitem__("learning_rate", 0.5),
            "a group of SGD has no option 'learning_rate'. Write group['lr'] = 0.5.",
        ),
        (
            lambda group: group.update(momentun=0.5),
            "a group of SGD has no option 'momentun'. Write group['momentum'] = 0.5.",
        ),
        (
            lambda group: group.setdefault("scale", 2.0),
            "a group of SGD has no option 'scale'. It has lr, momentum, dampening, weight_decay, nesterov",
        ),
    ],
)
def test_of_groups_of_params(write: Any, message: str) -> None:
    (group,) = optimiser().param_groups
    for one in (group, copy.copy(group)):
        before = dict(one)
        with pytest.raises(rg.ParameterError) as caught:
            write(one)
        assert str(caught.value).startswith(message)
        assert one == before
        one["lr"] = 0.5
        one |= {"momentum": 0.9}
        assert (one["lr"], one["momentum"]) == (0.5, 0.9)


def test_an_optimiser_of_ones_own_has_its_own_options() -> None:
    class Mine(rg.optim.SGD):
        OPTIONS: ClassVar[dict[str, Any]] = {**rg.optim.SGD.OPTIONS, "lr_scale": 1.0}

    (group,) = Mine([rg.Graph().param([1.0])], lr=0.1).param_groups
    group["lr_scale"] = 0.5


def networks() -> list[Any]:
    """Objects of neat that have attributes of their own, made in each way."""
    neat = pytest.importorskip("reactgrad.neat")
    from reactgrad.demo import neat_config

    config = neat_config(pop_size=4)
    population = neat.Population(config, seed=1)
    genome = population.population[1]
    net = neat.Network.create(genome, config)
    opened = neat.Network.create(genome, config)
    assert opened.graph is not None
    return [
        *(population, net, opened, copy.copy(net), pickle.loads(pickle.dumps(net))),
        neat.FeedForwardNetwork.create(genome, config),
        neat.RecurrentNetwork.create(genome, config),
        neat.Networks([(1, genome)], config),
        neat.NoveltyArchive(),
        neat.MapElites([(0.0, 1.0)]),
        neat.Training(np.ones((2, 2)), np.ones(2)),
        neat.SharedGenes(rg.Graph()),
        neat.Islands(config, 2, seed=1),
    ]


def test_of_networks_that_evolve() -> None:
    for one in networks():
        with pytest.raises(AttributeError, match="has no attribute 'nonsense'. It takes none"):
            one.nonsense = 3
        assert not hasattr(one, "nonsense")
    population, net, *_, archive, cells, training, _, islands = networks()
    for of, name, meant in (
        *((population, "populaton", "population"), (population, "exat", "exact")),
        *((net, "grpah", "graph"), (archive, "capcity", "capacity"), (cells, "cell", "cells")),
        *((training, "lamark", "lamarck"), (islands, "migrant", "migrants")),
    ):
        with pytest.raises(AttributeError, match=rf"'{name}'. Is it .*\b{meant}\b.*\?$"):
            setattr(of, name, 3)


def test_what_is_assigned_to_a_population_is_that_of_the_loop() -> None:
    """It lay beside the population that evolves, where nothing read it."""
    population = networks()[0]
    population.generation = 7
    population.population = dict(list(population.population.items())[:2])
    assert population.inner.generation == 7
    assert len(population.inner.population) == 2
    assert "2 genomes" in repr(population)


def test_networks_of_ones_own_have_their_own_attributes() -> None:
    neat = pytest.importorskip("reactgrad.neat")
    from reactgrad.demo import neat_config

    class Net(neat.Network):
        title = "one"

    class Loop(neat.Population):
        def __init__(self, config: Any) -> None:
            self.first = True
            super().__init__(config, seed=1)
            self.best_of_all: list[Any] = []

    config = neat_config(pop_size=4)
    loop = Loop(config)
    net = Net.create(loop.population[1], config)
    net.title, net.note = "two", "mine"
    assert (loop.first, loop.best_of_all, net.note) == (True, [], "mine")
    for of, name in ((loop, "populaton"), (net, "activat")):
        with pytest.raises(AttributeError, match="Is it"):
            setattr(of, name, 3)


# Their objects are made by `with`, `@` or the package, or take what a program likes.
FREE = {
    *("Function", "autocast", "implicit_values"),
    *("Member", "Partition", "Receiver", "Shipper", "Traffic", "Group", "LocalHosts", "LocalRanks"),
    *("Parameter", "Primitive", "Sheet"),
    *("Evaluator", "IZNeuron"),  # which assign to themselves in loops that must be fast
}


def test_every_public_class_has_attributes_of_its_own_only() -> None:
    neat = pytest.importorskip("reactgrad.neat")
    free = set()
    for space in (neat, rg, rg.nn, rg.optim, rg.data, rg.distributed, rg.extend):
        for name in dir(space):
            kind = getattr(space, name)
            if name[0] == "_" or not isinstance(kind, type) or issubclass(kind, BaseException):
                continue
            checks = any("__setattr__" in vars(one) for one in kind.__mro__ if one is not object)
            if kind.__module__.startswith("reactgrad") and kind.__dictoffset__ and not checks:
                free.add(name)
    assert free == FREE
