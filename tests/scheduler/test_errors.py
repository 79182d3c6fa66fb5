"""When a node raises (rule E6): what is committed, what stays stale, what is said, what is kept."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import numpy as np
import pytest

import reactgrad as rg


class Moody:
    """A function that raises while it is told to, and counts its calls."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error
        self.calls = 0

    def __call__(self, value: float) -> float:
        self.calls += 1
        if self.error is not None:
            raise self.error
        return float(value)


def warm_up(g: rg.Graph, x: rg.Var, *targets: rg.Var, turns: int) -> None:
    """Read often enough that the read is replayed as a plan, or not at all."""
    for i in range(turns):
        x.set(float(i))
        g.forward(*targets)


def versions(*variables: rg.Var) -> list[int]:
    return [v.value_version for v in variables]


@pytest.mark.parametrize("turns", [0, 1, 5], ids=["first read", "second read", "replayed plan"])
def test_what_finished_is_committed_and_the_rest_stays_stale(g: rg.Graph, turns: int) -> None:
    moody = Moody()
    x = g.input(1.0)
    before = x + 1.0
    middle = rg.lift(moody)(before)
    after, beside = middle + 1.0, x * 3.0
    warm_up(g, x, after, beside, turns=turns)
    old = versions(before, middle, after, beside)
    x.set(50.0)
    moody.error = ValueError("no")
    with pytest.raises(ValueError, match="no"):
        g.forward(after, beside)
    assert versions(before, middle, after, beside) == [old[0] + 1, old[1], old[2], old[3] + 1]
    assert [v.is_stale for v in (before, middle, after, beside)] == [False, True, True, False]
    assert float(beside.value) == 150.0, "an independent target did not run"
    assert middle.state == "error"
    assert after.state == "stale"
    assert middle.parent_versions == ((turns,) if turns else (0,))
    g.check_invariants()
    moody.error = None
    run = g.forward(after, retry=True)
    assert run.ran == [middle, after]
    assert float(after.value) == 52.0
    assert versions(before, middle, after) == [old[0] + 1, old[1] + 1, old[2] + 1]
    g.check_invariants()


def test_forward_raises_the_first_error_and_the_run_has_all(g: rg.Graph) -> None:
    one, two = Moody(KeyError("one")), Moody(ValueError("two"))
    x = g.input(1.0)
    a, b, c = rg.lift(one)(x), rg.lift(two)(x), x + 1.0
    with pytest.raises(KeyError, match="one"):
        g.forward(a, b, c)
    run = g.last_run
    assert run.failed == [a, b]
    assert [type(error) for error in run.errors] == [KeyError, ValueError]
    assert run.ran == [c]
    assert a + b not in run.failed


@pytest.mark.parametrize("turns", [0, 5], ids=["first read", "replayed plan"])
def test_a_stored_error_is_raised_again_without_a_rerun_until_a_parent_changes(
    g: rg.Graph, turns: int
) -> None:
    moody = Moody()
    x, other = g.input(1.0), g.input(1.0)
    y = rg.lift(moody)(x)
    z = y + other
    warm_up(g, x, z, turns=turns)
    x.set(7.5)
    moody.error = ValueError("no")
    moody.calls = 0
    for _ in range(4):
        with pytest.raises(ValueError, match="no"):
            z.value
    with pytest.raises(ValueError, match="no"):
        y.value
    other.set(5.0)  # no parent of the node that raised
    with pytest.raises(ValueError, match="no"):
        z.value
    assert moody.calls == 1
    moody.error = None
    with pytest.raises(ValueError, match="no"):
        z.value
    x.set(8.0)
    assert float(z.value) == 13.0
    assert moody.calls == 2


def test_retry_reruns_and_may_fail_again(g: rg.Graph) -> None:
    moody = Moody(ValueError("no"))
    y = rg.lift(moody)(g.input(1.0))
    for calls in (1, 2, 3):
        with pytest.raises(ValueError, match="no"):
            g.forward(y, retry=True)
        assert moody.calls == calls
    moody.error = None
    g.forward(y, retry=True)
    assert y.value == 1.0


def test_a_touch_and_an_edit_of_the_node_forget_its_error(g: rg.Graph) -> None:
    moody = Moody(ValueError("no"))
    x, z = g.input(1.0), g.input(2.0)
    y = rg.lift(moody)(x)
    for i, change in enumerate((y.touch, lambda: y.replace_parent(0, z))):
        moody.error = ValueError("no")
        x.set(float(i))
        with pytest.raises(ValueError, match="no"):
            g.forward(y, retry=True)
        moody.error = None
        change()
        g.forward(y)
    assert y.value == 2.0


