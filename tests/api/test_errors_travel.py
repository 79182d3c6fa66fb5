"""Every public error can be copied and pickled, with its message, its notes and its path."""

from __future__ import annotations

import copy
import importlib
import pickle
import pkgutil
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
import reactgrad_scheduler


def modules() -> Iterator[Any]:
    for package in (rg, reactgrad_scheduler):
        for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if found.name.endswith("__main__"):
                continue
            try:
                yield importlib.import_module(found.name)
            except ImportError:  # an extra that is not installed
                continue


def public_classes() -> list[type[BaseException]]:
    found: dict[type[BaseException], None] = {}
    for module in modules():
        for thing in vars(module).values():
            if isinstance(thing, type) and issubclass(
                thing, rg.ReactgradError | rg.ReactgradWarning
            ):
                found[thing] = None
    return [*found]


def travelled(error: BaseException) -> list[BaseException]:
    copies: list[BaseException] = [copy.copy(error), copy.deepcopy(error)]
    protocols = range(2, pickle.HIGHEST_PROTOCOL + 1)
    return copies + [pickle.loads(pickle.dumps(error, protocol)) for protocol in protocols]


def check(error: BaseException) -> None:
    known = getattr(rg, type(error).__qualname__, type(error))
    for twin in travelled(error):
        assert type(twin) in (type(error), known)
        assert isinstance(twin, type(error).__mro__[1])
        assert str(twin) == str(error)
        assert twin.args == error.args
        assert getattr(twin, "__notes__", None) == getattr(error, "__notes__", None)
        for name, value in vars(error).items():
            if name not in ("_nodes", "output"):
                assert vars(twin)[name] == value


def test_of_every_class() -> None:
    classes = [kind for kind in public_classes() if kind.__name__ != "AbsentError"]
    assert len(classes) > 25
    for kind in classes:
        error = kind("what is wrong", None) if kind.__init__ is _seed() else kind("what is wrong")
        error.add_note("where")
        check(error)


def _seed() -> Any:
    from reactgrad._errors import SeedError

    return SeedError.__init__


def cycle() -> None:
    g = rg.Graph()
    x = g.input(1.0, name="x")
    y = rg.exp(x)
    z = rg.exp(y)
    y.name, z.name = "y", "z"
    y.replace_parent(0, z)


def stopped() -> None:
    g = rg.Graph()
    y = rg.exp(g.input(1.0))
    g.forward(y, timeout=0)


def busy() -> None:
    g = rg.Graph()
    x = g.input(1.0)
    rg.lift(lambda v: x.set(2.0))(x).value


def no_rule() -> None:
    x = rg.Graph().param(1.0)
    rg.grad(rg.lift(abs)(x), x)


def refused_seed() -> None:
    g = rg.Graph()
    x = g.input(np.ones(3))
    y = x * 2.0
    kept = rg.grad(y, x, gradient=np.ones(3))
    x.set(np.ones(4))
    del kept


def several() -> None:
    g = rg.Graph()
    x = g.input(1.0)
    y = x + 1.0
    y.observe(lambda old, new: 1 / 0)
    y.value


PROGRAMS: dict[str, Callable[[], object]] = {
    "cycle": cycle,
    "stopped": stopped,
    "busy": busy,
    "no rule": no_rule,
    "seed": refused_seed,
    "observers": several,
    "shape": lambda: rg.Graph().input(np.ones(2)) + np.ones(3),
    "axis": lambda: rg.sum(rg.Graph().input(np.ones(2)), axis=3),
    "name": lambda: rg.Graph()["price"],
    "unset": lambda: rg.Graph().input(shape=(2,), dtype="f4").value,
    "absent": lambda: rg.Graph().variable,  # type: ignore[attr-defined]
    "load": lambda: rg.load(Path(__file__)),
    "index": lambda: rg.Graph().input(np.ones(2))[5],
    "set": lambda: rg.Graph().const(1.0).set(2.0),
    "threads": lambda: rg.Threads(0),
    "count": lambda: rg.set_num_threads(0),
    "overflow": lambda: (rg.Graph().input(np.ones(2, "i1")) + 10**30).value,
}


def raised(name: str) -> Exception:
    try:
        PROGRAMS[name]()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize("name", PROGRAMS)
def test_of_errors_as_they_are_raised(name: str) -> None:
    error = raised(name)
    if isinstance(error, ExceptionGroup):
        twin = pickle.loads(pickle.dumps(error))
        assert [str(one) for one in twin.exceptions] == ["division by zero"]
        assert twin.exceptions[0].__notes__ == error.exceptions[0].__notes__
        return
    assert isinstance(error, rg.ReactgradError)
    check(error)


def test_the_path_of_a_cycle_is_names_elsewhere_and_nodes_here(g: rg.Graph) -> None:
    y = rg.exp(g.input(1.0))
    z = rg.exp(y)
    y.name, z.name = "y", "z"
    with pytest.raises(rg.CycleError) as caught:
        y.replace_parent(0, z)
    path = caught.value.path
    assert {*path} == {y, z}
    assert copy.copy(caught.value).path == path
    for twin in (pickle.loads(pickle.dumps(caught.value)), copy.deepcopy(caught.value)):
        assert twin.path == tuple(node.name for node in path)
        assert pickle.loads(pickle.dumps(twin)).path == twin.path


@pytest.mark.slow
def test_through_a_pool_of_processes() -> None:
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        for name in ("cycle", "shape", "name"):
            with pytest.raises(rg.ReactgradError) as caught:
                pool.submit(PROGRAMS[name]).result() if name == "cycle" else pool.submit(
                    raise_again, name
                ).result()
            assert str(caught.value) == str(raised(name))
            if name == "cycle":
                assert isinstance(caught.value, rg.CycleError)


def raise_again(name: str) -> None:
    raise raised(name)
