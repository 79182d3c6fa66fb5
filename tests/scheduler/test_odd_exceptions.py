"""Exceptions whose classes refuse attributes, comparison or copies are raised and stored like any other."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import pytest

import reactgrad as rg

# Before the classes below are there: what it imports enters all classes of errors in a dict, and these refuse.
with suppress(ImportError):
    import distributed.client  # noqa: F401


def refuse(self: Any, *args: Any) -> NoReturn:
    raise RuntimeError("not here")


@dataclass(frozen=True)
class Frozen(Exception):
    code: int


class Slots(Exception):
    __slots__ = ("code",)

    def __init__(self, code: int) -> None:
        self.code = code


class NeedsMore(Exception):
    def __new__(cls, code: int, *, text: str) -> NeedsMore:
        return super().__new__(cls, text)

    def __init__(self, code: int, *, text: str) -> None:
        self.code, self.text = code, text


class Members(ExceptionGroup[Exception]):
    pass


class Hostile(Exception):
    code = 7
    __setattr__ = __delattr__ = __bool__ = __eq__ = __hash__ = __str__ = __repr__ = refuse
    add_note = with_traceback = __copy__ = __reduce__ = __reduce_ex__ = __format__ = refuse


class Incomparable(type):
    __eq__ = __ne__ = __hash__ = __bool__ = refuse


class OfIncomparable(Exception, metaclass=Incomparable):
    code = 7


ONE = Frozen(7)
MAKERS: dict[str, Callable[[], Exception]] = {
    "frozen": lambda: Frozen(7),
    "slots": lambda: Slots(7),
    "needs more": lambda: NeedsMore(7, text="x"),
    "hostile": Hostile,
    "incomparable class": lambda: OfIncomparable(7),
    "one object": lambda: ONE,
    "group": lambda: Members("several", [Frozen(7), ValueError("x")]),
    "os": lambda: FileNotFoundError(2, "no such file", "prices.csv"),
    "stop": lambda: StopIteration(7),
}
each = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


class Raises:
    """A function that raises while it is told to, and keeps what it has raised."""

    def __init__(self, make: Callable[[], Exception]) -> None:
        self.make, self.on, self.calls = make, True, 0
        self.error: Exception | None = None

    def __call__(self, *values: Any) -> Any:
        self.calls += 1
        if self.on:
            self.error = self.make()
            raise self.error
        return values[-1]


def raised_by(act: Callable[[], object]) -> BaseException:
    """What `act` raises; ``pytest.raises`` would ask for its text."""
    try:
        act()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


@each
@pytest.mark.parametrize("turns", [0, 1, 5, 40])
@pytest.mark.parametrize("how", ["serial", "threads", "budget", "profile", "anomaly"])
def test_it_is_raised_stored_and_stops_nothing_else(
    make: Callable[[], Exception], turns: int, how: str
) -> None:
    kinds: dict[str, Any] = {"threads": {"executor": rg.Threads(2)}, "budget": {"max_bytes": 10**4}}
    g = rg.Graph(**kinds.get(how, {}))
    function = Raises(make)
    x = g.input(1.0)
    y = rg.lift(function)(x + 1.0) * 2.0
    beside = rg.lift(lambda v: 3.0 * v)(x)
    function.on = False
    for i in range(turns):
        x.set(float(i))
        g.forward(y, beside)
    x.set(50.0)
    function.on, function.calls = True, 0
    blocks: dict[str, Any] = {"profile": rg.profile, "anomaly": rg.detect_anomaly}

    def read() -> None:
        if how in blocks:
            with blocks[how]():
                g.forward(y, beside)
        g.forward(y, beside)

    error = raised_by(read)
    assert error is function.error
    assert beside.value == 150.0
    for _ in range(2):
        again = raised_by(lambda: y.value)
        assert type(again) is type(error)
        assert repr(vars(again)["__notes__"][-1]).count("retry=True") == 1
        assert getattr(again, "code", 7) == 7
        assert again.args == error.args or isinstance(error, ExceptionGroup)
    assert function.calls == 1
    assert f"failed: {type(error).__name__}" in str(g.why(y.parents[0]))
    g.snapshot()
    g.check_invariants()
    function.on = False
    g.forward(y, retry=True)
    assert y.value == 102.0


def test_a_copy_keeps_slots_fields_and_members(g: rg.Graph) -> None:
    for make in MAKERS.values():
        y = rg.lift(Raises(make))(g.input(1.0))
        first = raised_by(lambda: y.value)  # noqa: B023 - called at once
        again = raised_by(lambda: y.value)  # noqa: B023
        assert again is not first
        if isinstance(first, OSError):
            assert str(again) == "[Errno 2] no such file: 'prices.csv'"
        if isinstance(first, Members):
            assert isinstance(again, Members)
            assert [type(one) for one in again.exceptions] == [Frozen, ValueError]
            assert all(one.__traceback__ is None for one in again.exceptions)


@each
def test_a_function_that_reads_the_node_can_catch_it(
    g: rg.Graph, make: Callable[[], Exception]
) -> None:
    x = g.input(1.0)
    bad = rg.lift(Raises(make))(x)
    kind = type(make())

    def read(value: float) -> str:
        try:
            return str(bad.value)
        except kind:
            return "caught"

    y = rg.lift(read)(x)
    for i in range(5):
        x.set(float(i))
        assert y.value == "caught"


def test_one_object_that_two_nodes_raise_has_the_note_of_the_node_that_is_read(g: rg.Graph) -> None:
    x = g.input(1.0)
    a, b = rg.lift(Raises(lambda: ONE))(x), rg.lift(Raises(lambda: ONE))(x)
    a.name, b.name = "a", "b"
    first = raised_by(lambda: g.forward(a, b))
    assert first is ONE
    (note,) = vars(ONE)["__notes__"]
    assert note.startswith("node 'a'")
    assert vars(raised_by(lambda: b.value))["__notes__"][0].startswith("node 'b'")


@each
def test_blocks_pass_it_on(g: rg.Graph, make: Callable[[], Exception]) -> None:
    x = g.input(1.0)
    y = x * 2.0
    function = Raises(make)
    blocks: dict[str, Callable[[], Any]] = {
        "transaction": g.transaction,
        "edit": g.edit,
        "whatif": lambda: g.whatif({x: 3.0}),
        "graph": lambda: g,
        "no_grad": g.no_grad,
        "reuse": g.reuse,
        "record": g.record,
        "profile": rg.profile,
        "mutate": g.input([1.0]).mutate,
    }
    for name, block in blocks.items():

        def inside(block: Callable[[], Any] = block) -> None:
            with block():
                function()

        assert raised_by(inside) is function.error, name

    def transaction() -> None:
        with g.transaction():
            x.set(5.0)
            assert y.value == 10.0
            function()

    assert raised_by(transaction) is function.error
    assert y.value == 2.0
    g.check_invariants()


@each
def test_observers_cutoffs_rules_and_hooks_pass_it_on(
    g: rg.Graph, make: Callable[[], Exception]
) -> None:
    function, heard = Raises(make), []
    x = g.input(1.0)
    y = x + 1.0
    observers = [y.observe(function), y.observe(lambda old, new: heard.append(new))]
    group = raised_by(lambda: y.value)
    assert isinstance(group, ExceptionGroup)
    assert group.exceptions[0] is function.error
    assert heard == [2.0]
    for observer in observers:
        observer.cancel()
    cut = rg.lift(lambda v: v, cutoff=function)(x)
    cut.value
    x.set(2.0)
    assert raised_by(lambda: cut.value) is function.error
    p = g.param(np.ones(3))
    lifted = rg.lift(lambda v: v, vjp=function)(p)
    assert raised_by(lambda: rg.grad((lifted * p).sum(), p)) is function.error
    loss = (p * 2.0).sum()
    hook = p.register_hook(function)
    assert raised_by(loss.backward) is function.error
    assert p.grad is None
    hook.remove()
    p.register_post_accumulate_grad_hook(function)
    assert raised_by(loss.backward) is function.error
    assert p.grad is not None
    assert raised_by(lambda: rg.grad(function)(2.0)) is function.error
    g.check_invariants()


@pytest.mark.parametrize("kind", [SystemExit, GeneratorExit, KeyboardInterrupt, BaseException])
def test_other_exceptions_are_not_swallowed_and_not_stored(
    g: rg.Graph, kind: type[BaseException]
) -> None:
    def function(value: float) -> float:
        raise kind(3)

    y = rg.lift(function)(g.input(1.0))
    for _ in range(2):
        assert type(raised_by(lambda: y.value)) is kind
        assert y.state == "stale"


class Closed(Exception):
    """Refuses to be looked at, its class included."""

    __getattribute__ = refuse


def test_an_exception_that_refuses_to_be_looked_at(g: rg.Graph) -> None:
    function = Raises(Closed)
    x = g.input(1.0)
    y, beside = rg.lift(function)(x), rg.lift(lambda v: 3.0 * v)(x)
    first = raised_by(lambda: g.forward(y, beside))
    assert first is function.error
    assert beside.value == 3.0
    for _ in range(2):
        assert type(raised_by(lambda: y.value)) is Closed
    assert function.calls == 1
    assert y.state == "error"
    g.check_invariants()
