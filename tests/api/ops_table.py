"""The page ``docs/functions_of_arrays.md``: every function on arrays with what it does.

``python -m tests.api.ops_table > docs/functions_of_arrays.md`` writes it anew; a test compares the two.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad import ops
from reactgrad.ops import _families
from tests.api.numpy_calls import REFUSED

HEAD = """# Functions of arrays

All functions here build nodes. They are called as `rg.cumsum(x)`; where NumPy has the name, `np.cumsum(x)` of a Var is
the same call, and so is `x.cumsum()` where its arrays have the method. Parameters have NumPy's names, order and
defaults, those of networks PyTorch's. Lengths of inputs may be unknown (`None`) when a node is built.

Derivatives exist in both modes and to any order, unless the function's docstring says that there are none, and why:
comparisons, roundings, integers, positions and counts have none.

"""

TITLES = {
    "base": "The base",
    "reductions": "Reductions, scans and statistics",
    "products": "Products",
    "arrangement": "Arrangement",
    "factories": "Arrays from nothing",
    "ordering": "Order and choice",
    "special": "More elementwise functions, polynomials, series",
    "inquiry": "Facts, axes, places",
    "neural": "Networks",
    "linalg": "Linear algebra: `rg.linalg`",
    "fft": "Fourier transforms: `rg.fft`",
    "random": "Random numbers: `rg.random`",
}


def functions() -> dict[str, dict[str, Any]]:
    """Return the public functions of each group, by name."""
    groups: dict[str, dict[str, Any]] = {
        "base": {
            name: one
            for name, one in vars(ops).items()
            if name[0] != "_"
            and inspect.isfunction(one)
            and hasattr(rg, name)
            and name not in _families.PLACES
        }
    }
    for family, names in _families.FAMILIES.items():
        groups[family] = {name: getattr(rg, name) for name in names.split()}
    groups["special"] |= {name: getattr(rg, name) for name in _families.ELSEWHERE}
    for name in ("linalg", "fft", "random"):
        package = import_module(f"reactgrad.{name}")
        groups[name] = {
            key: one
            for key, one in vars(package).items()
            if key[0] != "_" and inspect.isfunction(one)
        }
    groups["neural"] |= {
        name: getattr(rg, name)
        for name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout")
    }
    return groups


def first_line(function: Any) -> str:
    """Return what a function does, as its docstring begins."""
    text = (inspect.getdoc(function) or "").split("\n\n")[0].replace("\n", " ")
    text = text.removeprefix("Return ").removesuffix(".")
    return text.replace("``", "`").replace("|", "\\|")


def table() -> str:
    """Return the whole page."""
    parts = [HEAD]
    for group, found in functions().items():
        parts.append(f"## {TITLES[group]}\n\n| function | NumPy | returns |\n| --- | --- | --- |\n")
        space: Any = {"linalg": np.linalg, "fft": np.fft}.get(group, np)
        parts.extend(
            f"| `{name}` | {'yes' if _of_numpy(space, name, group) else ''} | {first_line(found[name])} |\n"
            for name in sorted(found)
        )
        parts.append("\n")
    parts.append("## Functions of NumPy without a node\n\n| function | why |\n| --- | --- |\n")
    parts.extend(f"| `{name}` | {why} |\n" for name, why in sorted(REFUSED.items()))
    return "".join(parts)


def _of_numpy(space: Any, name: str, group: str) -> bool:
    return group not in ("random", "neural") and callable(getattr(space, name, None))


if __name__ == "__main__":
    print(table(), end="")
