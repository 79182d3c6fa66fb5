"""Errors of memory and stack, which tell nothing about the parents: the next read runs again."""

from __future__ import annotations

import pytest

import reactgrad as rg
from tests.scheduler.test_errors import Moody, warm_up


@pytest.mark.parametrize("error", [MemoryError(), RecursionError("too deep")])
@pytest.mark.parametrize("turns", [0, 5], ids=["first read", "replayed plan"])
def test_an_error_of_the_machine_is_raised_once_and_the_next_read_runs(
    g: rg.Graph, error: Exception, turns: int
) -> None:
    """It tells nothing about the parents, so that nothing has to change for another try."""
    moody, heard = Moody(), []
    x = g.input(1.0)
    y = rg.lift(moody)(x)
    z, beside = y + 1.0, x * 3.0
    z.observe(heard.append, kind="error")
    warm_up(g, x, z, beside, turns=turns)
    x.set(50.0)
    moody.error, moody.calls = error, 0
    for calls in (1, 2):
        with pytest.raises(type(error)) as caught:
            g.forward(z, beside)
        assert moody.calls == calls
        assert len(caught.value.__notes__) == 1
        assert beside.value == 150.0
        assert y.state == "error"
        assert str(g.why(y)).endswith("; the next read runs it again")
        assert [type(one) for one in heard] == [type(error)] * calls
        twin = g.fork()
        g.check_invariants()
    moody.error = None
    run = g.forward(z)
    assert run.ran == [y, z]
    assert z.value == 51.0
    assert twin[z].value == 51.0


def test_a_reader_that_caught_a_memory_error_runs_again_with_what_it_reads(g: rg.Graph) -> None:
    moody = Moody(MemoryError())
    x, free = g.input(1.0), g.input(1.0)
    y = rg.lift(moody)(x)

    def read(value: float) -> float:
        try:
            return value + y.value
        except MemoryError:
            return -1.0

    z = rg.lift(read)(free)
    assert z.value == -1.0
    moody.error = None
    free.set(2.0)
    assert z.value == 3.0
    g.check_invariants()
