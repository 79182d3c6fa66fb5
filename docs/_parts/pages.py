"""Pages that lie elsewhere in the repository become pages of the site, and links lead to them.

A page is written for a viewer of the repository: its links are paths of files. Where the file is a page of the site,
the link leads to that; where it is a file of code, which the site has not, only its name is left.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent
MADE = DOCS / "_made"

# Files of the repository outside docs/ that are pages, and where.
ELSEWHERE = {
    "scheduler/README.md": "scheduler.md",
    "bench/README.md": "benchmarks.md",
    "bench/FIGURES.md": "benchmark_tables.md",
    "tests/README.md": "tests.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
LINK = re.compile(r"(?<!\\)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]*)\)")
CODE = re.compile(r"^(?:```|~~~)(?:.*\n)*?^(?:```|~~~)[ \t]*$", re.MULTILINE)


def places() -> dict[Path, Path]:
    """Return where each file of the repository that is a page lies for the build."""
    found = {ROOT / source: MADE / name for source, name in ELSEWHERE.items()}
    found |= {book: MADE / "notebooks" / book.name for book in (ROOT / "notebooks").glob("*.ipynb")}
    return found


def links(text: str, origin: Path, page: Path) -> str:
    """Return a page's text with links that lead to pages of the site.

    Parameters
    ----------
    text : str
        Markdown.
    origin, page : Path
        Where the links were written to be read from, and where the page lies for the build.
    """
    known = places()

    def led(match: re.Match[str]) -> str:
        label, target = match.groups()
        path, mark, anchor = target.partition("#")
        if not path or "://" in path or path.startswith("mailto:"):
            return match[0]
        file = (origin.parent / path).resolve()
        file = file / "README.md" if file.is_dir() else file
        if not file.exists():
            raise FileNotFoundError(f"{origin.name} links to {target}, which does not exist")
        there = known.get(file, file)
        if there.is_relative_to(DOCS) and (there.exists() or file in known):
            up = page.parent.resolve()
            return f"[{label}]({_relative(there, up)}{mark}{anchor})"
        return label

    parts, last = [], 0
    for code in CODE.finditer(text):
        parts += [LINK.sub(led, text[last : code.start()]), code[0]]
        last = code.end()
    return "".join([*parts, LINK.sub(led, text[last:])])


def _relative(path: Path, folder: Path) -> str:
    import os

    return Path(os.path.relpath(path, folder)).as_posix()


def listed(index: str) -> str:
    """Return the text of the first page with all pages of the folder in its list of subjects.

    The page gives their order. A page that it does not name comes last, so that none is forgotten.
    """
    named = set(re.findall(r"^(\w+)$", index, re.MULTILINE))
    rest = sorted(page.stem for page in DOCS.glob("*.md") if page.stem not in named | {"index"})
    return re.sub(
        r"(^:caption: Subjects$.*?)(^```$)",
        lambda found: found[1] + "".join(f"{name}\n" for name in rest) + found[2],
        index,
        flags=re.DOTALL | re.MULTILINE,
    )


def take() -> None:
    """Copy the pages from other folders to where the build finds them."""
    for source, place in places().items():
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".ipynb":
            _take_notebook(source, place)
        else:
            write(place, links(source.read_text(encoding="utf-8"), source, place))


def _take_notebook(source: Path, place: Path) -> None:
    notebook = json.loads(source.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = links("".join(cell["source"]), source, place)
    write(place, json.dumps(notebook))


def write(place: Path, text: str) -> None:
    """Write a page, unless it is so already: Sphinx reads again what has changed."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if not place.exists() or place.read_text(encoding="utf-8") != text:
        place.write_text(text, encoding="utf-8")


def clear() -> None:
    """Take away what former builds have made."""
    shutil.rmtree(MADE, ignore_errors=True)
