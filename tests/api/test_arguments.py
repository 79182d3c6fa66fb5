"""Arguments that a function of arrays has not: the error says what to write."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

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


HABITS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "dim": (lambda x: rg.cumsum(x, dim=0), "rg.cumsum has no argument 'dim', as in dim=0. Write axis=0."),
    "keepdim": (lambda x: rg.prod(x, 0, keepdim=True), "Write keepdims=True."),
    "inplace": (lambda x: rg.silu(x, inplace=True), "Values are never written in place, so leave it out."),
    "nearly": (lambda x: rg.std(x, axs=0), "Write axis=0."),
    "correction": (lambda x: rg.cov(x, correction=0), "Write ddof=0."),
    "method": (lambda x: x.cumsum(dim=0), "x.cumsum has no argument 'dim', as in dim=0. Write axis=0."),
    "squeeze": (lambda x: x.squeeze(dim=0), "x.squeeze has no argument 'dim', as in dim=0. Write axis=0."),
    "linalg": (lambda x: rg.linalg.vector_norm(x, dim=0), "rg.linalg.vector_norm has no argument 'dim'"),
    "NumPy": (lambda x: np.cumsum(x, out=np.ones(2)), "np.cumsum on a Var has no argument 'out', as in out=array"),
    "dropout": (lambda x: rg.dropout(x, inplace=True), "rg.dropout has no argument 'inplace'"),
    "too many": (lambda x: rg.cumsum(x, 0, None, 1, 2, 3), "rg.cumsum: too many positional arguments"),
    "none": (lambda x: rg.cumsum(), "rg.cumsum: missing a required argument: "),
    "by place": (lambda x: rg.mse_loss(input=x, target=x), "not by name. Write rg.mse_loss(input, target, ...)."),
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
