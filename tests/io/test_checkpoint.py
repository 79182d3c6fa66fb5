"""A checkpoint gives back each state bit for bit, or gives nothing back and says why."""

from __future__ import annotations

import json
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import reactgrad as rg
from reactgrad.io import _format
from reactgrad.io._checkpoint import FORMAT
from reactgrad.io._tensor_file import read_tensors
from tests.io.files import same


class Part:
    """Has a state, as models and optimisers have; refuses what lacks its keys."""

    def __init__(self, **state: Any) -> None:
        self.state = state
        self.given: list[Any] = []

    def state_dict(self) -> dict[str, Any]:
        return self.state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.given.append(state)
        if state.keys() != self.state.keys():
            raise ValueError(f"weight 'x' has no place in {[*self.state]}")
        for name, value in state.items():
            if isinstance(value, np.ndarray):
                self.state[name][...] = value  # in place, as optimisers do
            else:
                self.state[name] = value


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.safetensors"


def test_states_come_back_and_the_rest_is_returned(path: Path) -> None:
    model = Part(weight=np.arange(6.0).reshape(2, 3), bias=np.array([1, 2], np.float32))
    rng = np.random.default_rng(1)
    rng.normal(size=3)
    rg.save_checkpoint(path, model=model, generator=rng, step=7, losses=[0.5, 0.25], name="a")
    expected = rng.normal(size=5)
    other = Part(weight=np.zeros((2, 3)), bias=np.zeros(2, np.float32))
    again = np.random.default_rng()
    rest = rg.load_checkpoint(path, model=other, generator=again)
    assert rest == {"step": 7, "losses": [0.5, 0.25], "name": "a"}
    assert same(other.state, model.state)
    assert same(again.normal(size=5), expected)
    assert sorted(rg.load_checkpoint(path)) == ["generator", "losses", "model", "name", "step"]


def test_other_programs_read_the_arrays_by_name(path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.numpy")
    weight = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    state = {"state": [{"step": 3, "m": np.ones(2)}, {"step": 4, "m": np.zeros(2)}]}
    rg.save_checkpoint(path, model=Part(**{"0.weight": weight}), optimizer=Part(**state))
    found = safetensors.load_file(path)
    assert sorted(found) == ["model.0.weight", "optimizer.state.0.m", "optimizer.state.1.m"]
    assert same(found["model.0.weight"], np.ascontiguousarray(weight))


@pytest.mark.parametrize("kind", ["MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"])
def test_generators_go_on_bit_for_bit(path: Path, kind: str) -> None:
    make = getattr(np.random, kind)
    rng = np.random.Generator(make(3))
    rng.random(11, dtype=np.float32)  # leaves half a word
    rg.save_checkpoint(path, rng=rng)
    expected = rng.random(9, dtype=np.float32), rng.standard_gamma(2.0, 4)
    again = np.random.Generator(make(4))
    assert rg.load_checkpoint(path, rng=again) == {}
    assert same((again.random(9, dtype=np.float32), again.standard_gamma(2.0, 4)), expected)


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.complex_numbers()
    | st.text(max_size=5)
    | st.binary(max_size=5)
    | hnp.arrays(
        st.sampled_from(sorted(_format.DTYPES)).map(np.dtype),
        hnp.array_shapes(min_dims=0, min_side=0, max_dims=3, max_side=3),
    )
)
KEYS = st.text(max_size=3) | st.integers(-2, 2) | st.tuples(st.integers(0, 2))
STATES = st.recursive(
    LEAVES,
    lambda below: (
        st.lists(below, max_size=3)
        | st.lists(below, max_size=3).map(tuple)
        | st.dictionaries(KEYS, below, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=4), STATES, max_size=3), st.booleans())
def test_any_state_comes_back_bit_for_bit(
    tmp_path_factory: pytest.TempPathFactory, states: dict[str, Any], beside: bool
) -> None:
    path = tmp_path_factory.mktemp("any") / "any"
    most = _format.MOST_MANIFEST
    try:
        _format.MOST_MANIFEST = 0 if beside else most  # type: ignore[misc]  # as for a large manifest
        rg.save_checkpoint(path, **states)
    finally:
        _format.MOST_MANIFEST = most  # type: ignore[misc]
    assert same(rg.load_checkpoint(path), states)


