"""What the scheduler's README points to exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "scheduler" / "README.md"
TEXT = PAGE.read_text(encoding="utf-8")
STORIES = TEXT[TEXT.index("### Their known bugs") :]
DEFAULT = re.search(r"`(tests/\S+\.py)`, unless", STORIES)


def pointers() -> list[tuple[str, str]]:
    """The tests that stories point to, each with its file."""
    assert DEFAULT is not None
    found: list[tuple[str, str]] = []
    for row in re.findall(r"^\| .* \| (.*) \|$", STORIES, re.MULTILINE)[1:]:
        file = re.search(r"`(tests/\S+\.py)`", row)
        names = re.findall(r"`(test_\w+)`", row)
        found += [(file[1] if file else DEFAULT[1], name) for name in names]
    return found


@pytest.mark.parametrize(("file", "name"), pointers())
def test_the_test_of_each_story_exists(file: str, name: str) -> None:
    source = (ROOT / file).read_text(encoding="utf-8")
    assert f"\ndef {name}(" in source


def test_each_test_of_a_peers_bug_is_listed() -> None:
    assert DEFAULT is not None
    written = re.findall(
        r"^def (test_\w+)\(", (ROOT / DEFAULT[1]).read_text(encoding="utf-8"), re.MULTILINE
    )
    listed = [name for file, name in pointers() if file == DEFAULT[1]]
    assert sorted(listed) == sorted(written)


def test_the_files_of_the_invariants_exist() -> None:
    table = TEXT[TEXT.index("## Invariants") : TEXT.index("## Costs")]
    files = set(re.findall(r"`([\w/]+\.py)`", table))
    assert len(files) > 5
    for file in files:
        assert (ROOT / "scheduler" / "reactgrad_scheduler" / file).is_file(), file


def test_links_inside_the_page_lead_somewhere() -> None:
    links = re.findall(r"\]\((\.[^)]+)\)", TEXT)
    assert links
    for link in links:
        assert (PAGE.parent / link).exists(), link
    used = set(re.findall(r"\]\[(\w+)\]", TEXT))
    defined = set(re.findall(r"^\[(\w+)\]: https://", TEXT, re.MULTILINE))
    assert used == defined
