"""Collectives on ranks that are threads of this process."""

from __future__ import annotations

import time
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import distributed as rd
from tests.distributed.program import LAWS


@pytest.mark.parametrize("size", [2, 4])
# Threads share Python's ``random``, from which an evolution draws.
@pytest.mark.parametrize("law", [law for law in LAWS if law not in ("evolution", "served")])
def test_laws_hold_on_local_ranks(law: str, size: int) -> None:
    rd.run(LAWS[law], f"local:{size}", timeout=20.0)


def test_laws_hold_where_messages_are_late_and_lost() -> None:
    def body(group: rd.Group) -> int:
        LAWS["identities"](group)
        return group.traffic.resent

    resent = rd.run(body, "local:3", latency=0.001, loss=0.3, timeout=20.0)
    assert sum(resent) > 0


def test_one_rank_is_a_group_as_well() -> None:
    def body(group: rd.Group) -> float:
        x = rg.Graph().input(3.0)
        return rd.all_reduce(x * 2.0, "avg", group).item()

    assert rd.run(body, "local:1") == [6.0]


def fails(body: Any, size: int = 2, timeout: float = 10.0, **options: Any) -> Exception:
    before = time.monotonic()
    with pytest.raises((rd.DistributedError, ZeroDivisionError)) as caught:
        rd.run(body, f"local:{size}", timeout=timeout, **options)
    assert time.monotonic() - before < 30.0  # it ended by itself
    return caught.value


MISMATCHES = {
    "op": lambda x, group: (
        rd.all_reduce(x, "sum", group) if group.rank else rd.broadcast(x, 0, group)
    ),
    "reduction": lambda x, group: rd.all_reduce(x, "sum" if group.rank else "max", group),
    "shape": lambda x, group: rd.all_reduce(x[: 1 + group.rank], "sum", group),
    "dtype": lambda x, group: rd.all_reduce(
        x.astype("float32" if group.rank else "float64"), "sum", group
    ),
    "root": lambda x, group: rd.broadcast(x, group.rank, group),
}
TOLD = {
    "op": "rank 0 asked for broadcast with root 0 of float64 (2,) for 'x'; "
    "rank 1 asked for all_reduce(sum) of float64 (2,) for 'x'",
    "reduction": "rank 0 asked for all_reduce(max) of float64 (2,) for 'x'; "
    "rank 1 asked for all_reduce(sum)",
    "shape": "rank 0 asked for all_reduce(sum) of float64 (1,)",
    "dtype": "rank 0 asked for all_reduce(sum) of float64 (2,)",
    "root": "rank 1 asked for broadcast with root 1",
}


@pytest.mark.parametrize("what", MISMATCHES)
def test_a_mismatch_is_told_on_every_rank(what: str) -> None:
    told: dict[int, str] = {}

    def body(group: rd.Group) -> None:
        x = rg.Graph().input([1.0, 2.0], name="x")
        try:
            MISMATCHES[what](x, group).value
        except rd.DistributedError as error:
            told[group.rank] = str(error)

    rd.run(body, "local:2", timeout=10.0)
    assert sorted(told) == [0, 1]
    for text in told.values():
        assert TOLD[what] in text
        assert "read these nodes in the same order on every rank" in text


def test_another_order_is_told() -> None:
    def body(group: rd.Group) -> None:
        x = rg.Graph().input([1.0, 2.0], name="x")
        a, b = rd.all_reduce(x, "sum", group), rd.all_reduce(x, "max", group)
        for one in (a, b) if group.rank else (b, a):
            one.value

    error = fails(body)
    assert "rank 0 asked for all_reduce(max)" in str(error)
    assert "rank 1 asked for all_reduce(sum)" in str(error)


def test_a_rank_that_never_comes_is_named() -> None:
    def body(group: rd.Group) -> None:
        if group.rank == 0:
            rd.all_reduce(rg.Graph().input(1.0, name="x"), "sum", group).value

    error = fails(body)  # the other rank has ended: no need to wait
    assert isinstance(error, rd.RankFailedError)
    assert "rank 1 has ended: rank 0 asked for all_reduce(sum) of float64 () for 'x'" in str(error)


def test_a_rank_that_comes_too_late_is_named() -> None:
    def body(group: rd.Group) -> None:
        if group.rank == 1:
            time.sleep(1.5)
        rd.all_reduce(rg.Graph().input(1.0), "sum", group).value

    error = fails(body, timeout=0.3)
    assert isinstance(error, rd.RankTimeoutError)
    assert isinstance(error, TimeoutError)
    assert "rank 1 did not come within 0.3 s" in str(error)
    assert error.asked == {0: "all_reduce(sum) of float64 () for 'input_1'"}


def test_ranks_that_wait_for_each_other_are_told_at_once() -> None:
    def body(group: rd.Group) -> None:
        x = rg.Graph().input(1.0)
        rd.recv(x, 1 - group.rank, group).value

    error = fails(body, timeout=100.0)
    assert "all ranks wait for each other" in str(error)
    assert "rank 1 asked for message from 0 to 1" in str(error)


