"""Nodes are found by the keys of snapshots, also where rows of dead nodes were taken over."""

from __future__ import annotations

import numpy as np

import reactgrad as rg
from reactgrad.explain._snapshot import key_of, slots_of, vars_of


def test_every_node_is_found_by_its_key_after_rows_were_taken_over() -> None:
    g = rg.Graph()
    x, w = g.input(np.ones(3), name="x"), g.param(np.ones(3), name="w")
    for step in range(6):
        x.set(np.full(3, 0.1 * step))
        loss = rg.tanh(rg.tanh(x * w + 0.5) * w + 0.5).sum()
        loss.backward()
        topology = g._scheduler.topology
        by_number = topology.by_number()
        assert by_number == {topology.number(slot): slot for slot in topology.slots()}
        assert all(topology.find(key) == slot for key, slot in by_number.items())
        for var in (w, x, loss):
            assert vars_of(g, [key_of(g, var)]) == {key_of(g, var): var}
    assert g._scheduler.topology.numbers, "rows were taken over"
    assert slots_of(g, [0, 10**9]) == {}
