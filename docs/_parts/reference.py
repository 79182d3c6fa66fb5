"""Pages of the API: every public name once, with its docstring, grouped by subject.

The groups name all that is public in ``reactgrad`` itself; a name that stands in none raises, so that no name is
forgotten. Of the packages below it, all names of their own are taken.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from types import ModuleType
from typing import Any

import reactgrad as rg
from reactgrad.ops import _families

from . import pages

# Page: title, one sentence, names. Ops stand in families, and are not listed here.
GROUPS: dict[str, tuple[str, str, str]] = {
    "graph": ("Graph", "A graph holds nodes, their values and their versions.", "Graph"),
    "var": (
        "Var",
        "A handle of one node. Arithmetic on it builds further nodes.",
        "Var DetachedVar VarList",
    ),
    "leaves": (
        "Leaves, cutoffs, places",
        "Where values enter a graph, and when a change counts.",
        "input param const tolerance implicit_values devices",
    ),
    "gradients": (
        "Gradients and transforms",
        "Derivatives as live nodes, and of functions as in JAX.",
        (
            "grad value_and_grad vjp jvp hvp jacobian hessian HookHandle no_grad enable_grad inference "
            "set_grad_enabled is_grad_enabled checkpoint checkpoint_sequential saved_tensors_hooks "
            "save_on_cpu save_on_disk autocast GradScaler"
        ),
    ),
    "what_if": (
        "What-if",
        "Questions over many values, in forks.",
        "scenarios sensitivities tornado goal_seek explain_change monte_carlo",
    ),
    "live_tables": (
        "Tables and workbooks",
        "DataFrames and workbooks as live nodes.",
        "Table from_excel",
    ),
    "functions": (
        "Functions as nodes",
        "Python functions, choices and models that are built once.",
        "lift switch Function subgraph Subgraph neuron Neuron dead_neurons",
    ),
    "explanations": (
        "Explanations",
        "What would run, what ran, and why.",
        "Plan Run Running Why Event Recording Stats profile Profile detect_anomaly Observer",
    ),
    "threads": (
        "Threads",
        "What runs side by side.",
        "Serial Threads set_num_threads get_num_threads",
    ),
    "files": (
        "Files, checkpoints, other libraries",
        "Graphs and weights in files.",
        (
            "load from_bytes save_checkpoint load_checkpoint load_weights Checkpoints to_networkx from_networkx "
            "from_onnx from_pnnx to_onnx progress SummaryWriter"
        ),
    ),
    "errors": (
        "Errors and warnings",
        "Each says what was written, why it cannot work, and what to write.",
        "",
    ),
    "standard": (
        "Names of the array API standard",
        "What the standard asks of a namespace besides functions.",
        "asarray from_dlpack finfo iinfo isdtype can_cast result_type broadcast_shapes",
    ),
}
FAMILIES = {
    "base": "Ops: the base",
    "reductions": "Ops: reductions, scans and statistics",
    "products": "Ops: products",
    "arrangement": "Ops: arrangement",
    "factories": "Ops: arrays from nothing",
    "ordering": "Ops: order and choice",
    "special": "Ops: more elementwise functions, polynomials, series",
    "inquiry": "Ops: facts, axes, places",
    "neural": "Ops: networks",
}
PACKAGES = {
    "linalg": "Linear algebra: rg.linalg",
    "fft": "Fourier transforms: rg.fft",
    "random": "Random numbers: rg.random",
    "nn": "Layers: rg.nn",
    "optim": "Optimisers: rg.optim",
    "data": "Loaders: rg.data",
    "distributed": "Several processes: rg.distributed",
    "plot": "Plots: rg.plot",
    "whatif": "Results of what-if questions: reactgrad.whatif",
    "tables": "Parts of tables: reactgrad.tables",
    "models": "Models of other libraries: reactgrad.models",
    "neat": "Networks that evolve: reactgrad.neat",
    "extend": "Ops of your own: rg.extend",
    "testing": "Checks of your own rules: rg.testing",
}
# Other names of what stands elsewhere.
ALIASES = {"abs", "conjugate", "Population"}


def operations() -> dict[str, list[str]]:
    """Return the names of ops in ``reactgrad`` by family; the base is what no family has."""
    found = {family: names.split() for family, names in _families.FAMILIES.items()}
    found["special"] = [*found["special"], *_families.ELSEWHERE]
    found["neural"] += ["dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout"]
    placed = {name for names in found.values() for name in names}
    grouped = {name for _, _, names in GROUPS.values() for name in names.split()}
    base = [
        name
        for name in public(rg)
        if name not in placed | grouped | ALIASES and inspect.isfunction(getattr(rg, name))
    ]
    return {"base": base, **found}


def public(module: ModuleType) -> list[str]:
    """Return the names that a package offers, sorted."""
    return sorted(
        name
        for name in {*vars(module), *dir(module)}
        if name[0] != "_" and _is_own(getattr(module, name, None), module)
    )


def _is_own(one: Any, module: ModuleType) -> bool:
    of = getattr(one, "__module__", None) or ""
    return (inspect.isclass(one) or inspect.isroutine(one)) and of.split(".")[0] == "reactgrad"


def write() -> None:
    """Write all pages, and a page that leads to them."""
    ops = operations()
    written: list[str] = []
    errors = [name for name in public(rg) if _is_error(getattr(rg, name))]
    for page, (title, sentence, names) in GROUPS.items():
        _page(page, title, sentence, "reactgrad", names.split() or errors)
        written.append(page)
    for family, title in FAMILIES.items():
        _page(f"ops_{family}", title, "All build nodes.", "reactgrad", sorted(ops[family]))
        written.append(f"ops_{family}")
    for package, title in PACKAGES.items():
        module = import_module(f"reactgrad.{package}")
        # A name that rg itself offers has its place there.
        names = [
            name
            for name in public(module)
            if package
            in ("nn", "optim", "data", "distributed", "linalg", "fft", "random", "neat", "extend")
            or not hasattr(rg, name)
        ]
        _page(package, title, _sentence(module), f"reactgrad.{package}", names)
        written.append(package)
    check(ops)
    lines = ["API reference", "=============", "", "All public names, from their docstrings.", ""]
    for caption, names in (
        ("Graphs", list(GROUPS)),
        ("Functions of arrays", [f"ops_{family}" for family in FAMILIES]),
        ("Packages", list(PACKAGES)),
    ):
        lines += [".. toctree::", "   :maxdepth: 1", f"   :caption: {caption}", ""]
        lines += [f"   {name}" for name in names] + [""]
    pages.write(pages.MADE / "reference" / "index.rst", "\n".join(lines))


def check(ops: dict[str, list[str]]) -> None:
    """Raise for a public name that stands on no page."""
    errors = [name for name in public(rg) if _is_error(getattr(rg, name))]
    placed = {name for names in ops.values() for name in names} | set(errors) | ALIASES
    placed |= {name for _, _, names in GROUPS.values() for name in names.split()}
    lost = [name for name in public(rg) if name not in placed]
    if lost:
        raise LookupError(
            f"{', '.join(lost)}: public, and on no page of the reference. "
            "Add the name to a group in docs/_parts/reference.py."
        )


def _is_error(one: Any) -> bool:
    return inspect.isclass(one) and issubclass(one, Exception)


def _sentence(module: ModuleType) -> str:
    return (inspect.getdoc(module) or "").split("\n\n")[0].replace("\n", " ")


def _first(one: Any) -> str:
    text = (inspect.getdoc(one) or "").split("\n\n")[0].replace("\n", " ")
    return text if len(text) < 160 else text.partition(". ")[0].removesuffix(".") + "."


def _page(page: str, title: str, sentence: str, module: str, names: list[str]) -> None:
    lines = [title, "=" * len(title), "", sentence, "", f".. currentmodule:: {module}", ""]
    space = import_module(module)
    if len(names) > 1:
        lines += [".. list-table::", "   :widths: auto", ""]
        for name in names:
            lines += [f"   * - :py:obj:`{name}`", f"     - {_first(getattr(space, name))}"]
        lines.append("")
    for name in names:
        lines += _entry(getattr(space, name), name)
    pages.write(pages.MADE / "reference" / f"{page}.rst", "\n".join(lines))


def _entry(one: Any, name: str) -> list[str]:
    if not inspect.isclass(one):
        return [f".. autofunction:: {name}", ""]
    if _is_error(one):
        return [f".. autoexception:: {name}", ""]
    lines = [f".. autoclass:: {name}", "   :members:"]
    # The faces are made of parts, whose methods are theirs; layers have those of Module.
    if name in ("Graph", "Var", "DetachedVar"):
        lines.append("   :inherited-members: object")
    return [*lines, ""]
