"""Snapshots with values, and recordings that keep one after each run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.explain._snapshot import key_of, present
from reactgrad.values._brief import MOST_LETTERS, brief


def test_a_recording_keeps_the_states_between_runs() -> None:
    g = rg.Graph()
    x = g.input(1.0, name="x")
    y = rg.lift(lambda v: v > 0, cutoff="equal")(x)
    z = rg.lift(lambda v: not v)(y)
    keys = [key_of(g, var) for var in (x, y, z)]
    with g.record(snapshots=True) as log:
        z.value
        x.set(2.0)
        z.value
    found = [[(s.by_key[key].state, s.by_key[key].value) for key in keys] for s in log.snapshots]
    assert found[0] == [("clean", "1"), ("stale", ""), ("stale", "")]
    assert found[1] == [("clean", "1"), ("clean", "True"), ("clean", "False")]
    assert found[2] == [("clean", "2"), ("clean", "True"), ("clean", "False")]
    first, second = log.run_snapshots
    assert (first.ran, first.cut_off, first.skipped, first.nodes) == (tuple(keys[1:]), (), (), 2)
    assert (second.ran, second.cut_off) == ((keys[1],), (keys[1],))
    assert first.times.keys() == set(keys[1:])
    with g.record() as plain:
        z.value
    assert plain.snapshots == plain.run_snapshots == ()
    assert {node.value for node in g.snapshot().nodes} == {""}


def test_looking_at_a_value_is_no_read() -> None:
    g = rg.Graph()
    x, other = g.input(np.arange(3.0)), g.input(1.0)
    y, z = x * 2.0, rg.tanh(other)
    run = g.forward(y, z)
    other.set(2.0)
    value: Any = present(g, y)
    assert value.tolist() == [0.0, 2.0, 4.0]
    assert not value.flags.writeable
    assert present(g, z) is None
    y._repr_html_()
    g.snapshot(values=True)
    assert g.last_run.ran == run.ran


class Loud:
    def __repr__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.5, "1.5"),
        (np.float64(1e-9), "1e-09"),
        (True, "True"),
        (10**6, "1000000"),
        (np.array(2.0), "2"),
        (np.zeros((2, 3)), "[0, 0, 0, 0, ...]"),
        (np.zeros(0), "[]"),
        (None, "None"),
        ("a\nb", "'a\\nb'"),
    ],
)
def test_values_in_brief(value: Any, text: str) -> None:
    assert brief(value) == text


@pytest.mark.parametrize(
    "value", ["x" * 10_000, [*range(10_000)], 10**1000, Loud(), {1: [[[[2]]]]}]
)
def test_brief_is_brief(value: Any) -> None:
    assert 0 < len(brief(value)) <= MOST_LETTERS