def test_an_exception_of_one_rank_ends_all_with_its_traceback() -> None:
    heard: dict[int, str] = {}

    def body(group: rd.Group) -> None:
        if group.rank == 2:
            raise ZeroDivisionError("the third rank cannot go on")
        try:
            rd.all_reduce(rg.Graph().input(1.0), "sum", group).value
        except rd.RankFailedError as error:
            heard[group.rank] = f"{error.rank}: {error}"
            raise

    error = fails(body, size=4, timeout=100.0)
    assert isinstance(error, ZeroDivisionError)
    assert error.__notes__ == ["raised on rank 2 of 4"]
    assert sorted(heard) == [0, 1, 3]
    for text in heard.values():
        assert text.startswith("2: rank 2 raised ZeroDivisionError")
        assert "the third rank cannot go on" in text
        assert "in body" in text  # where it was raised


def test_a_node_that_raises_on_one_rank_ends_all() -> None:
    def body(group: rd.Group) -> None:
        x = rg.Graph().input(float(group.rank))
        y = rg.lift(lambda v: 1.0 / v, shape=())(x)
        rd.all_reduce(y, "sum", group).value

    assert isinstance(fails(body, timeout=100.0), ZeroDivisionError)


def test_a_collective_starts_as_soon_as_its_operands_are_there() -> None:
    """With a latency, both of two independent collectives are under way at the same time."""

    def body(group: rd.Group) -> list[str]:
        seen: list[str] = []

        def note(word: str) -> Any:
            def function(value: Any) -> Any:
                seen.append(word)
                return value

            return rg.lift(function, shape=())

        g = rg.Graph()
        x = g.input(1.0)
        a = rd.all_reduce(note("first operand")(x), "sum", group)
        a = note("first result")(a)
        b = rd.all_reduce(note("second operand")(x), "sum", group)
        (a + b).value
        return seen

    for seen in rd.run(body, "local:2", latency=0.01):
        assert seen == ["first operand", "second operand", "first result"]


def test_collectives_build_no_nodes_when_they_are_read_again() -> None:
    def body(group: rd.Group) -> None:
        g = rg.Graph()
        x = g.input(np.arange(4.0))
        y = rd.all_reduce(x, "sum", group)
        slope = rg.grad((y**2).sum(), x)
        slope.value
        nodes = len(g)
        for step in range(3):
            x.set(np.arange(4.0) + step)
            slope.value
        assert len(g) == nodes

    rd.run(body, "local:2")


def test_arguments_are_checked() -> None:
    def body(group: rd.Group) -> None:
        g = rg.Graph()
        x, whole = g.input(np.ones(3)), g.input([1, 2])
        with pytest.raises(rg.DTypeError, match=r"takes a Var, not list\. Make an input"):
            rd.all_reduce([1.0], "sum", group)
        with pytest.raises(rd.DistributedError, match="Write one of sum, avg, max, min, product"):
            rd.all_reduce(x, "mean", group)
        with pytest.raises(rg.DTypeError, match="the mean of int64 is no int64"):
            rd.all_reduce(whole, "avg", group)
        with pytest.raises(rg.ShapeError, match=r"has shape \(3,\)\. Pad it to a multiple of 2"):
            rd.scatter(x, 0, group)
        with pytest.raises(rd.DistributedError, match="7 is no rank of this group of 2"):
            rd.broadcast(x, 7, group)
        with pytest.raises(rd.DistributedError, match="rank . is this rank. Use the Var itself"):
            rd.send(x, group.rank, group)
        with pytest.raises(rg.DTypeError, match="one message holds one dtype"):
            rd.reduce_add_coalesced([x, whole], 0, group)

    rd.run(body, "local:2")
    with pytest.raises(rd.DistributedError, match='there is no such backend. Write "mpi"'):
        rd.init("gloo")
    with pytest.raises(rd.DistributedError, match="there is no group yet"):
        rd.group()


def pairs(group: rd.Group, **options: Any) -> tuple[rg.Graph, Any, Any]:
    g = rg.Graph(**options)
    x = g.input(np.array([1.0, 2.0]) + group.rank, name="x")
    y = (rd.all_reduce(x * 2.0, "sum", group) ** 2).sum()
    y.name = "y"
    return g, x, y


OF_BOTH = 136.0  # of 6 and 10


def test_what_ifs_are_asked_by_all_ranks() -> None:
    def body(group: rd.Group) -> None:
        g, x, y = pairs(group)
        assert y.value == OF_BOTH
        with g.whatif({x: [0.0, 0.0]}) as fork:
            assert fork[y].value == 0.0
        with g.whatif({x: [0.0, 0.0]} if group.rank else {}) as fork:  # on one rank only
            assert fork[y].value == 20.0
        before = group.traffic.bytes
        assert y.value == OF_BOTH
        assert group.traffic.bytes == before

    rd.run(body, "local:2", timeout=5.0)


