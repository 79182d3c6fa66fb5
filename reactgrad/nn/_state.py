"""State dicts: all params and buffers by path, read and loaded as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from reactgrad._errors import DTypeError, LoadError
from reactgrad.graph._var import Var
from reactgrad.nn._registry import parts_of


class Keys(NamedTuple):
    """The answer of ``load_state_dict``: the paths that found no counterpart."""

    missing_keys: list[str]
    unexpected_keys: list[str]


def state_dict(module: Any, /, prefix: str = "") -> dict[str, np.ndarray[Any, Any]]:
    """Return arrays of all params and buffers by path, with PyTorch's keys and shapes.

    The arrays are copies: a step does not change them.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     net = rg.nn.Sequential(rg.nn.Linear(3, 2))
    >>> {path: array.shape for path, array in net.state_dict().items()}
    {'0.weight': (2, 3), '0.bias': (2,)}
    """
    return {
        prefix + path: np.array(var.numpy())
        for path, var, kind in parts_of(module).entries
        if kind != "passing"
    }


def load_state_dict(module: Any, /, state_dict: Mapping[str, Any], strict: bool = True) -> Keys:
    """Set all params and buffers by path: as a whole, or not at all.

    Parameters
    ----------
    state_dict : mapping of str to array_like
        Such as ``state_dict`` returns, or PyTorch's. Values are cast to the dtypes of the params.
    strict : bool
        False to skip paths that only one side has.

    Returns
    -------
    named tuple
        ``missing_keys`` and ``unexpected_keys``.

    Raises
    ------
    LoadError
        If paths are missing, unexpected, or of another shape; it names all of them.
    DTypeError
        If this is no mapping.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.Graph():
    ...     net = rg.nn.Linear(2, 1)
    >>> net.load_state_dict({"weight": [[1.0, 2.0]], "bias": [3.0]}).missing_keys
    []
    >>> net([10.0, 20.0]).value
    array([53.])
    >>> net.load_state_dict({"weight": [[1.0]], "bais": [3.0]})
    Traceback (most recent call last):
      ...
    reactgrad.LoadError: load_state_dict of Linear, nothing was loaded:
      missing: bias
      unexpected: bais
      wrong shape: weight is (1, 1), not (1, 2)
    Make the module as the one that was saved, or pass strict=False to load the paths that both have.
    """
    if not isinstance(state_dict, Mapping):
        raise DTypeError(
            f"load_state_dict({state_dict!r:.40}): it takes a mapping from paths to arrays, such as "
            "net.state_dict()."
        )
    # A tuple for each place: a param that is shared has several.
    known = {path: var for path, var, kind in parts_of(module).entries if kind != "passing"}
    missing = [path for path in known if path not in state_dict]
    unexpected = [str(path) for path in state_dict if path not in known]
    wrong: list[str] = []
    sets: dict[Any, dict[Var, Any]] = {}
    for path, var in known.items():
        if path not in state_dict:
            continue
        try:
            found = _array(state_dict[path])
            given = found.shape
            found = found.astype(var.dtype, casting="same_kind")
        except (TypeError, ValueError):
            wrong.append(f"{path} is no array of {var.dtype}")
            continue
        if given != np.shape(var.numpy()):
            wrong.append(f"{path} is {given}, not {np.shape(var.numpy())}")
        else:
            sets.setdefault(var.graph, {})[var] = found
    if wrong or (strict and (missing or unexpected)):
        raise LoadError(_report(module, missing, unexpected, wrong, strict))
    for graph, values in sets.items():
        graph.set(values)
    return Keys(missing, unexpected)


def _array(value: Any) -> np.ndarray[Any, Any]:
    """Return an array of a value: of a tensor of another library by its own way."""
    if hasattr(value, "detach"):  # PyTorch's, which may require gradients or lie on a device
        value = value.detach()
        value = value.cpu() if hasattr(value, "cpu") else value
    if hasattr(value, "numpy"):
        value = value.numpy()
    found = np.asarray(value)
    if found.dtype.kind not in "biufc":
        raise TypeError
    return found


def _report(
    module: Any, missing: list[str], unexpected: list[str], wrong: list[str], strict: bool
) -> str:
    lines = [f"load_state_dict of {type(module).__name__}, nothing was loaded:"]
    if strict and missing:
        lines.append(f"  missing: {', '.join(missing)}")
    if strict and unexpected:
        lines.append(f"  unexpected: {', '.join(unexpected)}")
    if wrong:
        lines.append(f"  wrong shape: {'; '.join(wrong)}")
    if strict and (missing or unexpected):
        lines.append(
            "Make the module as the one that was saved, or pass strict=False to load the paths that both have."
        )
    else:
        lines.append("Make the module with the sizes of the one that was saved.")
    return "\n".join(lines)