@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (2, 0, 1)])
def test_arrays_lie_in_memory_as_they_lay(path: Path, axes: tuple[int, ...]) -> None:
    array = np.arange(24.0).reshape(2, 3, 4).transpose(axes)
    rg.save_checkpoint(path, x=array, gaps=array[::2])
    found = rg.load_checkpoint(path)
    assert found["x"].strides == array.strides
    assert same(found["gaps"], array[::2])
    assert found["x"].flags.writeable


def test_mappings_of_any_class_are_saved_as_dicts(path: Path) -> None:
    rg.save_checkpoint(path, model=OrderedDict(a=1), scalar=np.float32(0.1))
    assert same(rg.load_checkpoint(path), {"model": {"a": 1}, "scalar": np.float32(0.1)})


# --- all or nothing -----------------------------------------------------------------------------------


def message(error: pytest.ExceptionInfo[Exception], path: Path) -> str:
    return str(error.value).replace(str(path), "FILE")


def test_nothing_is_loaded_if_one_part_refuses(path: Path) -> None:
    model, optimizer = Part(x=np.ones(2), step=1), Part(m=np.ones(2))
    rg.save_checkpoint(path, model=model, optimizer=optimizer, generator=np.random.default_rng(1))
    here, other = Part(x=np.full(2, 5.0), step=9), Part(other=np.zeros(2))
    rng = np.random.default_rng(2)
    before = rng.bit_generator.state
    with pytest.raises(rg.LoadError) as error:
        rg.load_checkpoint(path, generator=rng, model=here, optimizer=other)
    assert message(error, path) == (
        "FILE cannot be loaded: the state of optimizer= does not fit: weight 'x' has no place in ['other']. Nothing "
        "was loaded."
    )
    assert isinstance(error.value.__cause__, ValueError)
    assert same(here.state, {"x": np.full(2, 5.0), "step": 9})
    assert len(here.given) == 2
    assert rng.bit_generator.state == before


def test_an_interrupt_takes_back_what_was_loaded(path: Path) -> None:
    class Slow(Part):
        def load_state_dict(self, state: dict[str, Any]) -> None:
            if not self.given:
                self.given.append(state)
                raise KeyboardInterrupt

    rg.save_checkpoint(path, model=Part(x=np.ones(2)), slow=Part())
    model = Part(x=np.zeros(2))
    with pytest.raises(KeyboardInterrupt):
        rg.load_checkpoint(path, model=model, slow=Slow())
    assert same(model.state, {"x": np.zeros(2)})


def test_what_can_say_no_beforehand_is_asked_before_anything_is_loaded(path: Path) -> None:
    loader = rg.data.DataLoader(range(10), 2, shuffle=True)
    rg.save_checkpoint(path, model=Part(x=1), loader=loader)
    model = Part(x=5)
    with pytest.raises(rg.LoadError, match="of a loader with batch_size=2, and this one has"):
        rg.load_checkpoint(path, model=model, loader=rg.data.DataLoader(range(10), 5, shuffle=True))
    assert model.given == []


def test_a_part_that_is_not_there_is_named(path: Path) -> None:
    rg.save_checkpoint(path, model=Part(x=1), step=3)
    with pytest.raises(rg.LoadError) as error:
        rg.load_checkpoint(path, model=Part(x=1), optimizer=Part(), loader=Part())
    assert (
        message(error, path)
        == "FILE cannot be loaded: it has no optimizer, loader; it has model, step."
    )


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        (3, "step=3 has no load_state_dict. Leave it out"),
        (Part(), "step= has a state, and the file has a value of this name"),
        (np.random.default_rng(1), "step= is a generator over PCG64, and the file has 'a value'"),
    ],
)
def test_a_part_of_another_kind_is_named(path: Path, part: Any, reason: str) -> None:
    rg.save_checkpoint(path, step=3)
    with pytest.raises(rg.LoadError) as error:
        rg.load_checkpoint(path, step=part)
    assert reason in str(error.value)


def test_a_generator_of_another_kind_is_named(path: Path) -> None:
    rg.save_checkpoint(path, rng=np.random.default_rng(1))
    with pytest.raises(rg.LoadError, match="rng= is a generator over MT19937, and the file has"):
        rg.load_checkpoint(path, rng=np.random.Generator(np.random.MT19937(1)))


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        (
            {"a": [1, object()]},
            "part.a.1 cannot be saved: a builtins.object has no form in a file. Give numbers,",
        ),
        (Part, "part=Part is a class. Give an object of that class."),
        (np.array([None]), "part cannot be saved: arrays of dtype object have no form"),
        (np.ma.masked_array([1.0], [True]), "part cannot be saved: a masked array has no form"),
    ],
)
def test_what_has_no_form_is_named_and_the_former_file_stays(
    path: Path, part: Any, reason: str
) -> None:
    rg.save_checkpoint(path, step=1)
    with pytest.raises(rg.SaveError) as error:
        rg.save_checkpoint(path, part=part)
    assert f"save_checkpoint: {reason}" in str(error.value)
    assert rg.load_checkpoint(path) == {"step": 1}


