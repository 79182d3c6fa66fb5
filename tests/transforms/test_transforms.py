"""Transforms of nodes and of functions: values, what is built, what runs, what cannot be done."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.autodiff.transformed import W, X, cube

# --- products, gradients with values ----------------------------------------------------------------


def test_hvp_is_live_and_the_same_at_every_ask() -> None:
    g = rg.Graph()
    x, v = g.param([1.0, 2.0]), g.input([1.0, 0.0])
    y = (x**3).sum() * x[0]
    product = rg.hvp(y, x, v)
    count = len(g)
    assert rg.hvp(y, [x], [v])[0] is product
    assert len(g) == count

    def wanted() -> np.ndarray:
        return np.asarray(rg.hessian(y, x).value) @ v.value

    np.testing.assert_allclose(product.value, wanted())
    v.set([0.5, 2.0])
    np.testing.assert_allclose(product.value, wanted())
    x.set([0.5, -1.0])
    np.testing.assert_allclose(product.value, wanted())


def test_second_derivatives_that_an_edit_makes() -> None:
    g = rg.Graph()
    x, v = g.param([1.0, 2.0]), g.input([1.0, 0.0])
    h = x * 3.0
    y = (h * x.detach()).sum()
    h.replace_parent(1, x.detach())
    hessian, product = rg.hessian(y, x), rg.hvp(y, x, v)
    np.testing.assert_array_equal(hessian.value, np.zeros((2, 2)))
    np.testing.assert_array_equal(product.value, [0.0, 0.0])
    h.replace_parent(1, x)
    np.testing.assert_array_equal(hessian.value, np.diag([2.0, 4.0]))
    np.testing.assert_array_equal(product.value, [2.0, 0.0])
    assert rg.hessian(y, x) is hessian
    assert rg.hvp(y, x, v) is product


@pytest.mark.slow
def test_second_derivatives_follow_new_shapes_when_nothing_else_is_held() -> None:
    g = rg.Graph()
    x, v = g.input([1.0, 2.0]), g.input([1.0, 1.0])
    hessian = rg.hessian((x**3).sum(), x)
    product = rg.hvp((x**3).sum(), x, v)
    gc.collect()
    np.testing.assert_allclose(hessian.value, np.diag([6.0, 12.0]))
    g.set({x: [1.0, 2.0, 3.0], v: [1.0, 0.0, 1.0]})
    np.testing.assert_allclose(hessian.value, np.diag([6.0, 12.0, 18.0]))
    np.testing.assert_allclose(product.value, [6.0, 0.0, 18.0])


def test_hvp_through_functions_without_forward_rule() -> None:
    g = rg.Graph()
    x, unused = g.input([1.0, 2.0]), g.input(1.0)
    cube = rg.lift(lambda v: v**3, vjp=lambda g, ans, v: (g * 3.0 * v**2,), shape=(2,))
    np.testing.assert_allclose(rg.hvp(cube(x).sum(), x, [1.0, 1.0]).value, [6.0, 12.0])
    np.testing.assert_allclose(rg.hessian(cube(x).sum(), x).value, np.diag([6.0, 12.0]))
    one, two = rg.hvp(cube(x).sum(), [x, unused], [[1.0, 1.0], 1.0], allow_unused=True)
    np.testing.assert_allclose(one.value, [6.0, 12.0])
    assert two.value == 0.0


def test_vjp_is_the_gradient_for_a_given_gradient() -> None:
    g = rg.Graph()
    x, v = g.param([1.0, 2.0]), g.input([1.0, 10.0])
    y = x * x
    d = rg.vjp(y, x, v)
    assert rg.vjp(y, [x], v)[0] is d is rg.grad(y, x, gradient=v)
    v.set([0.0, 1.0])
    np.testing.assert_array_equal(d.value, [0.0, 4.0])
    assert rg.vjp(y, xs=x, v=v) is d
    assert rg.vjp(y, g.input(1.0), v, allow_unused=True) is None


def test_value_and_grad_of_a_node() -> None:
    g = rg.Graph()
    x = g.input(3.0)
    y = x * x
    value, gradient = rg.value_and_grad(y, x)
    assert value is y
    assert gradient is rg.grad(y, x)


TRANSFORMS: dict[str, Callable[[Any, Any], Any]] = {
    "vjp": lambda x, t: rg.vjp(cube(x), x, t[1:]),
    "jvp": lambda x, t: rg.jvp(cube(x), x, t),
    "hvp": lambda x, t: rg.hvp(cube(x).sum(), x, t),
    "jacobian forward": lambda x, t: rg.jacobian(cube(x), x, "forward") * t,
    "jacobian reverse": lambda x, t: rg.jacobian(cube(x), x, "reverse") * t,
    "hessian forward": lambda x, t: rg.hessian(cube(x).sum(), x, "forward") * t,
    "hessian reverse": lambda x, t: rg.hessian(cube(x).sum(), x, "reverse") * t,
    "value_and_grad": lambda x, t: rg.value_and_grad((cube(x) ** 2).sum(), x)[1] * t,
    "grad of a function": lambda x, t: rg.grad(lambda a: (cube(a) * cube(x)).sum())(x) * t,
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transform_is_differentiated_to_second_order_in_both_modes(name: str) -> None:
    x, t = np.array([0.5, -0.75, 1.25]), np.array([1.0, 0.5, -0.25])
    rg.testing.check_grads(TRANSFORMS[name], [x, t], rtol=1e-5, atol=1e-5)


# --- against PyTorch -----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")  # its own forward mode
@pytest.mark.parametrize("seed", range(30))
def test_random_program_has_pytorchs_derivatives(seed: int) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is in the bench extra")
    from tests.autodiff.test_torch import program

    arrays, build_both = program(seed)
    rng = np.random.default_rng(seed + 1000)
    tangents = [rng.normal(size=a.shape) for a in arrays]
    theirs = [torch.tensor(a, dtype=torch.float64) for a in arrays]
    their_ts = [torch.tensor(t, dtype=torch.float64) for t in tangents]

    def ours(*xs: Any) -> Any:
        return build_both(list(xs), None)

    def other(*xs: Any) -> Any:
        return build_both(list(xs), torch)

    def same(got: Any, wanted: Any) -> None:
        wanted = wanted.detach().numpy()
        scale = max(1.0, float(np.abs(wanted).max(initial=0.0)))
        np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-10 * scale)

    value, moved = rg.jvp(ours, tuple(arrays), tuple(tangents))
    their_value, their_moved = torch.func.jvp(other, tuple(theirs), tuple(their_ts))
    same(value, their_value)
    same(moved, their_moved)
    gradients = torch.func.grad(other, argnums=(0, 1, 2, 3))(*theirs)
    for got, wanted in zip(rg.grad(ours, (0, 1, 2, 3))(*arrays), gradients, strict=True):
        same(got, wanted)
    got = rg.hvp(ours, tuple(arrays), tuple(tangents))
    _, wanted_products = torch.func.jvp(
        torch.func.grad(other, argnums=(0, 1, 2, 3)), tuple(theirs), tuple(their_ts)
    )
    for one, wanted in zip(got, wanted_products, strict=True):
        same(one, wanted)
    same(rg.hessian(ours)(*arrays), torch.func.hessian(other)(*theirs))


@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")
def test_jacobians_are_pytorchs() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is in the bench extra")

    def f(lib: Any) -> Callable[..., Any]:
        return lambda w, x: lib.tanh(x @ w) * lib.sigmoid(x.sum()) + lib.exp(w)[0]

    args = [torch.tensor(a) for a in (W, X)]
    for argnums in (0, 1):
        wanted = torch.func.jacrev(f(torch), argnums)(*args).numpy()
        second = torch.func.jacfwd(torch.func.jacrev(f(torch), argnums), argnums)(*args).numpy()
        for mode in ("forward", "reverse"):
            jacobian = rg.jacobian(f(rg), argnums, mode)
            np.testing.assert_allclose(jacobian(W, X), wanted, rtol=1e-10, atol=1e-12)
            again = rg.jacobian(jacobian, argnums, mode)
            np.testing.assert_allclose(again(W, X), second, rtol=1e-10, atol=1e-12)


# --- products along nodes of the same graph ------------------------------------------------------------


def test_a_direction_that_is_computed_from_x_does_not_move_with_it() -> None:
    g = rg.Graph()
    w = g.param([1.0, 2.0])
    y = (w**3).sum()
    along = rg.grad(y, w)
    product = rg.hvp(y, w, along)
    assert rg.hvp(y, w, along) is product
    for values in ([1.0, 2.0], [3.0, -1.0]):
        w.set(values)
        np.testing.assert_allclose(product.value, rg.hessian(y, w).value @ along.value)


def test_x_as_its_own_direction() -> None:
    g = rg.Graph()
    x = g.param(3.0)
    assert rg.hvp(x, x, x, allow_unused=True).value == 0.0
    product = rg.hvp(x**3, x, x)
    assert product.value == 54.0  # 6 x, times x
    x.set(2.0)
    assert product.value == 24.0


def test_a_product_passes_gradients_to_its_direction() -> None:
    """It does not move with ``x``; what is derived from it does: 6 x t, of which t may be anything."""
    g = rg.Graph()
    x, u = g.param([1.0, 2.0]), g.param([3.0, 4.0])
    y = (x**3).sum()
    for along, by, expected in (
        (u, u, [6.0, 12.0]),
        (u * 1.0, u, [6.0, 12.0]),
        (u * 1.0, x, [18.0, 24.0]),
        (x, x, [12.0, 24.0]),
        (x * 1.0, x, [12.0, 24.0]),
        (x * u, x, [36.0, 96.0]),
    ):
        product = rg.hvp(y, x, along)
        np.testing.assert_allclose(rg.grad(product.sum(), by).value, expected)
        fork = g.fork()
        with fork:
            again = rg.grad(rg.hvp(fork[y], fork[x], fork[along]).sum(), fork[by])
        np.testing.assert_allclose(again.value, expected)
    # The product of a product moves with the direction of the one before, also where it is the same one.
    third = rg.hvp(rg.hvp(y, x, x * 1.0).sum(), x, u)
    np.testing.assert_allclose(third.value, [36.0, 48.0])
    for along in (x, x * 1.0):
        again = rg.hvp(rg.hvp(y, x, along).sum(), x, along)
        np.testing.assert_allclose(again.value, [12.0, 24.0])


def test_a_detached_direction_is_a_direction_like_its_value() -> None:
    g = rg.Graph()
    x = g.param([1.0, 2.0])
    m = x * 2.0
    y = (m**3).sum()
    for along in (m.detach(), m, m.value, m.detach_node()):
        product = rg.hvp(y, x, along)
        np.testing.assert_allclose(product.value, [96.0, 384.0])
    slope = rg.grad(rg.hvp(y, x, m.detach()).sum(), x)
    np.testing.assert_allclose(slope.value, [96.0, 192.0])


def test_a_product_that_was_asked_for_under_no_grad_is_like_any_other() -> None:
    g = rg.Graph()
    x = g.param([1.0, 2.0])
    y, along = (x**3).sum(), x * 1.0
    with rg.no_grad():
        product = rg.hvp(y, x, along)
    np.testing.assert_allclose(product.value, [6.0, 24.0])
    np.testing.assert_allclose(rg.grad(rg.hvp(y, x, along).sum(), x).value, [12.0, 24.0])


def test_a_product_passes_gradients_to_its_direction_through_functions_without_forward_rule() -> (
    None
):
    g = rg.Graph()
    x = g.param([1.0, 2.0])
    cube = rg.lift(lambda a: a**3, vjp=lambda g, ans, a: (g * 3.0 * a * a,))
    product = rg.hvp(cube(x).sum(), x, x * 1.0)
    np.testing.assert_allclose(product.value, [6.0, 24.0])
    np.testing.assert_allclose(rg.grad(product.sum(), x).value, [12.0, 24.0])


def test_what_becomes_of_a_detached_node_of_the_direction_changes_no_product() -> None:
    g = rg.Graph()
    w = g.param([1.0, 2.0])
    along = w * 1.0
    detached = along.detach_node()
    product = rg.hvp((w**3).sum(), w, along)
    detached.replace_parent(0, g.input([100.0, 100.0]))
    detached.cutoff = lambda old, new: True
    np.testing.assert_array_equal(product.value, [6.0, 24.0])
    w.set([3.0, 4.0])
    np.testing.assert_array_equal(product.value, [54.0, 96.0])
