"""Files of PyTorch and safetensors give their arrays; nothing that a file says is run.

``files_of_torch`` was written by PyTorch 2.13: a model of a linear and a normalisation layer (``state_dict``, which
also as ``legacy`` without a zip), and ``training``, which has a tensor of each dtype and what stands beside them.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import pickletools
import shutil
import tracemalloc
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.io import _format, _weights
from reactgrad.io._pickle_steps import steps
from tests.io.files import same

FOLDER = Path(__file__).parent / "files_of_torch"
STATE = {
    "0.weight": np.array([[0.0, 0.125, 0.25], [0.375, 0.5, 0.625]], np.float32),
    "0.bias": np.array([-1.0, 0.5], np.float32),
    "1.weight": np.ones(2, np.float32),
    "1.bias": np.zeros(2, np.float32),
    "1.running_mean": np.zeros(2, np.float32),
    "1.running_var": np.ones(2, np.float32),
    "1.num_batches_tracked": np.array(0),
}
SHORT = np.array([1.5, -3.140625, np.inf, 2.0**-20, np.nan], np.float32)
SHORTER = {
    "f8": np.array([1.5, -448.0, 2.0**-9], np.float32),
    "f8_e5m2": np.array([1.5, -448.0, 2.0**-10], np.float32),
}


def test_a_state_dict_has_its_arrays_in_their_order() -> None:
    assert same(rg.load_weights(FOLDER / "state_dict.pt"), STATE)


def test_safetensors_gives_the_same() -> None:
    found = rg.load_weights(FOLDER / "state_dict.safetensors")
    assert all(same(found[name], array) for name, array in (STATE | SHORTER).items())
    assert np.array_equal(found["bf16"], SHORT, equal_nan=True)
    half = SHORT.astype(np.float16).astype(np.float32)
    assert np.array_equal(found["half"], half, equal_nan=True)
    assert {found[name].dtype for name in ("bf16", "half")} == {np.dtype(np.float32)}


def test_every_dtype_and_what_stands_beside_tensors_is_read() -> None:
    found = rg.load_weights(FOLDER / "training.pt")
    base = np.arange(12, dtype=np.float32)
    expected = {
        "model": {"w": np.arange(6.0).reshape(2, 3)},
        "transposed": base.reshape(3, 4).T,
        "part": base[3:9:2],
        "ints": np.array([[1, -2]]),
        "flags": np.array([True, False]),
        "bytes": np.array([3], np.uint8),
        "complex": np.array([1 + 2j], np.complex64),
        "empty": np.zeros((0, 3), np.float32),
        "number": np.array(7, np.float32),
        "expanded": np.ones(3, np.float32),
        "u16": np.array([60000], np.uint16),
        "step": 3,
        "lr": 0.5,
        "name": "adam",
        "betas": (0.9, 0.999),
        "none": None,
        "groups": [{"params": [0, 1]}],
        "size": (2, 3),
        "device": "cpu",
        "dtype": "float32",
        **SHORTER,
    }
    assert np.array_equal(found.pop("bf16"), SHORT, equal_nan=True)
    assert np.array_equal(
        found.pop("half"), SHORT.astype(np.float16).astype(np.float32), equal_nan=True
    )
    assert sorted(found) == sorted(expected)
    for name, value in expected.items():
        assert same(found[name], value), name
    assert np.shares_memory(found["transposed"], found["part"])
    assert found["transposed"].flags.f_contiguous


def message(path: Path) -> str:
    with pytest.raises(rg.LoadError) as error:
        rg.load_weights(path)
    return str(error.value).replace(str(path), "FILE")


def test_a_pickle_without_a_zip_is_told_how_to_write_it_anew() -> None:
    assert message(FOLDER / "legacy.pt") == (
        "FILE cannot be loaded: it is a pickle without a zip around it, as PyTorch wrote before 1.6. Read it there, "
        "and write it anew by torch.save(state, path)."
    )


def test_a_header_that_begins_as_a_pickle_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    metadata = {"a": ""}
    while True:  # until its length is 128, as the first byte of a pickle is
        with path.open("wb") as file:
            _format.write_tensors(file, {"x": np.ones(2)}, metadata)
        if path.read_bytes()[0] == 0x80:
            break
        metadata["a"] += " " * 8
    assert same(rg.load_weights(path), {"x": np.ones(2)})


# --- what is no data ----------------------------------------------------------------------------------

RAN: list[object] = []


class Harm:
    def __init__(self, *reduced: Any) -> None:
        self.reduced = reduced

    def __reduce__(self) -> Any:
        return self.reduced


def zipped(path: Path, program: bytes, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/data.pkl", program)
        archive.writestr("a/byteorder", "little")
        for name, content in members.items():
            archive.writestr(f"a/data/{name}", content)
    return path


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize(
    "harm",
    [
        Harm(RAN.append, (1,)),
        Harm(eval, ("RAN.append(1)",)),
        Harm(os.system, ("true",)),
        Harm(OrderedDict, ([["a", 1]],)),
        {1, 2},
        bytearray(b"x"),
        np.float64(1.0),
        np.ones(2),
    ],
)
def test_nothing_is_run(tmp_path: Path, harm: Any, protocol: int) -> None:
    path = zipped(tmp_path / "x.pt", pickle.dumps({"a": harm}, protocol))
    text = message(path)
    assert "which is no tensor or plain container, and is not run" in text or "its pickle" in text
    assert RAN == []


def test_what_is_no_data_is_named(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.pt", pickle.dumps({"a": Harm(os.system, ("true",))}, 2))
    assert message(path) == (
        f"FILE cannot be loaded: its pickle names '{os.system.__module__}.system', which is no tensor or plain "
        "container, and is not run. Save model.state_dict(), and only numbers and texts beside it."
    )


class Named(NamedTuple):
    """A global."""

    module: str
    name: str


class Storage:
    def __init__(self, dtype: str = "FloatStorage", key: str = "0", count: Any = 4) -> None:
        self.key = ("storage", Named("torch", dtype), key, "cpu", count)


class Call:
    def __init__(self, function: Named, *arguments: Any) -> None:
        self.function = function
        self.arguments = arguments


REBUILD = Named("torch._utils", "_rebuild_tensor_v2")


def tensor(*arguments: Any) -> Call:
    return Call(REBUILD, *arguments, False, Call(Named("collections", "OrderedDict")))


def program(thing: Any) -> bytes:
    """Return a pickle of this; each ``Named`` in it is a global, each ``Call`` a call of one."""
    # In Python, since its parts can be changed: the pickler in C asks whether globals exist.
    pickler: Any = pickle._Pickler(io.BytesIO(), 2)  # type: ignore[attr-defined]
    file = io.BytesIO()
    pickler.write = file.write

    def save(one: Any, *rest: Any) -> None:
        if isinstance(one, Named):
            file.write(f"c{one.module}\n{one.name}\n".encode())
        elif isinstance(one, Storage):
            original(one.key)
            file.write(pickle.BINPERSID)
        elif isinstance(one, Call):
            save(one.function)
            original(one.arguments)
            file.write(pickle.REDUCE)
        else:
            original(one, *rest)

    original, pickler.save = pickler.save, save
    original(thing)
    return file.getvalue() + pickle.STOP


FOUR = np.arange(4, dtype=np.float32).tobytes()


def test_a_tensor_by_hand_is_read(tmp_path: Path) -> None:
    path = zipped(
        tmp_path / "x.pt", program({"x": tensor(Storage(), 1, (3,), (1,))}), **{"0": FOUR}
    )
    assert same(rg.load_weights(path), {"x": np.array([1, 2, 3], np.float32)})


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (tensor(Storage(), 2, (3,), (1,)), "a tensor reaches beyond its storage"),
        (tensor(Storage(), 0, (2, 2), (4, 1)), "a tensor reaches beyond its storage"),
        (tensor(Storage(), -1, (3,), (1,)), "a tensor has a shape or strides that cannot be"),
        (tensor(Storage(), 0, (3,), (-1,)), "a tensor has a shape or strides that cannot be"),
        (tensor(Storage(), 0, (3, 1), (1,)), "a tensor has a shape or strides that cannot be"),
        (tensor(Storage(), 0, (1.0,), (1,)), "a tensor has a shape or strides that cannot be"),
        (tensor(Storage(), 0, (1 << 40,), (0,)), "a tensor repeats its storage too often"),
        (tensor(Storage(), 0, (0, 1 << 61), (1, 1)), "a tensor repeats its storage too often"),
        (tensor(Storage(), 0, (1,) * 65, (1,) * 65), "a tensor reaches beyond its storage"),
        (tensor(3, 0, (1,), (1,)), "a tensor is made of something that is no storage"),
        (tensor(Storage(count=5), 0, (1,), (1,)), "storage '0' has 4 numbers, and declares 5"),
        (tensor(Storage(count="5"), 0, (1,), (1,)), "a storage has no number of elements"),
        (tensor(Storage(key="7"), 0, (1,), (1,)), "it has no 'data/7', which it names"),
        (tensor(Storage(key="../../x"), 0, (1,), (1,)), "it has no 'data/../../x', which it names"),
        (tensor(Storage("ComplexDoubleStorage", "1"), 0, (1,), (1,)), "has 3 bytes, no multiple"),
        (tensor(Storage("QInt8Storage"), 0, (1,), (1,)), "names 'torch.QInt8Storage'"),
        (tensor(), "its pickle is damaged"),
        (Call(REBUILD, *range(9)), "a tensor is made of something that is no storage"),
        (Call(Named("torch", "Size"), [1] * 65), "a shape has 65 axes"),
        (Call(Named("torch", "device"), "x" * 99), "a device has a name that cannot be"),
        (Call(Named("torch", "FloatStorage"), 3), "its pickle calls something that is no function"),
        ({(1, 2): 3}, "a tuple is a key of a dict"),
    ],
)
def test_tensors_that_cannot_be_are_named(tmp_path: Path, made: Any, reason: str) -> None:
    path = zipped(tmp_path / "x.pt", program({"x": made}), **{"0": FOUR, "1": b"abc"})
    assert reason in message(path)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (b"", "its pickle is damaged"),
        (b".", "its pickle is damaged"),
        (b"]0.", "has the opcode POP"),
        (b"\x80\x02}", "its pickle"),
        (b"\x8d" + (1 << 60).to_bytes(8, "little") + b"abc.", "its pickle is damaged"),
        (b"\x8b" + (1 << 30).to_bytes(4, "little") + b"abc.", "has the opcode LONG4"),
        (b"X\0\0\0\x40abc.", "its pickle is damaged"),
        (b"ctorch\nSize", "its pickle is damaged"),
        (b"J\0", "its pickle is damaged"),
        (b"\xff.", "its pickle is damaged"),
        (b"].", "it holds a list, and no state dict"),
        (b"}h\x07.", "its pickle is damaged"),
        (b"Kat.", "its pickle is damaged"),
    ],
)
def test_damaged_pickles_are_refused(tmp_path: Path, code: bytes, reason: str) -> None:
    assert reason in message(zipped(tmp_path / "x.pt", code))


MANY = 100_000

# A program again and again, and how many steps of it are made before it is refused.
ENDLESS: list[tuple[bytes, int, str]] = [
    (b"(", 1025, "nests more than 1,024 containers"),
    (b"N", 3001, "more than 3,000 things on its stack"),
    (b"(t", 6001, "more than 3,000 things on its stack"),
    (b"Nq\0", 6001, "more than 3,000 things on its stack"),
    (b"\x80\2", 10_001, "more than 10,000 steps"),
    (b"(e", 10_001, "more than 10,000 steps"),
    (b"Na", 10_001, "more than 10,000 steps"),
]


@pytest.mark.parametrize(("code", "most", "reason"), ENDLESS)
def test_programs_that_do_not_end_are_refused_after_few_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: bytes, most: int, reason: str
) -> None:
    monkeypatch.setattr(_weights, "MOST_STACK", 3000)
    monkeypatch.setattr(_weights, "MOST_STEPS", 10_000)
    monkeypatch.setattr(_weights, "MOST_STEPS_EACH", 0)
    made, read = [0], _weights.steps

    def counted(program: bytes) -> Any:
        for step in read(program):
            made[0] += 1
            yield step

    monkeypatch.setattr(_weights, "steps", counted)
    assert reason in message(zipped(tmp_path / "x.pt", b"]" + code * MANY + b"."))
    assert made[0] - 1 <= most


def test_five_million_marks_are_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, read = [0], _weights.steps

    def counted(program: bytes) -> Any:
        for step in read(program):
            made[0] += 1
            yield step

    monkeypatch.setattr(_weights, "steps", counted)
    assert "nests more than" in message(zipped(tmp_path / "x.pt", b"(" * 5_000_000))
    assert made[0] == _weights.MOST_OPEN + 1


def test_long_lists_and_dicts_are_within_the_limits(tmp_path: Path) -> None:
    state = {"losses": list(range(70_000)), "words": {str(i): i for i in range(70_000)}}
    for protocol in (2, 4):
        path = zipped(tmp_path / "x.pt", pickle.dumps(state, protocol))
        assert rg.load_weights(path) == state


def test_steps_are_those_of_the_standard_library() -> None:
    thing = [
        {"a": 1.5, "ü": (1, -2, 3 << 9, -(1 << 40)), "b" * 300: None},
        b"xyz",
        [True, False] * 9,
    ]
    for protocol in (2, 3, 4):
        code = pickle.dumps(thing, protocol)
        expected = [(one.name, argument) for one, argument, _ in pickletools.genops(code)]
        found = list(steps(code))
        assert [name for name, _ in found] == [name for name, _ in expected]
        for (name, argument), (_, other) in zip(found, expected, strict=True):
            assert argument == other, name


def test_archives_that_are_no_files_of_torch_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x", b"")
    assert "it is a zip, and not of torch.save" in message(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/data.pkl", b"}" + bytes(1 << 20))
    assert "is compressed, or larger than the file" in message(path)
    path.write_bytes(b"PK\3\4")
    assert "it is damaged" in message(path)
    path.write_bytes(b"")
    assert "it is truncated, or no safetensors file" in message(path)


def test_members_that_overlap_are_read_no_more_often_than_the_file_is_long(tmp_path: Path) -> None:
    many = {str(at): tensor(Storage(key=str(at)), 0, (1,), (1,)) for at in range(50)}
    path = zipped(tmp_path / "x.pt", program(many), **{str(at): FOUR * 999 for at in range(50)})
    assert len(rg.load_weights(path)) == 50
    content = bytearray(path.read_bytes())
    # All entries of the directory point to the first storage, and the file is cut down to it.
    with zipfile.ZipFile(path) as archive:
        start = archive.start_dir
        places = [archive.getinfo(f"a/data/{at}").header_offset for at in range(50)]
    directory = bytes(content[start:])
    for place in places[1:]:
        directory = directory.replace(place.to_bytes(4, "little"), places[0].to_bytes(4, "little"))
    body = bytes(content[: places[1]])
    end = directory[:-6] + len(body).to_bytes(4, "little") + directory[-2:]
    path.write_bytes(body + end)
    assert "cannot be loaded" in message(path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["state_dict.pt", "training.pt", "state_dict.safetensors"])
def test_damage_ends_in_one_kind_of_error_and_takes_no_memory(tmp_path: Path, name: str) -> None:
    content = (FOLDER / name).read_bytes()
    path = tmp_path / name
    shutil.copy(FOLDER / name, path)
    rng = np.random.default_rng(0)
    tracemalloc.start()
    try:
        for at in rng.choice(len(content), 150):
            damaged = bytearray(content)
            damaged[at] = rng.integers(256)
            for wrong in (bytes(damaged), content[:at]):
                path.write_bytes(wrong)
                with contextlib.suppress(rg.LoadError):
                    rg.load_weights(path)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_headers_that_declare_too_much_are_refused_before_anything_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    entry = '{"x":{"dtype":"F32","shape":[%s],"data_offsets":[0,%d]}}'
    huge = [
        (1 << 62).to_bytes(8, "little") + b"{}",
        b"\xff" * 8,
        *(
            len(text).to_bytes(8, "little") + text.encode()
            for text in (
                entry % (1 << 40, 1 << 42),
                entry % ("1099511627776," * 3 + "0", 0),
                entry % (-1, -4),
                '{"x":' * 9000,
                "[" * 100_000,
            )
        ),
    ]
    tracemalloc.start()
    try:
        for content in huge:
            path.write_bytes(content)
            try:
                found = rg.load_weights(path)
            except rg.LoadError:
                continue
            assert found["x"].size == 0
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


# --- beside PyTorch -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2"])
def test_each_short_float_is_that_of_torch(tmp_path: Path, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    wide = dtype.endswith("16")
    bits = np.arange(1 << 16).astype(np.int16) if wide else np.arange(256).astype(np.uint8)
    numbers = torch.from_numpy(bits).view(getattr(torch, dtype))
    torch.save({"x": numbers}, tmp_path / "x.pt")
    found = rg.load_weights(tmp_path / "x.pt")["x"]
    expected = numbers.float().numpy()
    assert found.dtype == np.float32
    assert np.array_equal(found, expected, equal_nan=True)
    assert np.array_equal(np.signbit(found[found == 0]), np.signbit(expected[expected == 0]))


def test_models_of_torch_are_read_as_they_are_today(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    layer = torch.nn.TransformerEncoderLayer(8, 2)
    tied = torch.nn.ModuleDict({"a": torch.nn.Linear(2, 2), "b": torch.nn.LSTM(3, 4)})
    optimizer = torch.optim.Adam(tied.parameters())
    for one in tied.parameters():
        one.grad = torch.ones_like(one)
    optimizer.step()
    for at, state in enumerate([layer.state_dict(), tied.state_dict(), optimizer.state_dict()]):
        torch.save(state, tmp_path / f"{at}.pt")
        expected = torch.utils._pytree.tree_map(
            lambda one: one.numpy() if torch.is_tensor(one) else one, dict(state)
        )
        assert same(rg.load_weights(tmp_path / f"{at}.pt"), expected)
