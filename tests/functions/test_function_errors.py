"""What cannot be done with ``rg.Function`` says what to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.autodiff.functions import (
    Exp,
    MulConstant,
)
from tests.autodiff.values_on_ctx import A, function

pytestmark = pytest.mark.usefixtures("fresh_counts")


def asked(rule: Any, second: Any = 3.0) -> Any:
    x = rg.Graph().input(A, name="x")
    return rg.grad(function(rule).apply(x, second).sum(), x).value


FORWARD = {"forward": staticmethod(lambda ctx, x: x)}

ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "too few gradients": (
        lambda: asked(lambda ctx, g: ()),
        RuntimeError,
        r"F\.backward returned 0 gradients for 2 arguments",
    ),
    "too many gradients": (
        lambda: asked(lambda ctx, g: (g, None, g)),
        RuntimeError,
        r"gradient for argument 3, and there is no such argument",
    ),
    "gradient of a number": (
        lambda: asked(lambda ctx, g: (g, g)),
        RuntimeError,
        r"gradient for argument 2, and that argument is no Var.*None",
    ),
    "wrong shape": (
        lambda: asked(lambda ctx, g: np.ones((2, 2))),
        ValueError,
        r"the backward of node 'F_\d+' for operand 1 \('x'\).*shape \(2, 2\).*\(3,\)",
    ),
    "wrong shape, known when it runs": (
        lambda: asked(lambda ctx, g: g.sum()),
        ValueError,
        r"the backward of node 'F_\d+' for operand 1 \('x'\).*shape \(\).*\(3,\)",
    ),
    "integers": (
        lambda: asked(lambda ctx, g: np.ones(3, int)),
        TypeError,
        r"int64; gradients are floats",
    ),
    "integers, known when it runs": (
        lambda: asked(lambda ctx, g: g > 0),
        TypeError,
        r"bool; gradients are floats",
    ),
    "another graph": (
        lambda: asked(lambda ctx, g: rg.Graph().input(A)),
        ValueError,
        r"returned a Var of another graph",
    ),
    "attribute that is not there": (
        lambda: asked(lambda ctx, g: g * ctx.m),
        AttributeError,
        r"no 'm': forward has set n on ctx",
    ),
    "saved_variables": (
        lambda: asked(lambda ctx, g: ctx.saved_variables),
        AttributeError,
        r"ctx\.saved_tensors",
    ),
    "no backward": (
        lambda: (lambda x: rg.grad(type("N", (rg.Function,), FORWARD).apply(x), x))(
            rg.Graph().input(0.5)
        ),
        RuntimeError,
        r"no derivative rule.*def backward\(ctx",
    ),
    "no forward": (
        lambda: type("N", (rg.Function,), {}).apply(rg.Graph().input(0.5)),
        TypeError,
        r"N computes nothing: write def forward\(ctx",
    ),
    "an instance": (lambda: Exp(), TypeError, r"Exp\.apply\(x, \.\.\.\)"),
    "wrong arguments": (
        lambda: Exp.apply(rg.Graph().input(1.0), 2, 3),
        TypeError,
        r"Exp\.apply: too many positional arguments.*forward\(ctx.*x",
    ),
    "wrong keyword": (
        lambda: MulConstant.apply(rg.Graph().input(1.0), konstant=2.0),
        TypeError,
        r"MulConstant\.apply: .*constant",
    ),
    "a list of Vars": (
        lambda: Exp.apply([rg.Graph().input(1.0)]),
        TypeError,
        r"would not run again",
    ),
    "no number of outputs": (
        lambda: type("N", (rg.Function,), {}, outputs=0),
        TypeError,
        r"outputs=0.*at least 1",
    ),
    "setup_context": (
        lambda: type("N", (rg.Function,), {"setup_context": staticmethod(lambda *a: None)}),
        TypeError,
        r"forward takes ctx itself",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_mistakes_are_explained(name: str) -> None:
    act, builtin, words = ERRORS[name]
    with pytest.raises(builtin, match=words) as caught:
        act()
    assert isinstance(caught.value, rg.ReactgradError)


def test_missing_gradients_behind_the_last_var_may_be_left_out() -> None:
    np.testing.assert_array_equal(asked(lambda ctx, g: g * 2.0), [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(asked(lambda ctx, g: (g * 2.0,)), [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(asked(lambda ctx, g: [g * 2.0, None, None]), [2.0, 2.0, 2.0])
    k = rg.Graph()
    x, y = k.input(A), k.input(1.0)
    with pytest.raises(rg.GradientError, match="returned 1 gradients for 2"):
        rg.grad(function(lambda ctx, g: g).apply(x, y).sum(), x)


@pytest.mark.parametrize("outputs", [None, 2, 3])
def test_number_of_outputs_is_declared(outputs: int | None) -> None:
    class Two(rg.Function, **({} if outputs is None else {"outputs": outputs})):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x, x

    y = Two.apply(rg.Graph().input(A))
    if outputs == 2:
        assert [one.shape for one in y] == [(3,), (3,)]
        return
    with pytest.raises(rg.ShapeError, match=r"outputs=2|outputs=3 and returned 2"):
        (y if outputs is None else y[0]).value


@pytest.mark.parametrize("what", ["mark_dirty", "mark_non_differentiable", "save_for_forward"])
def test_what_pytorch_has_and_we_do_not(what: str) -> None:
    class F(rg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            getattr(ctx, what)(x)
            return x

    with pytest.raises(AttributeError, match=f"no '{what}': .*[.]"):
        F.apply(rg.Graph().input(A)).value


def test_only_arrays_and_numbers_are_saved() -> None:
    class F(rg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward([x])
            return x

    with pytest.raises(rg.DTypeError, match="save_for_backward was given list.*ctx.name = value"):
        F.apply(rg.Graph().input(A)).value


def test_gradient_in_the_operands_dtype() -> None:
    g = rg.Graph()
    w = g.param(A.astype("f4"))
    Exp.apply(w.astype("f8")).sum().backward()
    assert w.grad.dtype == np.float32
    y = rg.lift(lambda a: a * 2, vjp=lambda up, ans, a: np.full(3, 0.5))(w)
    assert rg.grad(y.sum(), w).dtype == np.float32


def test_gradient_on_another_device() -> None:
    xp = pytest.importorskip("array_api_strict", reason="array-api-strict is in the dev extra")
    from reactgrad.backend.array_api._array_api import register_array_api

    register_array_api(xp, "strict")
    x = rg.Graph().input(xp.asarray(A))
    y = rg.lift(lambda a: a * 2.0, vjp=lambda g, ans, a: np.ones(3))(x)
    with pytest.raises(rg.DeviceError, match=r"gradient on cpu.*operand's device, strict.*Vars"):
        rg.grad(y.sum(), x)
    host = rg.Graph().input(A)
    fine = rg.lift(lambda a: a * 2.0, vjp=lambda g, ans, a: 2.0 * a * 0.0 + 2.0)(host)
    np.testing.assert_array_equal(rg.grad(fine.sum(), host).value, [2.0, 2.0, 2.0])


def test_function_on_another_device() -> None:
    xp = pytest.importorskip("array_api_strict", reason="array-api-strict is in the dev extra")
    from reactgrad.backend.array_api._array_api import register_array_api

    register_array_api(xp, "strict")

    class Cube(rg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * 3.0 * x * x

    x = rg.Graph().input(xp.asarray(A))
    d = rg.grad(Cube.apply(x).sum(), x)
    np.testing.assert_allclose(d.numpy(), 3 * A * A)

    class Product(rg.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, b = ctx.saved_tensors
            return g * b, g * a

    same = rg.lift(lambda v: v, vjp=lambda g, ans, v: g)(x)  # the very array that x holds
    d = rg.grad(Product.apply(x, same).sum(), x)
    x.set(xp.asarray(A + 1.0))
    np.testing.assert_allclose(d.numpy(), 2 * (A + 1.0))
    x.set(xp.asarray(A))
    parts = rg.split(x, [1])
    np.testing.assert_array_equal(parts[1].numpy(), A[1:])
    np.testing.assert_array_equal(rg.grad(parts[1].sum(), x).numpy(), [0.0, 1.0, 1.0])
    np.testing.assert_array_equal(rg.unbind(x)[2].numpy(), A[2])
