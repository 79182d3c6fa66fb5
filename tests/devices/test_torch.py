"""PyTorch's tensors on the host as a second real device, through array-api-compat."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.backend.array_api._array_api import register_array_api
from tests.api.test_second_backend import MODELS, V, W, X

torch = pytest.importorskip("torch", reason="a device of the test")
pytest.importorskip("array_api_compat", reason="PyTorch's names of the standard")
register_array_api(torch, "torch")


@pytest.mark.parametrize("name", MODELS)
def test_models(name: str) -> None:
    def values(make: Any) -> list[Any]:
        g = rg.Graph()
        leaves = [g.param(make(a)) for a in (X, W, V)]
        y = MODELS[name](*leaves)
        total = (y * y).sum()
        nodes = [y, total, *rg.grad(total, leaves, allow_unused=True)]
        nodes.append(rg.jvp(y, leaves, [make(a) for a in (X, W, V)], allow_unused=True))
        nodes = [one for one in nodes if one is not None]
        found = []
        for factor in (1.0, 1.01):
            g.set({leaf: make(a * factor) for leaf, a in zip(leaves, (X, W, V), strict=True)})
            g.forward(*nodes)
            if make is not np.array:
                assert all(isinstance(one.value, torch.Tensor) for one in nodes)
            found += [one.numpy() for one in nodes]
        g.check_invariants()
        return found

    ours, hosts = values(torch.tensor), values(np.array)
    for one, other in zip(ours, hosts, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)


def test_tensors_stay_tensors() -> None:
    g = rg.Graph()
    x = g.input(torch.arange(3.0))
    assert (x.device, x.dtype) == ("torch", np.float32)
    assert isinstance(x.value, torch.Tensor)
    assert "torch" in rg.devices()
    y = x * 2.0
    x.set(torch.ones(3))
    assert torch.equal(y.value, torch.full((3,), 2.0))
    assert y.to("cpu").value.tolist() == [2.0, 2.0, 2.0]
    assert isinstance(g.input([1.0], device="torch").value, torch.Tensor)


def test_what_torch_records_is_left_behind() -> None:
    w = torch.ones(3, requires_grad=True)
    x = rg.Graph().param(w)
    loss = (x * x).sum()
    loss.backward()
    assert not loss.value.requires_grad
    assert torch.equal(x.grad, torch.full((3,), 2.0))
    assert w.grad is None
    x.set(w * 2.0)
    assert float(loss.value) == 12.0


def test_held_values_do_not_change() -> None:
    g = rg.Graph()
    a = torch.zeros(3)
    x = g.input(a)
    y = x + 1.0
    held = y.value
    a += 5.0
    assert torch.equal(y.value, torch.ones(3))
    x.set(torch.full((3,), 7.0))
    _ = y.value
    assert torch.equal(held, torch.ones(3))


def test_mixed_with_the_host_names_both() -> None:
    g = rg.Graph()
    with pytest.raises(rg.DeviceError, match=r"on torch and on cpu.*\.to\('torch'\)"):
        g.input(torch.ones(2)) + g.input(np.ones(2))


def test_a_namespace_that_is_none_is_refused() -> None:
    class Nothing:
        def empty(self, shape: Any) -> Any:
            return object()

    with pytest.raises(rg.DeviceError, match="no namespace of the array API"):
        register_array_api(Nothing(), "nothing")
