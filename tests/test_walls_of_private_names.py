"""Whose private names a module may use: what lies below a graph's face calls its ports and nothing else.

Read from the source. A graph is data, ``Core``, with a face on top; what works on a graph is a function of
it. So code that calls a private method of a graph would call its face, from below. The few calls that
must go up are ports: attributes that ``Core`` declares, and the face assigns.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator
from pathlib import Path

from tests.__main__ import ROOT

PACKAGE = ROOT / "reactgrad"
SCHEDULER = ROOT / "scheduler" / "reactgrad_scheduler"
CORE = PACKAGE / "core" / "_core.py"
# The faces call what is their own.
FACES = {"graph"}
# How the source calls a graph, as a variable and as an attribute.
NAMES = {"graph", "g", "fork", "twin", "core"}
ATTRIBUTES = {"_graph", "graph"}
CALLS = {"current_graph", "outer_graph"}
# Parts of the scheduler's own package that run by its private columns, for speed.
INSIDE_THE_SCHEDULER = {"executors", "finding.py", "scheduler.py"}


def sources() -> list[Path]:
    files = sorted(PACKAGE.rglob("*.py"))
    assert len(files) > 100, "no source"
    return files


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def body_of_core(tree: ast.Module) -> list[ast.stmt]:
    (core,) = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Core"]
    return core.body


def ports(tree: ast.Module) -> set[str]:
    """Private attributes that class ``Core`` declares with a type and without a value."""
    return {
        one.target.id
        for one in body_of_core(tree)
        if isinstance(one, ast.AnnAssign)
        and one.value is None
        and isinstance(one.target, ast.Name)
        and is_private(one.target.id)
    }


def own_methods(tree: ast.Module) -> set[str]:
    """Methods of ``Core`` itself: to call these is to call what lies below."""
    return {one.name for one in body_of_core(tree) if isinstance(one, ast.FunctionDef)}


def is_graph(value: ast.expr) -> bool:
    """Whether an expression is called as graphs are called in this source."""
    if isinstance(value, ast.Call):  # current_graph(), host._graph(): a weak reference
        value = value.func
        if isinstance(value, ast.Name):
            return value.id in CALLS
    if isinstance(value, ast.Name):
        return value.id in NAMES
    return isinstance(value, ast.Attribute) and value.attr in ATTRIBUTES


def methods_of_faces() -> set[str]:
    """Private methods of the classes in ``graph/``, and of graphs that are traced."""
    files = [*(PACKAGE / "graph").glob("*.py"), PACKAGE / "transforms" / "_trace.py"]
    return {
        method.name
        for file in files
        for node in ast.walk(ast.parse(file.read_bytes()))
        if isinstance(node, ast.ClassDef)
        for method in node.body
        if isinstance(method, ast.FunctionDef) and is_private(method.name)
    }


def calls_of_graphs(tree: ast.AST, methods: Container[str] = ()) -> Iterator[tuple[int, str]]:
    """Line and name of each private method that is called of a graph, or handed on to be called.

    What is not called is told from data by its name: it is one of `methods`.
    """
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and is_private(node.attr)
            and is_graph(node.value)
            and (id(node) in called or node.attr in methods)
            and node.attr not in ATTRIBUTES
        ):
            yield node.lineno, node.attr


def reaches_into_schedulers(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of each private attribute of a scheduler, ``x._scheduler._name``."""
    for node in ast.walk(tree):  # also where it is set
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            owner = node.value
            name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
            if name in ("scheduler", "_scheduler"):
                yield node.lineno, node.attr


TREE = ast.parse(CORE.read_bytes())
PORTS = ports(TREE)
BELOW = own_methods(TREE)


def test_the_core_declares_its_ports() -> None:
    assert {"_var", "_apply", "_call_lifted", "_deliver"} <= PORTS
    assert len(PORTS) < 20, "a port is an exception"
    assert len(BELOW) < 8, "Core is data: a verb is a function of it"


def test_below_its_face_nobody_calls_a_private_method_of_a_graph_but_ports() -> None:
    methods = methods_of_faces()
    assert {"_leaves", "_value_for_rule"} <= methods, "the probe saw nothing"
    found = [
        f"{file.relative_to(ROOT)}:{line}: {name}"
        for file in sources()
        if file != CORE and file.relative_to(PACKAGE).parts[0] not in FACES
        for line, name in calls_of_graphs(ast.parse(file.read_bytes()), methods)
        if name not in PORTS and name not in BELOW
    ]
    assert not found, "write it as a function of a Core"


def test_nobody_reaches_into_the_scheduler_but_what_finds_and_runs_plans() -> None:
    inside = [
        file
        for file in sorted(SCHEDULER.rglob("*.py"))
        if file.relative_to(SCHEDULER).parts[0] not in INSIDE_THE_SCHEDULER
    ]
    found = [
        f"{file.relative_to(ROOT)}:{line}: {name}"
        for file in (*sources(), *inside)
        for line, name in reaches_into_schedulers(ast.parse(file.read_bytes()))
    ]
    assert not found, "the scheduler's public names are for this"


def test_each_way_to_call_is_seen() -> None:
    tree = ast.parse(
        """
graph._one(1)
self._graph._two()
var._graph._three(graph._four)
graph.public()
graph._host.public()
graph.__len__()
other._five()
_six(graph)
self.graph._seven()
current_graph()._eight()
host._graph()._nine()
map(graph._ten, slots)
graph._eleven[0]
"""
    )
    seen = {"_one", "_two", "_three", "_seven", "_eight", "_nine", "_ten"}
    assert {name for _, name in calls_of_graphs(tree, {"_ten"})} == seen
    tree = ast.parse(
        "graph._scheduler._one\nscheduler._two()\nself._scheduler.three\nself.scheduler._four = 1"
    )
    assert {name for _, name in reaches_into_schedulers(tree)} == {"_one", "_two", "_four"}


def test_ports_are_what_is_declared_without_a_value() -> None:
    tree = ast.parse(
        """
class Core:
    seed: int
    _port: object
    _traced = False
    _data: int = 0

    def _own(self): ...
"""
    )
    assert ports(tree) == {"_port"}
    assert own_methods(tree) == {"_own"}
