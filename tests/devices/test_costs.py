"""What a read costs on a device: waits of the host, memory, kernels; and where each kernel ran."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

from .stand_in import Array, Counts, collect, namespace


def model(device: str) -> tuple[rg.Graph, Any, Any, Any]:
    g = rg.Graph(device=device)
    x, w = g.input(np.ones((64, 8))), g.param(np.full((8, 8), 0.1))
    loss = (rg.softmax(rg.tanh(x @ w)) ** 2).sum()
    return g, x, w, loss


def test_no_wait_between_nodes(counts: Counts) -> None:
    g, x, w, loss = model("fake:0")
    d = rg.grad(loss, w)
    g.forward(loss, d)
    for number in range(3):
        x.set(np.full((64, 8), 0.1 * number))
        g.forward(loss, d)
    assert counts.syncs == 0
    loss.item()
    assert counts.syncs == 1


def test_a_steady_loop_allocates_nothing_on_the_device(counts: Counts) -> None:
    g, x, _, loss = model("fake:0")
    rows = [np.full((64, 8), 0.01 * number) for number in range(12)]
    for number, row in enumerate(rows):
        if number == 6:
            counts.clear()
        x.set(row)
        loss.backward()
        _ = loss.value  # a copy, whose memory comes back when the caller drops it
        g.zero_grad()
    assert counts.grown == 0
    assert counts.syncs == 0


@pytest.mark.slow
def test_dropped_values_lend_their_memory(counts: Counts) -> None:
    g = rg.Graph(device="fake:0")
    w = g.param(np.ones((256, 256)))
    for number in range(6):
        if number == 3:
            counts.clear()
        loss = (
            rg.tanh(w @ w) * float(number + 1)
        ).sum()  # a model that is written anew at each step
        loss.backward(retain_graph=False)
        g.zero_grad()
        del loss
        collect()
    assert counts.grown == 0


def test_every_kernel_runs_on_its_own_device(counts: Counts) -> None:
    """SEEDS 2.9: each kernel sees its own device as the current one; the stand-in raises where it does not."""
    g = rg.Graph()
    a, b = g.param(np.arange(3.0), device="fake:0"), g.param(np.ones(3), device="fake:1")
    there = (a * 2.0).to("fake:1")
    total = (there * b).sum()
    total.backward()
    assert counts.devices == {0, 1}
    assert namespace.cuda.runtime.getDevice() == 0
    assert (a.grad.device.id, b.grad.device.id) == (0, 1)
    np.testing.assert_array_equal(a.grad.get(), [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(b.grad.get(), [0.0, 2.0, 4.0])
    assert counts.syncs == 2  # the two copies that this test has asked for


def test_consumers_on_two_devices_add_up_on_the_params_device(counts: Counts) -> None:
    """SEEDS 3.1."""
    g = rg.Graph(device="fake:0")
    w = g.param(np.array([1.0, 2.0]))
    total = (w * 3.0).sum() + (w.to("fake:1") ** 2).sum().to("fake:0")
    total.backward()
    assert counts.syncs == 0
    assert isinstance(w.grad, Array)
    assert w.grad.device.id == 0
    np.testing.assert_array_equal(w.grad.get(), [5.0, 7.0])


def test_a_failing_kernel_leaves_the_current_device_as_it_was() -> None:
    g = rg.Graph(device="fake:1")
    x = g.input(np.ones(3))

    def broken(x: Any, out: Any) -> None:
        raise KeyError("broken")

    op = rg.extend.primitive("test_broken_there", lambda x: x)(lambda x, out: np.copyto(out, x))
    rg.extend.register_kernel("test_broken_there", "fake", broken)
    with pytest.raises(KeyError):
        _ = op(x).value
    assert namespace.cuda.runtime.getDevice() == 0


def test_two_threads_on_two_devices() -> None:
    errors: list[BaseException] = []

    def run(device: str) -> None:
        try:
            _g, x, w, loss = model(device)
            for number in range(20):
                x.set(np.full((64, 8), 0.01 * number))
                loss.backward()
            assert w.grad.device.id == int(device[-1])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(f"fake:{i % 2}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_operands_on_two_gpus_are_refused() -> None:
    g = rg.Graph()
    x, y = g.input([1.0], device="fake:0"), g.input([1.0], device="fake:1")
    with pytest.raises(rg.DeviceError, match=r"add .*on fake:0 and on fake:1.*\.to\('fake:0'\)"):
        x + y


def test_arrays_stay_on_the_device_that_they_were_made_on() -> None:
    with namespace_device(1):
        array = namespace.asarray(np.ones(2))
    g = rg.Graph(device="fake:0")
    assert g.input(array).device == "fake:1"
    moved = g.input(array, device="fake:0")
    assert (moved.device, moved.value.device.id) == ("fake:0", 0)


def test_callers_get_copies_and_set_copies() -> None:
    g = rg.Graph(device="fake:0")
    x = g.input(np.zeros(4))
    y = x + 1.0
    held = y.value
    assert y.value is held
    held.fill(9.0)  # CuPy has no read-only arrays: what a caller gets is its own
    np.testing.assert_array_equal((y * 1.0).numpy(), np.ones(4))
    kept = y.value
    x.set(np.full(4, 5.0))
    _ = y.value
    np.testing.assert_array_equal(kept.get(), np.full(4, 9.0))


class namespace_device:
    """The device that is current in a block, as a user of CuPy would choose it."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __enter__(self) -> None:
        namespace.cuda.runtime.setDevice(self._number)

    def __exit__(self, *exc: object) -> None:
        namespace.cuda.runtime.setDevice(0)


