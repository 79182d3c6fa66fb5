"""Texts."""

from __future__ import annotations

import fnmatch
import re
from typing import Any

from reactgrad.tables.excel._cells import LONGEST, Block, lifted
from reactgrad.tables.excel._values import VALUE, Fault, as_number, as_text
from reactgrad.tables.excel.functions._register import single, whole


def _of_text(name: str, function: Any) -> None:
    single(name)(lambda value: lifted(lambda v: function(as_text(v)), value))


for _name, _function in {
    "UPPER": str.upper,
    "LOWER": str.lower,
    "PROPER": lambda t: re.sub(r"[^\W\d_]+", lambda m: m[0].capitalize(), t),
    "TRIM": lambda t: re.sub(" +", " ", t.strip(" ")),
    "CLEAN": lambda t: "".join(c for c in t if ord(c) >= 32),
    "LEN": lambda t: float(len(t)),
    "CODE": lambda t: float(ord(t[0])),
    "VALUE": as_number,
}.items():
    _of_text(_name, _function)


def joined(a: Any, b: Any) -> Any:
    """Return two values as one text."""
    return lifted(lambda x, y: as_text(x) + as_text(y), a, b)


@whole("CONCATENATE", "CONCAT")
def _concat(*parts: Any) -> Any:
    flat = [value for one in parts for value in (one if isinstance(one, Block) else [one])]

    def concat(*values: Any) -> str:
        found = "".join(map(as_text, values))
        if len(found) > LONGEST:
            raise Fault(VALUE)
        return found

    return lifted(concat, *flat)


@whole("TEXTJOIN")
def _textjoin(delimiter: Any, skip: Any, *parts: Any) -> Any:
    flat = [value for one in parts for value in (one if isinstance(one, Block) else [one])]
    return lifted(
        lambda between, without, *values: as_text(between).join(
            as_text(v) for v in values if not without or v not in (None, "")
        ),
        delimiter,
        skip,
        *flat,
    )


def _count(value: Any) -> int:
    found = int(as_number(value))
    if found < 0:
        raise Fault(VALUE)
    return found


@single("LEFT")
def _left(text: Any, count: Any = 1.0) -> Any:
    return lifted(lambda t, n: as_text(t)[: _count(n)], text, count)


@single("RIGHT")
def _right(text: Any, count: Any = 1.0) -> Any:
    def right(t: Any, n: Any) -> str:
        return as_text(t)[-_count(n) :] if _count(n) else ""

    return lifted(right, text, count)


@single("MID")
def _mid(text: Any, start: Any, count: Any) -> Any:
    def mid(t: Any, at: Any, n: Any) -> str:
        if int(as_number(at)) < 1:
            raise Fault(VALUE)
        first = int(as_number(at)) - 1
        return as_text(t)[first : first + _count(n)]

    return lifted(mid, text, start, count)


@single("FIND")
def _find(part: Any, text: Any, start: Any = 1.0) -> Any:
    def find(p: Any, t: Any, at: Any) -> float:
        if int(as_number(at)) < 1:
            raise Fault(VALUE)
        found = as_text(t).find(as_text(p), int(as_number(at)) - 1)
        if found < 0:
            raise Fault(VALUE)
        return found + 1.0

    return lifted(find, part, text, start)


@single("SEARCH")
def _search(part: Any, text: Any, start: Any = 1.0) -> Any:
    def search(p: Any, t: Any, at: Any) -> float:
        # fnmatch's patterns take no exponential time, whatever they are; the first match is found place by place.
        words, body, first = as_text(p).lower(), as_text(t).lower(), int(as_number(at)) - 1
        if first < 0:
            raise Fault(VALUE)
        if not any(sign in words for sign in "*?"):
            found = body.find(words, first)
            if found < 0:
                raise Fault(VALUE)
            return found + 1.0
        matches = re.compile(fnmatch.translate(words.replace("[", "[[]") + "*")).match
        for i in range(first, len(body)):
            if matches(body, i):
                return i + 1.0
        raise Fault(VALUE)

    return lifted(search, part, text, start)


@single("SUBSTITUTE")
def _substitute(text: Any, old: Any, new: Any, which: Any = None) -> Any:
    def substitute(t: Any, a: Any, b: Any, n: Any) -> str:
        whole_text, before, after = as_text(t), as_text(a), as_text(b)
        if not before:
            return whole_text
        if len(after) * whole_text.count(before) > LONGEST:
            raise Fault(VALUE)
        if n is None:
            return whole_text.replace(before, after)
        parts = whole_text.split(before)
        k = int(as_number(n))
        if k < 1:
            raise Fault(VALUE)
        return (
            whole_text
            if k >= len(parts)
            else before.join(parts[:k]) + after + before.join(parts[k:])
        )

    return lifted(substitute, text, old, new, which)


@single("REPLACE")
def _replace(text: Any, start: Any, count: Any, new: Any) -> Any:
    def replace(t: Any, at: Any, n: Any, b: Any) -> str:
        whole_text, first = as_text(t), int(as_number(at)) - 1
        return whole_text[:first] + as_text(b) + whole_text[first + _count(n) :]

    return lifted(replace, text, start, count, new)


@single("REPT")
def _rept(text: Any, count: Any) -> Any:
    def rept(t: Any, n: Any) -> str:
        if len(as_text(t)) * _count(n) > LONGEST:
            raise Fault(VALUE)
        return as_text(t) * _count(n)

    return lifted(rept, text, count)


@single("EXACT")
def _exact(a: Any, b: Any) -> Any:
    return lifted(lambda x, y: as_text(x) == as_text(y), a, b, kind="logical")


@single("CHAR")
def _char(code: Any) -> Any:
    return lifted(lambda n: bytes([int(as_number(n))]).decode("cp1252"), code)


@single("T")
def _t(value: Any) -> Any:
    return lifted(lambda v: v if isinstance(v, str) else "", value)
