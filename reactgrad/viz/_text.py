"""Texts from users, such as names and values, made safe to show: they may hold anything."""

from __future__ import annotations

import unicodedata
from zlib import crc32

MOST_LETTERS = 2000  # the most of any text whose length the user's data decide


def shown(text: str, most: int) -> str:
    """Return a text on one line, cut where it gets long, without characters that control how others
    are shown.
    """
    line = _plain(" ".join(text[: 4 * most].split())) + ("..." if len(text) > 4 * most else "")
    return _cut(line, most)


def shown_lines(text: str, most: int) -> str:
    """Return a text line by line, each cut where it gets long, without characters that control
    others.
    """
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
    """Return a text of limited length that UTF-8 can encode.

    The page makes control characters harmless.
    """
    if len(text) > most:
        text = _cut(text, most)
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def key_of_scope(path: tuple[str, ...]) -> str:
    """Return the key of a scope for the page: its path with a slash behind it, altered if that
    cannot be sent.
    """
    text = "/".join((*path, ""))
    told = sent(text, 300)
    return told if told == text else f"{told}#{crc32(text.encode('utf-8', 'surrogatepass')):x}/"
