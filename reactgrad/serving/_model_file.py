"""A Python file as a model: it is run, and its graph is found by a name or because there is but one.

It is run as ``import`` would run it, in a new module each time, with a graph of its own for nodes that are
made without one. Modules of its folder that it imports are run anew as well.
"""

from __future__ import annotations

import importlib
import linecache
import sys
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import reactgrad as rg
from reactgrad._errors import GraphError

_RUNS = threading.Lock()  # `sys.modules` and `sys.path` are one for all threads


class ModelError(GraphError):
    """A file is no model that can be shown."""


class Model(NamedTuple):
    """The graph of a file, as it was when the file was run.

    Attributes
    ----------
    graph : Graph
        The graph.
    targets : tuple of Var
        The node that was asked for by name; none if a graph was.
    given : dict of str to array
        The values that the file gives to its inputs and params.
    module : module
        Keeps alive what the file has made.
    """

    graph: rg.Graph
    targets: tuple[rg.Var, ...]
    given: dict[str, Any]
    module: ModuleType


class ModelFile:
    """A file that can be run again and again.

    Parameters
    ----------
    path
        The file.
    name
        Of a Graph, a Var, or a function that returns one, in the file.

    Attributes
    ----------
    files : dict of Path to stamp
        The file, and modules of its folder that it imports, as they were at the latest run.
    """

    def __init__(self, path: Path, name: str | None = None) -> None:
        self.path, self.name = path, name
        self.files = {path: stamp(path)}
        self._brought: list[str] = []  # names of modules that the latest run has imported

    def load(self) -> Model:
        """Run the file, and find its graph. Whatever it raises is raised."""
        with _RUNS:
            then = {file: stamp(file) for file in self.files}  # a save from now on is another one
            files = {self.path}
            try:
                return self._load()
            except BaseException as error:
                files |= {*then, *_places(error, self.path)}
                raise
            finally:
                files |= {Path(str(sys.modules[name].__file__)) for name in self._brought}
                self.files = {file: then[file] if file in then else stamp(file) for file in files}

    def is_saved(self) -> bool:
        """Return whether one of the files differs from what was run."""
        return any(stamp(file) != then for file, then in self.files.items())

    def _load(self) -> Model:
        module = ModuleType(f"reactgrad_explored_{self.path.stem}")
        module.__file__ = str(self.path)
        folder = str(self.path.parent)
        linecache.checkcache()
        for name in self._brought:
            sys.modules.pop(name, None)
        self._brought = []
        sys.modules[module.__name__] = module
        before = {*sys.modules}
        packages = {name.partition(".")[0] for name in before}
        sys.path.insert(0, folder)
        writes, sys.dont_write_bytecode = (
            sys.dont_write_bytecode,
            True,
        )  # they know whole seconds only
        importlib.invalidate_caches()
        try:
            code = compile(self.path.read_bytes(), str(self.path), "exec", dont_inherit=True)
            with rg.Graph():  # for nodes that are made without a graph
                exec(code, vars(module))
                graph, targets = _found(self.path, vars(module), self.name)
        finally:
            sys.path.remove(folder)
            sys.dont_write_bytecode = writes
            self._brought = [
                name
                for name in sys.modules.keys() - before
                if name.partition(".")[0] not in packages
                and _is_beside(sys.modules[name], self.path)
            ]
        leaves = (*graph.inputs, *graph.params)
        return Model(graph, targets, {var.label: var.numpy() for var in leaves}, module)


def stamp(file: Path) -> tuple[int, int] | None:
    """Return what differs when a file has been saved; ``None`` where there is no file."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def split(text: str) -> tuple[Path, str | None]:
    """Return the file and the name in ``model.py:name``.

    Examples
    --------
    >>> split("model.py:book")[1], split("model.py")[1]
    ('book', None)
    """
    path, colon, name = text.rpartition(":")
    if not colon or not name.isidentifier() or Path(text).exists():
        return Path(text).absolute(), None
    return Path(path).absolute(), name


def trouble(path: Path, error: BaseException) -> str:
    """Return what went wrong in a file and where, on a line or two."""
    kind = type(error).__name__
    if isinstance(error, ModelError):
        return str(error)
    if isinstance(error, SyntaxError):
        file = Path(error.filename or path).name
        return f"{file}, line {error.lineno}: {kind}: {error.msg}"
    places = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).parent == path.parent
    ]
    where = f"{Path(places[-1].filename).name}, line {places[-1].lineno}" if places else path.name
    return f"{where}: {kind}: {error}"


def _places(error: BaseException, path: Path) -> set[Path]:
    """Return files of the folder that an error comes from."""
    names = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError) and error.filename:
        names.append(error.filename)
    return {Path(name) for name in names if path.parent in Path(name).parents}


def _is_beside(module: object, path: Path) -> bool:
    """Return whether a module is of the file's folder and not an installed one."""
    file = getattr(module, "__file__", None)
    if not isinstance(file, str):
        return False
    found = Path(file)
    return path.parent in found.parents and not any(
        part in ("site-packages", "dist-packages") for part in found.parts
    )


def _found(
    path: Path, names: Mapping[str, Any], name: str | None
) -> tuple[rg.Graph, tuple[rg.Var, ...]]:
    """Return the graph of a file, and the node that was asked for."""
    if name is not None:
        if name not in names:
            raise ModelError(f"{path.name} has no name {name!r}: it has {_listed(names)}.")
        found = names[name]
        if not isinstance(found, rg.Graph | rg.Var) and callable(found):
            found = found()
        if isinstance(found, rg.Var):
            return found.graph, (found,)
        if isinstance(found, rg.Graph):
            return found, ()
        raise ModelError(
            f"{path.name}:{name} is of type {type(found).__name__}: name a Graph, a Var, or a function "
            "that returns one."
        )
    graphs = _graphs(names)
    if not graphs:
        raise ModelError(
            f"{path.name} has no graph at its top level: assign a Graph or a Var to a name there, or "
            f"name a function that returns one, {path.name}:function."
        )
    if len(graphs) > 1:
        of = ", ".join(graphs.values())
        raise ModelError(
            f"{path.name} has {len(graphs)} graphs: say which, {path.name}:name ({of})."
        )
    return next(iter(graphs)), ()


def _graphs(names: Mapping[str, Any]) -> dict[rg.Graph, str]:
    """Return graphs that names of a file lead to, each with the first such name."""
    graphs: dict[rg.Graph, str] = {}
    for kind in (rg.Graph, rg.Var):
        for name, one in names.items():
            if isinstance(one, kind):
                graphs.setdefault(one if isinstance(one, rg.Graph) else one.graph, name)
    return graphs


def _listed(names: Mapping[str, Any]) -> str:
    public = [
        name
        for name, one in names.items()
        if not name.startswith("_")
        and (
            isinstance(one, rg.Graph | rg.Var)
            or getattr(one, "__module__", "") == names["__name__"]
        )
    ]
    return ", ".join(public[:12]) or "none of a graph"
