"""CuPy itself: its names wherever it can be imported, and the suite of the stand-in where there is a GPU."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from tests.api.test_second_backend import MODELS, V, W, X
from tests.ops.case import TOLERANCE, Case

from .test_op_tables import results, tables


def _gpu() -> bool:
    if find_spec("cupy") is None:
        return False
    import cupy

    return bool(cupy.cuda.is_available())


on_gpu = pytest.mark.skipif(not _gpu(), reason="needs CuPy and a GPU")


@pytest.mark.skipif(find_spec("cupy") is None, reason="needs CuPy")
def test_every_kernel_finds_its_names_in_cupy() -> None:
    # No GPU is needed to register; in a new interpreter, since kernels stay registered.
    program = """
import cupy, cupyx.scipy.special
import reactgrad.fft, reactgrad.linalg
from reactgrad.backend.cupy._kernels import register_kernels
from reactgrad.ops._families import op_named

register_kernels(cupy, cupyx.scipy.special, "probe")
op_named("no op of this name")
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.skipif(_gpu() or find_spec("cupy") is None, reason="needs CuPy and no GPU")
def test_without_a_gpu_nothing_is_printed_and_the_error_says_so(
    capfd: pytest.CaptureFixture[str],
) -> None:
    program = """
import reactgrad as rg
assert rg.devices() == ("cpu",)
try:
    rg.Graph(device="cuda:0")
except rg.DeviceError as error:
    assert "finds no GPU" in str(error)
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    assert capfd.readouterr() == ("", "")


@pytest.mark.gpu
@on_gpu
@pytest.mark.parametrize("name", MODELS)
def test_models(name: str) -> None:
    def values(device: str) -> list[Any]:
        g = rg.Graph(device=device)
        leaves = [g.param(a) for a in (X, W, V)]
        y = MODELS[name](*leaves)
        total = (y * y).sum()
        nodes = [y, total, *rg.grad(total, leaves, allow_unused=True)]
        nodes = [one for one in nodes if one is not None]
        found = []
        for number in range(5):  # the later ones replay captured segments
            g.set(
                {leaf: a * (1 + 0.01 * number) for leaf, a in zip(leaves, (X, W, V), strict=True)}
            )
            g.forward(*nodes)
            found += [one.numpy() for one in nodes]
        return found

    for ours, hosts in zip(values("cuda:0"), values("cpu"), strict=True):
        np.testing.assert_allclose(ours, hosts, rtol=1e-10, atol=1e-11)


@pytest.mark.gpu
@on_gpu
@pytest.mark.parametrize("case", list(tables()))
def test_tables(case: Case) -> None:
    dtype = (case.dtypes or "d")[0]
    wanted = results(case, "cpu", dtype)
    found = results(case, "cuda:0", dtype)
    rtol = case.tolerance.get(dtype, TOLERANCE.get(dtype, 1e-12)) * 100
    for one, other in zip(found, wanted, strict=True):
        assert one[1] == other[1]
        np.testing.assert_allclose(one[2].get(), other[2], rtol=rtol, atol=rtol)


@pytest.mark.gpu
@on_gpu
def test_a_steady_loop_takes_nothing_from_the_device() -> None:
    import cupy

    g = rg.Graph(device="cuda:0")
    x, w = g.input(np.ones((256, 64))), g.param(np.full((64, 64), 0.01))
    loss = (rg.softmax(rg.tanh(x @ w)) ** 2).sum()
    taken = []
    for number in range(12):
        x.set(np.full((256, 64), 0.01 * number))
        loss.backward()
        g.zero_grad()
        taken.append(cupy.get_default_memory_pool().total_bytes())
    assert len(set(taken[6:])) == 1
