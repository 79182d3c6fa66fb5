"""Who may import whom, what ``import reactgrad`` may load, and how the tree looks.

Three views of the same walls: the contracts in ``pyproject.toml``, the import statements in the source
(also those that hide in a ``try`` or an ``if``), and ``sys.modules`` of a fresh interpreter.
"""

import ast
import os
import subprocess
import sys
import tomllib
from collections.abc import Collection, Iterator
from importlib.util import find_spec
from pathlib import Path

import networkx as nx
import pytest

from tests.__main__ import ROOT, STATIC

SCHEDULER = ROOT / "scheduler" / "reactgrad_scheduler"
PACKAGES = [ROOT / "reactgrad", SCHEDULER]

with (ROOT / "pyproject.toml").open("rb") as _file:
    _RUFF = tomllib.load(_file)["tool"]["ruff"]
HEAVY = frozenset(_RUFF["lint"]["flake8-tidy-imports"]["banned-module-level-imports"])
# Files that are imported late themselves: compiled code keeps its cache only at module level. That
# nothing else loads them is seen in `sys.modules`.
LATE = {file for file, rules in _RUFF["lint"]["per-file-ignores"].items() if "TID253" in rules}


def imports(tree: ast.AST, *, lazy: bool) -> Iterator[str]:
    """Top-level names of the packages that a module imports.

    `lazy` says whether imports inside functions count. Those under TYPE_CHECKING never run and never do.
    """
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level == 0 and node.module:
                yield node.module.partition(".")[0]
        elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            pending.extend(node.orelse)
        elif lazy or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            pending.extend(ast.iter_child_nodes(node))


def imports_in(folder: Path, *, lazy: bool) -> set[tuple[str, str]]:
    """Pairs of a file below `folder` and a package that it imports."""
    files = sorted(folder.rglob("*.py"))
    assert files, f"no source in {folder}"
    return {
        (file.relative_to(ROOT).as_posix(), package)
        for file in files
        for package in imports(ast.parse(file.read_bytes()), lazy=lazy)
    }


def run_python(*arguments: str, cwd: Path) -> str:
    """Run a fresh interpreter on this checkout, installed or not, and return what it printed."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "scheduler")])}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"\n{done.stdout}\n{done.stderr}"
    return done.stdout


def loaded_by(package: str, cwd: Path) -> set[str]:
    """Top-level names that importing `package` adds to ``sys.modules``."""
    program = (
        "import sys; before = set(sys.modules); "
        f"import {package}; "
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    )
    return set(run_python("-c", program, cwd=cwd).split())


def test_import_reactgrad_loads_no_heavy_package(tmp_path: Path) -> None:
    loaded = loaded_by("reactgrad", tmp_path)
    assert {"reactgrad", "numpy"} <= loaded, "the probe saw nothing"
    assert not loaded & HEAVY


def test_import_reactgrad_loads_nothing_that_only_files_or_explanations_need(
    tmp_path: Path,
) -> None:
    files = {"concurrent", "json", "logging", "pathlib", "shutil", "tempfile", "urllib"}
    assert not (loaded_by("reactgrad", tmp_path) - loaded_by("numpy", tmp_path)) & files
    program = "import sys, reactgrad; print(*[name for name in sys.modules if 'reactgrad' in name])"
    loaded = set(run_python("-c", program, cwd=tmp_path).split())
    assert "reactgrad.graph._graph" in loaded, "the probe saw nothing"
    seldom = (
        *("explain._event_log", "explain._profile", "explain._record", "explain._snapshot"),
        *("explain._stats", "explain._why", "explain._anomaly", "io._state", "io._load"),
        *("subgraphs._subgraph", "memory._budget", "memory._jit", "functions._function"),
        *("transforms._transforms", "autodiff._jacobian", "flow._places", "testing"),
        *("backend.numpy._erf", "backend.machine._loops", "backend.machine._sheet"),
        *("autodiff._program", "autodiff._custom", "functions._lift", "functions._switch"),
        *("functions._primitive", "memory._transient_run", "extend"),
        "backend.blocks._library_threads",
    )
    for name in seldom:
        assert find_spec(f"reactgrad.{name}") is not None, "a module that is no more"
    assert not loaded & {f"reactgrad.{name}" for name in seldom}
    assert not loaded & {f"reactgrad_scheduler.executors.{one}" for one in ("crew", "straight")}
    asked = "import reactgrad; print(reactgrad.testing.__name__, reactgrad.subgraph.__name__)"
    assert run_python("-c", asked, cwd=tmp_path).split() == ["reactgrad.testing", "subgraph"]


def test_import_reactgrad_loads_a_bounded_number_of_modules(tmp_path: Path) -> None:
    """Each module costs some 0.15 ms, whatever is in it. What the first use can load, it loads."""
    program = (
        "import sys, numpy; n = len(sys.modules); import reactgrad; print(len(sys.modules) - n)"
    )
    assert int(run_python("-c", program, cwd=tmp_path)) <= 227


def test_import_scheduler_loads_neither_reactgrad_nor_a_heavy_package(tmp_path: Path) -> None:
    loaded = loaded_by("reactgrad_scheduler", tmp_path)
    assert "reactgrad_scheduler" in loaded, "the probe saw nothing"
    assert not loaded & (HEAVY | {"reactgrad"})


def test_no_file_imports_a_heavy_package_at_module_level() -> None:
    found = {pair for folder in PACKAGES for pair in imports_in(folder, lazy=False)}
    offenders = sorted(pair for pair in found if pair[1] in HEAVY and pair[0] not in LATE)
    assert not offenders, "import these inside the function that needs them"


def test_scheduler_imports_only_the_standard_library_and_numpy() -> None:
    allowed = sys.stdlib_module_names | {"numpy", "reactgrad_scheduler"}
    foreign = sorted(pair for pair in imports_in(SCHEDULER, lazy=True) if pair[1] not in allowed)
    assert not foreign


def test_imports_are_seen_wherever_they_run_on_load() -> None:
    tree = ast.parse(
        """
