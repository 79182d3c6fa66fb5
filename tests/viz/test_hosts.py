"""What notebooks do with our output: frames of another origin, and policies that let no script in from outside.

VS Code puts HTML into a webview whose policy is ``WEBVIEW``; Colab and others put it into a sandboxed frame.
Neither can run here, so these tests build the same walls.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

import pytest

from reactgrad.viz._page import program
from tests.viz.browser import Seen
from tests.viz.test_still_page import explored

pytestmark = pytest.mark.slow  # a browser has to start

WEBVIEW = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' blob:; style-src 'unsafe-inline'; "
    "img-src https: http: data:; connect-src https:; child-src https: data:"
)
WALLS = {"a frame without an origin": "", "a webview with a policy": WEBVIEW}


def framed(inside: str, policy: str) -> str:
    """A host's page around its frame for outputs."""
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">' if policy else ""
    document = f"<!doctype html><meta charset=utf-8>{meta}<body>{inside}"
    return (
        "<!doctype html><meta charset=utf-8><body><iframe id=host sandbox='allow-scripts' "
        f'style="width:980px;height:740px" srcdoc="{escape(document)}"></iframe>'
    )


def shown(chrome: Any, file: Path, text: str) -> Seen:
    file.write_text(text, encoding="utf-8")
    context = chrome.new_context(viewport={"width": 1000, "height": 760}, offline=True)
    seen = Seen(context.new_page())
    seen.page.goto(file.as_uri())
    return seen


STILL = {
    "no frames": "document.querySelectorAll('iframe').forEach(one => one.remove())",
    "no frames and no styles": "document.querySelectorAll('*').forEach(one => "
    "one.localName === 'iframe' ? one.remove() : one.removeAttribute('style'))",
}


@pytest.mark.parametrize("removed", STILL)
def test_where_frames_are_removed_a_picture_stays(
    chromium_page: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, removed: str
) -> None:
    """As GitHub does, JupyterLab in notebooks that are not trusted, and Colab at times."""
    page, _y = explored(monkeypatch)
    seen = shown(
        chromium_page,
        tmp_path / "host.html",
        f"<!doctype html><meta charset=utf-8><body>{page._repr_html_()}",
    )
    seen.page.frame_locator("iframe").locator(".rg-box").first.wait_for()
    over = "document.elementFromPoint(200, 100).localName"
    assert seen.page.evaluate(over) == "iframe"  # the explorer, where there is one
    seen.page.evaluate(STILL[removed])
    image = seen.page.locator("img")
    assert image.evaluate("async one => { await one.decode(); return one.naturalWidth }") > 60
    middle = "one => document.elementFromPoint(one.offsetLeft + one.width / 2, one.offsetTop + one.height / 2) === one"
    assert image.evaluate(middle)
    assert "picture of the graph" in (image.get_attribute("alt") or "")
    seen.page.context.close()


@pytest.mark.parametrize("wall", ["no scripts", "a policy without scripts"])
def test_where_scripts_may_not_run_the_page_is_a_picture(
    chromium_page: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wall: str
) -> None:
    page, y = explored(monkeypatch)
    text = page.html
    if wall != "no scripts":
        assert text.count("script-src 'unsafe-inline'") == 1
        text = text.replace("script-src 'unsafe-inline'", "script-src 'none'")
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    context = chromium_page.new_context(java_script_enabled=wall != "no scripts", offline=True)
    still = context.new_page()
    still.goto((tmp_path / "page.html").as_uri())
    assert still.locator(".rg-still svg").get_by_text(f"{float(y.value):.6g}").is_visible()
    assert still.locator(".rg-explorer").count() == 0
    if wall == "no scripts":
        assert "scripts may not run here" in still.locator("figcaption").inner_text()
    context.close()


def requested(seen: Seen) -> set[str]:
    return {url for url in seen.requests if not url.startswith(("data:", "about:", "blob:"))}


@pytest.mark.parametrize("wall", WALLS)
def test_a_page_works_behind_the_walls_of_a_notebook(
    chromium_page: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wall: str
) -> None:
    page, y = explored(monkeypatch)
    file = tmp_path / "host.html"
    seen = shown(chromium_page, file, framed(page._repr_html_(), WALLS[wall]))
    frame = seen.page.frame_locator("#host").frame_locator("iframe")
    box = frame.locator('.rg-box[aria-label^="y,"]')
    box.wait_for()
    assert f"{float(y.value):.6g}" in (box.get_attribute("aria-label") or "")
    box.click()
    assert "y" in frame.locator(".rg-panel h3").inner_text()
    assert seen.complaints == []
    assert requested(seen) == {file.as_uri()}
    seen.page.context.close()


@pytest.mark.parametrize("wall", WALLS)
def test_the_program_of_the_widget_loads_from_a_blob(
    chromium_page: Any, tmp_path: Path, wall: str
) -> None:
    """As anywidget loads it: imported from text, in the frame of outputs."""
    load = """<div id=page></div><p id=said></p><script type=module>
        const text = document.getElementById("program").textContent.replaceAll("&lt;", "<").replaceAll("&amp;", "&");
        const { default: widget } = await import(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
        const said = [];
        const model = { on() {}, off() {}, send: ({ kind }) => said.push(kind) };
        const end = widget.render({ model, el: document.getElementById("page") });
        end();
        document.getElementById("said").textContent = said;
    </script>"""
    kept = program().replace("&", "&amp;").replace("<", "&lt;")
    text = f"<script type=text/plain id=program>{kept}</script>{load}"
    file = tmp_path / "host.html"
    seen = shown(chromium_page, file, framed(text, WALLS[wall]))
    said = seen.page.frame_locator("#host").locator("#said")
    said.filter(has_text="open,shut").wait_for()
    assert seen.complaints == []
    assert requested(seen) == {file.as_uri()}
    seen.page.context.close()
