"""What all tests share: the configurations they run in; graphs tried with trust and without.

Nothing may change with ``--distrust``, ``--jit``, ``--no-plans``, ``--no-fusion``, ``--strips``; what is
about the very thing that one of these takes away is marked so, and skipped there.
"""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import reactgrad as rg
from reactgrad.backend import _registry
from reactgrad.backend._device import cpu
from reactgrad.backend.array_api import _array_api
from reactgrad.backend.array_api._array_api_rows import register_rows
from reactgrad.backend.blocks import _strips
from reactgrad.backend.machine import _registers
from reactgrad_scheduler import Scheduler

pytest_plugins = ["tests.fixtures"]

# The same examples at every run; `--hypothesis-profile=few` takes the first ones of them,
# `--hypothesis-profile=search` looks for new ones, and longer.
_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
settings.register_profile(
    "same", max_examples=60, derandomize=True, deadline=None, suppress_health_check=_SLOW
)
settings.register_profile("few", settings.get_profile("same"), max_examples=10)
settings.register_profile(
    "search", max_examples=2000, deadline=None, suppress_health_check=_SLOW, print_blob=True
)
settings.load_profile("same")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--distrust",
        action="store_true",
        help="every read first forgets all marks and plans (rule E16); nothing else may change",
    )
    parser.addoption(
        "--no-plans",
        action="store_true",
        help="no read finds or keeps a plan, so that no steps are fused; nothing else may change",
    )
    parser.addoption(
        "--no-fusion",
        action="store_true",
        help="softmax, layer norm, linear, slopes of activations step by step, as in any array library",
    )
    parser.addoption(
        "--strips",
        choices=("always", "never"),
        help="computes arrays of any size, or of none, by blocks (always: of 7 elements, on 4 threads)",
    )
    parser.addoption(
        "--no-driver",
        action="store_true",
        help="as if there had been no compiler when the package was built; nothing else may change",
    )
    parser.addoption(
        "--jit",
        action="store_true",
        help="every graph runs single kernels, too, by compiled calls; nothing else may change",
    )


def pytest_configure(config: pytest.Config) -> None:
    # A shell starts what runs in its background with interrupts ignored; some tests interrupt themselves.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("--no-driver"):
        sys.modules["reactgrad.backend.machine._driver"] = None  # type: ignore[assignment]
        sys.modules["reactgrad.neat._flat"] = None  # type: ignore[assignment]
    strips = config.getoption("--strips")
    if strips == "always":
        _strips.settings = _strips.Settings(block=7, threshold=1, effort=0)
        rg.set_num_threads(4)
    elif strips == "never":
        _strips.settings = _strips.Settings(threshold=sys.maxsize)
    if config.getoption("--no-fusion"):
        compose_kernels()
    config.addinivalue_line(
        "markers", "trusting: is about the marks and plans that --distrust and --no-plans erase"
    )
    config.addinivalue_line(
        "markers", "whole: counts calls, or memory, which arrays in blocks of 7 take more of"
    )
    config.addinivalue_line(
        "markers", "fused: is about fused kernels, or memory, which composed ones take more of"
    )
    distrust, no_plans = config.getoption("--distrust"), config.getoption("--no-plans")
    if distrust or no_plans:
        make = Scheduler.__init__

        def changed(self: Scheduler, *args: object) -> None:
            make(self, *args)  # type: ignore[arg-type]
            self.distrust = distrust
            if no_plans:
                self.plans.close()

        Scheduler.__init__ = changed  # type: ignore[method-assign]
    if config.getoption("--jit"):
        _registers.FEWEST = 1
        open_graph = rg.Graph.__init__

        def jitting(self: rg.Graph, *args: object, **kwargs: object) -> None:
            open_graph(self, *args, **{"jit": True, **kwargs})  # type: ignore[arg-type]

        rg.Graph.__init__ = jitting  # type: ignore[method-assign]


