"""The steps of a pickle, read from its bytes: the opcode of each, and its argument.

Only opcodes that data need have arguments that are read here. The layouts are those of ``pickletools``, which reads
them four times as slowly.
"""

from __future__ import annotations

import pickletools
from collections.abc import Iterator
from struct import Struct
from typing import Any

_NUMBERS = {
    **dict.fromkeys(("PROTO", "BININT1", "BINPUT", "BINGET"), "<B"),
    **dict.fromkeys(("LONG_BINPUT", "LONG_BINGET"), "<I"),
    "BININT": "<i",
    "BININT2": "<H",
    "BINFLOAT": ">d",
    "FRAME": "<Q",
}
_COUNTS = {
    **dict.fromkeys(("LONG1", "SHORT_BINUNICODE", "SHORT_BINBYTES"), "<B"),
    **dict.fromkeys(("BINUNICODE", "BINBYTES"), "<I"),
    "BINUNICODE8": "<Q",
}
_NAMES = {ord(one.code): one.name for one in pickletools.opcodes}
# By opcode: its name, how its number is written, and whether so many bytes follow.
_LAYOUTS: list[tuple[str, Struct | None, bool] | None] = [None] * 256
for _code, _name in _NAMES.items():
    _form = _NUMBERS.get(_name) or _COUNTS.get(_name)
    _LAYOUTS[_code] = _name, Struct(_form) if _form else None, _name in _COUNTS


def steps(program: bytes) -> Iterator[tuple[str, Any]]:
    """Return the opcodes with their arguments, up to the end of the pickle.

    Raises
    ------
    ValueError
        If there is no such opcode, or the program ends within a step.
    """
    at, length = 0, len(program)
    while at < length:
        layout = _LAYOUTS[program[at]]
        if layout is None:
            raise ValueError(f"there is no opcode {program[at]:#x}")
        name, form, counted = layout
        at += 1
        argument: Any = None
        if form is not None:
            if at + form.size > length:
                break
            (argument,) = form.unpack_from(program, at)
            at += form.size
            if counted:
                data = program[at : at + argument]
                if len(data) < argument:
                    break
                at += argument
                argument = _read(name, data)
        elif name == "GLOBAL":
            first, second = program.find(b"\n", at), -1
            if first >= 0:
                second = program.find(b"\n", first + 1)
            if second < 0:
                break
            argument = f"{program[at:first].decode()} {program[first + 1 : second].decode()}"
            at = second + 1
        yield name, argument
        if name == "STOP":
            return
    raise ValueError("it ends before its last step")


def _read(name: str, data: bytes) -> Any:
    if "UNICODE" in name:
        return data.decode("utf-8", "surrogatepass")
    return int.from_bytes(data, "little", signed=True) if name == "LONG1" else data