def test_a_node_is_told_to_give_its_value(path: Path) -> None:
    with rg.Graph():
        loss = rg.param(1.0) * 2.0
        with pytest.raises(rg.SaveError, match=r"or y\.value for a node y\.$"):
            rg.save_checkpoint(path, loss=loss)
    assert not path.exists()


def test_nesting_is_limited(path: Path) -> None:
    deep: Any = 1
    for _ in range(60):
        deep = {"a": deep}
    with pytest.raises(rg.SaveError, match="nested more than 50 deep"):
        rg.save_checkpoint(path, deep=deep)


# --- files that are no checkpoints, or damaged --------------------------------------------------------


@pytest.mark.slow
def test_every_flipped_bit_and_every_cut_is_found(path: Path) -> None:
    rg.save_checkpoint(path, model=Part(x=np.arange(3.0), y=np.array([True])), step=1)
    content = path.read_bytes()
    model = Part(x=np.zeros(3), y=np.array([False]))
    for at in range(len(content)):
        damaged = bytearray(content)
        damaged[at] ^= 1 << at % 8
        for wrong in (bytes(damaged), content[:at]):
            path.write_bytes(wrong)
            try:
                rest = rg.load_checkpoint(path, model=model)
            except rg.LoadError:
                assert model.given == []
                continue
            # Spaces after the header, and the case of what JSON does not distinguish.
            assert rest == {"step": 1}
            assert same(model.state["x"], np.arange(3.0))
            model.given.clear()


def rewritten(path: Path, change: Any) -> None:
    """Write the file anew with a changed manifest, and a checksum that fits."""
    tensors, metadata = read_tensors(path)
    manifest = json.loads(metadata["manifest"])
    change(manifest, tensors)
    content = json.dumps(manifest)
    metadata |= {
        "manifest": content,
        "checksum": _format.checksum(content.encode(), tensors),
    }
    with path.open("wb") as file:
        _format.write_tensors(file, tensors, metadata)


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        ([0], "has 1 parts, and should have 2"),
        (["value", {"array": [0, "float64", [0]]}], "declared"),
        (["value", {"array": [0, "int64", [1]]}], "has them in the order [1]"),
        (["value", {"array": [5, "int64", [0]]}], "it has no tensor 5, or has used it"),
        (["value", {"array": [True, "int64", [0]]}], "it has no tensor True"),
        (["value", [{"array": [0, "int64", [0]]}] * 2], "it has no tensor 0, or has used it"),
        (["value", {"array": [0, "complex128", []]}], "and declared complex128"),
        (["value", {"function": "os:system"}], "'function' is no kind of value"),
    ],
)
def test_a_manifest_that_lies_is_found(path: Path, form: Any, reason: str) -> None:
    rg.save_checkpoint(path, x=np.arange(3))
    rewritten(path, lambda manifest, tensors: manifest["parts"].update(x=form))
    with pytest.raises(rg.LoadError) as error:
        rg.load_checkpoint(path)
    assert reason in str(error.value)


def test_other_files_are_told_what_reads_them(path: Path) -> None:
    pytest.importorskip("safetensors")
    rg.Graph().save(path)
    with pytest.raises(rg.LoadError) as error:
        rg.load_checkpoint(path)
    assert message(error, path) == (
        "FILE cannot be loaded: it is no checkpoint: rg.load_checkpoint reads what rg.save_checkpoint wrote. Write "
        "rg.load(path) for a graph, or rg.load_weights(path) for the weights of another library."
    )
    rg.save_checkpoint(path, step=1)
    with pytest.raises(rg.LoadError):
        rg.load(path)


def test_a_file_of_a_newer_version_says_so(path: Path) -> None:
    with path.open("wb") as file:
        _format.write_tensors(file, {}, {"format": FORMAT, "format_version": "2"})
    with pytest.raises(rg.LoadError, match="format version '2', and this reactgrad reads 1"):
        rg.load_checkpoint(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.safetensors"):
        rg.load_checkpoint(tmp_path / "none.safetensors")
    with pytest.raises(OSError, match="nowhere"):
        rg.save_checkpoint(tmp_path / "nowhere" / "x", step=1)