@pytest.mark.parametrize("options", [{"executor": rg.Threads(2)}, {"max_bytes": 10**6}, {}])
def test_executors_and_budgets(options: dict[str, Any]) -> None:
    def body(group: rd.Group) -> None:
        _, x, y = pairs(group, **options)
        assert y.value == OF_BOTH
        x.set([1.0, 1.0])
        assert y.value == 32.0

    rd.run(body, "local:2", timeout=5.0)


def test_transactions_observers_and_functions() -> None:
    def body(group: rd.Group) -> None:
        g, x, y = pairs(group)
        twice = rg.lift(lambda a: y.value + a)(x[0])
        assert twice.value == OF_BOTH + 1.0 + group.rank
        with pytest.raises(KeyError):
            with g.transaction():
                x.set([5.0, 5.0])
                assert y.value == 800.0
                raise KeyError
        assert y.value == OF_BOTH
        seen: list[float] = []
        y.observe(lambda old, new: seen.append(float(new)))
        x.set([1.0, 1.0])
        g.stabilize()
        assert seen == [32.0]

    rd.run(body, "local:2", timeout=5.0)


def test_a_loop_that_writes_its_model_builds_nothing_more() -> None:
    def body(group: rd.Group) -> None:
        g = rg.Graph()
        w = g.param([1.0, 2.0])
        counts = []
        for _ in range(6):
            loss = rd.all_reduce((w * w).sum(), "avg", group)
            loss.backward()
            w.set(w.value - 0.1 * w.grad)
            w.zero_grad()
            counts.append(len(g))
        np.testing.assert_allclose(w.value, [0.8**6, 2 * 0.8**6])
        assert len(set(counts)) == 1

    rd.run(body, "local:2", timeout=5.0)


def test_edits_of_what_goes_to_other_ranks() -> None:
    def body(group: rd.Group) -> None:
        g, x, y = pairs(group)
        slope = rg.grad(y, x)
        assert slope.value.tolist() == [48.0, 80.0]
        other = g.input([7.0, 7.0])
        total = y.parents[0].parents[0]
        with pytest.raises(rg.SaveError, match="part of a collective"):
            g.to_bytes()
        total.parents[1].replace_parent(0, other)  # the product goes on with another leaf
        assert y.value == 2 * 28.0**2
        assert slope.value.tolist() == [0.0, 0.0]

    rd.run(body, "local:2", timeout=5.0)


def test_what_is_cut_off_before_a_collective_is_not_sent() -> None:
    def body(group: rd.Group) -> None:
        g = rg.Graph()
        x = g.input(1.0)
        sign = rg.sign(x)
        sign.cutoff = "equal"
        y = rd.all_reduce(sign, "sum", group)
        assert y.value == 2.0
        before = group.traffic.bytes
        x.set(2.0)
        assert y.value == 2.0
        assert group.traffic.bytes == before

    rd.run(body, "local:2", timeout=5.0)


@pytest.mark.parametrize("dtype", ["int32", "float32", "complex128", "bool"])
def test_dtypes(dtype: str) -> None:
    def body(group: rd.Group) -> None:
        x = rg.Graph().input(np.array([1, 0]).astype(dtype))
        y = rd.broadcast(x, 1, group)
        assert (y.dtype, y.value.dtype) == (np.dtype(dtype), np.dtype(dtype))
        assert rd.all_gather(x[:0], group).shape == (0,)

    rd.run(body, "local:2", timeout=5.0)


def test_a_number_of_the_wrong_kind_is_refused() -> None:
    with pytest.raises(rd.DistributedError, match="seconds above 0"):
        rd.init("local:2", timeout=0.0)
    with pytest.raises(rd.DistributedError, match="at least one rank"):
        rd.init("local:0")
    with pytest.raises(TypeError, match="a group is not pickled"):
        rd.run(lambda group: group.all_gather_object(group), "local:1")


def test_nccl_says_what_it_lacks() -> None:
    if find_spec("cupy") is not None:
        pytest.skip("CuPy is here")
    with pytest.raises(rg.MissingExtraError, match="Ranks without GPUs work by"):
        rg.distributed.init("nccl")


def test_the_fitness_of_genomes_is_divided() -> None:
    class Genome:
        fitness: float | None = None

    def body(group: rd.Group) -> None:
        genomes = [(i, Genome()) for i in range(7)]
        seen = []

        def fitness(share: Any, config: Any) -> None:
            for key, genome in share:
                seen.append(key)
                genome.fitness = 10.0 * key

        found = rd.spread_fitness(fitness, group)(genomes, None)
        assert found == [10.0 * i for i in range(7)]
        assert [genome.fitness for _, genome in genomes] == found
        assert seen == list(range(7))[group.rank :: group.size]
        with pytest.raises(rd.DistributedError, match="returned 1 numbers for"):
            rd.spread_fitness(lambda genomes, config: [1.0], group)(genomes, None)

    rd.run(body, "local:3", timeout=5.0)
