"""Training on several ranks is training on one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import distributed as rd

ROWS = 22
X = np.random.default_rng(0).normal(size=(ROWS, 3))
Y = np.random.default_rng(1).normal(size=(ROWS, 1))


def model(seed: int = 5) -> rg.nn.Sequential:
    with rg.Graph(rng=seed):
        return rg.nn.Sequential(rg.nn.Linear(3, 8), rg.nn.Tanh(), rg.nn.Linear(8, 1))


def rows_of(group: rd.Group | None, count: int = ROWS) -> np.ndarray:
    return (
        np.arange(count)
        if group is None
        else np.array_split(np.arange(count), group.size)[group.rank]
    )


def train(
    group: rd.Group | None,
    steps: int = 15,
    wrap: Callable[[Any, rd.Group], Any] | None = None,
    optimizer: Callable[[Any], Any] | None = None,
    batches: int = 1,
) -> dict[str, np.ndarray]:
    """Train one process, or ranks on parts of each batch; batches are uneven."""
    net: Any = model(5 if group is None else 5 + group.rank)
    if group is not None:
        net = (wrap or rd.DataParallel)(net, group)
    opt = (optimizer or (lambda net: rg.optim.Adam(net.parameters(), lr=0.01)))(net)
    criterion = rg.nn.MSELoss()
    for step in range(steps):
        part = np.arange(ROWS)[step % batches :: batches]
        rows = part[rows_of(group, len(part))]
        opt.zero_grad()
        criterion(net(X[rows]), Y[rows]).backward()
        opt.step()
    return net.state_dict()


def close(one: dict[str, np.ndarray], every: list[dict[str, np.ndarray]]) -> None:
    for other in every:
        assert other.keys() == one.keys()
        for name, value in one.items():
            np.testing.assert_allclose(other[name], value, rtol=0, atol=1e-9)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_ranks_train_as_one_process_does(size: int) -> None:
    close(train(None), rd.run(train, f"local:{size}", timeout=20.0))


def test_uneven_batches_of_changing_length_train_as_in_one_process() -> None:
    one = train(None, batches=3)
    close(one, rd.run(lambda group: train(group, batches=3), "local:4", timeout=20.0))


def test_small_buckets_train_as_large_ones() -> None:
    def small(net: Any, group: rd.Group) -> Any:
        return rd.DataParallel(net, group, first_bucket_bytes=1, bucket_bytes=1)

    close(train(None), rd.run(lambda group: train(group, wrap=small), "local:2", timeout=20.0))


def test_a_rank_without_rows_takes_part() -> None:
    def body(group: rd.Group) -> list[float]:
        net = rd.DataParallel(model(), group)
        rows = np.arange(ROWS if group.rank == 0 else 0)
        loss = ((net(X[rows]) - Y[rows]) ** 2).mean()
        with np.errstate(all="ignore"):
            loss.backward()
        return [param.grad.sum() for param in net.parameters()]

    net = model()
    ((net(X) - Y) ** 2).mean().backward()
    expected = [param.grad.sum() for param in net.parameters()]
    for found in rd.run(body, "local:2", timeout=20.0):
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_losses_that_are_sums_add_up() -> None:
    def body(group: rd.Group) -> Any:
        net = rd.DataParallel(model(), group, reduction="sum")
        rows = rows_of(group)
        ((net(X[rows]) - Y[rows]) ** 2).sum().backward()
        return net.module[0].weight.grad

    net = model()
    ((net(X) - Y) ** 2).sum().backward()
    for found in rd.run(body, "local:3", timeout=20.0):
        np.testing.assert_allclose(found, net[0].weight.grad, atol=1e-9)


def test_buckets_go_in_the_order_in_which_adjoints_become_clean() -> None:
    def body(group: rd.Group) -> None:
        net = rd.DataParallel(model(), group, first_bucket_bytes=1, bucket_bytes=1)
        rows = rows_of(group)
        loss = ((net(X[rows]) - Y[rows]) ** 2).mean()
        run = loss.backward()
        assert [name[0][0] for name in net.buckets] == ["2", "2", "0", "0"]  # the last layer first
        order = [one.label for one in run.ran]
        starts = [i for i, name in enumerate(order) if name.startswith("start_all_reduce")]
        waits = [i for i, name in enumerate(order) if name.startswith("all_reduce")]
        # The first start of a bucket is before adjoints of the first layer, all waits are behind.
        gradients = starts[1:]
        assert len(gradients) == 4
        between = order[gradients[0] + 1 : gradients[-1]]
        assert any(not name.startswith("start") for name in between)
        assert max(gradients) < min(waits[1:])

    rd.run(body, "local:2", latency=0.01, timeout=20.0)


def test_frozen_layers_send_nothing_and_unused_ones_hold_nothing_up() -> None:
    def body(group: rd.Group) -> None:
        with rg.Graph(rng=1):
            net = rg.nn.Sequential(rg.nn.Linear(3, 50), rg.nn.Tanh(), rg.nn.Linear(50, 1))
            extra = rg.nn.Linear(1000, 10)
            net[1].register_module("extra", extra)  # which no call uses
        net[0].freeze()
        wrapped = rd.DataParallel(net, group, broadcast_buffers=False)
        rows = rows_of(group)
        loss = ((wrapped(X[rows]) - Y[rows]) ** 2).mean()
        before = group.traffic.bytes
        loss.backward()
        assert group.traffic.bytes - before < 8 * 51 + 400  # the last layer, names and lengths
        assert net[0].weight.grad is None
        assert extra.weight.grad is None
        before = group.traffic.bytes
        loss.backward()  # nothing has changed on any rank
        assert group.traffic.bytes == before
        net[2].bias.set(net[2].bias.value + 1.0)
        loss.backward()
        assert group.traffic.bytes - before == 8 * 51

    rd.run(body, "local:2", timeout=20.0)


def test_a_param_that_one_rank_alone_reaches_counts_there() -> None:
    def body(group: rd.Group) -> list[Any]:
        with rg.Graph(rng=1):
            net = rg.nn.Module()
            net.a, net.b = rg.nn.Parameter(1.0), rg.nn.Parameter(2.0)
        wrapped = rd.DataParallel(net, group, find_unused_parameters=True)
        for _ in range(2):
            wrapped.zero_grad()
            loss = net.a * 3.0 if group.rank == 0 else net.a * net.b
            loss.backward()
        return [net.a.grad.item(), net.b.grad.item()]

    assert rd.run(body, "local:2", timeout=20.0) == [[2.5, 0.5]] * 2


@pytest.mark.parametrize("micro", [2, 3])
def test_accumulated_gradients_travel_at_the_last_batch(micro: int) -> None:
    def steps(group: rd.Group | None) -> dict[str, Any]:
        net: Any = model()
        if group is not None:
            net = rd.DataParallel(net, group)
        opt = rg.optim.Adam(net.parameters(), lr=0.01)
        criterion = rg.nn.MSELoss()
        messages = []
        for _ in range(6):
            opt.zero_grad()
            for i in range(micro):
                part = np.arange(ROWS)[i::micro]
                rows = part[rows_of(group, len(part))]
                if group is None or i == micro - 1:
                    before = 0 if group is None else group.traffic.bytes
                    criterion(net(X[rows]), Y[rows]).backward()
                    messages.append(0 if group is None else group.traffic.bytes - before)
                else:
                    before = group.traffic.bytes
                    with net.no_sync():
                        criterion(net(X[rows]), Y[rows]).backward()
                    assert group.traffic.bytes - before <= 8  # at most a new length
            opt.step()
        if group is not None:
            assert messages[-1] >= 8 * 41
        return net.state_dict()

    close(steps(None), rd.run(steps, "local:2", timeout=20.0))


def test_the_hook_of_single_params_trains_as_well() -> None:
    def body(group: rd.Group) -> dict[str, Any]:
        net = model()
        for param in net.parameters():
            param.register_post_accumulate_grad_hook(rd.all_reduce_hook("avg", group))
        opt = rg.optim.Adam(net.parameters(), lr=0.01)
        rows = np.arange(ROWS)[group.rank :: group.size]  # of one length
        for _ in range(15):
            opt.zero_grad()
            ((net(X[rows]) - Y[rows]) ** 2).mean().backward()
            opt.step()
        return net.state_dict()

    close(train(None), rd.run(body, "local:2", timeout=20.0))


@pytest.mark.parametrize("size", [2, 3, 6])
def test_moments_are_divided(size: int) -> None:
    def sharded(net: Any) -> Any:
        return rd.ShardedOptimizer(rg.optim.Adam, net.named_parameters(), net.group, lr=0.01)

    def body(group: rd.Group) -> dict[str, Any]:
        return train(group, optimizer=sharded)

    close(train(None), rd.run(body, f"local:{size}", timeout=20.0))


def test_each_rank_keeps_its_part_of_the_moments() -> None:
    def body(group: rd.Group) -> Any:
        net = rd.DataParallel(model(), group)
        opt = rd.ShardedOptimizer(rg.optim.Adam, net.named_parameters(), group, lr=0.01)
        ((net(X) - Y) ** 2).mean().backward()
        opt.step()
        own = list(opt.optimizer.state_dict()["state"]) if opt.optimizer else []
        whole = opt.state_dict()
        single = rg.optim.Adam(net.named_parameters(), lr=0.01)
        single.load_state_dict(whole)  # it loads in one process
        again = rd.ShardedOptimizer(rg.optim.Adam, net.named_parameters(), group, lr=0.01)
        again.load_state_dict(whole)
        for _ in range(2):
            for one in (opt, again):
                assert one.state_dict().keys() == whole.keys()
        return own

    first, second = rd.run(body, "local:2", timeout=20.0)
    assert sorted(first + second) == ["0.bias", "0.weight", "2.bias", "2.weight"]
    assert first
    assert second


def test_buffers_and_seeds_are_kept_in_step() -> None:
    def body(group: rd.Group) -> Any:
        with rg.Graph(rng=group.rank) as g:
            net = rg.nn.Sequential(rg.nn.Linear(3, 4), rg.nn.BatchNorm1d(4), rg.nn.Dropout(0.5))
        wrapped = rd.DataParallel(net, group)
        assert g.seed == 0
        rows = rows_of(group)
        for _ in range(3):
            (wrapped(X[rows]) ** 2).mean().backward()
        wrapped(X[rows])  # takes the buffers of rank 0, then mixes its own batch
        wrapped.eval()
        return net[0].weight.value, float(net[1].num_batches_tracked.value)

    (weight, count), (other, second) = rd.run(body, "local:2", timeout=20.0)
    np.testing.assert_array_equal(weight, other)
    assert count == second == 4.0


def test_two_models_of_one_graph_do_not_mix() -> None:
    def body(group: rd.Group) -> Any:
        with rg.Graph(rng=1):
            first, second = rg.nn.Linear(3, 1), rg.nn.Linear(3, 1)
        first_all = rd.DataParallel(first, group)
        rows = rows_of(group)
        loss = ((first_all(X[rows]) + second(X[rows])) ** 2).mean()
        loss.backward()
        return first.bias.grad.item(), second.bias.grad.item()

    (a, b), (c, d) = rd.run(body, "local:2", timeout=20.0)
    assert a == c
    assert b != d  # this one is not data parallel


def test_different_models_are_told() -> None:
    def body(group: rd.Group) -> None:
        with rg.Graph():
            net = rg.nn.Linear(3, 1 + group.rank)
        rd.DataParallel(net, group)

    with pytest.raises(
        rd.DistributedError, match=r"'weight' is float64 \(1, 3\) on rank 0 and float64 \(2, 3\)"
    ):
        rd.run(body, "local:2", timeout=20.0)


def test_arguments_are_checked() -> None:
    def body(group: rd.Group) -> None:
        with pytest.raises(
            rg.DTypeError, match="DataParallel takes a module of rg.nn, not function"
        ):
            rd.DataParallel(lambda x: x, group)
        with pytest.raises(rg.DTypeError, match='"mean" or "sum"'):
            rd.DataParallel(model(), group, reduction="max")
        with pytest.raises(rg.DTypeError, match="an optimiser's class, such as rg.optim.Adam"):
            rd.ShardedOptimizer(rg.Graph, model().parameters(), group)
        with pytest.raises(rd.DistributedError, match="there is no such reduction"):
            rd.all_reduce_hook("mean", group)

    rd.run(body, "local:1")


def test_steps_build_no_nodes() -> None:
    def body(group: rd.Group) -> None:
        net = rd.DataParallel(model(), group)
        graph = net.module[0].weight.graph
        opt = rg.optim.SGD(net.parameters(), lr=0.01)
        criterion = rg.nn.MSELoss()
        rows = rows_of(group)
        counts = []
        for _ in range(4):
            opt.zero_grad()
            criterion(net(X[rows]), Y[rows]).backward()
            opt.step()
            counts.append(len(graph))
        assert len(set(counts[1:])) == 1

    rd.run(body, "local:2", timeout=20.0)
