"""A draw follows from the graph's seed and its node: the same always and everywhere, other ones only on request."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.backend.numpy._random import stream


def model(g: rg.Graph) -> dict[str, Any]:
    """One draw of each kind: a standard one, a function of some, integers, an order."""
    with g:
        return {
            "normal": rg.random.standard_normal((3, 2)),
            "uniform": rg.random.uniform((4,), -1.0, 2.0),
            "beta": rg.random.beta(2.0, 3.0, (5,)),
            "integers": rg.random.integers(1000, shape=(6,)),
            "order": rg.random.permutation(7),
        }


def values(nodes: dict[str, Any], g: rg.Graph | None = None) -> dict[str, list[Any]]:
    return {name: (one if g is None else g[one]).tolist() for name, one in nodes.items()}


def test_a_draw_is_that_of_numpys_generator_at_its_place() -> None:
    g = rg.Graph(rng=3)
    with g:
        x = rg.random.standard_normal((4,))
    key = x.parents[0].value
    words = np.random.SeedSequence(3).generate_state(2, np.uint64)
    assert key.tolist()[:2] == words.tolist()
    assert key.tolist()[3] == 0
    np.testing.assert_array_equal(x.value, stream(key).standard_normal(4))


def test_the_same_program_draws_the_same_numbers_in_any_order_of_reads() -> None:
    first, second = model(rg.Graph(rng=5)), model(rg.Graph(rng=5))
    forwards = values(first)
    backwards = {name: second[name].tolist() for name in reversed(second)}
    assert forwards == backwards
    assert values(model(rg.Graph(rng=6))) != forwards


def test_two_draws_differ_also_where_one_is_rebuilt_in_a_loop() -> None:
    g = rg.Graph(rng=0)
    with g:
        seen = {tuple(rg.random.normal((3,)).tolist()) for _ in range(50)}
    assert len(seen) == 50


def test_reads_forks_and_gradients_draw_nothing_anew() -> None:
    g = rg.Graph(rng=1)
    with g:
        nodes = model(g)
        w = g.param(2.0)
        loss = (w * nodes["normal"]).sum()
    before = values(nodes)
    loss.backward()
    h = g.fork()
    assert values(nodes) == before
    assert values(nodes, h) == before
    assert len(g.forward(*nodes.values()).ran) == 0
    g.forget_marks()
    assert values(nodes) == before


@pytest.mark.parametrize("name", ["normal", "uniform", "beta", "integers", "order"])
def test_touch_draws_this_node_anew_and_no_other(name: str) -> None:
    g = rg.Graph(rng=1)
    nodes = model(g)
    before = values(nodes)
    versions = {one: node.value_version for one, node in nodes.items()}
    nodes[name].touch()
    assert nodes[name].is_stale
    after = values(nodes)
    assert {one for one in nodes if after[one] != before[one]} == {name}
    assert {one for one, node in nodes.items() if node.value_version != versions[one]} == {name}
    again = model(rg.Graph(rng=1))
    values(again)
    again[name].touch()
    assert values(again) == after


def test_reseed_draws_what_a_graph_of_that_seed_draws() -> None:
    g = rg.Graph(rng=1)
    nodes = model(g)
    first = values(nodes)
    nodes["beta"].touch()
    g.reseed(2)
    assert g.seed == 2
    assert values(nodes) == values(model(rg.Graph(rng=2)))
    g.reseed(1)
    assert values(nodes) == first


@pytest.mark.parametrize("seed", [-1, 1.5, True, "x"])
def test_a_seed_is_an_integer(seed: Any) -> None:
    with pytest.raises(rg.DTypeError, match="at least 0"):
        rg.Graph().reseed(seed)


def test_a_transaction_that_fails_draws_nothing_anew() -> None:
    g = rg.Graph(rng=1)
    nodes = model(g)
    before = values(nodes)
    with pytest.raises(KeyError), g.transaction():
        g.reseed(9)
        nodes["normal"].touch()
        assert values(nodes) != before
        raise KeyError
    assert g.seed == 1
    assert values(nodes) == before


def test_a_whatif_draws_for_itself() -> None:
    g = rg.Graph(rng=1)
    nodes = model(g)
    before = values(nodes)
    with g.whatif() as w:
        w.reseed(4)
        other = values(nodes, w)
    assert other == values(model(rg.Graph(rng=4)))
    assert values(nodes) == before


def test_a_file_keeps_the_draws_and_what_touch_draws_next(tmp_path: Path) -> None:
    g = rg.Graph(rng=1)
    nodes = model(g)
    nodes["uniform"].touch()
    for name, one in nodes.items():
        one.name = name
    before = values(nodes)
    g.save(tmp_path / "graph.safetensors")
    h = rg.load(tmp_path / "graph.safetensors")
    assert {name: h[name].tolist() for name in nodes} == before
    g["normal"].touch()
    h["normal"].touch()
    assert g["normal"].tolist() == h["normal"].tolist() != before["normal"]
    with g:
        mine = rg.random.normal((3,))
    with h:
        theirs = rg.random.normal((3,))
    assert mine.tolist() == theirs.tolist()


def test_draws_released_and_rebuilt_are_the_same() -> None:
    g = rg.Graph(rng=1)
    w = g.param(np.ones(1000))
    noise = rg.random.normal((1000,), scale=w)
    y = (noise * noise).sum()
    first = y.value
    y.backward(retain_graph=False)
    slope = w.grad
    g.zero_grad()
    y.backward(retain_graph=False)
    assert y.value == first
    np.testing.assert_array_equal(w.grad, slope)


def test_parameters_change_without_another_draw() -> None:
    g = rg.Graph(rng=1)
    loc = g.input(0.0)
    x = rg.random.normal((5,), loc, 1.0)
    before = x.value
    loc.set(3.0)
    run = g.forward(x)
    assert not any(one.name.startswith("standard") for one in run.ran)
    np.testing.assert_allclose(x.value - before, 3.0, rtol=1e-12)


def test_threads_draw_the_same() -> None:
    g = rg.Graph(rng=1, executor=rg.Threads(2))
    with g:
        draws = [rg.random.normal((2000,)) for _ in range(20)]
    total = rg.stack(draws).sum(axis=1)
    h = rg.Graph(rng=1)
    with h:
        alone = rg.stack([rg.random.normal((2000,)) for _ in range(20)]).sum(axis=1)
    found: list[Any] = []
    readers = [threading.Thread(target=lambda: found.append(total.tolist())) for _ in range(3)]
    for one in readers:
        one.start()
    for one in readers:
        one.join()
    assert found == [alone.tolist()] * 3


def test_a_length_that_is_not_known_when_built() -> None:
    g = rg.Graph(rng=1)
    loc = g.input(shape=(None, 2), dtype="float64")
    x, slope = (y := rg.random.normal(loc=loc, scale=0.5)), rg.grad((y * y).sum(), loc)
    for n in (3, 1, 4):
        loc.set(np.zeros((n, 2)))
        assert x.value.shape == (n, 2)
        np.testing.assert_allclose(slope.value, 2.0 * x.value)
    order = rg.random.permutation(loc)
    assert sorted(order.value.ravel().tolist()) == [0.0] * 8


def test_a_shape_that_is_none_says_what_comes_first() -> None:
    with rg.Graph():
        with pytest.raises(rg.DTypeError, match="before parameters that have defaults"):
            rg.random.normal(0.5, 1.0, (3,))
        with pytest.raises(rg.DTypeError, match="size= are the same"):
            rg.random.normal((3,), size=3)
        with pytest.raises(rg.ShapeError, match="broadcast"):
            rg.random.normal((3,), loc=np.zeros(2))
        with pytest.raises(rg.DTypeError, match="at least 0"):
            rg.random.normal((3,), 0.0, -1.0)
        with pytest.raises(rg.SetError, match="permutation"):
            rg.random.shuffle([1, 2])


def test_a_wrong_parameter_is_an_error_of_its_node_alone() -> None:
    g = rg.Graph(rng=1)
    p = g.input(2.0)
    with g:
        bad, good = rg.random.binomial(3, p, (2,)), rg.random.normal((2,))
    with pytest.raises(ValueError, match="p"):
        bad.value
    assert good.value.shape == (2,)
    p.set(0.5)
    assert bad.value.shape == (2,)


@pytest.mark.parametrize("name", ["normal", "uniform", "lognormal", "laplace", "gumbel"])
def test_numpys_order_of_arguments_is_refused(name: str) -> None:
    """Where the shape is first, a parameter in its place must not become one in silence."""
    draw = getattr(rg.random, name)
    g = rg.Graph()
    x = g.input(1.0)
    with g:
        for wrong in (
            (0, 1),
            (0, 1, (3,)),
            (10, 2),
            (0.0, 1.0),
            (x, 1.0),
            (np.zeros(3), np.ones(3)),
            (0,),
        ):
            with pytest.raises(rg.DTypeError, match="before parameters that have defaults"):
                draw(*wrong)
        with pytest.raises(rg.DTypeError, match="before parameters that have defaults"):
            draw(0.0, 1.0, size=(3,))
        assert draw(5).shape == draw((5,), 1.0, 2.0).shape == draw(size=5).shape == (5,)


@pytest.mark.parametrize("name", ["randn", "rand", "randint", "seed", "default_rng"])
def test_names_of_other_libraries_say_what_to_write(name: str) -> None:
    with pytest.raises(AttributeError, match=r"Write rg\."):
        getattr(rg.random, name)


def test_a_draw_follows_another_shape_of_its_parameters() -> None:
    g = rg.Graph(rng=1)
    x = g.input(np.zeros((4, 3)), shape=(None, 3))
    y, d = rg.random.normal(loc=x), rg.dropout(x + 1.0)
    assert y.value.shape == d.value.shape == (4, 3)
    x.set(np.zeros((6, 3)))
    assert y.value.shape == d.value.shape == (6, 3)
