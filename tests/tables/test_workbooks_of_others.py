"""Workbooks that nobody here wrote, where a folder of them is named: our values equal those that Excel has left.

The sdists of xlcalculator and of older releases of formulas carry some: unpack them, and set
``REACTGRAD_WORKBOOKS`` to the folder.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import reactgrad as rg

FOLDER = os.environ.get("REACTGRAD_WORKBOOKS")
FILES = sorted(Path(FOLDER).rglob("*.xls[xm]")) if FOLDER else []


@pytest.mark.slow
@pytest.mark.skipif(not FILES, reason="REACTGRAD_WORKBOOKS names no folder with workbooks")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
@pytest.mark.filterwarnings("ignore")
def test_values_are_those_in_the_file(path: Path) -> None:
    pytest.importorskip("openpyxl")
    assert rg.from_excel(path).differences() == {}