def compose_kernels() -> None:
    """Put in place of each fused kernel the one that is made of plain functions of an array library."""
    binders = _registry._binders
    known = dict(binders)
    _array_api._register_elementwise(np, "cpu", cpu)
    register_rows(np, "cpu", cpu)
    rows = [
        f"{name}{end}"
        for name in ("softmax", "log_softmax", "standardize")
        for end in ("", "_grad")
    ]
    slopes = [f"{name}_grad" for name in ("tanh", "sigmoid", "relu")]
    rows += ["standardize_back", "standardize_kept"]
    composed = {name: binders[name, "cpu"].kernel for name in (*rows, *slopes)}
    binders.update(known)
    for name, kernel in composed.items():
        _registry.register_kernel(name, "cpu", partial(_in_single, kernel))
    _registry.register_kernel("linear", "cpu", _linear)
    _registry.register_kernel("vdot", "cpu", _vdot)


def _in_single(kernel: Callable[..., None], *given: Any) -> None:
    """Half floats are summed in float32, as NumPy does."""
    arrays = [one for one in given if isinstance(one, np.ndarray)]
    out, attrs = arrays[-1], given[len(arrays) :]
    if out.dtype != np.float16:
        kernel(*given)
        return
    wide = np.empty(out.shape, np.float32)
    kernel(*[one.astype(np.float32) for one in arrays[:-1]], wide, *attrs)
    out[...] = wide


def _linear(x: Any, w: Any, b: Any, out: Any) -> None:
    out[...] = np.matmul(x, w) + b


def _vdot(x: Any, y: Any, out: Any, shape: Any) -> None:
    out[...] = (x * y).sum()


# The quick run takes so many cases of each table of tests, and of a longer one a part.
FEWEST_CASES, PART_OF_CASES = 8, 6


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    mark_more_cases(items)
    skips: dict[str, str] = {}
    if config.getoption("--distrust") or config.getoption("--no-plans"):
        skips["trusting"] = "the plans or marks that this test is about are erased"
    if config.getoption("--no-fusion"):
        skips["fused"] = "the kernels, or bytes, that this test is about are those of fused kernels"
    if config.getoption("--strips") == "always":
        skips["whole"] = "the calls or bytes that this test counts are those of whole arrays"
    for item in items:
        for name, reason in skips.items():
            if item.get_closest_marker(name):
                item.add_marker(pytest.mark.skip(reason=reason))


def mark_more_cases(items: list[pytest.Item]) -> None:
    """Mark with ``more`` all cases of a table of tests but some, spread evenly over the table."""
    tables: dict[str, list[pytest.Item]] = {}
    for item in items:
        tables.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in tables.values():
        few = max(FEWEST_CASES, len(cases) // PART_OF_CASES)
        kept = {at * len(cases) // few for at in range(few)}
        for at, case in enumerate(cases):
            if len(cases) > few and at not in kept:
                case.add_marker(pytest.mark.more)


# pytest keeps some fifty objects for each test that has run. After so many tests they are set aside, too.
FREEZE_EACH = 500


def pytest_collection_finish() -> None:
    """Take the tests themselves out of what each ``gc.collect()`` of a test looks at."""
    _set_aside()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    done = yield
    session: Any = item.session
    session.tests_run = getattr(session, "tests_run", 0) + 1
    if session.tests_run % FREEZE_EACH == 0:
        _set_aside()
    return done


def _set_aside() -> None:
    gc.collect()
    gc.freeze()


@pytest.fixture(params=[False, True], ids=["trusting", "distrusting"])
def new_graph(request: pytest.FixtureRequest) -> Callable[[], rg.Graph]:
    """Makes graphs that trust their marks and plans, and then graphs that do not (rule E16)."""
    if request.config.getoption("--distrust") and not request.param:
        pytest.skip("no graph trusts its marks here: the same test as the distrusting one")

    def make() -> rg.Graph:
        graph = rg.Graph()
        graph._scheduler.distrust = request.param or graph._scheduler.distrust
        return graph

    return make


@pytest.fixture
def g(new_graph: Callable[[], rg.Graph]) -> rg.Graph:
    """A new graph, once trusting its marks and once not."""
    return new_graph()
