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
    found = {path: var.numpy() for path, var in _vars(module).items()}
    found |= {path: getattr(*place) for path, place in _arrays(module).items()}
    return {prefix + path: np.array(array) for path, array in found.items()}


def _vars(module: Any) -> dict[str, Var]:
    """Return params and buffers by path; one that is shared is at several."""
    return {path: var for path, var, kind in parts_of(module).entries if kind != "passing"}


def _arrays(module: Any) -> dict[str, tuple[Any, str]]:
    """Return by path the modules with the names of arrays that they keep: the weights of losses."""
    return {
        f"{path}.{name}" if path else name: (one, name)
        for path, one in parts_of(module).modules
        for name in one._arrays
        if isinstance(getattr(one, name, None), np.ndarray)
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
    arrays = _arrays(module)
    known: dict[str, Any] = _vars(module) | {
        path: getattr(*place) for path, place in arrays.items()
    }
    missing = [path for path in known if path not in state_dict]
    unexpected = [str(path) for path in state_dict if path not in known]
    wrong: list[str] = []
    odd: list[str] = []
    sets: dict[Any, dict[Var, Any]] = {}
    kept: dict[str, np.ndarray[Any, Any]] = {}
    for path, var in known.items():
        if path not in state_dict:
            continue
        try:
            found = _array(state_dict[path])
            given = found.shape
            found = found.astype(var.dtype, casting="same_kind")
        except (TypeError, ValueError):
            odd.append(f"{path} is {_told(state_dict[path])}, and not of {var.dtype}")
            continue
        wanted = np.shape(var if path in arrays else var.numpy())
        if given != wanted:
            wrong.append(f"{path} is {given}, not {wanted}")
        elif path in arrays:
            kept[path] = found
        else:
            sets.setdefault(var.graph, {})[var] = found
    if wrong or odd or (strict and (missing or unexpected)):
        if not strict:
            missing = unexpected = []
        raise LoadError(_report(module, state_dict, known, missing, unexpected, wrong, odd))
    for graph, values in sets.items():
        graph.set(values)
    for path, array in kept.items():
        setattr(*arrays[path], array)
    return Keys(missing, unexpected)


def _array(value: Any) -> np.ndarray[Any, Any]:
    """Return an array of a value: of a tensor of another library by its own way."""
    if hasattr(value, "detach"):  # PyTorch's, which may require gradients or lie on a device
        value = value.detach()
        value = value.cpu() if hasattr(value, "cpu") else value
    if _narrow(value):  # NumPy has no such dtype, and float32 holds each of its numbers
        value = value.float() if hasattr(value, "float") else value.astype(np.float32)
    if hasattr(value, "numpy"):
        value = value.numpy()
    found = np.asarray(value)
    if found.dtype.kind not in "biufc":
        raise TypeError
    return found


def _narrow(value: Any) -> bool:
    """Return whether this is a tensor or an array of bfloat16, or of floats of 8 bits."""
    return (
        str(getattr(value, "dtype", "")).removeprefix("torch.").startswith(("bfloat16", "float8"))
    )


def _told(value: Any) -> str:
    """Return what a value is, for a message: a dtype, or a class."""
    if isinstance(value, Mapping):
        return "a mapping"
    dtype = getattr(value, "dtype", None)
    return f"a {type(value).__name__}" if dtype is None else f"of {dtype}"


def _report(
    module: Any,
    given: Mapping[str, Any],
    known: Mapping[str, Any],
    missing: list[str],
    unexpected: list[str],
    wrong: list[str],
    odd: list[str],
) -> str:
    lines = [f"load_state_dict of {type(module).__name__}, nothing was loaded:"]
    for what, found in (
        ("missing", ", ".join(missing)),
        ("unexpected", ", ".join(unexpected)),
        ("wrong shape", "; ".join(wrong)),
        ("wrong dtype", "; ".join(odd)),
    ):
        if found:
            lines.append(f"  {what}: {found}")
    lines.append(_instead(given, known, bool(missing or unexpected), bool(wrong)))
    return "\n".join(lines)


def _instead(given: Mapping[str, Any], known: Mapping[str, Any], paths: bool, shapes: bool) -> str:
    """Return what to write instead of loading this state dict."""
    if not paths:
        way = "Make the module with the sizes of the one that was saved."
        return (
            way if shapes else "Give arrays or tensors of numbers: state[path].astype('float32')."
        )
    for key in ("state_dict", "model_state_dict", "model", "module", "net", "weights"):
        if isinstance(given.get(key), Mapping):
            return (
                "These are no paths of a module: the state dict is one of the values. Write "
                f"net.load_state_dict(state[{key!r}])."
            )
    start = _prefix(given, known)
    if start:
        return (
            f"The paths of this state dict begin with {start!r}, which the module's do not. Write net.load_state_dict("
            f"{{path.removeprefix({start!r}): array for path, array in state.items()}})."
        )
    start = _prefix(known, given)
    if start:
        return (
            f"The paths of the module begin with {start!r}, which those of this state dict do not. Write "
            f"net.{start[:-1]}.load_state_dict(state)."
        )
    return "Make the module as the one that was saved, or pass strict=False to load the paths that both have."


def _prefix(longer: Mapping[str, Any], shorter: Mapping[str, Any]) -> str:
    """Return what to take away from the paths of one to have most of those of the other; "" if there is none."""
    if not longer or not shorter:
        return ""
    first = next(iter(shorter))
    for path in longer:
        if isinstance(path, str) and path.endswith(f".{first}"):
            start = path.removesuffix(first)
            same = [one for one in shorter if start + str(one) in longer]
            if 2 * len(same) > len(shorter):
                return start
    return ""
