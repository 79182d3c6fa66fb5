"""The page: the explorer's program and style, and the socket that connects it with the server."""

from __future__ import annotations

from functools import cache
from html import escape
from pathlib import Path

from reactgrad.viz._page import program, style
from reactgrad.viz._text import shown

SOCKET = Path(__file__).parent / "socket.js"
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>
{style}
html {{ color-scheme: light dark; }}
body {{ margin: 0; background: light-dark(#fff, #16181d); }}
.rg-explorer {{ height: 100vh; min-height: 100vh; border: 0; border-radius: 0; }}
</style>
<div id="page"></div>
<script type="module" nonce="{nonce}">
{program}
</script>
</html>
"""


def page(title: str, nonce: str) -> str:
    """Return the page as HTML."""
    return PAGE.format(
        title=escape(shown(title, 200)), nonce=nonce, style=style(), program=_program()
    )


def headers(nonce: str, port: int) -> dict[str, str]:
    """Return the headers of a page: it runs its own script, speaks to this server, and is never kept."""
    sockets = f"ws://127.0.0.1:{port} ws://localhost:{port}"
    rules = (
        "default-src 'none'",
        f"script-src 'nonce-{nonce}'",
        "style-src 'unsafe-inline'",
        "img-src data:",
        f"connect-src {sockets}",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
    return {
        "content-security-policy": "; ".join(rules),
        "cache-control": "no-store",
        "referrer-policy": "no-referrer",  # the address has the token
        "x-content-type-options": "nosniff",
        "cross-origin-opener-policy": "same-origin",
    }


@cache
def _program() -> str:
    module = program()
    # A module inside of a page cannot export, so the export becomes a variable for what follows.
    assert module.count("export default {") == 1
    module = module.replace("export default {", "const explorer = {")
    return module + "\n" + SOCKET.read_text(encoding="utf-8")
