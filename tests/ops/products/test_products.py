"""The laws of every product, diagonal and triangle, and their NumPy calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.ops.case import LAWS, Case, Law, of_case, of_law


def both(name: str, *args: Any, **options: Any) -> tuple[Any, Any]:
    """Return the function of this name here and in NumPy, with the arguments that are no operands."""
    ours, numpys = getattr(rg, name), getattr(np, name)
    return (
        lambda *operands: ours(*operands, *args, **options),
        lambda *operands: numpys(*operands, *args, **options),
    )


def one(name: str, shapes: Any, *args: Any, **more: Any) -> Case:
    options = {key: more.pop(key) for key in list(more) if key not in Case.__annotations__}
    shown = ", ".join([name, str(shapes), *map(str, args), *map(str, options.values())])
    return Case(shown, *both(name, *args, **options), shapes, **more)


COMPLEX: dict[str, Any] = {"dtypes": "Ddfei"}
REAL: dict[str, Any] = {"dtypes": "dfei?"}

TWO_OR_THREE = "the formula is that of vectors of two or of three elements"

CASES = [
    one("dot", [(3,), (3,)], **COMPLEX, empty=[(0,), (0,)]),
    one("dot", [(2, 3), (3, 4)], **REAL, empty=[(2, 0), (0, 4)]),
    one("dot", [(2, 3), (3,)], **REAL),
    one("dot", [(2, 3, 4), (5, 4, 2)], **REAL, empty=[(2, 3, 4), (0, 4, 2)]),
    one("dot", [(4,), (5, 4, 2)], **REAL),
    one("dot", [(2, 3), ()], **REAL),
    one("dot", [(), ()], **REAL),
    one("inner", [(4,), (4,)], **REAL),
    one("inner", [(2, 3, 4), (5, 4)], **REAL, empty=[(2, 0), (5, 0)]),
    one("inner", [(), (3,)], **REAL),
    one("outer", [(3,), (4,)], **COMPLEX, empty=[(0,), (4,)]),
    one("outer", [(2, 3), (2, 2)], **REAL),
    one("vdot", [(3,), (3,)], **COMPLEX),
    one("vdot", [(2, 3), (2, 3)], **COMPLEX),
    one("vecdot", [(3, 4), (3, 4)], **COMPLEX, empty=[(3, 0), (3, 0)]),
    one("vecdot", [(2, 3, 4), (4,)], **REAL),
    one("vecdot", [(3, 40), (3, 40)], **COMPLEX, tolerance={"e": 2e-2, "f": 1e-4}),
    one("vecdot", [(3, 4), (3, 4)], axis=0, **REAL),
    one("matvec", [(5, 2, 3), (5, 3)], **COMPLEX, empty=[(0, 2, 3), (0, 3)]),
    one("matvec", [(2, 3), (5, 3)], **REAL),
    one("vecmat", [(5, 3), (5, 3, 2)], **COMPLEX),
    one("vecmat", [(3,), (5, 3, 2)], **REAL),
    one("tensordot", [(2, 3, 4), (3, 4, 5)], **REAL),
    one("tensordot", [(2, 3), (4, 5)], 0, **REAL),
    one("tensordot", [(3, 2, 4), (3, 4, 5)], ([0, -1], [0, 1]), **REAL, empty=[(3, 0, 4), (3, 4, 5)]),
    one("tensordot", [(2, 3), (3, 4)], (1, 0), **REAL),
    one("kron", [(2,), (3,)], **REAL, empty=[(0,), (3,)]),
    one("kron", [(2, 3), (4, 2)], **COMPLEX),
    one("kron", [(2, 3, 2), (3,)], **REAL),
    one("kron", [(), (3,)], **REAL),
    one("kron", [(), ()], **REAL),
    one("cross", [(3,), (3,)], dtypes="Ddfei", fixed=TWO_OR_THREE),
    one("cross", [(4, 3), (4, 3)], dtypes="dfei", empty=[(0, 3), (0, 3)]),
    one("cross", [(4, 3), (3,)], dtypes="dfei"),
    one("cross", [(3, 4), (4, 3)], axisa=0, axisc=0, dtypes="dfei"),
    one("cross", [(2, 3), (2, 3)], axis=1, dtypes="dfei"),
    one("cross", [(4, 2), (4, 2)], dtypes="dfei", fixed=TWO_OR_THREE),
    one("cross", [(4, 2), (4, 3)], dtypes="dfei", fixed=TWO_OR_THREE),
    one("cross", [(4, 3), (4, 2)], dtypes="dfei", fixed=TWO_OR_THREE),
    one("trace", [(3, 4)], dtypes="dfei?D", empty=[(0, 4)]),
    one("trace", [(3, 4, 2)], 1, 0, 2, dtypes="dfei"),
    one("trace", [(3, 4)], -1, dtype=np.float32, dtypes="dfi", tolerance={"d": 1e-6}, order=0),
    one("diagonal", [(3, 4)], dtypes="dfei?D", empty=[(0, 4)]),
    one("diagonal", [(3, 4, 2)], -1, 2, 0, dtypes="dfei"),
    one("diagonal", [(2, 3)], 5, dtypes="di"),
    one("diag", [(3,)], dtypes="dfei?D", empty=[(0,)]),
    one("diag", [(3,)], 2, dtypes="dfei"),
    one("diag", [(3,)], -1, dtypes="dfei"),
    one("diag", [(3, 4)], 1, dtypes="dfei"),
    one("diagflat", [(2, 2)], -1, dtypes="dfei?"),
    one("tril", [(3, 4)], dtypes="dfei?D", empty=[(0, 4)]),
    one("tril", [(2, 3, 3)], -1, dtypes="dfei"),
    one("triu", [(3, 4)], 1, dtypes="dfei?"),
    one("triu", [(3,)], dtypes="dfei"),
    one("vander", [(3,)], 4, dtypes="dfeiD", empty=[(0,)]),
    one("vander", [(3,)], 4, True, dtypes="dfei"),
    one("vander", [(3,)], 1, dtypes="dfi"),
    one("vander", [(3,)], dtypes="dfi"),
    Case("mT", lambda x: x.mT, lambda x: x.mT, [(2, 3, 4)], dtypes="dfei?"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Arrays of 2-dimensional vectors:DeprecationWarning")
@pytest.mark.parametrize("law", LAWS, ids=of_law)
@pytest.mark.parametrize("case", CASES, ids=of_case)
def test_laws(case: Case, law: Law) -> None:
    law(case)
