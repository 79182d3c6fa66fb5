"""What ``rg.from_pnnx`` builds of files that pnnx wrote, and the files that it refuses.

``data/`` has two models of PyTorch 2.13 as pnnx 20261020 wrote them, with an input and PyTorch's output.
"""

from __future__ import annotations

import io
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.models import ModelError, OpError, UnknownLengthError

DATA = Path(__file__).parent / "data"


def recorded(name):
    with np.load(DATA / f"{name}.npz") as file:
        return file["in0"], file["out0"]


def archive(**arrays):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, array in arrays.items():
            file.writestr(name.replace("__", "."), np.asarray(array).tobytes())
    return buffer.getvalue()


def model(lines, tmp_path, weights=None, **options):
    """Return the model of operators written as a file has them."""
    names = {word for line in lines for word in line.split() if word.isdigit()}
    path = tmp_path / "m.pnnx.param"
    path.write_text("\n".join(["7767517", f"{len(lines)} {len(names)}", *lines, ""]))
    return rg.from_pnnx(path, weights if weights is not None else archive(), **options)


def one(operator, tmp_path, shape="(2,3)f32", **options):
    """Return the model of an operator between an input and an output."""
    return model(
        [f"pnnx.Input i 0 1 0 #0={shape}", f"{operator} #0={shape}", "pnnx.Output o 1 0 1"],
        tmp_path,
        **options,
    )


@pytest.mark.parametrize("name", ["cnn", "text"])
def test_models_that_pnnx_wrote_give_the_outputs_of_pytorch(name):
    x, expected = recorded(name)
    m = rg.from_pnnx(DATA / f"{name}.pnnx.param", DATA / f"{name}.pnnx.bin")
    y = m(in0=x)["out0"]
    np.testing.assert_allclose(y.value, expected, rtol=1e-5, atol=1e-6)
    assert y.value.dtype == expected.dtype
    again = rg.from_pnnx(str(DATA / f"{name}.pnnx.param"))
    np.testing.assert_array_equal(again(in0=x)["out0"].value, y.value)


def test_params_have_pytorchs_names_and_only_what_is_stale_runs():
    x, _ = recorded("cnn")
    m = rg.from_pnnx(DATA / "cnn.pnnx.param")
    assert sorted(m.params) == [
        "c2.weight",
        "convbn2d_0.bias",
        "convbn2d_0.weight",
        "f.bias",
        "f.weight",
    ]
    y = m(in0=x)["out0"]
    before = y.value
    size = len(m.graph)
    m.params["f.bias"].set(m.params["f.bias"].value + 1.0)  # softmax does not see it
    np.testing.assert_allclose(y.value, before, rtol=1e-5)
    assert [v.name.split("_")[0] for v in m.graph.last_run.ran] == ["add", "softmax"]
    assert len(m.graph) == size
    y[:, 0].sum().backward()
    assert m.params["c2.weight"].grad.shape == (6, 4, 3, 3)


def test_other_shapes_of_inputs():
    m = rg.from_pnnx(DATA / "cnn.pnnx.param", shapes={"in0": (None, 3, 11, 11)})
    x = np.concatenate([recorded("cnn")[0]] * 2)
    assert m(in0=x)["out0"].value.shape == (4, 5)
    with pytest.raises(
        ModelError, match="'x' is no input of this model. Its inputs are \\['in0'\\]"
    ):
        rg.from_pnnx(DATA / "cnn.pnnx.param", shapes={"x": (1, 3)})


def test_formulas(tmp_path):
    m = model(
        [
            "pnnx.Input a 0 1 0 #0=(2,3)f32",
            "pnnx.Input b 0 1 1 #1=(2,3)f32",
            "pnnx.Expression e 2 1 0 1 2 expr=sub(pow(@0,2),div(maximum(@1,0.5),add(abs(@0),size(@1,1))))",
            "pnnx.Expression s 1 1 0 3 expr=[size(@0,0),mul(3,1)]",
            "Tensor.reshape r 2 1 2 3 4 $input=2 $shape=3",
            "pnnx.Output o 1 0 4",
        ],
        tmp_path,
    )
    a, b = np.arange(6.0, dtype="f4").reshape(2, 3), np.ones((2, 3), "f4")
    found = m(in0=a, in1=b)["out0"].value
    np.testing.assert_allclose(found, a**2 - np.maximum(b, 0.5) / (abs(a) + 3), rtol=1e-6)
    assert found.dtype == np.dtype("f4")


def test_functions_without_parentheses(tmp_path):
    m = one("pnnx.Expression r 1 1 0 1 expr=add(expm1,neg(@0),pow,@0,2)", tmp_path)
    x = np.linspace(-1, 1, 6, dtype="f4").reshape(2, 3)
    np.testing.assert_allclose(m(in0=x)["out0"].value, np.expm1(-x) + x**2, rtol=1e-6, atol=1e-7)


