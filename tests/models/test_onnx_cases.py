"""``rg.from_onnx`` beside the single-node cases of the package onnx: many right, none wrong, the rest refused."""

from __future__ import annotations

from collections import Counter

import pytest

pytest.importorskip("onnx")

from tests.models.cases import cases, verdict


@pytest.mark.slow
def test_no_case_is_wrong_and_most_are_right():
    found: Counter[str] = Counter()
    wrong: list[str] = []
    for case in cases():
        answer, why = verdict(case)
        found[answer] += 1
        if answer == "wrong":
            wrong.append(f"{case.name}: {why}")
    assert not wrong, wrong
    assert found["right"] >= 0.8 * found.total(), found
