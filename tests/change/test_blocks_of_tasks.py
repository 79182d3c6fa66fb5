"""Blocks that are open while other tasks of the thread go on: transactions, edits, modes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import Context
from typing import Any

import pytest

import reactgrad as rg

BROKEN_OFF = "another task used the graph while a transaction of this task was open"


class Abort(Exception):
    """What ends a block."""


async def raised(work: Coroutine[Any, Any, object]) -> Exception | None:
    try:
        await work
    except Exception as error:
        return error
    return None


async def in_turn(*works: Coroutine[Any, Any, object]) -> list[Exception | None]:
    return await asyncio.gather(*map(raised, works))


USES: dict[str, Callable[[rg.Graph, rg.Var, rg.Var], object]] = {
    "set": lambda g, y, z: y.set(5.0),
    "set together": lambda g, y, z: g.set({y: 5.0}),
    "mutate": lambda g, y, z: y.set(5.0) if z.value else None,
    "transaction": lambda g, y, z: transact(g, y),
}


def transact(g: rg.Graph, y: rg.Var) -> None:
    with g.transaction():
        y.set(5.0)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("fails", [False, True])
def test_what_another_task_sets_is_not_taken_back_with_a_transaction(
    fails: bool, use: str, g: rg.Graph
) -> None:
    x, y = g.input(1.0), g.input(1.0)
    z = x + y
    z.value
    seen: list[float] = []

    async def transaction() -> None:
        with g.transaction():
            x.set(2.0)
            await asyncio.sleep(0)
            if fails:
                raise Abort

    async def other() -> None:
        seen.append(x.value)
        USES[use](g, y, z)
        seen.append(z.value)

    first, second = asyncio.run(in_turn(transaction(), other()))
    assert second is None
    assert isinstance(first, Abort if fails else rg.BlockError)
    assert fails or str(first).startswith(BROKEN_OFF)
    assert seen == [1.0, 6.0]  # the other task sees nothing of the open transaction
    assert (x.value, y.value, z.value) == (1.0, 5.0, 6.0)
    g.check_invariants()


def test_a_transaction_that_no_other_task_comes_into_may_await(g: rg.Graph) -> None:
    x, other = g.input(1.0), rg.Graph().input(1.0)
    y = x + 1.0

    async def transaction() -> None:
        with g.transaction():
            x.set(2.0)
            await asyncio.sleep(0)
            assert y.value == 3.0
            with g.transaction():
                x.set(x.value + 1.0)
                await asyncio.sleep(0)

    async def elsewhere() -> None:
        other.set(5.0)

    assert asyncio.run(in_turn(transaction(), elsewhere())) == [None, None]
    assert (y.value, other.value) == (4.0, 5.0)


@pytest.mark.parametrize("act", ["set", "read", "edit", "build", "transaction"])
def test_after_another_task_came_in_the_block_can_do_nothing_more(act: str, g: rg.Graph) -> None:
    x, y = g.input(1.0), g.input(1.0)
    z = x + y
    z.value
    acts: dict[str, Callable[[], object]] = {
        "set": lambda: x.set(3.0),
        "read": lambda: x.value,
        "edit": lambda: z.replace_parent(0, y),
        "build": lambda: z * 2.0,
        "transaction": lambda: transact(g, x),
    }
    reached: list[str] = []

    async def transaction() -> None:
        with g.transaction(), g.transaction():
            x.set(2.0)
            await asyncio.sleep(0)
            with pytest.raises(rg.BlockError, match=BROKEN_OFF):
                acts[act]()
            reached.append(act)

    async def other() -> None:
        y.set(5.0)

    first, second = asyncio.run(in_turn(transaction(), other()))
    assert reached == [act]
    assert isinstance(first, rg.BlockError)
    assert str(first).startswith(BROKEN_OFF)
    assert second is None
    assert (x.value, y.value, z.value, z.parents[0] is x) == (1.0, 5.0, 6.0, True)
    acts[act]()  # afterwards all is as ever
    g.check_invariants()


def test_of_two_tasks_with_transactions_the_one_that_began_last_goes_on(g: rg.Graph) -> None:
    x, y = g.input(1.0), g.input(1.0)
    told: list[object] = []
    x.observe(lambda old, new: told.append(("x", new)))
    y.observe(lambda old, new: told.append(("y", new)))

    async def transaction(leaf: rg.Var, value: float) -> None:
        with g.transaction():
            leaf.set(value)
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    first, second = asyncio.run(in_turn(transaction(x, 2.0), transaction(y, 3.0)))
    assert isinstance(first, rg.BlockError)
    assert second is None
    assert (x.value, y.value) == (1.0, 3.0)
    assert told == [("x", 1.0), ("y", 3.0)]
    g.check_invariants()


def test_tasks_that_a_block_starts_are_other_tasks(g: rg.Graph) -> None:
    x, y = g.input(1.0), g.input(1.0)

    async def other() -> None:
        y.set(5.0)

    async def main() -> None:
        with g.transaction():
            x.set(2.0)
            async with asyncio.TaskGroup() as group:
                group.create_task(other())

    with pytest.raises(rg.BlockError, match=BROKEN_OFF):
        asyncio.run(main())
    assert (x.value, y.value) == (1.0, 5.0)


def test_a_task_that_is_cancelled_inside_gives_back_its_own_changes(g: rg.Graph) -> None:
    x, y = g.input(1.0), g.input(1.0)
    z = x + y

    async def transaction() -> None:
        with g.transaction():
            x.set(2.0)
            z.pin(100.0)
            await asyncio.sleep(10)

    async def main() -> None:
        task = asyncio.create_task(transaction())
        await asyncio.sleep(0)
        y.set(5.0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert (x.value, y.value, z.value, z.pinned) == (1.0, 5.0, 6.0, False)
    g.check_invariants()


@pytest.mark.slow
def test_a_thread_that_a_block_awaits_is_refused_and_does_not_wait_for_ever(g: rg.Graph) -> None:
    x = g.input(1.0)
    y = x + 1.0

    async def main() -> None:
        with g.transaction():
            x.set(2.0)
            await asyncio.to_thread(lambda: y.value)

    with pytest.raises(rg.BlockError, match="was called by a task inside a block"):
        asyncio.run(main())
    assert x.value == 1.0


# --- edits ----------------------------------------------------------------------------------------


def test_edits_of_several_tasks_are_made_apart(g: rg.Graph) -> None:
    a, b, c = g.input(1.0), g.input(2.0), g.input(4.0)
    y, z = a + 1.0, a * 10.0
    x = g.input(0.0)

    async def block() -> None:
        with g.edit():
            y.replace_parent(0, b)
            await asyncio.sleep(0)
            raise Abort

    async def other() -> None:
        z.replace_parent(0, c)
        assert z.value == 40.0
        with g.edit():
            z.replace_parent(0, b)
            await asyncio.sleep(0)
            assert z.value == 40.0
        with g.transaction():
            x.set(1.0)
        y.replace_parent(0, c)

    assert list(map(type, asyncio.run(in_turn(block(), other())))) == [Abort, type(None)]
    assert (y.value, z.value, x.value) == (5.0, 20.0, 1.0)
    g.check_invariants()


def test_an_edit_of_another_task_is_not_overwritten(g: rg.Graph) -> None:
    a, b, c = g.input(1.0), g.input(2.0), g.input(4.0)
    y = a + a

    async def block() -> None:
        with g.edit():
            y.replace_parent(0, b)
            await asyncio.sleep(0)

    async def other() -> None:
        y.replace_parent(1, c)

    first, second = asyncio.run(in_turn(block(), other()))
    assert second is None
    assert isinstance(first, rg.BlockError)
    assert "none of the edits of this block is made" in str(first)
    assert y.value == 5.0


# --- generators and other contexts -----------------------------------------------------------------


def test_a_block_that_a_generator_holds_open_belongs_to_who_drives_it(g: rg.Graph) -> None:
    x = g.input(1.0)

    @contextmanager
    def changing() -> Iterator[None]:
        with g.transaction(), g.edit():
            yield

    with changing():
        x.set(2.0)
    assert x.value == 2.0

    @asynccontextmanager
    async def changing_later() -> AsyncIterator[None]:
        with g.transaction():
            yield
            await asyncio.sleep(0)

    async def main() -> None:
        async with changing_later():
            x.set(3.0)

    asyncio.run(main())
    assert x.value == 3.0


def test_code_in_a_context_of_its_own_is_another_task(g: rg.Graph) -> None:
    """As in other frameworks than asyncio, where a task is a context."""
    x, y = g.input(1.0), g.input(1.0)
    with pytest.raises(rg.BlockError, match=BROKEN_OFF), g.transaction():
        x.set(2.0)
        Context().run(y.set, 5.0)
    assert (x.value, y.value) == (1.0, 5.0)
    g.check_invariants()


def test_modes_belong_to_their_task(g: rg.Graph) -> None:
    w = g.param(2.0)

    async def quiet() -> bool:
        with rg.no_grad(), g.reuse():
            await asyncio.sleep(0)
            return (w * w).requires_grad

    async def loud() -> bool:
        await asyncio.sleep(0)
        return (w * w).requires_grad

    async def main() -> list[bool]:
        return await asyncio.gather(quiet(), loud(), quiet())

    assert asyncio.run(main()) == [False, True, False]
