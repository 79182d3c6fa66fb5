"""Gradients through complex numbers, in the convention of JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

RNG = np.random.default_rng(0)
Z = RNG.normal(size=3) + 1j * RNG.normal(size=3)
W = RNG.normal(size=3) + 1j * RNG.normal(size=3)
R = RNG.normal(size=3)

FUNCTIONS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "absolute": (rg.absolute, [Z]),
    "square of the length": (lambda z: abs(z) ** 2, [Z]),
    "real": (lambda z: rg.real(z * z), [Z]),
    "imag": (lambda z: rg.imag(rg.exp(z)), [Z]),
    "conj": (lambda z: rg.real(rg.conj(z) * z * z), [Z]),
    "conj of a real number": (lambda x: rg.conj(x) * rg.real(x) + rg.imag(x), [R]),
    "angle": (rg.angle, [Z]),
    "sign": (rg.sign, [Z]),
    "a chain": (lambda z: rg.log(abs(rg.sin(z) / (z + 2.0))), [Z]),
    "real and complex": (lambda a, b: abs(a * b + b * b) + a, [R, W]),
    "real to complex": (lambda a: abs(a * 1j + a.astype("complex128")), [R]),
    "matmul": (lambda z, w: z @ rg.conj(w), [Z, W]),
    "index": (lambda z: z[[0, 0, 1]] * z[0], [Z]),
    "mean": (lambda z: (z * z).mean(), [Z]),
    "power": (lambda z: z**2.5, [Z]),
    "power by a number": (lambda z: z**-1 + z**3, [Z]),
    **{
        name: (getattr(rg, name), [Z])
        for name in ("exp", "expm1", "log", "log10", "log1p", "sqrt", "square", "reciprocal")
    },
    **{
        name: (getattr(rg, name), [Z])
        for name in ("sin", "cos", "tan", "arcsin", "arctan", "sinh", "cosh", "tanh")
    },
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_rules_in_both_modes_to_second_order(name: str) -> None:
    f, args = FUNCTIONS[name]
    rg.testing.check_grads(f, args)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_a_gradient_is_that_of_jax(dtype: str) -> None:
    g = rg.Graph()
    z = g.input(Z.astype(dtype))
    for loss, right in (
        ((abs(z) ** 2).sum(), 2.0 * Z.conj()),
        (rg.real(z * z).sum(), 2.0 * Z),
        (rg.imag(z).sum(), np.full(3, -1j)),
        (rg.real(rg.conj(z)).sum(), np.ones(3)),
        (abs(z).sum(), Z.conj() / abs(Z)),
        (rg.angle(z).sum(), -1j * Z.conj() / abs(Z) ** 2),
    ):
        found = rg.grad(loss, z)
        assert found.dtype == np.dtype(dtype)
        np.testing.assert_allclose(found.value, right, rtol=1e-5 if dtype == "complex64" else 1e-13)


def test_a_step_changes_the_loss_by_the_real_part_of_the_product() -> None:
    g = rg.Graph()
    z = g.input(Z)
    loss = rg.log(abs(rg.exp(z) + z)).sum()
    step = 1e-6 * W
    first = rg.grad(loss, z).value
    assert rg.jvp(loss, z, W).value == pytest.approx(float((first * W).sum().real), rel=1e-12)
    before = loss.item()
    z.set(Z + step)
    assert loss.item() - before == pytest.approx(float((first * step).sum().real), rel=1e-4)


def test_at_0_the_length_and_the_angle_have_gradient_0() -> None:
    z = rg.Graph().input(np.zeros(2, complex))
    assert rg.grad(abs(z).sum(), z).value.tolist() == [0.0, 0.0]
    assert rg.grad(rg.angle(z).sum(), z).value.tolist() == [0.0, 0.0]
    assert rg.jvp(abs(z), z, np.ones(2)).value.tolist() == [0.0, 0.0]


def test_a_real_param_behind_complex_numbers_has_a_real_gradient() -> None:
    g = rg.Graph()
    w = g.param([1.0, 2.0])
    loss = (abs(w * (1.0 + 2.0j)) ** 2).sum()
    loss.backward()
    np.testing.assert_allclose(w.grad, [10.0, 20.0])
    assert w.grad.dtype == np.float64
    assert rg.jvp(abs(w * 1j), w, [1.0, 1.0]).value.tolist() == [1.0, 1.0]


def test_gradients_of_complex_results_for_a_complex_seed() -> None:
    g = rg.Graph()
    z = g.input(Z)
    found = rg.grad(z * z, z, gradient=W).value
    np.testing.assert_allclose(found, 2.0 * W * Z)
    np.testing.assert_allclose(rg.vjp(z * z, z, g.input(W)).value, found)
    np.testing.assert_allclose(rg.jvp(z * z, z, W).value, 2.0 * W * Z)


def test_functions_and_jacobians() -> None:
    assert rg.grad(lambda z: rg.real(z**2))(1.0 + 2.0j) == 2.0 + 4.0j
    g = rg.Graph()
    z = g.input(Z)
    np.testing.assert_allclose(rg.jacobian(abs(z), z).value, np.diag(Z.conj() / abs(Z)))
    second = rg.hvp((abs(z) ** 2).sum(), z, W).value
    np.testing.assert_allclose(second, 2.0 * W.conj())


def test_numpys_functions_build_these_nodes() -> None:
    z = rg.Graph().input(Z)
    for build, function in (
        (np.real(z), np.real),
        (np.imag(z), np.imag),
        (np.conj(z), np.conj),
        (np.angle(z), np.angle),
        (np.angle(z, deg=True), lambda a: np.angle(a, deg=True)),
    ):
        np.testing.assert_array_equal(build.value, function(Z))


def test_what_is_not_defined_is_refused() -> None:
    g = rg.Graph()
    z = g.input(Z, name="z")
    with pytest.raises(rg.DTypeError, match=r"only real numbers are differentiated.*rg\.absolute"):
        rg.grad((z * z).sum(), z)
    with pytest.raises(rg.DTypeError, match="only real numbers"):
        rg.jacobian(z * z, z)
    with pytest.raises(rg.DTypeError, match=r"'z'.*its gradient is complex.*rg\.hvp"):
        rg.hessian((abs(z) ** 2).sum(), z)
    with pytest.raises(rg.GradientError, match=r"mode='forward'.*mode='reverse'"):
        rg.jacobian(abs(z), z, mode="forward")
