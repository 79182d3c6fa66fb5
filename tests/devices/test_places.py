"""Devices by name: leaves on them, moves between them, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.backend.array_api._array_api import register_array_api

xp = pytest.importorskip("array_api_strict", reason="array-api-strict is in the dev extra")
register_array_api(xp, "strict")


def test_devices_are_listed() -> None:
    assert rg.devices()[0] == "cpu"
    assert "strict" in rg.devices()


def test_nothing_to_do_returns_the_node_itself() -> None:
    x = rg.Graph().input([1.0, 2.0])
    assert x.to("cpu") is x
    assert x.to("float64") is x
    assert x.to(np.float64, "cpu") is x
    assert x.to(dtype="f8").to(device="cpu") is x
    y = x.to("strict")
    assert y.to("strict") is y


def test_moves_chain_and_gradients_come_back() -> None:
    g = rg.Graph()
    w = g.param(np.array([1.0, 2.0, 3.0], np.float32))
    there = w.to("float64").to("strict")
    assert (there.device, there.dtype) == ("strict", np.float64)
    back = (there * there).sum().to("cpu")
    assert (back.device, float(back.value)) == ("cpu", 14.0)
    back.backward()
    assert type(w.grad) is np.ndarray
    assert w.grad.dtype == np.float32
    np.testing.assert_array_equal(w.grad, [2.0, 4.0, 6.0])
    d = rg.grad(back, w)
    np.testing.assert_array_equal(rg.grad(d.sum(), w).value, [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(rg.jvp(back, [w], [np.ones(3, np.float32)]).value, 12.0)
    w.set([3.0, 0.0, 0.0])
    assert float(back.value) == 9.0


def test_consumers_on_two_devices() -> None:
    """SEEDS 3.1: contributions from another device are moved and added."""
    g = rg.Graph()
    w = g.param([1.0, 2.0])
    here, there = (w * 3.0).sum(), (w.to("strict") * w.to("strict")).sum()
    total = here + there.to("cpu")
    total.backward()
    assert type(w.grad) is np.ndarray
    np.testing.assert_array_equal(w.grad, [5.0, 7.0])


def test_leaves_on_a_device() -> None:
    g = rg.Graph(device="strict")
    x, w, c = g.input([1.0, 2.0]), g.param(np.ones(2)), g.const([3.0, 4.0])
    assert {one.device for one in (x, w, c)} == {"strict"}
    on_host = g.input([1.0, 2.0], device="cpu")
    assert on_host.device == "cpu"
    assert (x * np.array([1.0, 0.0]) + w).device == "strict"
    waiting = g.input(shape=(None, 2), dtype="f4")
    y = waiting.sum(axis=0)
    assert (waiting.device, y.device) == ("strict", "strict")
    waiting.set(np.ones((3, 2)))
    np.testing.assert_array_equal(y.numpy(), [3.0, 3.0])
    late = g.input()
    late.set(np.ones(2))
    assert late.device == "strict"
    number = g.input(2.0)
    assert (number.device, number.value) == ("cpu", 2.0)  # a Python number goes anywhere
    assert g.input(2.0, device="strict").device == "strict"
    assert g.fork().input([1.0]).device == "strict"


def test_leaves_are_set_from_the_host() -> None:
    g = rg.Graph()
    x = g.input([1.0, 2.0], device="strict", dtype="f4")
    x.set(np.array([3.0, 4.0]))
    x.set([5.0, 6.0])
    assert (x.device, x.dtype, x.numpy().tolist()) == ("strict", np.float32, [5.0, 6.0])
    host = g.input([1.0])
    with pytest.raises(rg.DeviceError, match=r"lives on cpu.*on strict.*\.to\('cpu'\)"):
        host.set(xp.asarray([1.0]))


def test_named_leaf_again_on_another_device() -> None:
    g = rg.Graph()
    x = g.input([1.0], name="x", device="strict", exist_ok=True)
    assert g.input([2.0], name="x", device="strict", exist_ok=True) is x
    with pytest.raises(rg.GraphError, match="device='cpu'"):
        g.input([2.0], name="x", device="cpu", exist_ok=True)


def test_operands_on_two_devices_name_both_and_the_way() -> None:
    g = rg.Graph()
    x, y = g.input([1.0]), g.input([1.0], device="strict")
    with pytest.raises(
        rg.DeviceError, match=r"add has operands on cpu and on strict.*\.to\('cpu'\)"
    ):
        x + y


@pytest.mark.parametrize("device", ["gpu", "strict:1", "cpu:7", 3])
def test_no_such_device(device: Any) -> None:
    with pytest.raises(rg.DeviceError, match="device"):
        rg.Graph(device=device)
    with pytest.raises(rg.DeviceError, match="device"):
        rg.Graph().input([1.0], device=device)


def test_cuda_without_a_gpu_says_so() -> None:
    if any(name.startswith("cuda") for name in rg.devices()):
        pytest.skip("there is a GPU")
    with pytest.raises(rg.DeviceError, match="CuPy|GPU"):
        rg.Graph(device="cuda:0")


def test_missing_kernel_names_op_and_device() -> None:
    @rg.extend.primitive("only_here", lambda x: x)
    def op(x: Any, out: Any) -> None:
        np.add(x, 1.0, out)

    x = rg.Graph().input([1.0], device="strict")
    with pytest.raises(rg.DeviceError, match=r"'only_here' has no kernel.*'strict'.*\.to\('cpu'\)"):
        _ = op(x).value


def test_arrays_of_unknown_libraries_are_refused() -> None:
    class Foreign:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.ones(2)

        def __dlpack__(self) -> None: ...

    for value in (Foreign(), [Foreign()]):
        with pytest.raises(rg.DTypeError, match="would become an array of NumPy"):
            rg.Graph().input(value)


def test_a_loaded_graph_has_its_device(tmp_path: Any) -> None:
    g = rg.Graph(device="strict")
    y = g.keep(g.input([1.0, 2.0], name="x") * 2.0)
    y.name = "y"
    g.save(tmp_path / "g.rg")
    for h in (rg.load(tmp_path / "g.rg"), rg.from_networkx(rg.to_networkx(g), {})):
        assert h.input([1.0]).device == "strict"
        np.testing.assert_array_equal(h["y"].numpy(), [2.0, 4.0])


def test_round_trip_through_a_file(tmp_path: Any) -> None:
    g = rg.Graph()
    x = g.input([1.0, 2.0], name="x", device="strict")
    y = (x * 2.0).to("cpu")
    y.name = "y"
    g.keep(y)
    g.save(tmp_path / "g.rg")
    h = rg.load(tmp_path / "g.rg")
    h["x"].set([3.0, 4.0])
    assert (h["x"].device, h["y"].device) == ("strict", "cpu")
    np.testing.assert_array_equal(h["y"].value, [6.0, 8.0])
