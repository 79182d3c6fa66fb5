"""The table of families has the names that exist, and no others."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.nodes._op import OPS, PRIMITIVES
from reactgrad.ops import _families
from tests.devices.test_op_tables import tables
from tests.ops.case import tuple_of
from tests.test_import_walls import run_python


@pytest.mark.parametrize("family", _families.FAMILIES)
def test_a_family_has_the_names_that_are_listed(family: str) -> None:
    package = import_module(f"reactgrad.ops.{family}")
    found = {
        name
        for name, one in vars(package).items()
        if not name.startswith("_") and inspect.isfunction(one)
    }
    assert found == set(_families.FAMILIES[family].split())


def test_no_name_stands_twice() -> None:
    names = [name for many in _families.FAMILIES.values() for name in many.split()]
    names += _families.ELSEWHERE
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", _families.PLACES)
def test_a_function_says_what_it_does(name: str) -> None:
    assert inspect.getdoc(getattr(rg, name))


def ops_of(case: Any) -> set[str]:
    """Return the names of the ops of a case, and of its derivatives."""
    operands = case.operands(1, (case.dtypes or "d")[0])
    g = rg.Graph()
    leaves = [g.input(one) for one in operands]
    nodes = [one for one in tuple_of(case.call(*leaves)) if isinstance(one, rg.Var)]
    floats = [one for one in nodes if one.dtype.kind in "fc"]
    held: list[Any] = [*nodes]
    if case.order and floats and "reverse" in case.modes:
        cost = sum(rg.real((one * one).sum()) for one in floats)
        first = [one for one in rg.grad(cost, leaves, allow_unused=True) if one is not None]
        held += first
        if case.order > 1 and first:
            bend = sum(rg.real((one * one).sum()) for one in first)
            held += rg.grad(bend, leaves, allow_unused=True)
    if case.order and floats and "forward" in case.modes:
        ones = [np.ones(one.shape, one.dtype) for one in leaves]
        held += [rg.jvp(one, leaves, ones, allow_unused=True) for one in floats]
    return {g._host.ops[one._slot].name for one in g.nodes}


# Variants for lengths that are not known, which the law of these builds, and parts that need repeated places.
ELSEWHERE = {
    *("broadcast_beside", "conv_transpose_like", "conv_weight_like", "fold_like"),
    *(
        "causal",
        "gather_distinct",
        "of_bin",
        "round_to",
        "resample_back_like",
        "grid_sample_back_like",
    ),
    # Beside mpmath in `special/test_of_scipy.py`, to second order in both modes.
    *("boxcox", "boxcox1p", "entr", "exprel", "gamma", "gamma_density", "gammainc", "gammaincc"),
    *("iv", "jv", "kv", "rel_entr", "yv"),
}


@pytest.mark.slow
def test_every_op_of_a_family_is_in_a_table(tmp_path: Path) -> None:
    """There its values and derivatives are checked by the laws of ``case``."""
    program = "import reactgrad.autodiff._custom; from reactgrad.nodes._op import OPS; print(*OPS)"
    base = set(run_python("-c", program, cwd=tmp_path).split())
    _families.op_named("")  # all families are loaded
    cases = [one.values[0] for one in tables()]
    for name in ("linalg", "fft"):
        cases += import_module(f"tests.{name}.test_laws").CASES
    met = set().union(*map(ops_of, cases))
    own = {
        name
        for name, op in OPS.items()
        if name not in base
        and name not in PRIMITIVES
        and op.key is None  # draws have tests of their own
        and not name.startswith("deferred_")  # so have functions on operands whose axes show late
        and (op.variadic or any(op.vjps or ()))
    }
    assert sorted(own - met - ELSEWHERE) == []
