"""Arguments that a function of arrays has not: the error says what to write."""

from __future__ import annotations

import inspect
import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import reactgrad as rg
from tests.api.ops_table import functions

PUBLIC = {
    f"{group}.{name}" if group in ("linalg", "fft", "random") else name: one
    for group, found in functions().items()
    for name, one in found.items()
    if group != "base"
}
FREE = {
    name
    for name, one in PUBLIC.items()
    if any(part.kind is part.VAR_KEYWORD for part in inspect.signature(one).parameters.values())
}


def text_of(call: Callable[[], Any]) -> str:
    with pytest.raises(rg.DTypeError) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize("name", sorted(PUBLIC.keys() - FREE))
def test_every_function_refuses_an_argument_that_it_has_not(name: str) -> None:
    space, _, own = name.rpartition(".")
    function = getattr(getattr(rg, space) if space else rg, own)
    text = text_of(lambda: function(1.0, zzz=2))
    assert text.startswith(f"rg.{name} has no argument 'zzz', as in zzz=2. It takes")
    # The signature, the text and the place are those of the function.
    assert function.__name__ == own or own in ("amax", "amin", "concat") or function.__doc__
    assert pickle.loads(pickle.dumps(function)) is function


untyped: Any = rg  # calls that a checker of types refuses, too
HABITS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "dim": (lambda x: untyped.cumsum(x, dim=0), "rg.cumsum has no argument 'dim', as in dim=0. Write axis=0."),
    "keepdim": (lambda x: untyped.prod(x, 0, keepdim=True), "Write keepdims=True."),
    "inplace": (lambda x: untyped.silu(x, inplace=True), "Values are never written in place, so leave it out."),
    "nearly": (lambda x: untyped.std(x, axs=0), "Write axis=0."),
    "correction": (lambda x: untyped.cov(x, correction=0), "Write ddof=0."),
    "method": (lambda x: x.cumsum(dim=0), "x.cumsum has no argument 'dim', as in dim=0. Write axis=0."),
    "squeeze": (lambda x: x.squeeze(dim=0), "x.squeeze has no argument 'dim', as in dim=0. Write axis=0."),
    "linalg": (lambda x: untyped.linalg.vector_norm(x, dim=0), "rg.linalg.vector_norm has no argument 'dim'"),
    "NumPy": (lambda x: np.cumsum(x, out=np.ones(2)), "np.cumsum on a Var has no argument 'out', as in out=array"),
    "dropout": (lambda x: untyped.dropout(x, inplace=True), "rg.dropout has no argument 'inplace'"),
    "too many": (lambda x: untyped.cumsum(x, 0, None, 1, 2, 3), "rg.cumsum: too many positional arguments"),
    "none": (lambda x: untyped.cumsum(), "rg.cumsum: missing a required argument: "),
    "by place": (lambda x: untyped.mse_loss(input=x, target=x), "not by name. Write rg.mse_loss(input, target, ...)."),
}  # fmt: skip


@pytest.mark.parametrize("name", HABITS)
def test_habits_of_other_libraries(name: str) -> None:
    call, words = HABITS[name]
    assert words in text_of(lambda: call(rg.Graph().input([[1.0, 2.0]])))


def test_errors_from_inside_stay_as_they_are() -> None:
    def wrong(*args: Any) -> Any:
        raise TypeError("of its own")

    with pytest.raises(TypeError, match="^of its own$"):
        rg.apply_along_axis(wrong, 0, rg.Graph().input([1.0]))
    with pytest.raises(rg.DTypeError, match="no order"):
        rg.quantile(rg.Graph().input([1j]), 0.5)


def test_a_function_keeps_its_signature_and_text() -> None:
    from reactgrad.ops.reductions import cumsum

    assert inspect.signature(rg.cumsum) == inspect.signature(cumsum)
    assert rg.cumsum.__doc__ == cumsum.__doc__
    assert inspect.unwrap(rg.cumsum) is cumsum


# --- what a call meant --------------------------------------------------------------------------


def message(call: Callable[[Any], Any]) -> str:
    with pytest.raises(rg.ReactgradError) as caught:
        call(rg.Graph().input([0.25, 0.5, 0.75], name="x"))
    return str(caught.value)


SCIPY = ("erf", "erfc", "expit", "log_expit", "psi", "gammaln", "ndtr", "expm1", "log1p", "exp2")


@pytest.mark.parametrize("name", SCIPY)
def test_functions_of_scipy_build_the_node_of_their_name(name: str) -> None:
    function = getattr(scipy.special, name)
    x = rg.Graph().input([0.25, 0.5, 0.75])
    found = function(x)
    np.testing.assert_allclose(found.value, function(x.value), rtol=1e-13)
    assert rg.grad(found.sum(), x).value.all()


def test_functions_of_scipy_that_have_no_node_are_named_as_they_are() -> None:
    assert "rg.lift(scipy.special.struve)" in message(lambda x: scipy.special.struve(1, x))


def test_a_ufunc_of_a_user_is_not_taken_for_that_of_its_name() -> None:
    other = np.frompyfunc(lambda x: x, 1, 1)
    assert "has no op here" in message(other)


def test_files_take_values() -> None:
    for function in (np.save, np.savetxt, np.savez):
        text = message(lambda x, function=function: function(io.BytesIO(), x))
        assert f"np.{function.__name__} of a Var: files hold values. Pass x.value" in text
        assert "g.save(path)" in text


def test_conditions_are_joined_by_operators() -> None:
    for call in (lambda x: x[(x > 0) and (x < 3)], lambda x: x[0 < x < 3]):
        assert "x[(x > 0) & (x < 3)]" in message(call)


X, W_IH, W_HH = np.ones((5, 2, 4)), np.ones((12, 4)), np.ones((12, 3))
PLACES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "lstm without a state": (lambda x: rg.lstm(X, W_IH, W_HH, np.ones(12)), "(state, cell)"),
    "lstm without a cell": (lambda x: rg.lstm(X, np.ones((2, 3)), W_IH, W_HH), "(state, cell)"),
    "lstm of three": (lambda x: rg.lstm(X, (x, x, x), W_IH, W_HH), "(state, cell)"),
    "gru": (lambda x: rg.gru(X, W_IH[:9], W_HH[:9], np.ones(9)), "rg.gru(input, None, w_ih"),
    "rnn": (lambda x: rg.rnn(X, W_IH[:3], W_HH[:3], np.ones(3)), "rg.rnn(input, None, w_ih"),
    "cho_solve": (lambda x: untyped.linalg.cho_solve(np.eye(3), x), "cho_solve((L, True), b)"),
    "cho_solve of a Var": (lambda x: rg.linalg.cho_solve(rg.diag(x), x), "cho_solve((L, True), b)"),
}


@pytest.mark.parametrize("name", PLACES)
def test_what_stands_in_the_wrong_place(name: str) -> None:
    call, words = PLACES[name]
    assert words in message(call)


DRAWS = {
    "normal": "normal((2, 3), loc=0.0, scale=1.0)",
    "uniform": "uniform(low=0.0, high=1.0, size=(2, 3))",
    "exponential": "exponential((2, 3), scale=1.0)",
    "standard_normal": "standard_normal((2, 3))",
    "gamma": "gamma(..., size=(2, 3))",
}


@pytest.mark.parametrize("name", DRAWS)
def test_the_example_of_a_draw_is_of_its_own_function(name: str) -> None:
    draw = getattr(rg.random, name)
    text = message(lambda x: draw(x, 1.0, x) if name == "gamma" else draw(x))
    assert DRAWS[name] in text
    assert name == "normal" or " normal(" not in text
