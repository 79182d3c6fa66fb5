"""The recorded explorer of the option book: the page that ``reactgrad demo --html`` writes."""

from __future__ import annotations

from pathlib import Path

import reactgrad as rg

from . import pages

FOLDER = pages.MADE / "extra"
ABSENT = """<!doctype html><meta charset="utf-8"><title>The explorer</title>
<p>This build of the site had no Graphviz. <code>reactgrad demo --html book.html</code> writes the page.</p>
"""


def write() -> Path:
    """Record the demo's book, and return the folder with its page."""
    from reactgrad import demo

    page = FOLDER / "option_book.html"
    FOLDER.mkdir(parents=True, exist_ok=True)
    try:
        demo.write_page(demo.embedded_stocks(), 0, page)
    except rg.MissingExtraError:
        pages.write(page, ABSENT)
    return FOLDER
