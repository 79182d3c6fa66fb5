"""An array as a small SVG in a card: the same line, image or histogram that a box of the page draws."""

from __future__ import annotations

from reactgrad.viz._glance import LETTERS, Glance

WIDE, HIGH = 180.0, 40.0
INK, WRONG = "#3f7fd8", "#cf222e"  # seen on white and on black
_PLACE = {chr(letter): place / (LETTERS.size - 1) for place, letter in enumerate(LETTERS)}


def thumbnail(seen: Glance) -> str:
    """Return the drawing of an array as the text of an SVG."""
    levels = [_PLACE.get(letter) for letter in seen.letters]
    drawn = {"line": _line, "image": _image, "bins": _bins}[seen.kind](levels, seen.wide)
    what = {"line": "a line", "image": "an image", "bins": "a histogram"}[seen.kind]
    return (
        f'<svg width="{WIDE:g}" height="{HIGH:g}" viewBox="-1 -1 {WIDE + 2:g} {HIGH + 2:g}" role="img" '
        f'aria-label="values as {what}" style="display:block;margin:4px 0">{drawn}</svg>'
    )


def _line(levels: list[float | None], wide: int) -> str:
    step = WIDE / max(wide - 1, 1)
    path, pen = "", "M"
    for place, level in enumerate(levels):
        if level is None:
            pen = "M"
        else:
            path += f"{pen}{place * step:.1f} {HIGH * (1 - level):.1f}"
            pen = "L"
    return f'<path d="{path}" fill="none" stroke="{INK}" stroke-width="1.4"/>'


def _image(levels: list[float | None], wide: int) -> str:
    x = WIDE / wide
    y = min(HIGH / (len(levels) / wide), 2 * x)
    return "".join(
        f'<rect x="{place % wide * x:.1f}" y="{place // wide * y:.1f}" width="{x:.1f}" height="{y:.1f}" '
        + (
            f'fill="{WRONG}"/>'
            if level is None
            else f'fill="{INK}" fill-opacity="{0.1 + 0.9 * level:.2f}"/>'
        )
        for place, level in enumerate(levels)
    )


def _bins(levels: list[float | None], wide: int) -> str:
    x = WIDE / wide
    return "".join(
        f'<rect x="{place * x:.1f}" y="{HIGH * (1 - level):.1f}" width="{x - 1:.1f}" '
        f'height="{HIGH * level:.1f}" fill="{INK}"/>'
        for place, level in enumerate(levels)
        if level
    )
