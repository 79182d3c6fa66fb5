"""Kernels of families of ops that are imported late, for array libraries that may be added later still."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

Register = Callable[[Any, str], None]

# Namespaces whose functions take ``out`` as NumPy's do, with the kinds of their devices; and those of the
# array API standard, with their devices.
_like_numpy: Final[list[tuple[Any, str]]] = []
_standard: Final[list[Any]] = []
_registers: Final[list[Register]] = []
_standard_registers: Final[list[Callable[[Any], None]]] = []


def add_kernels(register: Register, standard: Callable[[Any], None] | None = None) -> None:
    """Register the kernels of a family, for the libraries that are there and those to come.

    Parameters
    ----------
    register : callable
        ``register(xp, kind)`` registers kernels for a namespace that mirrors NumPy, ``out`` included.
    standard : callable, optional
        ``standard(device)`` does so for an ``ArrayAPIDevice``; without it such devices have no kernel.
    """
    if (
        register not in _registers
    ):  # else by another file of the family: kernels may have been replaced since
        _registers.append(register)
        for xp, kind in _like_numpy:
            register(xp, kind)
    if standard is not None:
        _standard_registers.append(standard)
        for device in _standard:
            standard(device)


def add_library(xp: Any, kind: str) -> None:
    """Let families register their kernels for a namespace that mirrors NumPy."""
    _like_numpy.append((xp, kind))
    for register in _registers:
        register(xp, kind)


def add_standard_library(device: Any) -> None:
    """Let families register their kernels for a device of the array API standard."""
    _standard.append(device)
    for standard in _standard_registers:
        standard(device)
