"""All that is public: names, what each one is, and how it is called.

``python -m tests.api.surface`` prints it. The list in ``surface.json`` was made from 0.1.0 at commit
c12783f; whoever changes what is public on purpose makes it anew, and the diff shows the change:
``python -m tests.api.surface > tests/api/surface.json``.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
from types import ModuleType
from typing import Any

from reactgrad._habits import Absent

_SCHEDULER = ("reactgrad.scheduler", "reactgrad_scheduler")
MODULES = (
    *("reactgrad", "reactgrad.extend", "reactgrad.testing", "reactgrad.neat", "reactgrad.demo"),
    *_SCHEDULER,
)
# What Python itself puts into classes, from version to version other things.
_OF_PYTHON = {
    *("__module__", "__qualname__", "__doc__", "__dict__", "__weakref__", "__slots__", "__init__"),
    "__slotnames__",  # written by copy and pickle
    *("__new__", "__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__"),
    *(
        "__firstlineno__",
        "__static_attributes__",
        "__orig_bases__",
        "__parameters__",
        "__classcell__",
    ),
    *("__match_args__", "__replace__", "__dataclass_fields__", "__dataclass_params__", "__hash__"),
    *("__abstractmethods__", "__protocol_attrs__", "__non_callable_proto_members__"),
    *("__subclasshook__", "__getnewargs__", "__init_subclass__", "__class_getitem__"),
    *("__type_params__", "__static_attributes__", "__conditional_annotations__"),
}
# What the scheduler's face exports for the engine alone.
_CONSTANTS = {"CLEAN", "FAILED", "MAYBE", "RANK_GAP", "STALE", "UNKNOWN", "UNSETTLED", "released"}
_PACKAGES = ("reactgrad", "reactgrad_scheduler")


def surface() -> dict[str, dict[str, Any]]:
    """Return for each public module its public names, and what each of them is."""
    return {name: _of_module(importlib.import_module(name)) for name in MODULES}


def _of_module(module: ModuleType) -> dict[str, Any]:
    return {
        name: thing(value)
        for name in sorted(dir(module))
        if not name.startswith("_")
        and not (module.__name__ in _SCHEDULER and name in _CONSTANTS)
        and not isinstance(value := getattr(module, name), ModuleType)
        and not _foreign(value)
    }


def _foreign(value: Any) -> bool:
    """Whether a module only uses this name, which is of the standard library or NumPy."""
    home = getattr(value, "__module__", None)
    return isinstance(home, str) and home.partition(".")[0] not in _PACKAGES


def thing(value: Any) -> Any:
    """Return what can be said of a public object without the name of a private module."""
    if inspect.isclass(value):
        return _of_class(value)
    if callable(value):
        return {"call": parameters(value)}
    return {"kind": type(value).__name__}


def _of_class(cls: type) -> dict[str, Any]:
    owners = [base for base in cls.__mro__ if not _foreign(base)]
    members: dict[str, Any] = {}
    for owner in reversed(owners):
        for name, member in vars(owner).items():
            if isinstance(member, Absent):
                continue
            if name not in _OF_PYTHON and (not name.startswith("_") or _is_special(name)):
                members[name] = _of_member(member, special=_is_special(name))
    found: dict[str, Any] = {"members": dict(sorted(members.items()))}
    if any("__init__" in vars(owner) or "__new__" in vars(owner) for owner in owners):
        found["call"] = parameters(cls)
    if issubclass(cls, BaseException):  # tracebacks say where it is found, `except` what it is
        found["module"] = "private" if "._" in cls.__module__ else cls.__module__
        found["is"] = sorted(
            base.__name__
            for base in cls.__mro__
            if not _foreign(base) or base.__module__ == "builtins"
        )
    return found


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _of_member(member: Any, special: bool) -> Any:
    """A method by its parameters but the first, which each class calls as it likes."""
    if isinstance(member, classmethod | staticmethod):
        called = parameters(member.__func__)
        kind = type(member).__name__
        return {kind: called[1:] if isinstance(member, classmethod) and called else called}
    if inspect.isfunction(member):
        return "method" if special else {"method": (parameters(member) or [])[1:]}
    if callable(member) and not inspect.isclass(member):
        return "method"
    return "attribute"


def parameters(function: Any) -> list[str] | None:
    """Return names, kinds and defaults, or None where Python knows none."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    return [_parameter(one) for one in signature.parameters.values()]


_MARKS = {
    inspect.Parameter.POSITIONAL_ONLY: "/",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "",
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.KEYWORD_ONLY: "=",
    inspect.Parameter.VAR_KEYWORD: "**",
}


def _parameter(one: inspect.Parameter) -> str:
    default = "" if one.default is one.empty else f" = {_text_of(one.default)}"
    return f"{_MARKS[one.kind]} {one.name}{default}".strip()


def _text_of(default: Any) -> str:
    """Its text without addresses and modules."""
    if inspect.isclass(default) or inspect.isroutine(default):
        return default.__name__
    return re.sub(r" at 0x[0-9a-f]+", "", re.sub(r"\b(?:\w+\.)+(?=\w+)", "", repr(default)))


if __name__ == "__main__":
    print(json.dumps(surface(), indent=1, ensure_ascii=False))
