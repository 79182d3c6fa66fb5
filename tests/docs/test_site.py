"""The site is built without a warning, and all that is public stands on it once."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
NEEDS = ("sphinx", "furo", "numpydoc", "myst_nb")
ABSENT = [package for package in NEEDS if find_spec(package) is None]


@pytest.fixture(scope="module")
def parts() -> Iterator[ModuleType]:
    """What the site is made of: ``docs/_parts``, imported as Sphinx does."""
    sys.path.insert(0, str(ROOT / "docs"))
    import _parts
    import _parts.pages
    import _parts.reference

    yield _parts
    sys.path.remove(str(ROOT / "docs"))


def test_each_public_name_stands_on_one_page_of_the_reference(parts: ModuleType) -> None:
    ops = parts.reference.operations()
    grouped = [name for _, _, names in parts.reference.GROUPS.values() for name in names.split()]
    placed = [*grouped, *(name for names in ops.values() for name in names)]
    assert len(placed) == len(set(placed))
    parts.reference.check(ops)


def test_links_lead_to_pages_of_the_site_or_nowhere(parts: ModuleType) -> None:
    page = ROOT / "docs" / "rules.md"
    led = parts.pages.links
    assert led("[b](../bench/README.md#x)", page, page) == "[b](_made/benchmarks.md#x)"
    assert led("[v](values.md)", page, page) == "[v](values.md)"
    assert led("[code](../reactgrad/__init__.py)", page, page) == "code"
    assert led("[w](https://example.org)", page, page) == "[w](https://example.org)"
    with pytest.raises(
        FileNotFoundError, match=r"rules.md links to lost.md#x, which does not exist"
    ):
        led("[v](lost.md#x)", page, page)
    assert led("```\n[v](../LICENSE)\n```", page, page) == "```\n[v](../LICENSE)\n```"


def test_a_page_that_the_first_one_does_not_name_is_listed_last(parts: ModuleType) -> None:
    index = "```{toctree}\n:caption: Subjects\n\nvalues\n```\n```{toctree}\ncosts\n```\n"
    subjects, _, rest = parts.pages.listed(index).partition("```\n")
    assert subjects.splitlines()[2:4] == ["", "values"]
    assert "rows" in subjects.splitlines()
    assert "costs" not in subjects.splitlines()
    assert rest.endswith("costs\n```\n")


@pytest.mark.slow
@pytest.mark.skipif(bool(ABSENT), reason=f"the site is built with {', '.join(ABSENT)}")
def test_it_is_built_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-j", "auto"]
    built = subprocess.run(
        [
            *command,
            "-b",
            "html",
            "-d",
            str(tmp_path / "trees"),
            str(ROOT / "docs"),
            str(tmp_path / "site"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr[-4000:]
    site = tmp_path / "site"
    assert (site / "index.html").stat().st_size > 10_000
    graph = (site / "_made" / "reference" / "graph.html").read_text(encoding="utf-8")
    assert 'id="reactgrad.Graph.whatif"' in graph
    # The site works from a disk without a network: nothing on a page is loaded from elsewhere.
    loaded = re.compile(
        r'<(?:script|img|iframe)[^>]* src="(?:https?:)?//|<link [^>]*href="https?://'
    )
    strangers = [
        page.relative_to(site).as_posix()
        for page in site.rglob("*.html")
        if loaded.search(page.read_text(encoding="utf-8"))
    ]
    assert not strangers
