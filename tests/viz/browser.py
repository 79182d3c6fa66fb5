"""Chromium for the tests of pages: found on the machine, driven by Playwright, watched for requests."""

from __future__ import annotations

import importlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

# Set to anything, tests that lack a browser or a package fail instead of being skipped.
REQUIRED = "REACTGRAD_TEST_BROWSER"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def need(module: str) -> None:
    """Skip what needs a package that is not there."""
    if os.environ.get(REQUIRED):
        importlib.import_module(module)
    else:
        pytest.importorskip(module, reason=f"{module} is not installed; the extra dev has it")


def chromium() -> str:
    """Where it is; skips the test where it is not."""
    need("playwright")
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        absent = pytest.fail if os.environ.get(REQUIRED) else pytest.skip
        absent("no Chromium on this machine: apt-get install chromium")
    return found


@contextmanager
def browser(**options: Any) -> Iterator[Any]:
    """A Chromium without a screen; started with options of Playwright."""
    program = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu"], **options
        )
        try:
            yield started
        finally:
            started.close()


class Seen:
    """One explorer in a page, as a person would see it and use it.

    Parameters
    ----------
    page
        Of Playwright.
    """

    def __init__(self, page: Any) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.session: Any = None  # behind a live page
        page.on("console", self._complain)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def _complain(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def box(self, key: int | str) -> Any:
        """The box of a node, or of a folded scope."""
        return self.page.locator(f'.rg-box[data-key="{key}"]')

    def looks(self) -> dict[str, str]:
        """What every box looks like, by its key."""
        script = "all => Object.fromEntries(all.map(b => [b.dataset.key, b.dataset.look]))"
        return self.page.locator(".rg-box").evaluate_all(script)

    def keys(self, kind: str) -> set[int]:
        """Keys of the nodes drawn with one look, or with one class, such as ``rg-plan``."""
        css = f".rg-box.{kind}" if kind.startswith("rg-") else f'.rg-box[data-look="{kind}"]'
        found = self.page.locator(css).evaluate_all("all => all.map(b => b.dataset.key)")
        return {int(key) for key in found if key.isdecimal()}

    def text(self, css: str) -> str:
        return self.page.locator(css).inner_text()

    def until(self, holds: Callable[[], bool], seconds: float = 40.0) -> None:
        """Look again and again, until it is so."""
        for _ in range(int(seconds * 20)):
            if holds():
                return
            self.page.wait_for_timeout(50)
        told = json.dumps([self.complaints, self.looks(), self.text(".rg-explorer")])
        assert holds(), told[:3000]

    def scrub(self, position: int) -> None:
        self.page.get_by_label("recorded runs").fill(str(position))
        self.page.wait_for_timeout(100)

    def tree(self) -> str:
        """The accessibility tree as text."""
        return self.page.locator(".rg-explorer").aria_snapshot()
