"""What CuPy has: names and parameters, so that the stand-in has no more.

``python -m tests.devices.cupy_names > tests/devices/cupy_14_2.json`` prints it where CuPy can be imported;
no GPU is needed for that.
"""

from __future__ import annotations

import inspect
import json
from typing import Any


def names() -> dict[str, Any]:
    import cupy

    found: dict[str, Any] = {"version": cupy.__version__, "functions": {}, "ufuncs": []}
    for name in sorted(dir(cupy)):
        one = getattr(cupy, name)
        if name.startswith("_") or inspect.ismodule(one) or inspect.isclass(one):
            continue
        if isinstance(one, cupy.ufunc):
            found["ufuncs"].append(name)
        elif callable(one):
            found["functions"][name] = _parameters(one)
    found["methods"] = [name for name in dir(cupy.ndarray) if not name.startswith("_")]
    for part in ("linalg", "fft"):
        module = getattr(cupy, part)
        found[part] = {
            name: _parameters(getattr(module, name))
            for name in sorted(dir(module))
            if not name.startswith("_") and inspect.isfunction(getattr(module, name))
        }
    return found


def _parameters(function: Any) -> list[list[Any]] | None:
    """Return name, kind and whether there is a default, of each parameter; ``None`` where it is not known."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    return [
        [one.name, int(one.kind), one.default is not one.empty]
        for one in signature.parameters.values()
    ]


if __name__ == "__main__":
    print(json.dumps(names()))
