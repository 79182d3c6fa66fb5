"""The memory in which ``backward`` leaves gradients: where it was before, unless somebody still sees it."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

STEPS = 100


class Model:
    """A loss of a weight of some size and a bias, with a batch that changes."""

    def __init__(self, size: int, params: int = 1) -> None:
        self.graph = rg.Graph()
        self.rng = np.random.default_rng(3)
        with self.graph:
            self.x = rg.input(self.rng.normal(size=(2, size)), name="x")
            self.weights = [
                rg.param(self.rng.normal(size=size), name=f"w{i}") for i in range(params)
            ]
            self.bias = rg.param(0.5, name="bias")
            total = sum((self.x @ one for one in self.weights[1:]), self.x @ self.weights[0])
            self.loss = ((total + self.bias) ** 2).mean()

    @property
    def params(self) -> list[Any]:
        return [*self.weights, self.bias]

    def step(self) -> dict[Any, Any]:
        """Go on to another batch and call ``backward``; return the gradients as they are right then."""
        self.x.set(self.rng.normal(size=self.x.shape))
        self.loss.backward()
        return dict(zip(self.params, rg.grad(self.loss, self.params), strict=True))


def _address(array: Any) -> int:
    return int(np.asarray(array).__array_interface__["data"][0])


def _zero(model: Model) -> None:
    model.graph.zero_grad()


def _overwrite(model: Model) -> None:
    for one in model.params:
        one.overwrite_grad()


def _accumulate(model: Model) -> None:
    """Leave the gradients as they are."""


WAYS = [_zero, _overwrite, _accumulate]


@pytest.mark.parametrize("size", [3, 300, 100_000])
@pytest.mark.parametrize("before", [_overwrite, _accumulate])
def test_gradient_stays_at_its_address(before: Callable[[Model], None], size: int) -> None:
    model = Model(size)
    addresses = set()
    for number in range(STEPS):
        before(model)
        model.step()
        if number:  # the first gradient is the value of its node
            addresses.add(_address(model.weights[0].grad))
    assert len(addresses) == 1


@pytest.mark.parametrize("make", [rg.optim.SGD, rg.optim.Adam])
@pytest.mark.parametrize("before", [_zero, _accumulate])
def test_gradients_side_by_side_stay_at_their_address(
    before: Callable[[Model], None], make: Callable[..., Any]
) -> None:
    model = Model(300, params=3)
    optimizer = make(model.params, lr=1e-9)
    addresses, seen = set(), 0
    for _ in range(STEPS):
        before(model)
        model.step()
        arrays = [*model.graph._host.gradients.blocks.values()]
        seen += len(arrays)
        addresses |= {_address(one) for one in arrays}
        optimizer.step()
    assert seen > STEPS // 2
    assert len(addresses) == 1


@pytest.mark.parametrize("size", [1, 3, 300, 100_000])
@pytest.mark.parametrize("before", WAYS)
@pytest.mark.parametrize("params", [1, 12])
def test_earlier_gradients_never_change(
    params: int, before: Callable[[Model], None], size: int
) -> None:
    model = Model(size, params)
    held: list[tuple[Any, Any]] = []
    for number in range(12):
        before(model)
        model.step()
        for one in model.params:
            if number % 3:
                held.append((one.grad, np.array(one.grad)))
            if number % 3 == 1 and size > 1 and one.grad.ndim:
                part = one.grad[::2]  # a view of it holds its memory, too
                held.append((part, np.array(part)))
            if number == 4 and one.grad.ndim:
                view = memoryview(one.grad)
                held.append((np.asarray(view), np.array(view)))
    for kept, copied in held:
        np.testing.assert_array_equal(kept, copied)


@pytest.mark.parametrize("size", [1, 3, 300, 100_000])
@pytest.mark.parametrize("before", WAYS)
@pytest.mark.parametrize("holding", [False, True])
def test_gradients_are_those_of_a_graph_that_sums_by_hand(
    holding: bool, before: Callable[[Model], None], size: int
) -> None:
    model = Model(size, 2)
    expected: dict[Any, Any] = {}
    held = []
    for _ in range(10):
        before(model)
        now = {one: np.array(live.value) for one, live in model.step().items()}
        if before is _accumulate and expected:
            now = {one: expected[one] + new for one, new in now.items()}
        expected = now
        for one in model.params:
            np.testing.assert_array_equal(one.grad, expected[one])
            assert one.grad is one.grad
            if one.grad.ndim:
                assert not one.grad.flags.writeable
                with pytest.raises(ValueError, match="WRITEABLE"):
                    one.grad.flags.writeable = True
            if holding:
                held.append(one.grad)


def test_gradient_that_was_the_value_of_an_adjoint_leaves_that_value_alone() -> None:
    model = Model(100_000)
    (weight,) = model.weights
    (live,) = rg.grad(model.loss, [weight])
    for _ in range(6):
        model.step()
        value, copied = live.value, live.numpy()
        weight.overwrite_grad()
        model.loss.backward()
        np.testing.assert_array_equal(weight.grad, copied)
        model.step()  # added to in place
        np.testing.assert_array_equal(value, copied)


def test_forks_and_their_originals_have_gradients_of_their_own() -> None:
    model = Model(300)
    (weight,) = model.weights
    model.step()
    model.step()
    other = model.graph.fork()
    assert other[weight].grad is None
    other[model.loss].backward()
    begun = np.array(other[weight].grad)
    model.step()
    np.testing.assert_array_equal(other[weight].grad, begun)
    now = np.array(weight.grad)
    other[model.loss].backward()
    np.testing.assert_array_equal(weight.grad, now)
    np.testing.assert_array_equal(other[weight].grad, 2.0 * begun)


def test_gradient_that_a_failed_transaction_gives_back_is_added_to_as_before() -> None:
    model = Model(300)
    (weight,) = model.weights
    model.step()
    model.step()
    held = weight.grad
    before = np.array(held)
    with pytest.raises(ZeroDivisionError), model.graph.transaction():
        weight.freeze()
        raise ZeroDivisionError
    np.testing.assert_array_equal(weight.grad, before)
    now = np.array(model.step()[weight].value)
    np.testing.assert_array_equal(weight.grad, before + now)
    np.testing.assert_array_equal(held, before)


def test_error_in_a_node_leaves_each_gradient_as_it_was() -> None:
    model = Model(300)
    (weight,) = model.weights

    def checked(x: Any) -> Any:
        if np.asarray(x).max() > 50.0:
            raise OverflowError("too large")
        return x

    with model.graph:
        loss = (rg.lift(checked, vjp=lambda g, ans, x: (g,))(model.x @ weight) ** 2).mean()
    for _ in range(3):
        loss.backward()
    before, copied = weight.grad, np.array(weight.grad)
    model.x.set(np.full(model.x.shape, 1e6) * np.sign(weight.value))
    with pytest.raises(OverflowError, match="too large"):
        loss.backward()
    assert weight.grad is before
    np.testing.assert_array_equal(before, copied)


def test_weak_references_to_gradients_end_with_them() -> None:
    model = Model(300)
    (weight,) = model.weights
    model.step()
    model.step()
    seen = weakref.ref(weight.grad)
    model.step()
    assert seen() is None


def test_threads_that_read_gradients_never_see_half_a_sum() -> None:
    model = Model(100_000)
    (weight,) = model.weights
    model.x.set(np.ones(model.x.shape))
    model.loss.backward()
    model.loss.backward()
    unit = float(weight.grad[0]) / 2.0
    wrong: list[Any] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen = weight.grad
            first = np.array(seen)
            if not (first == first[0]).all() or not (seen == first).all():
                wrong.append(first)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for one in readers:
        one.start()
    try:
        for _ in range(200):
            model.loss.backward()
    finally:
        done.set()
        for one in readers:
            one.join()
    assert not wrong
    np.testing.assert_allclose(weight.grad, 202 * unit)