def test_a_touched_node_that_raises_is_not_run_again_by_every_read(g: rg.Graph) -> None:
    moody = Moody()
    x = g.input(1.0)
    y = rg.lift(moody)(x)
    z = y + 1.0
    z.value
    y.touch()
    moody.error, moody.calls = ValueError("no"), 0
    for _ in range(4):
        with pytest.raises(ValueError, match="no"):
            z.value
        assert y.is_stale
    assert moody.calls == 1
    moody.error = None
    assert g.forward(z, retry=True).ran == [y, z]
    g.check_invariants()


def test_forgetting_all_marks_does_not_forget_an_error(g: rg.Graph) -> None:
    moody = Moody(ValueError("no"))
    y = rg.lift(moody)(g.input(1.0))
    for _ in range(3):
        with pytest.raises(ValueError, match="no"):
            y.value
        g.forget_marks()
    assert moody.calls == 1


def test_the_note_names_node_op_operands_and_the_line_that_built_it(g: rg.Graph) -> None:
    x = g.input(np.ones((2, 3), "float32"), name="x")
    shift = g.input(2, name="shift")

    def explode(value: object, by: object) -> None:
        raise ZeroDivisionError("boom")

    y = rg.lift(explode)(x, shift)  # the line that built it
    y.name = "y"
    with pytest.raises(ZeroDivisionError, match="boom") as caught:
        y.value
    (note,) = caught.value.__notes__
    for part in ("'y'", "function 'explode'", "'x'"[1:-1], "float32[2, 3]", "shift", "Python int"):
        assert part in note
    assert "test_errors.py" in note
    assert "# the line that built it" in note
    for _ in range(3):
        with pytest.raises(ZeroDivisionError) as again:
            y.value
        assert again.value.__notes__[0] == note
        assert len(again.value.__notes__) == 2, "every read added a note"
    assert "retry=True" in again.value.__notes__[1]


def test_the_note_of_an_array_op_names_the_op(g: rg.Graph) -> None:
    raw = rg.lift(lambda v: [1.0, 2.0, 3.0])(g.input(1.0))
    y = raw + g.input([1.0, 2.0])
    with pytest.raises(rg.ShapeError) as caught:
        y.value
    note = "".join(caught.value.__notes__)
    assert "op 'add'" in note
    assert "float64[2]" in note
    assert repr(y.label) in note


class Local:
    """Something that only a frame holds."""


def raising(refs: list[weakref.ref[Local]], make: Callable[[], Exception]) -> Callable[..., None]:
    def function(value: object) -> None:
        local = Local()
        refs.append(weakref.ref(local))
        raise make()

    return function


def error_of(var: rg.Var) -> Exception | None:
    """What reading it raises; ``pytest.raises`` would keep it, and its frames, for the test."""
    try:
        var.value
    except Exception as error:
        return error
    return None


def chained() -> Exception:
    local = Local()
    try:
        raise KeyError(id(local))
    except KeyError as error:
        cause = error
    wrapped = ValueError("outer")
    wrapped.__cause__ = cause
    return wrapped


