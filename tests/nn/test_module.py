"""Modules: what registers, what calls build, and how state is loaded."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import nn


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 3, rng=0), nn.ReLU(), nn.Linear(3, 2, rng=1))


def test_a_module_registers_params_modules_and_lists_by_path() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            self.scale = nn.Parameter([1.0])
            self.heads = [nn.Linear(2, 1), nn.Linear(2, 1)]
            self.body = nn.Sequential(OrderedDict(first=nn.Linear(2, 2), then=nn.Tanh()))
            self.register_buffer("count", 0)
            self.register_buffer("scratch", [0.0], persistent=False)
            self.plain = rg.input([0.0])

    with rg.Graph():
        net = Net()
    assert [path for path, _ in net.named_parameters()] == [
        *("scale", "heads.0.weight", "heads.0.bias", "heads.1.weight", "heads.1.bias"),
        *("body.first.weight", "body.first.bias"),
    ]
    assert [path for path, _ in net.named_buffers()] == ["count", "scratch"]
    assert [path for path, _ in net.named_modules()] == [
        *("", "heads.0", "heads.1", "body", "body.first", "body.then"),
    ]
    assert [path for path, _ in net.named_children()] == ["heads.0", "heads.1", "body"]
    assert "count" in net.state_dict()
    assert "scratch" not in net.state_dict()
    assert net.get_parameter("heads.1.bias") is net.heads[1].bias
    assert net.get_submodule("body.then") is net.body[1]


def test_a_shared_param_is_listed_once_and_is_in_the_state_at_both_places() -> None:
    with rg.Graph():
        net = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
        net[1].weight = net[0].weight
    assert len(list(net.parameters())) == 1
    assert list(net.state_dict()) == ["0.weight", "1.weight"]


@pytest.mark.slow
def test_calls_with_arrays_vars_and_detached_vars_do_not_grow_the_graph() -> None:
    g = rg.Graph()
    with g:
        net = mlp()
    var = g.input(np.ones((5, 4)))
    sizes = set()
    for i in range(1000):
        array = np.full((5, 4), float(i))
        net(array)
        net(var)
        net(var.detach())
        if i > 3:
            sizes.add(len(g))
    assert len(sizes) == 1
    through = rg.grad(net(var).sum(), var)
    assert np.any(through.value != 0.0)
    assert rg.grad(net(var.detach()).sum(), var, allow_unused=True) is None


def test_two_live_results_never_change_each_other() -> None:
    g = rg.Graph()
    with g:
        net = mlp()
    one = net(np.ones((2, 4)))
    before = one.value.copy()
    others = [net(np.full((2, 4), float(i))) for i in range(3)]
    longer = net(np.ones((7, 4)))
    assert np.array_equal(one.value, before)
    assert longer.shape == (7, 2)
    assert len({id(other) for other in others}) == 3


def test_a_training_loop_keeps_its_size_from_the_fourth_step() -> None:
    g = rg.Graph()
    with g:
        net = mlp()
    criterion, rng, sizes = nn.CrossEntropyLoss(), np.random.default_rng(0), []
    for _ in range(12):
        loss = criterion(net(rng.normal(size=(6, 4))), rng.integers(0, 2, 6))
        net.zero_grad()
        loss.backward()
        g.set({p: p.value - 0.1 * p.grad for p in net.parameters()})
        sizes.append(len(g))
    assert len(set(sizes[3:])) == 1


def test_a_criterion_has_one_node_for_one_output() -> None:
    g = rg.Graph()
    with g:
        net = mlp()
    criterion = nn.CrossEntropyLoss()
    o1, o2 = net(np.ones((3, 4))), net(np.zeros((3, 4)))
    t1, t2, t3 = np.array([0, 1, 0]), np.array([1, 1, 1]), np.array([1, 0, 1])
    loss = criterion(o1, t1)
    first = loss.value
    assert criterion(o1, t3) is loss
    assert loss.value != first
    assert criterion(o2, t2) is not loss
    assert criterion(o1, t1) is loss
    assert loss.value == first


def test_an_attribute_that_is_assigned_is_seen_by_the_next_call() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            self.by = 2.0
            self.calls = 0
            self.inner: nn.Module = nn.Linear(2, 2, rng=0)

        def forward(self, x: Any) -> Any:
            self.calls += 1
            return self.inner(x) * self.by

    with rg.Graph():
        net = Scaled()
    x = np.ones(2)
    once = net(x).value
    net.by = 4.0
    assert np.array_equal(net(x).value, 2.0 * once)
    assert net.calls == 2
    net(x + 1.0)
    assert net.calls == 2  # built once for each structure
    net.inner = nn.Identity()
    assert np.array_equal(net(x).value, [4.0, 4.0])


def test_a_list_that_grows_is_seen_by_the_next_call() -> None:
    class Listed(nn.Module):
        def __init__(self) -> None:
            self.layers: list[nn.Module] = [nn.Linear(2, 2, rng=0)]

        def forward(self, x: Any) -> Any:
            for layer in self.layers:
                x = layer(x)
            return x

    with rg.Graph():
        net = Listed()
        once = net(np.ones(2)).value
        net.layers.append(nn.Tanh())
    assert np.array_equal(net(np.ones(2)).value, np.tanh(once))


def test_the_state_of_one_loads_into_another_in_one_transaction() -> None:
    g = rg.Graph()
    with g:
        one = mlp()
        other = nn.Sequential(nn.Linear(4, 3, rng=7), nn.ReLU(), nn.Linear(3, 2, rng=8))
    x = np.ones((2, 4))
    y = other(x)
    assert not np.array_equal(y.value, one(x).value)
    answer = other.load_state_dict(one.state_dict())
    assert answer == ([], [])
    assert np.array_equal(y.value, one(x).value)


def test_a_bad_state_names_every_path_and_loads_nothing() -> None:
    with rg.Graph():
        net = mlp()
    state = net.state_dict()
    state["0.wieght"] = state.pop("0.weight")
    state["2.weight"] = np.zeros((3, 2))
    state["2.bias"] = np.ones(2)
    before = net.state_dict()
    with pytest.raises(rg.LoadError) as raised:
        net.load_state_dict(state)
    assert str(raised.value) == (
        "load_state_dict of Sequential, nothing was loaded:\n"
        "  missing: 0.weight\n"
        "  unexpected: 0.wieght\n"
        "  wrong shape: 2.weight is (3, 2), not (2, 3)\n"
        "Make the module as the one that was saved, or pass strict=False to load the paths that both have."
    )
    assert all(np.array_equal(net.state_dict()[path], array) for path, array in before.items())
    state.pop("2.weight")
    answer = net.load_state_dict(state, strict=False)
    assert answer.missing_keys == ["0.weight", "2.weight"]
    assert answer.unexpected_keys == ["0.wieght"]
    assert np.array_equal(net[2].bias.value, [1.0, 1.0])


def test_frozen_params_get_no_gradient_and_those_before_them_do() -> None:
    with rg.Graph():
        net = mlp()
        net[2].freeze()
        net(np.ones((2, 4))).sum().backward()
    assert net[2].weight.grad is None
    assert net[0].weight.grad is not None
    net[2].unfreeze()
    net.zero_grad()
    net(np.ones((2, 4))).sum().backward()
    assert net[2].weight.grad is not None


def test_repr_is_a_tree_with_shapes_and_counts() -> None:
    with rg.Graph():
        net = mlp()
        net[2].freeze()
    assert repr(net) == (
        "Sequential(  # 23, 8 frozen params\n"
        "  (0): Linear(in_features=4, out_features=3)  # 15: weight (3, 4), bias (3,)\n"
        "  (1): ReLU()\n"
        "  (2): Linear(in_features=3, out_features=2)  # 8, frozen: weight (2, 3), bias (2,)\n"
        ")"
    )


def test_modules_are_scopes_of_the_picture() -> None:
    g = rg.Graph()
    with g:
        net = mlp()
        y = net(np.ones((1, 4)))
    assert [p.name for p in g.params] == [
        *("Sequential/0/weight", "Sequential/0/bias", "Sequential/2/weight", "Sequential/2/bias"),
    ]
    assert y.name.startswith("Sequential/2/")
    assert "Sequential" in g.to_dot(y)


def test_sequential_is_indexed_sliced_and_edited() -> None:
    with rg.Graph():
        net = mlp()
        part = net[:2]
        net.append(nn.Tanh())
        net.insert(0, nn.Identity())
        net[2] = nn.Sigmoid()
        del net[0]
    assert part[0] is net[0]
    assert len(part) == 2
    assert list(map(type, net)) == [nn.Linear, nn.Sigmoid, nn.Linear, nn.Tanh]
    assert list(net.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    with pytest.raises(rg.IndexingError, match="it has 4 members"):
        net[9]


def test_a_module_in_another_dtype_has_new_leaves_with_the_same_names() -> None:
    with rg.Graph() as g:
        net = mlp()
        net(np.ones(4))
        net.to("float32")
        y = net(np.ones(4, "float32"))
    assert y.dtype == np.float32
    assert g["Sequential/0/weight"] is net[0].weight


def test_a_call_is_followed_by_a_fork() -> None:
    with rg.Graph() as g:
        net = mlp()
    y = net(np.ones((2, 4)))
    before = y.value.copy()
    h = g.fork()
    h[net[2].bias].set([10.0, 20.0])
    assert np.allclose(h[y].value - before, [10.0, 20.0] - net[2].bias.value)
    assert np.array_equal(y.value, before)


@pytest.mark.slow
def test_a_module_is_not_kept_by_its_nodes() -> None:
    import gc
    import weakref

    with rg.Graph() as g:
        net = mlp()
        y = net(np.ones((2, 4)))
    of = weakref.ref(net)
    del net
    gc.collect()
    assert of() is None
    assert y.value.shape == (2, 2)
    assert len(g.params) == 4


def test_a_module_without_forward_says_so() -> None:
    with pytest.raises(rg.GraphError, match=r"Net has no forward: .* Write `def forward"):
        type("Net", (nn.Module,), {})()(np.ones(2))


def test_two_networks_that_train_against_each_other_build_nothing_after_the_first_rounds() -> None:
    with rg.Graph() as g:
        maker = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 3))
        judge = nn.Sequential(nn.Linear(3, 4), nn.LeakyReLU(0.2), nn.Linear(4, 1))
    criterion, rng, sizes = nn.BCEWithLogitsLoss(), np.random.default_rng(0), []
    ones, zeros = np.ones((5, 1)), np.zeros((5, 1))

    def step(net: nn.Module, loss: rg.Var) -> None:
        net.zero_grad()
        loss.backward()
        g.set({param: param.value - 0.1 * param.grad for param in net.parameters()})

    for _ in range(10):
        fake = maker(rng.normal(size=(5, 2)))
        real = judge(rng.normal(size=(5, 3)))
        step(judge, criterion(real, ones) + criterion(judge(fake.detach()), zeros))
        versions = [param.value_version for param in maker.parameters()]
        assert versions == [param.value_version for param in maker.parameters()]
        step(maker, criterion(judge(fake), ones))
        sizes.append(len(g))
    assert len(set(sizes[4:])) == 1


def test_a_module_that_is_at_two_places_has_no_params_of_its_own() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            self.first, self.scale = nn.Linear(2, 2), nn.Parameter(np.ones(2))
            self.layers = [self.first]
            self.again = self.first

    with rg.Graph():
        net = Net()
    assert [path for path, _ in net.named_parameters(recurse=False)] == ["scale"]
    assert [path for path, _ in net.named_parameters()] == ["scale", "first.weight", "first.bias"]


def test_containers_are_added_and_grow() -> None:
    with rg.Graph():
        first = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        both = first + nn.Sequential(nn.Linear(3, 1))
        layers = nn.ModuleList([nn.Tanh()]) + nn.ModuleList([first[0]])
    assert (len(both), len(first), both[0] is first[0]) == (3, 2, True)
    assert list(both.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert isinstance(layers, nn.ModuleList)
    assert layers[1] is first[0]
    first += [nn.Tanh()]
    assert len(first) == 3
