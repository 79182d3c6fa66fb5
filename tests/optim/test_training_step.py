"""A prepared training step does what its calls do one by one: the same bits, versions and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg

ROWS = np.random.default_rng(0).normal(size=(40, 6, 4))
LABELS = np.random.default_rng(1).integers(0, 3, (40, 6))

Made = tuple[Any, Any, Any, Any, Any]


def made(kind: str = "Adam", hidden: int = 8, **options: Any) -> Made:
    with rg.Graph() as g:
        net = rg.nn.Sequential(
            rg.nn.Linear(4, hidden, rng=0), rg.nn.ReLU(), rg.nn.Linear(hidden, 3, rng=1)
        )
    x, labels = g.input(ROWS[0], name="x"), g.input(LABELS[0], name="labels")
    loss = rg.nn.CrossEntropyLoss()(net(x), labels)
    return net, x, labels, loss, getattr(rg.optim, kind)(net.parameters(), lr=0.05, **options)


def by_hand(made: Made, i: int, max_norm: float | None = None) -> float:
    _, x, labels, loss, opt = made
    x.graph.set({x: ROWS[i], labels: LABELS[i]})
    opt.zero_grad()
    loss.backward()
    found = loss.value
    if max_norm is not None:
        rg.optim.clip_grad_norm_(opt.params, max_norm)
    opt.step()
    return found


def alike(one: Made, other: Made) -> None:
    for a, b in zip(one[0].parameters(), other[0].parameters(), strict=True):
        assert a.value.tobytes() == b.value.tobytes()
        assert a.value_version == b.value_version
        assert (a.grad is None) is (b.grad is None)
        assert a.grad is None or a.grad.tobytes() == b.grad.tobytes()
    for a, b in zip(
        one[4].state_dict()["state"].values(), other[4].state_dict()["state"].values(), strict=True
    ):
        assert a.keys() == b.keys()
        assert all(np.array_equal(a[key], b[key]) for key in a)


@pytest.mark.parametrize("kind", ["SGD", "Adam", "RMSprop", "Rprop"])
@pytest.mark.parametrize("max_norm", [None, 0.3])
def test_steps_are_those_of_the_calls(kind: str, max_norm: float | None) -> None:
    one, other = made(kind), made(kind)
    step = one[4].training_step(one[3], feeds=[one[1], one[2]], max_norm=max_norm)
    for i in range(40):
        assert step(ROWS[i], LABELS[i]) == by_hand(other, i, max_norm)
    alike(one, other)


def test_a_large_param_too() -> None:
    one, other = made("SGD", 20_000), made("SGD", 20_000)
    step = one[4].training_step(one[3], feeds=[one[1], one[2]])
    for i in range(6):
        assert step(ROWS[i], LABELS[i]) == by_hand(other, i)
    alike(one, other)


def test_whatever_happens_in_between() -> None:
    """Each of these makes the next call another one than those before."""
    one, other = made(), made()
    step = one[4].training_step(one[3], feeds=[one[1], one[2]])
    calls: list[list[int]] = [[], []]
    schedules = [rg.optim.StepLR(each[4], 1, 0.5) for each in (one, other)]

    def both(change: Any) -> None:
        change(one, calls[0])
        change(other, calls[1])

    def run(first: int) -> None:
        for i in range(first, first + 4):
            assert step(ROWS[i], LABELS[i]) == by_hand(other, i)
        alike(one, other)

    run(0)
    both(lambda each, _: each[0]["0"].freeze())
    run(4)
    both(lambda each, _: each[0]["0"].unfreeze())
    run(8)
    hooks: list[Any] = []
    both(lambda each, seen: hooks.append(each[4].register_step_pre_hook(lambda _: seen.append(1))))
    run(12)
    assert calls[0] == calls[1] == [1] * 4
    for hook in hooks:
        hook.remove()
    both(lambda each, _: each[0]["2"].bias.set(np.zeros(3)))
    for schedule in schedules:
        schedule.step()
    run(16)
    seen: list[Any] = []
    both(lambda each, _: seen.append(each[3].observe(lambda *_: None)))
    run(20)
    for handle in seen:
        handle.cancel()
    both(lambda each, _: each[0].train())
    with one[1].graph.transaction(), other[1].graph.transaction():
        run(24)
    run(28)


def test_what_is_outside_of_the_optimiser_adds_up_as_with_backward() -> None:
    one, other = made(), made()
    for each in (one, other):
        rest = list(each[0]["2"].parameters())
        each[4].param_groups.clear()
        each[4]._buckets.clear()
        each[4].add_param_group({"params": rest})
    step = one[4].training_step(one[3], feeds=[one[1], one[2]])
    for i in range(8):
        assert step(ROWS[i], LABELS[i]) == by_hand(other, i)
    alike(one, other)


def test_gradients_of_another_optimiser_stay() -> None:
    net, x, labels, loss, opt = made()
    with x.graph:
        other = rg.nn.Linear(4, 3, rng=0)
    rest = rg.optim.SGD(other.parameters(), lr=0.1)
    cost = (other(x) ** 2).sum()
    step = opt.training_step(loss, feeds=[x, labels])
    for i in range(6):
        cost.backward()
        rest.step()
        before = [one.grad for one in other.parameters()]
        step(ROWS[i], LABELS[i])
        for a, b in zip(before, other.parameters(), strict=True):
            np.testing.assert_array_equal(a, b.grad, strict=True)
        rest.zero_grad()
        step(ROWS[i], LABELS[i])
        assert all(one.grad is None for one in other.parameters())
        assert all(one.grad is not None for one in net.parameters())


def test_other_nodes_are_read_with_the_loss() -> None:
    net, x, labels, loss, opt = made()
    scores = net(x)
    step = opt.training_step(loss, scores, feeds=[x, labels])
    for i in range(5):
        found, rows = step(ROWS[i], LABELS[i])
        assert rows.shape == (6, 3)
        shifted = np.exp(rows - rows.max(1, keepdims=True))
        likely = (shifted / shifted.sum(1, keepdims=True))[np.arange(6), LABELS[i]]
        assert found == pytest.approx(-np.log(likely).mean(), rel=1e-12)
    assert repr(step).startswith("<TrainingStep of Adam for ")


def test_a_label_that_is_none_moves_no_param() -> None:
    net, x, labels, loss, opt = made()
    step = opt.training_step(loss, feeds=[x, labels])
    for i in range(5):
        step(ROWS[i], LABELS[i])
    before = [one.value for one in net.parameters()]
    state = opt.state_dict()["state"]["0.weight"]
    with pytest.raises(rg.IndexingError, match="there is no element 7"):
        step(ROWS[5], np.full(6, 7))
    assert all(a is b.value for a, b in zip(before, net.parameters(), strict=True))
    assert opt.state_dict()["state"]["0.weight"]["step"] == state["step"] == 5
    assert np.isfinite(step(ROWS[5], LABELS[5]))


def test_what_is_refused() -> None:
    _, x, labels, loss, opt = made()
    step = opt.training_step(loss, feeds=[x, labels])
    with pytest.raises(rg.DTypeError, match="one for each of x, labels"):
        step(ROWS[0])
    with pytest.raises(rg.SetError, match="cannot be set"):
        opt.training_step(loss, feeds=[loss])
    with pytest.raises(rg.GradientError, match="of no loss"):
        opt.training_step(feeds=[x])
    with pytest.raises(rg.DTypeError, match="must be at least 0"):
        opt.training_step(loss, max_norm=-1.0)
    with pytest.raises(rg.GraphError):
        opt.training_step(rg.Graph().input(1.0))
