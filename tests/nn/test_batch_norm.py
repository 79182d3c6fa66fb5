"""Running statistics: what moves them, how often, and what a switch of the mode reruns."""

from __future__ import annotations

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import nn

ROWS = np.array([[1.0, 10.0], [3.0, 30.0], [8.0, 20.0]])


def test_a_call_moves_the_statistics_once_and_reads_do_not() -> None:
    with rg.Graph():
        layer = nn.BatchNorm1d(2)
    y = layer(ROWS)
    expected = 0.1 * ROWS.mean(0)
    for _ in range(3):
        assert np.allclose(layer.running_mean.value, expected)
        _ = y.value
        y.sum().backward()
    assert layer.num_batches_tracked.value == 1
    assert np.allclose(layer.running_var.value, 0.9 + 0.1 * ROWS.var(0, ddof=1))
    layer(ROWS)
    assert np.allclose(layer.running_mean.value, 0.9 * expected + expected)
    assert layer.num_batches_tracked.value == 2


def test_a_loop_that_sets_inputs_moves_the_statistics_when_it_says_so() -> None:
    with rg.Graph() as g:
        net = nn.Sequential(nn.BatchNorm1d(2))
    x = g.input(ROWS)
    y = net(x)
    x.set(2.0 * ROWS)
    _ = y.value
    assert net[0].num_batches_tracked.value == 1
    net.update_statistics()
    assert net[0].num_batches_tracked.value == 2
    expected = 0.9 * 0.1 * ROWS.mean(0) + 0.1 * 2.0 * ROWS.mean(0)
    assert np.allclose(net[0].running_mean.value, expected)


def test_moved_statistics_rerun_nothing_in_train_mode() -> None:
    with rg.Graph() as g:
        net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Linear(2, 1))
    y = net(ROWS)
    _ = y.value
    net[1].reset_running_stats()
    assert not y.is_stale
    net.eval()
    assert y.is_stale
    _ = y.value
    ran = {var.name.rpartition("/")[0] for var in g.last_run.ran}
    assert ran == {"Sequential/1", "Sequential/2"}


def test_a_transaction_that_fails_leaves_the_statistics() -> None:
    with rg.Graph() as g:
        layer = nn.BatchNorm1d(2)
    with pytest.raises(KeyError), g.transaction():
        layer(ROWS)
        raise KeyError
    assert layer.num_batches_tracked.value == 0
    assert np.array_equal(layer.running_mean.value, [0.0, 0.0])


def test_without_momentum_statistics_are_the_mean_of_all() -> None:
    with rg.Graph():
        layer = nn.BatchNorm1d(2, momentum=None)
    for k in (1.0, 2.0, 6.0):
        layer(k * ROWS)
    assert np.allclose(layer.running_mean.value, 3.0 * ROWS.mean(0))


def test_eval_mode_takes_a_single_sample_and_train_mode_says_that_it_has_no_variance() -> None:
    with rg.Graph():
        layer = nn.BatchNorm1d(2)
    with pytest.raises(rg.ShapeError, match="it has no variance"):
        layer(ROWS[:1])
    layer.eval()
    assert np.allclose(layer(ROWS[:1]).value, ROWS[:1] / np.sqrt(1.0 + 1e-5))
    assert layer.num_batches_tracked.value == 0


def test_an_empty_batch_moves_no_statistics() -> None:
    with rg.Graph():
        layers = [nn.BatchNorm1d(2), nn.InstanceNorm1d(2, track_running_stats=True)]
    for layer, shape in zip(layers, ((0, 2), (0, 2, 5)), strict=True):
        assert layer(np.zeros(shape)).shape == shape
        assert layer.running_mean.value.tolist() == [0.0, 0.0]
        assert layer.running_var.value.tolist() == [1.0, 1.0]
    assert layers[0].num_batches_tracked.value == 1  # counted, as in PyTorch


def test_the_size_of_a_training_loop_with_statistics_and_draws_is_constant() -> None:
    with rg.Graph() as g:
        net = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Dropout(0.2), nn.Linear(4, 1))
    criterion, sizes = nn.MSELoss(), []
    for k in range(10):
        loss = criterion(net(ROWS + k), np.zeros((3, 1)))
        net.zero_grad()
        loss.backward()
        g.set({param: param.value - 0.01 * param.grad for param in net.parameters()})
        sizes.append((len(g), g._scheduler.topology.next_serial))
    assert len(set(sizes[3:])) == 1  # no node was made either, for values or gradients
    assert net[1].num_batches_tracked.value == 10


def test_another_number_of_channels_is_refused() -> None:
    with rg.Graph():
        layer = nn.BatchNorm2d(3)
    with pytest.raises(rg.ShapeError, match=r"BatchNorm2d\(3\) .*: the input has 2 channels"):
        layer(np.zeros((1, 2, 4, 4)))
    with pytest.raises(rg.ShapeError, match="it takes an input of 4 axes"):
        layer(np.zeros((1, 3, 4)))
