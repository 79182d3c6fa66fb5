"""The page in Chromium: it follows the file, keeps what was set and open, and asks nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.serving.served import MODEL, served
from tests.viz.browser import Seen, browser

pytestmark = pytest.mark.slow  # a browser has to start


@pytest.fixture(scope="module")
def chrome() -> Iterator[Any]:
    with browser() as started:
        yield started


def opened(chrome: Any, address: str) -> Seen:
    page = chrome.new_context(viewport={"width": 1400, "height": 900}).new_page()
    seen = Seen(page)
    page.goto(address)
    page.wait_for_selector(".rg-explorer[data-draws] .rg-box")
    return seen


def named(seen: Seen, name: str) -> Any:
    return seen.page.locator(f'.rg-box[aria-label^="{name},"]')


def label(seen: Seen, name: str) -> str:
    return named(seen, name).get_attribute("aria-label") or ""


def test_a_file_that_is_worked_on(chrome: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    with served(path) as server:
        seen, other = opened(chrome, server.address), opened(chrome, server.address)
        assert "nothing has run yet" in seen.text(".rg-status") or "would run" in seen.text(
            ".rg-status"
        )
        seen.page.get_by_label("spot, as a number").fill("120")
        for one in (seen, other):
            one.until(lambda one=one: "121.2" in label(one, "forward"))
        other.until(lambda: other.page.get_by_label("spot", exact=True).input_value() == "120")
        named(seen, "growth").click()
        seen.until(lambda: "growth" in seen.text(".rg-panel"))

        # A syntax error is told, and the former model lives.
        path.write_text(MODEL + "x = = 1\n")
        for one in (seen, other):
            one.until(lambda one=one: "model.py, line 11: SyntaxError" in one.text(".rg-problem"))
        other.page.get_by_label("rate, as a number").fill("0")
        seen.until(lambda: ", 120" in label(seen, "forward"))
        assert "SyntaxError" in seen.text(".rg-problem")

        # The mended file has one input more, so keys of nodes differ.
        first = "g = rg.Graph()\n"
        more = first + "fee = g.input(3.0, name='fee')\n"
        path.write_text(MODEL.replace(first, more).replace("spot * growth", "spot * growth - fee"))
        for one in (seen, other):
            one.until(lambda one=one: ", 117" in label(one, "forward"))
            assert one.text(".rg-problem") == ""
        assert seen.page.get_by_label("spot, as a number").input_value() == "120"
        assert "growth" in seen.text(".rg-panel h3")
        assert not other.page.locator(".rg-panel").is_visible()

        for one in (seen, other):
            assert one.complaints == []
            assert {url for url in one.requests if not url.startswith("data:")} == {server.address}
    # The server has ended, and the page says so.
    seen.until(lambda: "The server does not answer" in seen.text(".rg-problem"))
    for one in (seen, other):
        one.page.context.close()


def test_a_page_goes_on_when_its_connection_comes_back(chrome: Any, tmp_path: Path) -> None:
    with served(tmp_path / "model.py") as server:
        seen = opened(chrome, server.address)
        seen.page.get_by_label("spot, as a number").fill("120")
        seen.until(lambda: "121.2" in label(seen, "forward"))
        for client in [*server.room.clients]:
            server.room._loop.call_soon_threadsafe(client.waiting.put_nowait, None)
        seen.until(lambda: "The server does not answer" in seen.text(".rg-problem"))
        seen.until(lambda: seen.text(".rg-problem") == "")
        seen.page.get_by_label("spot, as a number").fill("130")
        seen.until(lambda: "131.3" in label(seen, "forward"))
        assert len(server.room.clients) == 1
        seen.page.context.close()


def test_a_page_without_the_token_shows_what_to_open(chrome: Any, tmp_path: Path) -> None:
    with served(tmp_path / "model.py") as server:
        page = chrome.new_context().new_page()
        answer = page.goto(server.address.partition("?")[0])
        assert answer.status == 403
        assert "open the address" in page.inner_text("body")
        page.context.close()
