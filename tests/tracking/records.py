"""A reader of TensorBoard's event files by their specifications: records of TFRecord, messages of protobuf."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)  # Castagnoli's polynomial, reversed
        table.append(byte)
    return table


_TABLE = _crc_table()


def crc32c(data: bytes) -> int:
    """The checksum of RFC 3720."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> int:
    """A checksum as it stands in files."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(content: bytes) -> Iterator[bytes]:
    """The records of a file: length, its checksum, the data, their checksum."""
    at = 0
    while at < len(content):
        head = content[at : at + 8]
        (length,) = struct.unpack("<Q", head)
        assert struct.unpack_from("<I", content, at + 8) == (masked(head),), "the length is damaged"
        data = content[at + 12 : at + 12 + length]
        assert len(data) == length, "the file ends within a record"
        assert struct.unpack_from("<I", content, at + 12 + length) == (masked(data),), "damaged"
        yield data
        at += 16 + length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    found = shift = 0
    while True:
        byte = data[at]
        found, shift, at = found | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return found, at


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """The numbers of a message's fields, and what they hold: an int, or bytes."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield tag >> 3, value
        else:
            length, at = (8, at) if kind == 1 else (4, at) if kind == 5 else _varint(data, at)
            assert kind in (1, 2, 5)
            yield tag >> 3, data[at : at + length]
            at += length


def scalars(path: Path) -> list[tuple[float, int, str, float]]:
    """The time, step, tag and value of each number that a file holds; the first record names its version."""
    found = []
    first, *events = [list(fields(one)) for one in records(path.read_bytes())]
    assert (3, b"brain.Event:2") in first
    for event in events:
        of = dict(event)
        for number, value in fields(of.get(5, b"")):
            one = dict(fields(value)) if number == 1 else {}
            tag, step = one.get(1, b"").decode(), of.get(2, 0)
            if 2 in one:  # `simple_value`, of the first form of summaries
                number = one[2]
            elif 8 in one and dict(fields(one[8])).get(1) == 1:  # a tensor of floats
                tensor = dict(fields(one[8]))
                number = tensor.get(4) or tensor.get(5)
            else:
                continue
            found.append((*struct.unpack("<d", of[1]), step, tag, *struct.unpack("<f", number)))
    return found
