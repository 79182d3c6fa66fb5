"""Modules as text: a tree with settings, shapes, and counts of params."""

from __future__ import annotations

from typing import Any

from reactgrad.nn._registry import parts_of


def extra_repr(module: Any, /) -> str:
    """Return the settings of a module for its line in ``repr``; subclasses may have another one."""
    return ", ".join([f"{name}={getattr(module, name)!r}" for name in module._settings])


def tree(module: Any, /) -> str:
    """Return the tree of a module, a line each, with the shapes and counts of its params.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     net = rg.nn.Sequential(rg.nn.Linear(3, 2), rg.nn.ReLU())
    >>> print(net)
    Sequential(  # 8 params
      (0): Linear(in_features=3, out_features=2)  # 8: weight (2, 3), bias (2,)
      (1): ReLU()
    )
    """
    lines: list[str] = []
    _lines(module, "", 0, lines, set())
    return "\n".join(lines)


def _lines(module: Any, label: str, depth: int, lines: list[str], above: set[int]) -> None:
    start = "  " * depth + label + type(module).__name__
    parts = parts_of(module)
    settings = module.extra_repr()
    count, frozen = _counts(parts)
    below = list(module.named_children())
    shapes = ", ".join(
        [
            f"{path} {_shape(var)}"
            for path, var, kind in parts.entries[: parts.own]
            if kind == "param"
        ]
    )
    total = f"{count:,}" if count else ""
    if frozen:
        total += ", frozen" if frozen == count else f", {frozen:,} frozen"
    if not below or id(module) in above:
        note = f"  # {total}: {shapes}" if total and shapes else ""
        lines.append(f"{start}({settings}){note}")
        return
    note = f"  # {total} params" if total else ""
    lines.append(f"{start}({settings}{note}")
    if shapes:
        lines.append("  " * (depth + 1) + f"# {shapes}")
    for path, one in below:
        _lines(one, f"({path}): ", depth + 1, lines, {*above, id(module)})
    lines.append("  " * depth + ")")


def _shape(var: Any) -> tuple[int | None, ...]:
    return var.shape


def _counts(parts: Any) -> tuple[int, int]:
    """Return the number of elements of all params, and of those that are frozen."""
    total = frozen = 0
    for var in {id(var): var for _, var, kind in parts.entries if kind == "param"}.values():
        count = 1
        for n in var.shape:
            count *= n or 0
        total += count
        frozen += count if var.frozen else 0
    return total, frozen