def test_operators_without_a_function_are_named_all_at_once(tmp_path):
    lines = [
        "pnnx.Input i 0 1 0 #0=(2,3)f32",
        "torch.stft a 1 1 0 1",
        "torch.stft b 1 1 1 2",
        "aten::secret c 1 1 2 3",
        "pnnx.Output o 1 0 3",
    ]
    with pytest.raises(OpError) as caught:
        model(lines, tmp_path)
    assert str(caught.value) == (
        "This model needs operators that have no function in reactgrad: torch.stft (2x), aten::secret (1x). Nothing "
        "was built. Export the model without them."
    )


def test_a_length_that_is_not_known_names_what_to_give(tmp_path):
    lines = [
        "pnnx.Input i 0 1 0 #0=(?,?)f32",
        "pnnx.Expression s 1 1 0 1 expr=[size(@0,1),size(@0,0)]",
        "Tensor.reshape r 2 1 0 1 2 $input=0 $shape=1",
        "pnnx.Output o 1 0 2",
    ]
    with pytest.raises(UnknownLengthError, match="Give the shapes of inputs as shapes="):
        model(lines, tmp_path)
    m = model(lines, tmp_path, shapes={"in0": (2, 3)})
    assert m(in0=np.ones((2, 3), "f4"))["out0"].value.shape == (3, 2)


HOSTILE = {
    "no text of pnnx": "hello",
    "cut off": "7767517\n3 2\npnnx.Input i 0 1 0 #0=(2)f32\n",
    "counts": "7767517\n999999999999999999999 2\n",
    "names fewer": "7767517\n1 1\nF.relu r 500000 1 0 1\n",
    "no key": "7767517\n1 1\npnnx.Input i 0 1 0 rubbish\n",
    "read before written": "7767517\n2 2\nF.relu r 1 1 0 1\nF.relu s 1 1 1 0\n",
    "written twice": "7767517\n2 1\npnnx.Input i 0 1 0 #0=(2)f32\nF.relu r 1 1 0 0\n",
    "no shape": "7767517\n1 1\npnnx.Input i 0 1 0 #0=(2,3f32\n",
    "no type": "7767517\n1 1\npnnx.Input i 0 1 0 #0=(2,3)f99\n",
    "weights absent": "7767517\n1 1\npnnx.Attribute a 0 1 0 @data=(1000000000000)f32 #0=(3)f32\n",
    "a weight of another size": "7767517\n1 1\npnnx.Attribute w 0 1 0 @data=(1000000000000,1000000)f32\n",
    "an unknown length of a weight": "7767517\n1 1\npnnx.Attribute w 0 1 0 @data=(?)f32\n",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_files_are_refused_without_large_allocations(text, tmp_path):
    path = tmp_path / "m.pnnx.param"
    path.write_text(text)
    tracemalloc.start()
    try:
        with pytest.raises(ModelError, match=r"rg\.from_pnnx"):
            rg.from_pnnx(path, archive(w__data=np.ones(3, "f4")))
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()


GREEDY = {
    "repeat": "Tensor.repeat r 1 1 0 1 sizes=(100000,100000)",
    "expand": "Tensor.expand r 1 1 0 1 sizes=(1000000,100000,2,3)",
    "zeros": "torch.zeros r 1 1 0 1 size=(1000000,100000)",
    "pad": "F.pad r 1 1 0 1 mode=constant pad=(2000000000,2000000000) value=None",
    "arange": "torch.arange r 1 1 0 1 end=2000000000",
    "formula": "pnnx.Expression r 1 1 0 1 expr=mul(@0,pow(10,pow(10,10)))",
    "deep": f"pnnx.Expression r 1 1 0 1 expr={'neg(' * 5000}@0{')' * 5000}",
    "no operand": "pnnx.Expression r 1 1 0 1 expr=neg(@7)",
    "no axis": "Tensor.slice r 1 1 0 1 dims=(9) starts=(0) ends=(1) steps=(1)",
    "no function": "pnnx.Expression r 1 1 0 1 expr=system(@0)",
}


@pytest.mark.parametrize("operator", GREEDY.values(), ids=GREEDY)
def test_few_bytes_ask_for_few(operator, tmp_path):
    tracemalloc.start()
    try:
        with pytest.raises(ModelError):
            one(operator, tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


def test_weights_must_be_an_archive(tmp_path):
    with pytest.raises(ModelError, match="the weights are no zip archive"):
        one("F.relu r 1 1 0 1", tmp_path, weights=b"rubbish")
    with pytest.raises(ModelError, match="cannot be read"):
        rg.from_pnnx(DATA / "cnn.pnnx.param", tmp_path / "absent.bin")
