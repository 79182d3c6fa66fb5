"""The single-node cases that the package onnx brings, and what ``rg.from_onnx`` makes of one."""

from __future__ import annotations

import warnings
from typing import Any, Final

import numpy as np

import reactgrad as rg
from reactgrad.models import ModelError, UnknownLengthError

# What these expect was rounded to float16 after each step, so that it is up to two units of the last place
# from the result in float64, and so is ours, elsewhere; all other cases are held to their own tolerance.
ROUNDED: Final = {"test_attention_4d_causal_fp16", "test_attention_4d_causal_fp16_expanded"}


def cases() -> list[Any]:
    """Return the cases: each with a model, inputs and expected outputs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, from functions that compute what is expected
        from onnx.backend.test.case.node import collect_testcases

        return list(collect_testcases(None))


def verdict(case: Any) -> tuple[str, str]:
    """Return ``right``, ``wrong`` or ``refused``, and why."""
    names = [v.name for v in case.model.graph.input]
    for inputs, expected in case.data_sets:
        given = {k: _array(v) for k, v in zip(names, inputs, strict=False)}
        try:
            found = results(case.model, given)
        except ModelError as error:
            return "refused", str(error)
        except Exception as error:
            return "wrong", f"{type(error).__name__}: {error}"
        for name, a, b in zip(
            [v.name for v in case.model.graph.output], found, expected, strict=True
        ):
            rtol = 2.0**-9 if case.name in ROUNDED else case.rtol
            why = difference(a, _array(b), rtol, case.atol)
            if why:
                return "wrong", f"{name}: {why}"
    return "right", ""


def _array(value: Any) -> Any:
    """Return what a case holds as an array, or a list of arrays."""
    from onnx import TensorProto, numpy_helper

    if isinstance(value, list):
        return [np.asarray(v) for v in value]
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


def results(model: Any, given: dict[str, Any]) -> list[Any]:
    """Return the outputs for these inputs; those that decide about shapes are given as constants."""
    constants: dict[str, Any] = {}
    while True:
        try:
            m = rg.from_onnx(model, constants=constants)
        except UnknownLengthError as error:
            more = [name for name in error.needs if name not in constants and name in given]
            if not more:
                raise
            constants |= {name: given[name] for name in more}
        else:
            break
    outputs = m(**{k: v for k, v in given.items() if k in m.inputs})
    return [value_of(outputs[v.name]) for v in model.graph.output]


def value_of(found: Any) -> Any:
    """Return the value of an output."""
    if isinstance(found, list):
        return [value_of(v) for v in found]
    return found.value if isinstance(found, rg.Var) else found


def difference(found: Any, expected: Any, rtol: float, atol: float) -> str:
    """Return in which way an output is not what was expected; nothing if it is."""
    if isinstance(expected, list):
        if not isinstance(found, list) or len(found) != len(expected):
            return "another number of elements"
        return next(
            filter(
                None, (difference(a, b, rtol, atol) for a, b in zip(found, expected, strict=True))
            ),
            "",
        )
    if expected is None:
        return "" if found is None else "is not empty"
    a, b = np.asarray(found), np.asarray(expected)
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{a.dtype}{a.shape} instead of {b.dtype}{b.shape}"
    if np.allclose(a, b, rtol, atol, equal_nan=True):
        return ""
    return f"{a.reshape(-1)[:6]} instead of {b.reshape(-1)[:6]}"
