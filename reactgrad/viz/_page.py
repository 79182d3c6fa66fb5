"""The program and the style of the explorer's page, as text.

The program is written as modules that import each other, in ``page/``. They are joined when they are
needed, so that a page has one script and loads nothing. ``page/vendor/`` has dagre, which lays out
what the page shows on its own, as one built file with its licence.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent / "page"
# Each imports from those before it only.
MODULES = (
    *("text", "elements", "shapes", "known", "picture", "layout", "figures", "glances"),
    *("flow", "boxes", "controls", "panel", "search", "moving", "story", "seeing", "explorer"),
)
_IMPORT = re.compile(r"^import \{[^}]*\} from \"\./[a-z]+\.js\";\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=const |class |function |async )", re.MULTILINE)


@cache
def program() -> str:
    """Return the page as one module, whose default export has ``render``, as anywidget wants it."""
    parts = [read("vendor/dagre.js")]
    parts += [_EXPORT.sub("", _IMPORT.sub("", read(f"{name}.js"))) for name in MODULES]
    return "\n".join(parts)


@cache
def style() -> str:
    """Return the style sheet."""
    return read("explorer.css") + "\n".join(["", *schemes(".rg-explorer"), ""])


# What hosts write on the page to say that it is light or dark: JupyterLab, VS Code, Colab, and the themes of
# documentation and of marimo. Where none does, the system decides.
HOSTS = {
    "light": (
        '[data-jp-theme-light="true"]',
        ".vscode-light",
        ".vscode-high-contrast-light",
        '[theme="light"]',
        '[data-theme="light"]',
        ".light",
    ),
    "dark": (
        '[data-jp-theme-light="false"]',
        ".vscode-dark",
        ".vscode-high-contrast:not(.vscode-high-contrast-light)",
        '[theme="dark"]',
        '[data-theme="dark"]',
        ".dark",
    ),
}


def schemes(selector: str) -> list[str]:
    """Return the rules that give an element the scheme of the page around it."""
    return [
        f":is({', '.join(hosts)}) {selector}{{color-scheme:{scheme}}}"
        for scheme, hosts in HOSTS.items()
    ]


def read(name: str) -> str:
    """Return a file of the page."""
    return (HERE / name).read_text(encoding="utf-8")
