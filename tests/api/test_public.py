"""Every public name: exported once, documented, its example runs."""

from __future__ import annotations

import ast
import doctest
import inspect
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.ops._families import PLACES

# Modules, and what the array API standard asks a namespace to have of NumPy: dtypes and numbers.
OTHERS = (ModuleType, np.dtype, float, type(None))
PUBLIC = sorted(
    name
    for name, value in ((name, getattr(rg, name)) for name in dir(rg))
    if not name.startswith("_") and not isinstance(value, OTHERS)
)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def exported() -> list[str]:
    """Names that `__init__` binds in the form ``from x import y as y`` or ``y = ...``."""
    tree = ast.parse(Path(rg.__file__).read_text(encoding="utf-8"))
    names: list[str] = []
    body = [*tree.body]
    for node in body:
        if isinstance(node, ast.If):  # names that are loaded when they are asked for
            body += node.body
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.name == "*":  # a family, whose names are in a table
                    continue
                assert alias.asname in (alias.name, f"_{alias.name}"), (
                    f"{alias.name}: write `import x as x`, or `as _x` where it is not public"
                )
                names.append(alias.asname)
        elif isinstance(node, ast.Assign):
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
    return names


def test_each_name_is_exported_once() -> None:
    names = exported()
    assert len(names) == len(set(names))
    assert {n for n in names if not n.startswith("_")} | PLACES.keys() >= set(PUBLIC)


def members() -> list[tuple[str, Any]]:
    """Public callables, and the public methods and properties of public classes."""
    found: list[tuple[str, Any]] = []
    for name in PUBLIC:
        value = getattr(rg, name)
        found.append((name, value))
        if inspect.isclass(value) and not issubclass(value, BaseException):
            for attribute, member in vars(value).items():
                if not attribute.startswith("_"):
                    found.append((f"{name}.{attribute}", member))
    return found


MEMBERS = dict(members())


@pytest.mark.parametrize("name", MEMBERS)
def test_every_public_name_has_a_docstring(name: str) -> None:
    text = inspect.getdoc(MEMBERS[name])
    if inspect.isdatadescriptor(MEMBERS[name]) and not isinstance(MEMBERS[name], property):
        return  # a slot
    assert text
    assert text[0].isupper() or text[0] in "`-1e0x2l"
    assert text.splitlines()[0].rstrip().endswith((".", ":"))


NEED_EXAMPLES = [
    n
    for n in PUBLIC
    if callable(getattr(rg, n))
    and not (inspect.isclass(getattr(rg, n)) and issubclass(getattr(rg, n), (Exception, Warning)))
]


@pytest.mark.slow
@pytest.mark.parametrize("name", NEED_EXAMPLES)
def test_example_of_every_public_callable_runs(name: str) -> None:
    """Explicitly: functions that are made in a loop are easily missed by a collector."""
    value = getattr(rg, name)
    text = inspect.getdoc(value) or ""
    assert "Examples\n--------\n>>> " in text, f"rg.{name} has no Examples section"
    test = doctest.DocTestParser().get_doctest(text, {}, f"rg.{name}", None, 0)
    assert test.examples
    runner = doctest.DocTestRunner(verbose=False, optionflags=FLAGS)
    printed: list[str] = []
    runner.run(test, out=printed.append)
    assert not runner.summarize(verbose=False).failed, "".join(printed)


@pytest.mark.parametrize("name", [n for n, m in MEMBERS.items() if "." in n])
def test_example_of_every_method_runs(name: str) -> None:
    text = inspect.getdoc(MEMBERS[name]) or ""
    test = doctest.DocTestParser().get_doctest(text, {}, f"rg.{name}", None, 0)
    runner = doctest.DocTestRunner(verbose=False, optionflags=FLAGS)
    printed: list[str] = []
    runner.run(test, out=printed.append)
    assert not runner.summarize(verbose=False).failed, "".join(printed)


BUILTIN_OF = {
    "MissingExtraError": ImportError,
    "BlockError": RuntimeError,
    "BusyError": RuntimeError,
    "CycleError": ValueError,
    "DTypeError": TypeError,
    "DeviceError": ValueError,
    "EditError": ValueError,
    "GradientError": RuntimeError,
    "GraphError": ValueError,
    "SetError": TypeError,
    "ShapeError": ValueError,
    "UnsetError": ValueError,
}


def test_errors_are_ours_and_a_builtin() -> None:
    errors = {n for n in PUBLIC if n.endswith("Error") and n != "ReactgradError"}
    assert errors >= set(BUILTIN_OF)
    for name in errors:
        error = getattr(rg, name)
        assert issubclass(error, rg.ReactgradError)
        builtins = (TypeError, ValueError, LookupError, ArithmeticError, RuntimeError, Warning)
        assert issubclass(error, BUILTIN_OF.get(name, builtins))
    assert issubclass(rg.ReactgradWarning, UserWarning)
    assert issubclass(rg.GradModeWarning, rg.ReactgradWarning)


def test_version_is_a_version() -> None:
    assert rg.__version__.count(".") == 2
