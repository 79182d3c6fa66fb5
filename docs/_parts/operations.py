"""The table of all ops: what NumPy, PyTorch and JAX call them, and how accurate they are."""

from __future__ import annotations

import json
import re
from importlib import import_module
from typing import Any

import numpy as np

from . import figures, names, pages, reference

HEAD = """# Ops in other libraries

Every op by its name here, in NumPy, in PyTorch ({torch}) and in JAX ({jax}). A name in a column does the same thing,
perhaps with other arguments, defaults or results. `F` is `torch.nn.functional`, `jnp` is `jax.numpy`. *Accuracy* is the
largest error of the value in float64, in ulps, and behind the stroke that of its first derivative: see
[accuracy](../accuracy.md). [All functions](../functions_of_arrays.md) says what each does, and
[the reference](reference/index.rst) has its arguments.

"""
SHORT = {"torch.nn.functional.": "F.", "jax.numpy.": "jnp."}
SPEED = """## How fast they are

Elementwise ops and reductions on large arrays, from the [tables](benchmark_tables.md) of the benchmarks: the time of
the peer by ours. Above 1 reactgrad is faster.

| op | beside | 256 × 256 | 2048 × 2048 |
|---|---|---|---|
"""


def groups() -> dict[str, list[str]]:
    """Return the names of all ops, by family and package."""
    found = {family: sorted(ops) for family, ops in reference.operations().items()}
    for package in ("linalg", "fft"):
        module = import_module(f"reactgrad.{package}")
        found[package] = [
            name for name in reference.public(module) if not isinstance(getattr(module, name), type)
        ]
    return found


def accuracy() -> dict[str, str]:
    """Return the errors in float64 of ops that ``docs/accuracy.md`` has."""
    text = (pages.DOCS / "accuracy.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| `(\w+)` \|[^|]*\|[^|]*\| ([\d.]+) / ([\d.]+) / [\d.]+ \|$", text, re.MULTILINE
    )
    return {name: f"{value} / {first}" for name, value, first in rows}


def table() -> str:
    """Return the page."""
    peers = json.loads(names.FILE.read_text(encoding="utf-8"))
    errors = accuracy()
    torch, jax = peers["versions"]
    parts = [HEAD.format(torch=torch, jax=jax)]
    for group, ops in groups().items():
        title = (reference.FAMILIES | reference.PACKAGES)[group].removeprefix("Ops: ")
        measured = any(name in errors for name in ops)
        parts.append(f"## {title[0].upper()}{title[1:]}\n\n| here | NumPy | PyTorch | JAX |")
        parts.append(
            " accuracy |\n|---|---|---|---|---|\n" if measured else "\n|---|---|---|---|\n"
        )
        for name in ops:
            cells = [_numpy(name, group), *peers.get(f"{group}.{name}", ["", ""])]
            here = f"rg.{group}.{name}" if group in ("linalg", "fft") else f"rg.{name}"
            shown = " | ".join(f"`{cell}`" if cell else "" for cell in cells)
            for long, short in SHORT.items():
                shown = shown.replace(long, short)
            parts.append(f"| `{here}` | {shown} |")
            parts.append(f" {errors.get(name, '')} |\n" if measured else "\n")
        parts.append("\n")
    return "".join([*parts, SPEED, *_speeds()])


def _numpy(name: str, group: str) -> str:
    space: Any = {"linalg": np.linalg, "fft": np.fft}.get(group, np)
    if group == "neural" or not callable(getattr(space, name, None)):
        return ""
    return f"np.{group}.{name}" if group in ("linalg", "fft") else f"np.{name}"


def _speeds() -> list[str]:
    rows = figures.bars((pages.ROOT / "bench" / "FIGURES.md").read_text(encoding="utf-8"))["B14"]
    found: dict[tuple[str, str], dict[str, float]] = {}
    for bar in rows:
        case, _, size = bar.case.rpartition(", ")
        found.setdefault((case, bar.beside), {})[size] = bar.speed
    return [
        f"| {case} | {beside} | {_shown(by, '256 × 256')} | {_shown(by, '2048 × 2048')} |\n"
        for (case, beside), by in found.items()
    ]


def _shown(by: dict[str, float], size: str) -> str:
    return f"{by[size]:.2g}" if size in by else ""


def write() -> None:
    """Write the page."""
    pages.write(pages.MADE / "ops.md", table())
