"""Texts that somebody else wrote, such as names and values, made fit to be shown: they may hold anything."""

from __future__ import annotations

import unicodedata
from zlib import crc32

MOST_LETTERS = 2000  # of any text that a user's data may make as long as it likes


def shown(text: str, most: int) -> str:
    """A text on one line, cut where it gets long; without letters that steer how others are shown."""
    line = _plain(" ".join(text[: 4 * most].split())) + ("..." if len(text) > 4 * most else "")
    return _cut(line, most)


def shown_lines(text: str, most: int) -> str:
    """A text line by line, each as it is but for its length, and for letters that steer others."""
    lines = text[: 100 * most].expandtabs().split("\n")
    return "\n".join([_cut(_plain(line), most) for line in lines])


def _plain(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        "\ufffd" if unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Co") else letter
        for letter in text
    )


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."


def sent(text: str, most: int = MOST_LETTERS) -> str:
    """A text that is not endless and that UTF-8 can hold; what steers letters the page makes harmless."""
    text = _cut(text, most)
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def key_of_scope(path: tuple[str, ...]) -> str:
    """What a page calls a scope: its path, with a slash behind it; if that cannot be sent, one like it."""
    text = "/".join((*path, ""))
    told = sent(text, 300)
    return told if told == text else f"{told}#{crc32(text.encode('utf-8', 'surrogatepass')):x}/"
