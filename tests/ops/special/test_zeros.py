"""Polynomials by their zeros."""

import numpy as np
import pytest

import reactgrad as rg
from tests.ops.case import LAWS, Case, Law, of_law

CASE = Case(
    "poly", rg.poly, np.poly, [(4,)], dtypes="dD", unknown=False, fixed="one product for each zero"
)


@pytest.mark.parametrize("law", LAWS, ids=of_law)
def test_laws(law: Law) -> None:
    law(CASE)


def test_other_shapes_are_refused() -> None:
    with pytest.raises(rg.ShapeError, match="eigvals"):
        rg.poly(rg.Graph().input(np.eye(2)))