from typing import TYPE_CHECKING
from .sibling import thing
try:
    import cupy.cuda
except ImportError:
    pass
class Late:
    import scipy
if TYPE_CHECKING:
    import torch
def draw():
    import networkx as nx
"""
    )
    on_load = {"typing", "cupy", "scipy"}
    assert set(imports(tree, lazy=False)) == on_load
    assert set(imports(tree, lazy=True)) == on_load | {"networkx"}


def test_import_contracts_are_kept() -> None:
    # In a process of its own: the linter reconfigures logging and changes sys.path.
    assert "0 broken" in run_python(*STATIC["lint-imports"], cwd=ROOT)


# --- the tree ----------------------------------------------------------------------------------------

MOST_LINES = 600
# One loop each, or one lock, that would be slower or harder to prove in parts.
WHOLE = {"executors/serial.py", "executors/crew.py", "lock.py"}
MOST_FLAT = 14
# fmt: off
PREPOSITIONS = {
    "about", "above", "across", "after", "against", "along", "alongside", "amid", "among",
    "around", "as", "at", "before", "behind", "below", "beneath", "beside", "besides",
    "between", "beyond", "by", "despite", "down", "during", "except", "for", "from", "in",
    "inside", "into", "like", "near", "of", "off", "on", "onto", "opposite", "out", "outside",
    "over", "past", "per", "since", "than", "through", "throughout", "till", "to", "toward",
    "towards", "under", "underneath", "until", "up", "upon", "via", "with", "within",
    "without",
}
# fmt: on


def modules_of(package: Path) -> dict[str, Path]:
    """The modules of a package by their names; a package itself is its ``__init__``."""
    found = {}
    for file in sorted(package.rglob("*.py")):
        parts = file.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imported_modules(tree: ast.AST, known: Collection[str]) -> Iterator[str]:
    """All modules among `known` that a source names in imports, in functions and for types, too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            for alias in node.names:
                below = f"{node.module}.{alias.name}"
                yield below if below in known else node.module


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_no_modules_need_each_other(package: Path) -> None:
    modules = modules_of(package)
    needs = nx.DiGraph()
    for name, file in modules.items():
        needs.add_edges_from(
            (name, other) for other in imported_modules(ast.parse(file.read_bytes()), modules)
        )
    assert needs.number_of_edges() > len(modules)
    circles = [sorted(one) for one in nx.strongly_connected_components(needs) if len(one) > 1]
    assert not circles


def test_imports_in_functions_and_for_types_are_counted() -> None:
    tree = ast.parse(
        """
import pkg.a
from pkg import b, thing
if TYPE_CHECKING:
    from pkg.c import Type
def late():
    from pkg.d import name
"""
    )
    known = {"pkg", "pkg.a", "pkg.b", "pkg.c", "pkg.d", "pkg.e"}
    assert sorted(imported_modules(tree, known)) == ["pkg", "pkg.a", "pkg.b", "pkg.c", "pkg.d"]


def test_few_files_lie_flat() -> None:
    flat = sorted(file.name for file in (ROOT / "reactgrad").glob("*.py"))
    assert len(flat) <= MOST_FLAT, flat


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_no_file_is_too_long_to_read(package: Path) -> None:
    lines = {
        file.relative_to(package).as_posix(): file.read_bytes().count(b"\n")
        for file in package.rglob("*.py")
    }
    assert not {name: n for name, n in lines.items() if n > MOST_LINES and name not in WHOLE}


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_no_file_and_no_folder_is_a_preposition(package: Path) -> None:
    names = {
        path.relative_to(package).as_posix()
        for path in (*package.rglob("*.py"), *package.rglob("*/"))
        if path.stem.strip("_").lower() in PREPOSITIONS
    }
    assert not names


@pytest.mark.parametrize("package", PACKAGES, ids=lambda folder: folder.name)
def test_docstrings_state(package: Path) -> None:
    """No docstring is, as a whole, a clause: it says what is returned, done, or held."""
    clauses = ("What ", "Who ", "Whether ", "Where ", "Which ", "How ")
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = [
        f"{file.relative_to(package)}:{getattr(node, 'lineno', 1)}"
        for file in sorted(package.rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, kinds) and (ast.get_docstring(node) or "").startswith(clauses)
    ]
    assert not found


def test_what_loads_files_knows_all_ops(tmp_path: Path) -> None:
    """Whatever else is imported late, a file may hold any op."""
    program = """
import importlib, pkgutil
import reactgrad, reactgrad.io._load
from reactgrad.nodes._op import OPS
from reactgrad.ops._families import op_named
op_named("no op")  # as for an op that is not there yet: all families are imported
known = set(OPS)
for folder in ("autodiff", "flow", "functions", "graph", "ops", "subgraphs", "transforms"):
    package = importlib.import_module(f"reactgrad.{folder}")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
print(len(known), *set(OPS) - known)
"""
    count, *unknown = run_python("-c", program, cwd=tmp_path).split()
    assert int(count) > 50
    assert not unknown
