"""Notebooks are pairs: a script of cells, and the same cells with what they print.

``python -m tests.notebook`` executes every script in ``notebooks/`` and writes the other half.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = sorted((ROOT / "notebooks").glob("*.py"))


def cells(notebook: Any) -> list[tuple[str, str]]:
    """What is written in a notebook: the kind and the source of each cell."""
    return [(cell.cell_type, cell.source) for cell in notebook.cells]


def printed(notebook: Any) -> list[str]:
    """What each cell shows, as text."""
    return ["".join(map(_text, cell.get("outputs", ()))) for cell in notebook.cells]


def _text(output: Any) -> str:
    if output.output_type == "stream":
        return output.text
    return output.data["text/plain"] + "\n"


def execute(script: Path) -> Any:
    """The notebook of a script, executed in a fresh interpreter that finds this checkout first."""
    import jupytext
    from nbclient import NotebookClient

    notebook = jupytext.read(script)
    client = NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(ROOT)}},
    )
    path = os.pathsep.join([str(ROOT), str(ROOT / "scheduler")])
    client.execute(env={**os.environ, "PYTHONPATH": path})
    for number, cell in enumerate(notebook.cells):
        cell["id"] = str(number)  # made at random otherwise
    # Which interpreter it was is no part of the notebook.
    notebook.metadata.pop("language_info", None)
    return notebook


def main() -> None:
    import nbformat

    for script in SCRIPTS:
        nbformat.write(execute(script), script.with_suffix(".ipynb"))
        print(script.with_suffix(".ipynb").relative_to(ROOT))


if __name__ == "__main__":
    main()
