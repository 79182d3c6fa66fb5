"""The README and the pages of ``docs/`` run, print what they say, and name only what exists."""

from __future__ import annotations

import ast
import contextlib
import io
import re
from pathlib import Path

import pytest

import reactgrad as rg

ROOT = Path(__file__).parent.parent
MADE = ROOT / "docs" / "_made"  # pages of the site that a build has made
PAGES = sorted(
    [
        ROOT / "README.md",
        *(page for page in (ROOT / "docs").rglob("*.md") if MADE not in page.parents),
    ]
)
NEEDS = {
    "files.md": "safetensors",
    "models.md": "onnx",
    "neat.md": "neat",
    "neuro_evolution.md": "neat",
    "analyst.md": "pandas",
    "scenario_table.md": "pandas",
    "training_loop.md": "safetensors",
    "pytorch_user.md": "safetensors",
    "tables.md": "pandas",
    "workbooks.md": "openpyxl",
}
CODE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
PUBLIC = re.compile(r"\brg\.((?:extend\.|testing\.)?[A-Za-z_]\w*)")
OF_A_GRAPH = re.compile(r"\bg\.([A-Za-z_]\w*)")
LINK = re.compile(r"\]\(([^)#:]*)(?:#([^)]*))?\)")


def of_page(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def run_statement(statement: ast.stmt, page: Path, names: dict[str, object]) -> list[str]:
    """Run one statement of a page, and return the lines that it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module([statement], []), page.name, "exec"), names)
    return printed.getvalue().splitlines()


@pytest.mark.parametrize("page", PAGES, ids=of_page)
def test_a_page_runs_and_prints_what_stands_behind_its_arrows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if page.name in NEEDS:
        pytest.importorskip(NEEDS[page.name])
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": page.stem}
    for code in CODE.findall(page.read_text(encoding="utf-8")):
        lines = code.splitlines()
        for statement in ast.parse(code).body:
            printed = run_statement(statement, page, names)
            last = statement.end_lineno or statement.lineno
            while lines[last : last + 1] and lines[last].startswith("# -> "):
                last += 1  # arrows may stand below a statement, too
            span = lines[statement.lineno - 1 : last]
            shown = [line.partition("# -> ")[2] for line in span if "# -> " in line]
            if shown:
                assert printed == shown


@pytest.mark.parametrize("page", PAGES, ids=of_page)
def test_a_page_names_only_what_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    missing = {f"g.{name}" for name in OF_A_GRAPH.findall(text) if not hasattr(rg.Graph, name)}
    for name in PUBLIC.findall(text):
        place, _, last = name.rpartition(".")
        if not hasattr(getattr(rg, place) if place else rg, last):
            missing.add(f"rg.{name}")
    assert not missing


def anchors(page: Path) -> set[str]:
    """Return the anchors that a page's headings get, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=of_page)
def test_a_page_links_only_to_what_exists(page: Path) -> None:
    for path, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), path
        assert not anchor or anchor in anchors(target), f"{path}#{anchor}"