@pytest.mark.parametrize("rule", ["equal", rg.tolerance(atol=1e-9)])
@pytest.mark.parametrize("where", ["leaf", "op"])
def test_cutoffs(rule: Any, where: str) -> None:
    g = rg.Graph(device="fake:1")
    x = g.input(np.ones(3), cutoff=rule if where == "leaf" else None)
    y = x * 2.0
    if where == "op":
        y.cutoff = rule
    z = y + 1.0
    _ = z.value
    for value in (np.ones(3), np.ones(3) + 1e-12 * (rule != "equal")):
        x.set(value)
        run = g.forward(z)
        assert z not in run.ran
        assert (y in run.cut_off) is (where == "op")
    x.set(np.full(3, 5.0))
    np.testing.assert_array_equal(z.numpy(), np.full(3, 11.0))


@pytest.mark.parametrize("pinned", [False, True])
def test_values_saved_on_the_host_come_back(counts: Counts, pinned: bool) -> None:
    """SEEDS 3.3."""
    g = rg.Graph(device="fake:1")
    w = g.param(np.linspace(0.0, 1.0, 600))
    with rg.save_on_cpu(pin_memory=pinned):
        h = rg.tanh(rg.exp(w))
    loss = (h * h).sum()
    g.forward(loss)
    assert counts.syncs > 0
    assert (counts.pinned > 0) is pinned
    loss.backward()
    t = np.tanh(np.exp(np.linspace(0.0, 1.0, 600)))
    wanted = 2 * t * (1 - t * t) * np.exp(np.linspace(0.0, 1.0, 600))
    np.testing.assert_allclose(w.grad.get(), wanted, rtol=1e-12)
    assert (h.value_version, h.device) == (1, "fake:1")


def test_hooks_pins_forks_checkpoints_and_files(tmp_path: Any) -> None:
    g = rg.Graph(device="fake:1")
    w = g.param(np.arange(3.0), name="w")
    w.register_hook(lambda gradient: gradient * 2.0)
    with rg.save_on_cpu():
        h = rg.tanh(w * 0.5)
    loss = (rg.checkpoint(rg.exp, h)).sum()
    loss.name = "loss"
    loss.backward()
    wanted = 2 * 0.5 / np.cosh(np.arange(3.0) * 0.5) ** 2 * np.exp(np.tanh(np.arange(3.0) * 0.5))
    np.testing.assert_allclose(w.grad.get(), wanted, rtol=1e-12)
    with g.whatif({w: np.zeros(3)}) as other:
        assert float(other[loss].item()) == 3.0
    h.pin(np.ones(3))
    assert loss.item() == pytest.approx(3 * np.e)
    h.unpin()
    g.keep(loss)
    g.save(tmp_path / "g.rg")
    again = rg.load(tmp_path / "g.rg")
    assert again["w"].device == "fake:1"
    assert again["loss"].item() == loss.item()
    g.check_invariants()


