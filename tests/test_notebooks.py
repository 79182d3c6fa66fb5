"""Every notebook runs, prints what its committed half shows, and is as short as it says."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.notebook import SCRIPTS, cells, execute, printed

jupytext = pytest.importorskip("jupytext", reason="notebooks are read with jupytext")
nbformat = pytest.importorskip("nbformat", reason="notebooks are written with nbformat")

each = pytest.mark.parametrize("script", SCRIPTS, ids=[script.stem for script in SCRIPTS])

# What a notebook imports that does not come with the package.
NEEDS = {
    "a_lineage": ("neat", "pygraphviz"),
    "exploring_stale_paths": ("pygraphviz", "matplotlib"),
    "gradient_flow": ("matplotlib",),
    "learning_digits": ("sklearn", "matplotlib"),
    "sampling_the_nile": ("pygraphviz", "matplotlib"),
    "what_if_on_an_option_book": ("pygraphviz", "matplotlib"),
}


def test_there_are_notebooks() -> None:
    assert [script.stem for script in SCRIPTS] == [
        "a_lineage",
        "exploring_stale_paths",
        "gradient_flow",
        "learning_digits",
        "questions_to_a_network",
        "sampling_the_nile",
        "the_core_rebuilt",
        "what_if_on_an_option_book",
    ]


@each
def test_both_halves_have_the_same_cells(script: Path) -> None:
    paired = nbformat.read(script.with_suffix(".ipynb"), as_version=4)
    assert cells(paired) == cells(jupytext.read(script))


@each
def test_nothing_in_it_tells_of_the_machine_that_ran_it(script: Path) -> None:
    text = script.with_suffix(".ipynb").read_text(encoding="utf-8")
    assert not [
        word for word in ("ipykernel_", "Fontconfig", tempfile.gettempdir()) if word in text
    ]


# What Jupyter's packages are about to stop using is theirs to mend; the notebook's own warnings are
# raised, and printed, in the kernel.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@each
def test_it_prints_what_its_committed_half_shows(script: Path) -> None:
    pytest.importorskip("nbclient", reason="notebooks are executed with nbclient")
    pytest.importorskip("ipykernel", reason="notebooks are executed in IPython's kernel")
    for package in NEEDS.get(script.stem, ()):
        pytest.importorskip(package, reason=f"the notebook imports {package}")
    paired = nbformat.read(script.with_suffix(".ipynb"), as_version=4)
    assert printed(execute(script)) == printed(paired)


def test_the_core_is_rebuilt_in_under_120_lines() -> None:
    (script,) = [script for script in SCRIPTS if script.stem == "the_core_rebuilt"]
    notebook = jupytext.read(script)
    core = [cell for cell in notebook.cells if "core" in cell.metadata.get("tags", ())]
    assert all(cell.cell_type == "code" for cell in core)
    lines = [
        line
        for cell in core
        for line in cell.source.splitlines()
        if line.strip() and not line.strip().startswith("#")
    ]
    assert len(lines) < 120
    # It stands alone: these cells define the engine without the others, and without reactgrad.
    names: dict[str, object] = {}
    exec(compile("\n\n".join(cell.source for cell in core), script.name, "exec"), names)
    assert {"Node", "give", "forward", "read", "grad"} <= names.keys()
    assert not any("reactgrad" in line for line in lines)
