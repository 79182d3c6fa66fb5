"""What is given for an option is taken, or refused in reactgrad's words: never by a line inside of an op.

Each option of each function gets values of kinds that nobody means: a fraction where an integer stands, a text, a
place that does not exist, an object, a list, an array.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import ops
from reactgrad.ops import _families

OPERANDS = {
    "matrix": np.arange(1.0, 7.0).reshape(2, 3),
    "square": np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]]),
    "row": np.array([0.1, 0.4, 0.9]),
    "numbers": np.array([0, 2, 1]),
    "image": np.ones((2, 4, 8, 8)),
    "signal": np.ones((1, 4, 8)),
    "kernel": np.ones((4, 4, 3, 3)),
}
# The first operands that a function takes: the first of these that it does not refuse.
GIVEN: list[tuple[Any, ...]] = [
    *(
        ("matrix",),
        ("square",),
        ("row",),
        ("matrix", "matrix"),
        ("square", "square"),
        ("row", "row"),
    ),
    *(("numbers",), ("matrix", "numbers"), ("image",), ("signal",), ("image", "kernel")),
    *(
        ("row", "numbers"),
        ("matrix", 1),
        ("row", 1),
        ("image", 2),
        ("numbers", 3),
        ("row", "row", 1),
    ),
    *(("matrix", 0, 1), ("matrix", 0, "numbers"), ("row", "row", "row")),
]
WRONG = [1.5, "x", (0, 0), (0, 7), -99, float("nan"), object(), [], True, None, np.array([0]), 1j]


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    names = [*_families.PLACES, *[name for name in vars(ops) if name[0] != "_"]]
    spaces = (
        (rg, names, ""),
        (rg.linalg, dir(rg.linalg), "linalg."),
        (rg.fft, dir(rg.fft), "fft."),
    )
    for space, many, prefix in spaces:
        for name in many:
            one = getattr(space, name, None) if name[0] != "_" else None
            if callable(one) and not isinstance(one, type):
                yield prefix + name, one


FUNCTIONS = dict(functions())


def operands_of(given: tuple[Any, ...]) -> list[Any]:
    g = rg.Graph()
    return [g.input(OPERANDS[one]) if isinstance(one, str) else one for one in given]


def first_operands(function: Callable[..., Any]) -> tuple[Any, ...] | None:
    """Return operands that the function takes; ``None`` if it takes none of those here."""
    for given in GIVEN:
        try:
            function(*operands_of(given))
        except Exception:
            continue
        return given
    return None


def refuse(text: str, call: Callable[[], Any]) -> None:
    """Check that a call gives something, or an error of this library."""
    try:
        call()
    except rg.ReactgradError:
        return
    except Exception as error:
        raise AssertionError(f"{text}: {error!r}") from error


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_option_is_taken_or_refused_in_words(name: str) -> None:
    function = FUNCTIONS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = first_operands(function)
        if given is None:
            pytest.skip("its operands are others")
        parameters = list(inspect.signature(function).parameters.values())
        arrays = len([one for one in given if isinstance(one, str)])
        for place, one in enumerate(parameters):
            if place < arrays or one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
                continue
            for wrong in WRONG:
                args, options = operands_of(given), {}
                if place < len(args):
                    args[place] = wrong
                elif one.kind == one.POSITIONAL_ONLY:
                    continue
                else:
                    options[one.name] = wrong
                refuse(
                    f"{name}({one.name}={wrong!r})",
                    lambda args=args, options=options: function(*args, **options),
                )


def test_most_functions_are_asked() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asked = [name for name, one in FUNCTIONS.items() if first_operands(one) is not None]
    assert len(asked) >= 380, len(asked)
