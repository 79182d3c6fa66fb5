"""JSON of files that are not trusted."""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import Any, Final

import numpy as np

from reactgrad._errors import LoadError

SAFE_LIMIT: Final = 5000  # of frames, which a stack of the usual size has room for
FLAT: Final = 100  # nested no deeper, which takes as many frames at most


def _nesting(content: bytes) -> int:
    """Return how deeply brackets are nested at most, those in texts included."""
    codes = np.frombuffer(content, np.uint8)
    opened = np.isin(codes, np.frombuffer(b"[{", np.uint8)).astype(np.int64)
    closed = np.isin(codes, np.frombuffer(b"]}", np.uint8))
    return int(np.cumsum(opened - closed).max(initial=0))


def strict_json(content: bytes) -> Any:
    """Return the content of JSON.

    Raise ``LoadError`` for constants that JSON lacks, for names that occur twice, and if it is nested too deeply
    to read; ``RecursionError`` if there is too little stack for a content that is not.
    """
    # Where a program has raised the limit, the parser would end the process, not raise RecursionError.
    try:
        if sys.getrecursionlimit() > SAFE_LIMIT and _nesting(content) > SAFE_LIMIT:
            raise RecursionError("it is nested too deeply")
        return json.loads(
            content.decode(), object_pairs_hook=_once_each, parse_constant=_no_constant
        )
    except (ValueError, RecursionError) as error:
        if isinstance(error, LoadError):
            raise
        if isinstance(error, RecursionError) and _nesting(content) <= FLAT:
            raise  # the caller has used up the stack
        raise LoadError(f"it is damaged: what should be JSON is none ({error})") from error


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the pairs as a dict; raise if a name occurs twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(
            name for name, times in Counter(name for name, _ in pairs).items() if times > 1
        )
        raise LoadError(f"the name {twice!r:.60} stands twice where names are unique")
    return found


def _no_constant(name: str) -> Any:
    raise LoadError(f"it is damaged: {name} is no JSON")
