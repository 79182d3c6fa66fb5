"""The exported page of the demo's option book, and what it holds."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode
from pathlib import Path
from typing import Any

from reactgrad.demo import embedded_stocks, write_page


def write_book(path: Path) -> Path:
    """Write the page as ``reactgrad demo --html`` does."""
    write_page(embedded_stocks(), 0, path)
    return path


def held(path: Path) -> dict[str, Any]:
    """The messages in an exported page."""
    found = re.search(r'<script type="([^"]*)" id="recorded">([^<]*)<', path.read_text())
    assert found is not None
    kind, text = found.groups()
    return json.loads(text if kind == "application/json" else gzip.decompress(b64decode(text)))
