"""Pictures as SVG for pages, light or dark.

The page shows through a picture. What stands on the page itself, lines and words beside boxes, is of a
grey that can be read on white and on black. Boxes bring their own colours; where the page says that
it is dark, darker ones.
"""

from __future__ import annotations

import re

from reactgrad.viz._dot import FEED, FILLS, GRADIENT, INK, MARKS
from reactgrad.viz._page import schemes

PIXELS = 4 / 3  # of a point
# The colours of dark pages, in place of those that Graphviz has written.
DARK = {
    FILLS["clean"]: "#2a2e36",
    FILLS["stale"]: "#5a4608",
    FILLS["running"]: "#174a7c",
    FILLS["ran"]: "#1d5a2c",
    FILLS["cut_off"]: "#4b3277",
    FILLS["error"]: "#7d2323",
    FILLS["unset"]: "#16181d",
    FEED: "#3a3f49",
    INK: "#a2a9b5",
    GRADIENT: "#d9c2f5",
    MARKS["added"]: "#56d364",
    MARKS["removed"]: "#ff7b72",
    MARKS["changed"]: "#ffb454",
}
NAME = "rg-picture"
_SIZE = re.compile(r'<svg width="([\d.]+)pt" height="([\d.]+)pt"')


def themed(text: str) -> str:
    """Return an SVG of Graphviz with the colours of dark pages, for those."""
    rules = [f".{NAME}{{color-scheme:light dark}}", *schemes(f".{NAME}")]
    rules.append(f".{NAME} text:not([fill]){{fill:light-dark(#000,#e6e8ec)}}")
    for light, dark in DARK.items():
        rules += [
            f'.{NAME} [{what}="{light}"]{{{what}:light-dark({light},{dark})}}'
            for what in ("fill", "stroke")
        ]
    begin = text.index("<svg")
    inside = text.index(">", begin) + 1
    opened = text[begin:inside].replace("<svg", f'<svg class="{NAME}"', 1)
    return f"{text[:begin]}{opened}<style>{''.join(rules)}</style>{text[inside:]}"


def inline(text: str, high: float | None = None, least: float = 1.0) -> str:
    """Return an SVG of ``themed`` as an element of a page: as wide as the page at most.

    Parameters
    ----------
    text
        The file.
    high
        The pixels that it is to be high at most.
    least
        It is not made smaller than this part of its size for that.
    """
    svg = text[text.index("<svg") :]
    size = _SIZE.search(svg.replace(f' class="{NAME}"', "", 1))
    assert size is not None
    width, height = float(size[1]), float(size[2])
    scale = 1.0 if high is None else min(1.0, max(high / (height * PIXELS), least))
    style = f'style="flex:none;max-width:100%;height:auto;width:{width * scale:.2f}pt"'
    return svg.replace("<svg", f"<svg {style}", 1)
