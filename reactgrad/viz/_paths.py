"""Texts without the author's folders, for pages that are given to others."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

# A path from the root of a file system, of two parts or more; not the end of an address such as
# "https://example.org/a/b", nor a division such as "a/b".
_PART = r"[^\s/\\:'\"<>|()\[\]{},;]+"
_ABSOLUTE = re.compile(
    rf"(?<![\w.:/\\~)-])(?:/{_PART}(?:/{_PART})+|(?:[A-Za-z]:|\\)[/\\]{_PART}(?:[/\\]{_PART})*)"
)
# The file of a place, as ``nodes._site.site_text`` writes it; folders may have spaces.
_FILE = re.compile(r"((?:/|[A-Za-z]:[/\\]|\\\\).+?):\d+(?:: |$)")
_KEPT = 2  # the last parts of a path that stay


class WithoutFolders:
    """Cuts absolute paths in texts down to their last two parts.

    Parameters
    ----------
    places
        Lines such as ``/home/ann/models/book.py:12: y = rg.log(x)``: their files are known, also
        where a folder's name has spaces.

    Examples
    --------
    >>> short = WithoutFolders(["/home/ann lee/models/book.py:12: y = a / b"])
    >>> short("x was set (/home/ann lee/models/book.py:12: y = a / b)")
    'x was set (models/book.py:12: y = a / b)'
    >>> short("no file /srv/data/prices.csv; see https://example.org/a/b")
    'no file data/prices.csv; see https://example.org/a/b'
    """

    def __init__(self, places: Iterable[str] = ()) -> None:
        files = {found[1] for found in map(_FILE.match, places) if found is not None}
        folders = {str(Path.cwd()), str(Path.home()), sys.prefix}
        known = {file: _last(file) for file in files}
        known |= {f"{one}/": "" for one in folders if len(one) > 1}
        self._known = sorted(known.items(), key=lambda pair: -len(pair[0]))

    def __call__(self, text: str) -> str:
        """Return a text without the folders."""
        if "/" not in text and "\\" not in text:
            return text
        for path, short in self._known:
            text = text.replace(path, short)
        return _ABSOLUTE.sub(lambda found: _last(found[0]), text)


def _last(path: str) -> str:
    return "/".join([part for part in re.split(r"[/\\]", path) if part][-_KEPT:])