def test_scaled_losses_wait_once_for_each_step(counts: Counts) -> None:
    g = rg.Graph(device="fake:1")
    params = [g.param(np.ones(3, np.float32)) for _ in range(4)]
    x = g.input(np.ones(3, np.float32))
    loss = sum((one * x).sum() for one in params)

    class Descent:
        def __init__(self) -> None:
            self.params = params

        def step(self) -> None:
            for one in params:
                one.set(np.float32(0.5) * np.ones(3, np.float32))

    opt, scaler = Descent(), rg.GradScaler(8.0)
    scaler.scale(loss).backward()
    counts.clear()
    assert scaler.step(opt)
    assert counts.syncs == 1
    np.testing.assert_array_equal(params[0].grad.get(), np.ones(3))
    scaler.update()
    x.set(np.array([1.0, np.inf, 1.0], np.float32))
    g.zero_grad()
    scaler.scale(loss).backward()
    versions = [one.value_version for one in params]
    assert len(scaler.step(opt).not_finite) == 4
    assert [one.value_version for one in params] == versions
    scaler.update()
    assert scaler.get_scale() == 4.0


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_autocast_on_a_device(counts: Counts, dtype: str) -> None:
    a = np.linspace(0.1, 1.0, 12, dtype=np.float32).reshape(3, 4)
    values = []
    for device in ("cpu", "fake:0"):
        g = rg.Graph(device=device)
        x, w = g.input(a), g.param(a.T)
        with rg.autocast(dtype):
            y = x @ w
        d = rg.grad(y.sum(), w)
        g.forward(y, d)
        assert counts.syncs == 0
        short = device != "cpu" and dtype == "float16"
        assert y.dtype == (np.float16 if short else np.float32)
        assert d.dtype == np.float32
        values.append((y.numpy(), d.numpy()))
        counts.clear()
    for one, other in zip(*values, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-3 if dtype == "float16" else 1e-6)


def test_on_a_gpu_half_floats_of_products_are_widened_where_digits_count() -> None:
    g = rg.Graph(device="fake:0")
    x = g.input(np.linspace(0.1, 1.0, 12, dtype=np.float32).reshape(3, 4))
    with rg.autocast("float16"):
        y = x @ x.T
        assert (y.dtype, (y + y).dtype) == (np.float16, np.float16)
        assert {one.dtype.name for one in (rg.softmax(y), y.sum(), rg.exp(y), y**2)} == {"float32"}
    assert rg.exp(y).dtype == np.float16


# What ``torch.autocast("cuda")`` computes in float32, as functions: an op that one of them is built of anew is seen.
WIDENED = {
    "softmax": rg.softmax,
    "log_softmax": rg.log_softmax,
    "layer_norm": rg.layer_norm,
    "sum": rg.sum,
    "cumsum": lambda x: rg.cumsum(x, 0),
    "exp": rg.exp,
    "log": rg.log,
    "power": lambda x: x**2.5,
    "reciprocal": rg.reciprocal,
    "norm": rg.norm,
}


@pytest.mark.parametrize("name", WIDENED)
def test_functions_that_lose_digits_in_half_floats_widen_them(name: str) -> None:
    x = np.linspace(0.1, 3.0, 12).reshape(3, 4).astype(np.float16)
    g = rg.Graph(device="fake:0")
    half = g.param(x)
    with rg.autocast("float16"):
        y = WIDENED[name](half)
    wide = rg.Graph(device="fake:0").param(x.astype(np.float32))
    wanted = WIDENED[name](wide)
    assert y.dtype == np.float32
    np.testing.assert_array_equal(y.numpy(), wanted.numpy())
    slope = rg.grad((y * y).sum(), half)
    assert slope.dtype == np.float16
    other = rg.grad((wanted * wanted).sum(), wide).numpy().astype(np.float16)
    np.testing.assert_array_equal(slope.numpy(), other)