class Fussy(Exception):
    """Cannot be made again from its ``args``."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} of {two}")
        self.pair = one, two


@pytest.mark.slow
@pytest.mark.parametrize("turns", [0, 5], ids=["first read", "replayed plan"])
@pytest.mark.parametrize("make", [lambda: ValueError("x"), chained, lambda: Fussy(1, 2)])
def test_a_stored_error_keeps_no_frame(
    g: rg.Graph, make: Callable[[], Exception], turns: int
) -> None:
    refs: list[weakref.ref[Local]] = []
    function = raising(refs, make)
    on = False
    x = g.input(1.0)
    y = rg.lift(lambda v: function(v) if on else v)(x)
    warm_up(g, x, y, turns=turns)
    on = True
    x.set(99.0)
    for _ in range(2):
        error = error_of(y)
        expected = make()
        assert type(error) is type(expected)
        assert str(error) == str(expected)
        del error
    gc.collect()
    assert [ref() for ref in refs] == [None]
    assert y.state == "error"


@pytest.mark.slow
def test_a_stored_group_of_errors_keeps_no_frame_of_its_members(g: rg.Graph) -> None:
    refs: list[weakref.ref[Local]] = []

    def function(value: object) -> None:
        members = []
        for _ in range(2):
            local = Local()
            refs.append(weakref.ref(local))
            try:
                raise ValueError(id(local))
            except ValueError as error:
                members.append(error)
        group = ExceptionGroup("several", members)
        del members, local
        raise group

    y = rg.lift(function)(g.input(1.0))
    for _ in range(2):
        error = error_of(y)
        assert isinstance(error, ExceptionGroup)
        assert len(error.exceptions) == 2
        del error
    gc.collect()
    assert [ref() for ref in refs] == [None, None]


def test_a_raised_error_still_shows_where_its_cause_was_raised(g: rg.Graph) -> None:
    """Frames are taken out of what is stored, not out of what the caller is given."""

    def function(value: float) -> None:
        try:
            value / 0
        except ZeroDivisionError as error:
            raise ValueError("outer") from error

    y = rg.lift(function)(g.input(1))
    with pytest.raises(ValueError, match="outer") as caught:
        y.value
    assert caught.value.__cause__ is not None
    assert caught.value.__cause__.__traceback__ is not None


@pytest.mark.parametrize("turns", [0, 1, 5], ids=["first read", "second read", "replayed plan"])
def test_an_interrupt_in_the_middle_commits_what_finished_and_stores_nothing(
    g: rg.Graph, turns: int
) -> None:
    moody = Moody()
    x = g.input(1.0)
    before = x + 1.0
    middle = rg.lift(moody)(before)
    after = middle + 1.0
    warm_up(g, x, after, turns=turns)
    old = versions(before, middle, after)
    x.set(50.0)
    moody.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        g.forward(after)
    assert versions(before, middle, after) == [old[0] + 1, old[1], old[2]]
    assert [v.is_stale for v in (before, middle, after)] == [False, True, True]
    assert middle.state == "stale"
    assert g.last_run.ran == [before]
    g.check_invariants()
    moody.error = None
    assert g.forward(after).ran == [middle, after]
    assert float(after.value) == 52.0
    x.set(1.0)  # the graph is not left busy
    warm_up(g, x, after, turns=4)
    g.check_invariants()


def test_a_failing_set_changes_nothing(g: rg.Graph) -> None:
    x, z = g.input([1.0, 2.0]), g.input([1.0, 2.0])
    y = x + z
    y.value
    with pytest.raises(rg.ShapeError):
        g.set({z: [3.0, 4.0], x: [1.0, 2.0, 3.0]})
    assert versions(x, z) == [1, 1]
    assert not g.forward(y).ran
    assert y.value.tolist() == [2.0, 4.0]


def test_a_read_of_an_unset_input_says_what_to_do_and_works_after(g: rg.Graph) -> None:
    x = g.input(shape=(2,), name="x")
    y = x * 2.0
    for _ in range(2):
        with pytest.raises(rg.UnsetError, match="set"):
            y.value
    x.set([1.0, 2.0])
    assert y.value.tolist() == [2.0, 4.0]
    g.check_invariants()


# --- one exception object, raised again and again ------------------------------------------------


def test_an_exception_that_is_raised_again_and_again_has_one_note(g: rg.Graph) -> None:
    saved = ValueError("saved")

    def function(value: float) -> None:
        raise saved

    x = g.input(0.0)
    one, two = rg.lift(function)(x), rg.lift(function)(x)
    for i in range(4):
        x.set(float(i))
        for node in (one, two):
            with pytest.raises(ValueError, match="saved") as caught:
                node.value
            (note,) = caught.value.__notes__
            assert repr(node.label) in note
    saved.add_note("of the user")
    x.set(9.0)
    with pytest.raises(ValueError, match="saved") as caught:
        one.value
    assert caught.value.__notes__[0] == "of the user"
    assert len(caught.value.__notes__) == 2


def test_an_error_that_is_passed_on_names_each_node_on_its_way_once(g: rg.Graph) -> None:
    saved = ValueError("saved")

    def function(value: float) -> None:
        raise saved

    x, other = g.input(0.0), g.input(0.0)
    inner = rg.lift(function)(x)
    aside = other + 1.0

    def late(value: float) -> None:
        try:
            inner.value
        except ValueError:
            aside.value  # the error is passed on all the same
            raise

    outer = rg.lift(late)(other)
    for i in range(3):
        g.set({x: float(i), other: float(i)})
        with pytest.raises(ValueError, match="saved") as caught:
            outer.value
        assert [note.split(",")[0] for note in caught.value.__notes__] == [
            f"node {inner.label!r}",
            f"node {outer.label!r}",
        ]
    with pytest.raises(ValueError, match="saved") as caught:
        outer.value
    assert "retry=True" in caught.value.__notes__[-1]
    assert len(caught.value.__notes__) == 3
    other.set(9.0)  # the outer one runs again, the inner one does not
    with pytest.raises(ValueError, match="saved") as caught:
        outer.value
    kinds = ["retry=True" in note for note in caught.value.__notes__]
    assert kinds == [False, True, False]


# --- which error, and what is left of it -----------------------------------------------------------


def test_a_read_raises_the_error_of_its_target_and_not_one_that_was_handled(g: rg.Graph) -> None:
    x = g.input(1.0)
    handled, real = rg.lift(Moody(KeyError("handled")))(x), rg.lift(Moody(ValueError("real")))(x)

    def careful(value: float) -> float:
        try:
            return float(handled.value)
        except KeyError:
            return -1.0

    y = rg.lift(careful)(x)
    for _ in range(2):
        with pytest.raises(ValueError, match="real"):
            g.forward(y, real)
    assert y.value == -1.0


def test_the_first_sight_of_an_error_that_was_passed_on_does_not_call_it_old(g: rg.Graph) -> None:
    x = g.input(1.0)
    inner = rg.lift(Moody(ValueError("no")))(x)
    outer = rg.lift(lambda value: inner.value)(x)
    with pytest.raises(ValueError, match="no") as caught:
        outer.value
    assert not any("retry=True" in note for note in caught.value.__notes__)
    assert caught.value.__traceback__ is not None


@pytest.mark.slow
@pytest.mark.parametrize("turns", [0, 5], ids=["first read", "replayed plan"])
@pytest.mark.parametrize("how", ["raised", "handled", "handled later", "not needed", "blocked"])
def test_a_read_leaves_no_frame_behind(g: rg.Graph, how: str, turns: int) -> None:
    """Without a look of the cyclic collector: nothing refers to what the function had at hand."""
    refs: list[weakref.ref[Local]] = []
    on = False
    failing = raising(refs, lambda: ValueError("no"))
    x = g.input(1.0)
    broken = rg.lift(lambda v: failing(v) if on else v)(x)

    def careful(value: float) -> float:
        try:
            return float(broken.value)
        except ValueError:
            return -1.0

    handler = rg.lift(careful)(x)
    if how == "handled later":
        broken.value
        handler.value
    targets = {
        "raised": [broken],
        "handled": [handler],
        "handled later": [handler],
        "not needed": [handler, x + 1.0],
        "blocked": [broken + 1.0],
    }[how]
    warm_up(g, x, *targets, turns=turns)
    on = True
    x.set(99.0)
    gc.collect()
    gc.disable()
    try:
        raised = False
        try:
            g.forward(*targets)
        except ValueError:
            raised = True
        assert raised == (how in ("raised", "blocked"))
        assert len(refs) == 1
        assert refs[0]() is None
    finally:
        gc.enable()


def test_a_failed_node_inside_of_an_interrupted_run_leaves_no_frame(g: rg.Graph) -> None:
    refs: list[weakref.ref[Local]] = []
    x = g.input(1.0)
    broken = rg.lift(raising(refs, lambda: ValueError("no")))(x)
    stops = rg.lift(Moody(KeyboardInterrupt()))(x)
    gc.disable()
    try:
        try:
            g.forward(broken, stops)
        except KeyboardInterrupt:
            pass
        assert g.last_run.failed == [broken]
        assert refs[0]() is None
    finally:
        gc.enable()


# --- blocked nodes, retries, marks -------------------------------------------------------------------


def test_a_blocked_node_raises_the_error_of_its_first_failed_operand(g: rg.Graph) -> None:
    x, z = g.input(1.0), g.input(1.0)
    late, early = Moody(ValueError("late")), Moody(KeyError("early"))
    first = rg.lift(late)(x)
    second = rg.lift(early)(z)
    total = second + first
    far = total * 2.0
    for _ in range(2):
        with pytest.raises(KeyError, match="early"):
            far.value
        assert g.last_run.failed == [first, second]
        assert [type(error) for error in g.last_run.errors] == [ValueError, KeyError]
    assert (first.state, total.state, far.state) == ("error", "stale", "stale")
    early.error = None
    z.set(2.0)
    with pytest.raises(ValueError, match="late"):
        far.value
    assert late.calls == 1
    g.check_invariants()


def test_an_error_of_before_is_raised_again_when_what_blocked_its_node_is_gone(g: rg.Graph) -> None:
    """The operand has its former value and version: nothing that the node saw has changed."""
    x = g.input(1.0)
    operand = rg.lift(lambda value: 5.0 if value < 2.0 else 1 / 0, cutoff="equal")(x)
    moody = Moody(ValueError("no"))
    node = rg.lift(moody)(operand)
    for value, kind in ((1.0, ValueError), (2.0, ZeroDivisionError), (0.0, ValueError)):
        x.set(value)
        with pytest.raises(kind):
            node.value
    assert moody.calls == 1
    g.check_invariants()


def test_retry_reaches_an_error_behind_one_who_handled_it(g: rg.Graph) -> None:
    moody = Moody(ValueError("no"))
    x = g.input(3.0)
    broken = rg.lift(moody)(x)

    def careful(value: float) -> float:
        try:
            return float(broken.value)
        except ValueError:
            return -1.0

    y = rg.lift(careful)(x) + 0.5
    assert y.value == -0.5
    moody.error = None
    assert not g.forward(y).ran
    assert len(g.forward(y, retry=True).ran) == 3
    assert y.value == 3.5
    g.check_invariants()


def test_retry_reaches_what_a_function_reads_for_the_first_time(g: rg.Graph) -> None:
    moody = Moody(ValueError("no"))
    x, chosen = g.input(3.0), g.input(0.0)
    broken = rg.lift(moody)(x)

    def careful(value: float) -> float:
        try:
            return float(broken.value)
        except ValueError:
            return -1.0

    between = rg.lift(careful)(x)
    y = rg.lift(lambda on: float(between.value) if on else 0.0)(chosen)
    assert (between.value, y.value) == (-1.0, 0.0)
    moody.error = None
    chosen.set(1.0)
    g.forward(y, retry=True)
    assert y.value == 3.0
    assert moody.calls == 2


def test_a_retry_runs_no_node_that_a_changed_read_no_longer_leads_to(g: rg.Graph) -> None:
    first, second = Moody(ValueError("first")), Moody(ValueError("second"))
    x = g.input(0.0)
    a, b = rg.lift(first)(x), rg.lift(second)(x)

    def careful(value: float) -> float:
        try:
            return float(a.value)
        except ValueError:
            pass
        try:
            return float(b.value)
        except ValueError:
            return -1.0

    y = rg.lift(careful)(x)
    assert y.value == -1.0
    first.error = None
    g.forward(y, retry=True)
    assert y.value == 0.0
    assert (first.calls, second.calls) == (2, 1)
    with pytest.raises(ValueError, match="second"):
        b.value
    assert second.calls == 1
    g.check_invariants()


def test_a_function_that_forgets_the_marks_and_raises_has_raised(g: rg.Graph) -> None:
    x = g.input(1.0)
    calls = []

    def forget(value: float) -> None:
        calls.append(value)
        g.forget_marks()
        raise ValueError("no")

    between = x * 2.0
    y = rg.lift(forget)(between) + 1.0
    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            y.value
    assert calls == [2.0]
    g.check_invariants()


@pytest.mark.parametrize("cutoff", [None, "equal"])
def test_what_ran_before_a_function_that_forgets_the_marks_and_raises_keeps_its_value(
    g: rg.Graph, cutoff: str | None
) -> None:
    """Large values of a plan that broke off were thrown away by their marks, which say nothing then."""
    x, fails = g.input(np.ones(1 << 17)), g.input(False)

    def forget(values: np.ndarray, fails: bool) -> float:
        if fails:
            g.forget_marks()
            raise ValueError("no")
        return values[0]

    first = rg.ceil(x * 0.5)
    first.cutoff = cutoff
    between = first * 2.0
    y = rg.lift(forget)(between, fails) + 1.0
    for turn in range(6):
        x.set(np.full(1 << 17, 2.0 * turn))
        assert y.value == 2.0 * turn + 1.0
    g.set({x: np.full(1 << 17, 10.0), fails: True})
    with pytest.raises(ValueError, match="no"):
        y.value
    run = g.forward(between)
    assert run.ran == []
    assert between.value[0] == 10.0
    g.set({x: np.full(1 << 17, 9.5), fails: False})  # the ceiling stays, if it is cut off
    assert y.value == 11.0
    g.check_invariants()


def test_a_function_that_raises_cancelled_by_itself_has_failed(g: rg.Graph) -> None:
    moody = Moody(rg.Cancelled("of another graph"))
    y = rg.lift(moody)(g.input(1.0))
    for _ in range(2):
        with pytest.raises(rg.Cancelled, match="of another graph"):
            y.value
    assert moody.calls == 1
    assert y.state == "error"
    g.check_invariants()


def test_what_a_function_read_before_an_edit_is_not_rebuilt_for_it(g: rg.Graph) -> None:
    """It has lost its value, and is stale: it was computed from operands that are not there."""
    x, choice = g.input([1.0, 2.0]), g.input(0)
    total = x + x
    reader = rg.lift(lambda chosen: total.value if chosen < 2 else None)(choice)
    other = rg.lift(lambda chosen: reader.value)(choice)
    reader.value
    total.replace_parent(1, other)
    with pytest.raises(rg.CycleError):
        total.value
    g.check_invariants()
    choice.set(2)
    assert reader.value is None


def test_who_caught_an_error_is_stale_only_where_that_error_may_have_gone(g: rg.Graph) -> None:
    a, b = g.input(1.0), g.input(1.0)
    moody = Moody(ValueError("no"))
    raises = rg.lift(moody)(b)
    y = rg.lift(lambda u, v: u + v)(a, raises)

    def guarded(v: float) -> float:
        try:
            return float(y.value)
        except ValueError:
            return -v

    z = rg.lift(guarded)(b)
    assert z.value == -1.0
    a.set(2.0)  # whatever it is, the other operand of y raises
    assert not z.is_stale
    assert g.plan(z).nodes == ()
    assert g.forward(z).ran == ()
    moody.error = None
    b.set(3.0)
    assert z.is_stale
    assert z.value == 5.0
    a.set(4.0)
    assert z.is_stale
    assert z.value == 7.0


@pytest.mark.parametrize("size", [3, 20_000, 70_000], ids=["copied", "lent", "by blocks"])
def test_a_value_whose_memory_a_failed_run_left_is_computed_again_where_a_cutoff_keeps_it_clean(
    size: int,
) -> None:
    def positive(v: np.ndarray) -> np.ndarray:
        if v[0] < 0.0:
            raise ValueError("negative")
        return v * 1.0

    g = rg.Graph()
    x = g.input(np.ones(size))
    y = rg.lift(positive, shape=(size,), dtype="float64")(x)
    z = y * 2.0 + 1.0
    for turn in range(4):
        x.set(np.full(size, 1.0 + turn))
        g.forward(z)
    held = z.value
    x.set(np.full(size, -1.0))
    with pytest.raises(ValueError, match="negative"):
        g.forward(z)
    y.cutoff = "equal"
    x.set(np.full(size, 4.0))
    version = z.value_version
    assert np.array_equal(z.value, np.full(size, 9.0))
    assert np.array_equal(held, np.full(size, 9.0))
    assert z.value_version == version, "its parent did not change"
    g.check_invariants()


@pytest.mark.parametrize("executor", [None, rg.Threads(2)], ids=["serial", "threads"])
def test_only_what_an_earlier_read_raised_is_said_to_be_raised_again(
    g: rg.Graph, executor: rg.Threads | None
) -> None:
    x, y = g.input(0), g.input(0)

    def fail(value: int) -> int:
        raise ValueError("f")

    a = rg.lift(fail)(x)
    with g:
        b = rg.lift(lambda p: a.value + p)(y)
        c = rg.lift(lambda q: q)(b)

    def again(*targets: rg.Var) -> list[bool]:
        with pytest.raises(ValueError, match="f") as caught:
            g.forward(*targets, executor=executor)
        return ["retry=True" in note for note in caught.value.__notes__]

    for turn in range(20):
        x.set(turn)
        y.set(turn)
        assert not any(again(c, b, a)), "raised in this read"
        assert any(again(c, b, a))
        assert any(again(a))
    fork = g.fork()
    with pytest.raises(ValueError, match="f") as caught:
        _ = fork[a].value
    assert "retry=True" in caught.value.__notes__[-1]
