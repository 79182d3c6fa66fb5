"""The laws of ``case`` hold for base ops, and find a rule that is wrong."""

from __future__ import annotations

import numpy as np
import pytest

import reactgrad as rg

from .case import LAWS, Case, Law, gradients, of_case, of_law, values_and_specs

CASES = [
    Case("sum", lambda x: rg.sum(x, axis=0), lambda x: np.sum(x, axis=0), [(3, 4)], empty=[(0, 4)]),
    Case("matmul", lambda x, y: x @ y, lambda x, y: x @ y, [(3, 4), (4, 2)], unknown=False),
    Case(
        "softmax",
        rg.softmax,
        lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True),
        [(3, 4)],
        dtypes="df",
    ),
    Case("split", lambda x: rg.split(x, 2, 1), lambda x: np.split(x, 2, 1), [(3, 4)]),
    Case(
        "multiply",
        lambda x, y: x * y,
        lambda x, y: x * y,
        [(3, 4), (4,)],
        dtypes="dfeD",
        unknown=False,
    ),
]


@pytest.mark.parametrize("law", LAWS, ids=of_law)
@pytest.mark.parametrize("case", CASES, ids=of_case)
def test_laws(case: Case, law: Law) -> None:
    law(case)


def test_a_wrong_value_and_a_wrong_rule_are_found() -> None:
    wrong = Case("wrong", lambda x: x + 1e-9, lambda x: x, [(3,)])
    with pytest.raises(AssertionError):
        values_and_specs(wrong)
    bad = Case("bad", lambda x: x * x.scale_grad(2.0), lambda x: x * x, [(3,)])
    with pytest.raises(rg.GradientError):
        gradients(bad)
