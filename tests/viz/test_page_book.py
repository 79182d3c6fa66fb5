"""The exported page of the option book: small, and all of it can be reached."""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.viz.book import held, write_book
from tests.viz.browser import Seen, need
from tests.viz.test_page_labels import COVERED
from tests.viz.test_page_sight import in_sight

need("pygraphviz")

pytestmark = pytest.mark.slow  # a browser has to start


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_book(tmp_path_factory.mktemp("book") / "book.html")


@pytest.fixture(scope="module")
def seen(chromium_page: Any, file: Path) -> Seen:
    page = chromium_page.new_context(viewport={"width": 1400, "height": 900}).new_page()
    page.set_default_timeout(10_000)
    found = Seen(page)
    page.goto(file.as_uri())
    page.wait_for_selector(".rg-box")
    return found


def test_it_is_small_and_loads_nothing(file: Path, seen: Seen) -> None:
    assert file.stat().st_size <= 3_000_000
    assert [url for url in seen.requests if not url.startswith("file:")] == []
    assert seen.complaints == []


def test_it_carries_no_folder_of_its_author(file: Path) -> None:
    text = file.read_text() + str(held(file))
    for folder in (str(Path.cwd()), str(Path.home()), sys.prefix, str(file.parent)):
        assert folder not in text
    assert "_book.py:" in text


def test_every_search_hit_opens(seen: Seen, file: Path) -> None:
    nodes = held(file)["graph"]["nodes"]
    find = seen.page.get_by_label("find a node by its name")
    for key, name, *_ in Random(7).sample(nodes, 200):
        find.fill(name)
        find.press("Enter")
        seen.until(lambda name=name: seen.page.locator(".rg-panel h3").text_content() == name, 5)
        seen.until(lambda key=key: seen.box(key).count() == 1, 5)
        seen.until(lambda key=key: in_sight(seen, key), 5)
        assert seen.text(".rg-problem") == ""
    assert seen.complaints == []


def test_around_a_hit_words_cover_no_others(seen: Seen) -> None:
    find = seen.page.get_by_label("find a node by its name")
    find.fill("AMZN 13m log")
    find.press("Enter")
    seen.until(lambda: "AMZN/13m/log" in seen.text(".rg-panel h3"), 10)
    assert seen.page.locator(".rg-more").count() > 5
    assert seen.page.locator(".rg-names text").count() > 5
    assert seen.page.locator(".rg-map").evaluate(COVERED) == []


def test_folded_parts_have_arrows_in_one_direction_only(seen: Seen) -> None:
    seen.page.get_by_label("back to the former part").click()
    for layer in ("values", "gradients", "all"):
        seen.page.get_by_label("layer", exact=True).select_option(layer)
        seen.page.wait_for_timeout(200)
        lines = seen.page.locator(".rg-line").evaluate_all(
            "all => all.map(l => [l.dataset.from, l.dataset.to])"
        )
        assert lines
        assert not {tuple(ends) for ends in lines} & {tuple(ends[::-1]) for ends in lines}
