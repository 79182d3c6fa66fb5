"""The package stands on the public API alone, and needs neat-python for nothing but its genomes."""

from __future__ import annotations

import ast
import sys

import pytest

from tests.__main__ import ROOT
from tests.test_import_walls import run_python

# The last two say what mistyped attributes are told, in the same words in all packages.
PUBLIC = {
    "reactgrad",
    "reactgrad.extend",
    *("reactgrad._attributes", "reactgrad._calls", "reactgrad._habits", "reactgrad._later"),
}


def test_it_imports_what_is_public_and_nothing_else() -> None:
    files = sorted((ROOT / "reactgrad" / "neat").glob("*.py"))
    assert len(files) > 5
    for file in files:
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                modules = [node.module or ""]
            else:
                continue
            for module in modules:
                own = module.startswith("reactgrad.neat")
                known = module.partition(".")[0] in sys.stdlib_module_names | {"numpy"}
                # With `jit` alone; and where a name of neat-python is asked for.
                known = known or (module, file.name) in {
                    ("numba", "_loops.py"),
                    ("neat", "_names.py"),
                }
                assert own or known or module in PUBLIC, (file.name, module)


def test_it_uses_no_private_attribute_of_what_it_imports() -> None:
    for file in sorted((ROOT / "reactgrad" / "neat").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
                own = node.attr == "_replace" or (
                    isinstance(node.value, ast.Name)
                    and node.value.id
                    in (
                        "self",
                        "child",
                        "config",
                    )
                )
                special = node.attr.startswith("__")
                assert own or special, (file.name, node.lineno, node.attr)


@pytest.mark.slow
def test_importing_it_does_not_import_neat_python(tmp_path: object) -> None:
    program = (
        "import sys, reactgrad.neat; print('neat' in sys.modules, 'reactgrad.neat' in sys.modules)"
    )
    assert run_python("-c", program, cwd=ROOT).split() == ["False", "True"]
