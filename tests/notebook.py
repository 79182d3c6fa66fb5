"""Notebooks are pairs: a script of cells, and the same cells with what they print.

``python -m tests.notebook`` executes every script in ``notebooks/`` and writes the other half;
``python -m tests.notebook NAME ...`` only these.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = sorted((ROOT / "notebooks").glob("*.py"))
# What differs from machine to machine: what Graphviz's fontconfig has to say about the fonts.
OF_FONTS = re.compile(r"^Fontconfig .*\n?", re.MULTILINE)


# The title of a picture of a run says how long the run took.
OF_TIMES = re.compile(r"(<Picture of .*), [\d.]+ (?:µs|ms|s)>")


def cells(notebook: Any) -> list[tuple[str, str]]:
    """What is written in a notebook: the kind and the source of each cell."""
    return [(cell.cell_type, cell.source) for cell in notebook.cells]


def printed(notebook: Any) -> list[str]:
    """What each cell shows, as text."""
    return ["".join(map(_text, cell.get("outputs", ()))) for cell in notebook.cells]


def _text(output: Any) -> str:
    if output.output_type == "stream":
        return output.text
    return OF_TIMES.sub(r"\1>", output.data["text/plain"]) + "\n"


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
        if cell.cell_type == "code":
            cell["outputs"] = [output for output in cell["outputs"] if _cleaned(output)]
    # Which interpreter it was is no part of the notebook.
    notebook.metadata.pop("language_info", None)
    return notebook


def _cleaned(output: Any) -> bool:
    """Take out of an output what is the machine's; say whether anything is left."""
    if output.output_type == "stream":
        output["text"] = OF_FONTS.sub("", output.text) if output.name == "stderr" else output.text
        return bool(output.text)
    return True


def main() -> None:
    import nbformat

    known = {script.stem: script for script in SCRIPTS}
    unknown = [name for name in sys.argv[1:] if name not in known]
    if unknown:
        sys.exit(f"no notebook {', '.join(unknown)}; there are {', '.join(known)}")
    for script in [known[name] for name in sys.argv[1:]] or SCRIPTS:
        nbformat.write(execute(script), script.with_suffix(".ipynb"))
        print(script.with_suffix(".ipynb").relative_to(ROOT))


if __name__ == "__main__":
    main()
