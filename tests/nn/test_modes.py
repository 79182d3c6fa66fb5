"""Train and eval mode: what reruns, and what each call draws."""

from __future__ import annotations

import numpy as np

import reactgrad as rg
from reactgrad import nn


def test_eval_reruns_exactly_the_nodes_that_depend_on_the_mode() -> None:
    with rg.Graph() as g:
        net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 2))
    y = net(np.ones((3, 4)))
    noisy = y.value
    net.eval()
    quiet = y.value
    ran = {var.name.rpartition("/")[0] for var in g.last_run.ran}
    assert ran == {"Sequential/2", "Sequential/3"}
    assert not np.array_equal(noisy, quiet)
    assert np.array_equal(net(np.ones((3, 4))).value, quiet)
    net.train()
    assert np.array_equal(y.value, noisy)  # the same draw: it was not drawn anew
    g.eval()
    assert np.array_equal(y.value, quiet)
    assert not net.training


def test_each_call_draws_anew_and_a_result_that_is_held_keeps_its_draw() -> None:
    with rg.Graph() as g:
        net = nn.Dropout(0.5)
    x = g.input(np.ones(100))
    first = net(x)
    kept = first.value.copy()
    second = net(x)
    assert not np.array_equal(second.value, kept)
    assert np.array_equal(first.value, kept)
    draws = [net(x).value for _ in range(20)]
    assert len({draw.tobytes() for draw in draws}) == 20
    sizes = set()
    for _ in range(50):
        net(x)
        sizes.add(len(g))
    assert len(sizes) == 1


def test_a_part_may_be_in_eval_mode_alone() -> None:
    with rg.Graph():
        net = nn.Sequential(nn.Dropout(1.0), nn.Dropout(0.0))
    y = net([1.0, 2.0])
    assert y.tolist() == [0.0, 0.0]
    net[0].eval()
    assert y.tolist() == [1.0, 2.0]
    assert net.training
    assert not net[0].training


def test_a_forward_that_reads_training_is_built_for_each_mode() -> None:
    class Net(nn.Module):
        def forward(self, x: rg.Var) -> rg.Var:
            return x * 2.0 if self.training else x

    net = Net()
    assert net([1.0]).tolist() == [2.0]
    assert net.eval()([1.0]).tolist() == [1.0]
    assert net.train()([1.0]).tolist() == [2.0]
