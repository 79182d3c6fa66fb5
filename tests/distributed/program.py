"""The laws of collectives as functions of a group: run on local ranks, and by ``mpiexec`` on processes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad import distributed as rd


def numbers(group: rd.Group, *shape: int) -> np.ndarray:
    """Values that every rank can compute for every other one."""
    return of_rank(group.rank, *shape)


def of_rank(rank: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(rank).uniform(0.5, 2.0, shape)


def identities(group: rd.Group) -> None:
    n, me = group.size, group.rank
    every = np.stack([of_rank(rank, n, 2) for rank in range(n)])
    g = rg.Graph()
    x = g.input(every[me])
    table = {
        "sum": every.sum(0),
        "avg": every.mean(0),
        "max": every.max(0),
        "min": every.min(0),
        "product": every.prod(0),
    }
    for reduction, expected in table.items():
        np.testing.assert_allclose(rd.all_reduce(x, reduction, group).value, expected)
    root = n - 1
    there = me == root
    np.testing.assert_array_equal(rd.broadcast(x, root, group).value, every[root])
    np.testing.assert_allclose(rd.reduce_add(x, root, group).value, every.sum(0) * there)
    np.testing.assert_array_equal(rd.scatter(x, root, group).value, every[root][[me]])
    np.testing.assert_array_equal(rd.gather(x, root, group).value, every.reshape(n * n, 2) * there)
    np.testing.assert_array_equal(rd.all_gather(x, group).value, every.reshape(n * n, 2))
    np.testing.assert_allclose(rd.reduce_scatter(x, "sum", group).value, every.sum(0)[[me]])
    np.testing.assert_allclose(rd.reduce_scatter(x, "avg", group).value, every.mean(0)[[me]])
    np.testing.assert_array_equal(rd.all_to_all(x, group).value, every[:, me])
    scalar = g.input(float(me))
    np.testing.assert_array_equal(rd.all_gather(scalar, group).value, np.arange(n))
    np.testing.assert_array_equal(rd.gather(scalar, 0, group).value, np.arange(n) * (me == 0))
    whole = g.input(np.arange(4) + me)  # integers stay integers
    assert rd.all_reduce(whole, "sum", group).dtype.kind == "i"
    before = group.traffic.messages
    parts = rd.reduce_add_coalesced([x, scalar, x[0]], 0, group)
    np.testing.assert_allclose(parts[2].value, every.sum(0)[0] * (me == 0))
    np.testing.assert_allclose(parts[1].value, n * (n - 1) / 2 * (me == 0))
    assert group.traffic.messages == before + 1  # one message for three values
    rd.barrier(group)


def adjoints(group: rd.Group) -> None:
    n = group.size
    vector, matrix = numbers(group, 3), numbers(group, n, 2)
    for reduction in ("sum", "avg", "max", "min", "product"):
        rd.check_grads(lambda x, how=reduction: rd.all_reduce(x**2, how, group), [vector], group)
    root = n - 1
    rd.check_grads(lambda x: rd.broadcast(x**2, root, group) ** 2, [vector], group)
    rd.check_grads(lambda x: rd.reduce_add(x**2, root, group) ** 2, [vector], group)
    rd.check_grads(lambda x: rd.scatter(x**2, root, group) ** 2, [matrix], group)
    rd.check_grads(lambda x: rd.gather(x**2, root, group) ** 2, [matrix], group)
    rd.check_grads(lambda x: rd.all_gather(x**2, group) ** 2, [matrix], group)
    rd.check_grads(lambda x: rd.reduce_scatter(x**2, "sum", group) ** 2, [matrix], group)
    rd.check_grads(lambda x: rd.reduce_scatter(x**2, "avg", group) ** 2, [matrix], group)
    rd.check_grads(lambda x: rd.all_to_all(x**2, group) ** 2, [matrix], group)

    def two(x: Any, y: Any) -> Any:
        a, b = rd.reduce_add_coalesced([x * y, x.sum()], 0, group)
        return a * b

    rd.check_grads(two, [vector, numbers(group, 3) + 1.0], group)


def messages(group: rd.Group) -> None:
    """Each rank gives its square to the next one; gradients come back."""
    n, me = group.size, group.rank
    g = rg.Graph()
    x = g.input(numbers(group, 2))
    like = g.input(np.zeros(2))
    if me == 0:
        loss = rd.send(x**2, 1, group) + 0.0
        loss.value
        slope = rg.grad(loss, x).value
        expected = np.cos(of_rank(0, 2) ** 2) * 2.0 * of_rank(0, 2)
        np.testing.assert_allclose(slope, expected)
    elif me == 1:
        y = rd.recv(like, 0, group)
        np.testing.assert_allclose(y.value, of_rank(0, 2) ** 2)
        back = rg.grad(rg.sin(y).sum(), like).value
        np.testing.assert_allclose(back, np.cos(of_rank(0, 2) ** 2))
    assert n > 1


def skipped(group: rd.Group) -> None:
    """Data moves where an operand is stale on any rank, and nowhere else."""
    g = rg.Graph()
    x, other = g.input(np.ones(4), name="x"), g.input(np.ones(4), name="other")
    total = rd.all_reduce(x * 2.0, "sum", group)
    rest = rd.all_reduce(other * 3.0, "sum", group)
    both = total + rest
    before = group.traffic.bytes
    assert both.value[0] == 5.0 * group.size
    sent, version = group.traffic.bytes, both.value_version
    assert sent == before + 64
    both.value
    assert (group.traffic.bytes, both.value_version) == (sent, version)
    assert len(g.last_run.ran) == 0
    if group.rank == group.size - 1:
        x.set(np.full(4, 2.0))  # on one rank only
    assert both.value[0] == 2.0 * (group.size + 1) + 3.0 * group.size
    assert group.traffic.bytes == sent + 32  # `rest` sent nothing
    assert both.value_version == version + 1
    assert len(g.last_run.ran) == (4 if group.rank == group.size - 1 else 3)
    x.set(x.value)  # the product is stale, and computes what was there: it is sent, and ends there
    total.cutoff = "equal"
    both.value
    assert both.value_version == version + 1


def groups(group: rd.Group) -> None:
    half = group.split(group.rank % 2)
    assert half is not None
    members = [rank for rank in range(group.size) if rank % 2 == group.rank % 2]
    x = rg.Graph().input(float(group.rank))
    assert rd.all_reduce(x, "sum", half).item() == sum(members)
    first = group.subgroup([0])
    assert (first is None) == (group.rank > 0)
    assert group.all_gather_object({"rank": group.rank})[-1] == {"rank": group.size - 1}
    assert group.broadcast_object([group.rank], 1) == [1]


def training(group: rd.Group) -> None:
    """Fifteen steps of Adam on all ranks are those of one process."""
    x = np.random.default_rng(0).normal(size=(22, 3))
    y = np.random.default_rng(1).normal(size=(22, 1))

    def train(rows: np.ndarray, parallel: bool) -> dict[str, np.ndarray]:
        with rg.Graph(rng=5):
            net: Any = rg.nn.Sequential(rg.nn.Linear(3, 8), rg.nn.Tanh(), rg.nn.Linear(8, 1))
        if parallel:
            net = rd.DataParallel(net, group, first_bucket_bytes=64, bucket_bytes=128)
        opt = rg.optim.Adam(net.parameters(), lr=0.01)
        for _ in range(15):
            opt.zero_grad()
            ((net(x[rows]) - y[rows]) ** 2).mean().backward()
            opt.step()
        return net.state_dict()

    alone = train(np.arange(22), False)
    together = train(np.array_split(np.arange(22), group.size)[group.rank], True)
    for name, value in alone.items():
        np.testing.assert_allclose(together[name], value, rtol=0, atol=1e-9)


def evolution(group: rd.Group) -> None:
    """An evolution whose fitness all ranks compute is that of one process."""
    from importlib.util import find_spec

    if find_spec("neat") is None:
        return
    from reactgrad import neat
    from reactgrad.demo import neat_config

    x, y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), np.array([0, 1, 1, 0])
    asked = []

    def fitness(genomes: Any, config: Any) -> list[float]:
        asked.append(len(genomes))
        outputs = neat.evaluate(genomes, x, config).outputs
        return [1.0 - float(np.mean((one[:, 0] - y) ** 2)) for one in outputs]

    alone = neat.Population(neat_config(pop_size=40), seed=1)
    best = alone.run(fitness, 5)
    assert set(asked) == {40}
    asked.clear()
    together = neat.Population(neat_config(pop_size=40), seed=1)
    winner = together.run(rd.spread_fitness(fitness, group), 5)
    assert set(asked) == {40 // group.size}
    assert winner.fitness == best.fitness
    assert sorted(together.population) == sorted(alone.population)


def served(group: rd.Group) -> None:
    """A population whose genomes travel as rows, and islands that live on ranks, are those of one process."""
    from importlib.util import find_spec

    if find_spec("neat") is None:
        return
    from tests.neat.evolving import islands_told, population_told

    alone = population_told(None), islands_told(None)
    before = group.traffic.bytes
    assert (population_told(group), islands_told(group)) == alone
    assert group.traffic.bytes > before


def raises(group: rd.Group) -> None:
    x = rg.Graph().input(1.0)
    rd.all_reduce(x, "sum", group).value  # from here on nothing is imported that takes long
    if group.rank == 1:
        raise ZeroDivisionError("the second rank cannot go on")
    rd.all_reduce(x, "sum", group).value


def differs(group: rd.Group) -> None:
    x = rg.Graph().input([1.0, 2.0])
    y = rd.all_reduce(x, "sum", group) if group.rank else rd.broadcast(x, 0, group)
    y.value


def stays_away(group: rd.Group) -> None:
    if group.rank == 0:
        rd.all_reduce(rg.Graph().input(1.0), "sum", group).value


def too_late(group: rd.Group) -> None:
    import time

    if group.rank == 1:
        time.sleep(4.0)
    rd.all_reduce(rg.Graph().input(1.0), "sum", group).value


def killed(group: rd.Group) -> None:
    import os
    import signal

    if group.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    rd.all_reduce(rg.Graph().input(1.0), "sum", group).value


LAWS: dict[str, Callable[[rd.Group], None]] = {
    one.__name__: one
    for one in (identities, adjoints, messages, skipped, groups, training, evolution, served)
}
FAILURES = {one.__name__: one for one in (raises, differs, stays_away, too_late, killed)}

if __name__ == "__main__":
    world = rd.init("mpi", timeout=float(sys.argv[2]) if len(sys.argv) > 2 else 20.0)
    for name in sys.argv[1].split(","):
        {**LAWS, **FAILURES}[name](world)
        print(f"{name}: rank {world.rank} of {world.size} is content", flush=True)
