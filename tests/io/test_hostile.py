"""Files that are damaged, or made to harm: each is refused with a reason, and nothing large is made."""

from __future__ import annotations

import json
import os
import random
import struct
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reactgrad as rg
from reactgrad.io._capture import capture
from reactgrad.io._format import FORMAT, checksum
from reactgrad.ops._families import op_named
from tests.io import functions
from tests.io.files import assert_same_state, forged, packed
from tests.io.test_round_trip import a_bit_of_everything

pytest.importorskip("safetensors")


def small() -> rg.Graph:
    """``y = x * x + 1`` and what is made of it, clean."""
    g = rg.Graph()
    x = g.keep(g.input([1.0, 2.0], name="x"))
    y = g.keep(x * x + 1.0)
    y.name = "y"
    z = g.keep(y[[0, 1]])
    z.name = "z"
    z.value
    return g


Tamper = Callable[[dict[str, Any], dict[str, Any]], object]


def change(column: str, row: int, number: int) -> Tamper:
    """One number of a column."""

    def tamper(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
        array = tensors[f"graph/{column}"].astype(np.int64)
        array[row] = number
        tensors[f"graph/{column}"] = array

    return tamper


def put(key: str, value: Any) -> Tamper:
    return lambda manifest, tensors: manifest.__setitem__(key, value)


def tensor(name: str, array: Any) -> Tamper:
    return lambda manifest, tensors: tensors.__setitem__(name, array)


def spec_shape(*shape: Any) -> Tamper:
    return lambda manifest, tensors: manifest["specs"][0].__setitem__("shape", [*shape])


def op(place: int, **fields: Any) -> Tamper:
    return lambda manifest, tensors: manifest["definitions"][place].update(fields)


def both(first: Tamper, second: Tamper) -> Tamper:
    return lambda manifest, tensors: (first(manifest, tensors), second(manifest, tensors))


def moved(old: str, new: str | None) -> Tamper:
    """A tensor under another name, or none."""

    def tamper(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
        array = tensors.pop(old)
        if new is not None:
            tensors[new] = array

    return tamper


def indexed(index: Any) -> Tamper:
    """Another index for z."""
    return both(op(4, attrs=[index]), moved("arrays/0", None))


def form(node: int, kind: str) -> Tamper:
    """Another form for the value of a node."""

    def tamper(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
        manifest["forms"].append([kind])
        tensors["graph/form"][node] = len(manifest["forms"]) - 1

    return tamper


# Nodes of `small`: 0 x, 1 x*x, 2 the number 1.0, 3 y, 4 z. Definitions: input, multiply, const, add,
# getitem.
TAMPERED: dict[str, tuple[Tamper, str]] = {
    "a parent that is not there": (change("parents", 0, 99), "'parents' holds 99"),
    "a parent before all": (change("parents", 0, -1), "'parents' holds -1"),
    "a node below itself": (change("parents", 0, 1), "form a cycle: .*multiply_2 -> multiply_2"),
    "a cycle": (change("parents", 0, 4), "form a cycle: .*y -> z|form a cycle: .*z"),
    "a rank that contradicts": (change("rank", 3, 1), "rank of 'y' contradicts"),
    "a rank out of range": (change("rank", 3, 1 << 60), "'rank' holds"),
    "a negative version": (change("version", 0, -1), "'version' holds -1"),
    "a huge version": (change("version", 0, (1 << 62) + 1), "'version' holds"),
    "a negative parent version": (change("records", 0, -5), "'records' holds -5"),
    "a parent version of the future": (change("records", 0, 7), "does not exist yet"),
    "a value without a version": (change("version", 0, 0), "'x' has a value, and version 0"),
    "a computed one without": (change("version", 1, 0), "multiply_2' was computed, and has version 0"),
    "a serial twice": (change("serial", 1, 1), "order of creation"),
    "a serial of the future": (change("serial", 4, 1 << 41), "'serial' holds"),
    "a serial of nothing": (change("serial", 0, 0), "'serial' holds 0"),
    "a definition that is not there": (change("definition", 1, 77), "'definition' holds 77"),
    "another definition": (change("definition", 1, 0), "'multiply_2' is a leaf|is a leaf"),
    "a spec that is not there": (change("spec", 1, -1), "'spec' holds -1"),
    "another spec": (change("spec", 1, 1), "holds a Python float and was given ndarray"),
    "a form that is not there": (change("form", 0, 50), "'form' points to nothing"),
    "more parents than there are": (change("parent_count", 1, 1 << 40), "'parents of a node'"),
    "fewer parents": (change("parent_count", 1, 1), "as many entries"),
    "a negative count": (change("parent_count", 1, -2), "'parents of a node' holds -2"),
    "a record of another length": (change("record_count", 1, 1), "as many entries|not one parent"),
    "a record below none": (change("record_count", 2, -2), "'records of a node' holds -2"),
    "a column of floats": (tensor("graph/rank", np.ones(5)), "column 'rank' is float64"),
    "a column of rows": (tensor("graph/rank", np.ones((5, 1), np.int64)), "with 2 axes"),
    "a short column": (tensor("graph/rank", np.ones(2, np.int64)), "'rank' has not one row"),
    "no column": (lambda m, t: t.pop("graph/serial"), "tensor 'graph/serial' is missing"),
    "a tensor of nothing": (tensor("extra", np.ones(3)), "tensor 'extra' belongs to nothing"),
    "no value": (lambda m, t: t.pop("values/x"), "tensor 'values/x' is missing"),
    "a value of another shape": (tensor("values/x", np.ones(3)), r"has shape \(3,\), not \(2,\)"),
    "a value of another dtype": (tensor("values/x", np.ones(2, "f4")), "should hold float64"),
    "a short pool": (tensor("pool/float64", np.ones(1)), "less than its nodes"),
    "a long pool": (tensor("pool/float64", np.ones(50)), "more than its nodes"),
    "a deep pool": (tensor("pool/float64", np.ones((2, 2))), "the pool of float64"),
    "no pool": (lambda m, t: t.pop("pool/float64"), "'pool/float64' is missing"),
    "a pool of another dtype": (tensor("pool/float64", np.ones(4, "f4")), "pool of float64 holds"),
    "no field": (lambda m, t: m.pop("closed"), "lacks or does not know 'closed'"),
    "another field": (put("macro", 1), "lacks or does not know 'macro'"),
    "fields of other kinds": (put("names", {"x": 0}), "should be a list"),
    "a name twice": (put("names", [[0, "x"], [3, "x"]]), "two nodes have the name 'x'"),
    "an empty name": (both(put("names", [[0, ""], [3, "y"], [4, "z"]]), moved("values/x", "values/")), "'' is empty"),
    "a name of two": (put("names", [[0, "x"], [0, "a"], [3, "y"], [4, "z"]]), "a node twice|missing"),
    "a name that is none": (put("names", [[0, 5]]), "should be a string"),
    "a name of nothing": (put("names", [[99, "x"]]), "the number of a node is 99"),
    "kept twice": (put("kept", [0, 0]), "'kept' speaks of a node twice"),
    "a leaf that has to run": (put("forced", [0]), "'x' is to run again, and is never computed"),
    "frozen inputs": (put("frozen", [0]), "'x' is frozen, and no param"),
    "shared arrays": (put("numbers", [0]), "'x' is listed as a shared number"),
    "detached nothing": (put("closed", [[3, [2]]]), "'y' has no such operand"),
    "a cutoff of no kind": (put("cutoffs", [[3, {"rule": 1}]]), "'rule' is no kind of cutoff"),
    "a negative tolerance": (put("cutoffs", [[3, {"tolerance": [-1.0, 0]}]]), "is negative"),
    "a cutoff by name": (put("cutoffs", [[3, {"function": ["os:getcwd", 0]}]]), "calls 'os:getcwd'"),
    "a pattern of an op": (put("patterns", [[3, {"dtype": "float64", "shape": [2], "device": "cpu"}]]), "no leaf"),
    "another pattern": (put("patterns", [[0, {"dtype": "float64", "shape": [3], "device": "cpu"}]]), "declares"),
    "a dtype of an op": (put("dtypes", [[3, "int8"]]), "'y' declares a dtype"),
    "a pin with parents": (put("pins", [[3, [0, 0], None]]), "pinned node 'y' has parents"),
    "a pinned leaf": (put("pins", [[0, [3], None]]), "'x' is pinned, and a leaf|no value of its own"),
    "a choice of nothing": (put("choices", [[3, [0, 0, 0]]]), "chooses between others"),
    "reads of an op": (put("dynamic", [[3, 1]]), "'y' cannot have read"),
    "a negative seed": (put("seed", -1), "the seed is -1"),
    "a negative memory budget": (put("max_bytes", -1), "the memory budget is -1"),
    "a memory budget that is no number": (put("max_bytes", "all"), "the memory budget is 'all'"),
    "a device of the graph that is not there": (put("device", "gpu"), "there is no device 'gpu'"),
    "a device that is no text": (put("device", 3), "the device of the graph is 3"),
    "a leaf that a cutoff holds": (put("former_cutoffs", [0]), "'x' is held by a cutoff"),
    "a huge serial to come": (put("next_serial", 1 << 50), "the next node is out of range"),
    "an op that is not there": (op(1, op="macro"), "no op 'macro' here"),
    "an op with other attributes": (op(4, attrs=[5]), "'arrays/0' belongs to nothing"),
    "an op with odd attributes": (indexed({"dict": []}), "'z' cannot compute op 'getitem'"),
    "an op with another arity": (op(1, op="tanh"), "has 2 operands, not 1"),
    "another op": (op(3, op="less"), "listed as float64"),
    "no kind of leaf": (op(0, leaf="table"), "'table' is no kind of leaf"),
    "a leaf and an op": (op(0, op="add"), "does not say what a node is"),
    "a param of bits": (op(2, leaf="param"), "is a param and not made of floats"),
    "an index of floats": (op(4, attrs=[{"index": [1.5]}]), "no part of an index"),
    "an index of texts": (op(4, attrs=[{"index": [{"slice": ["a", None, None]}]}]), "no part of an index"),
    "a slice without steps": (op(4, attrs=[{"index": [{"slice": [0, 1, 0]}]}]), "no part of an index"),
    "a slice of two": (op(4, attrs=[{"index": [{"slice": [0, 1]}]}]), "not three parts"),
    "an array that is not there": (op(4, attrs=[{"index": [{"array": [9, "int64", [0]]}]}]), "'arrays/9' is missing"),
    "an array of another dtype": (op(4, attrs=[{"index": [{"array": [0, "int8", [0]]}]}]), "should hold int8"),
    "axes that are none": (op(4, attrs=[{"index": [{"array": [0, "int64", [1]]}]}]), "in the order"),
    "an index beyond": (indexed({"index": [{"slice": [0, 2, None]}, 3]}), "'z' cannot compute"),
    "a value of no kind": (op(4, attrs=[{"code": "x"}]), "'code' is no kind of value"),
    "nested values": (op(4, attrs=[eval("[" * 60 + "]" * 60)]), "nested more than 50 deep"),
    "a dtype of objects": (lambda m, t: m["specs"][0].update(dtype="object"), "no dtype of a value"),
    "a dtype of texts": (lambda m, t: m["specs"][0].update(dtype="<U4"), "no dtype of a value"),
    "a device that is not there": (lambda m, t: m["specs"][0].update(device="tpu:0"), "tpu"),
    "a negative length": (spec_shape(-2), "a length of a shape is -2"),
    "a length of a half": (spec_shape(2.0), "a length of a shape is 2.0"),
    "a length that is true": (spec_shape(True), "a length of a shape is True"),
    "a huge length": (spec_shape(1 << 70), "a length of a shape is"),
    "a huge shape": (spec_shape(1 << 40, 1 << 40), "does not fit any memory"),
    "too many axes": (spec_shape(*[1] * 65), "has 65 axes"),
    "a large shape": (spec_shape(1 << 50), "not float64|listed as"),
    "a large value": (put("forms", [["pooled", "float64", [1 << 50], None]] * 5), "less than|as many|missing"),
    "a large own value": (put("forms", [["own", "float64", [1 << 50], None]] * 5), "shape"),
    "a leaf that is a view": (both(form(0, "view"), moved("values/x", None)), "'x' has no value"),
    "a constant without value": (both(form(2, "missing"), put("objects", [])), "'const_.' has no value"),
    "more objects": (put("objects", [1.0, 2.0]), "more objects"),
    "fewer objects": (put("objects", []), "fewer objects"),
    "an object of another kind": (put("objects", ["one"]), "holds a Python float and was given str"),
}  # fmt: skip


@pytest.mark.parametrize("what", TAMPERED)
def test_a_file_that_contradicts_itself_is_refused(what: str, tmp_path: Path) -> None:
    tamper, message = TAMPERED[what]
    manifest, tensors = packed(small())
    path = forged(tmp_path / "g.safetensors", manifest, tensors)
    assert rg.load(path)["z"].value.tolist() == [2.0, 5.0], "the file was bad before"
    tamper(manifest, tensors)
    forged(path, manifest, tensors)
    op_named("")  # families of ops are loaded now: they are no cost of the file
    tracemalloc.start()
    try:
        with pytest.raises(rg.LoadError, match=message) as caught:
            rg.load(path)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20, (
            "allocated more than a small file needs"
        )
    finally:
        tracemalloc.stop()
    assert str(path) in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_a_view_is_not_made_of_what_is_none(tmp_path: Path) -> None:
    manifest, tensors = packed(small())
    manifest["forms"].append(["view"])
    tensors["graph/form"][1] = len(manifest["forms"]) - 1  # x * x
    tensors.pop("pool/float64")
    with pytest.raises(rg.LoadError, match="'multiply_2' cannot be a view"):
        rg.load(forged(tmp_path / "g", manifest, tensors))


def test_shapes_do_not_become_arrays_while_loading(tmp_path: Path) -> None:
    """Nodes that were never computed may be larger than any memory; so may gathers from them."""
    g = rg.Graph()
    x = g.input(shape=(1 << 40,), dtype="f8", name="x")
    i = g.input(shape=(1 << 35,), dtype="i8", name="i")
    row = g.input(shape=(1, 1 << 40), name="row")
    kept = [x * 2.0, row.T]
    manifest, tensors = packed(g)
    del kept
    gather = {"op": "gather", "attrs": [{"index": [{"operand": 0}]}]}
    manifest["definitions"] += [gather]
    # `x * 2.0`, rewritten: x[i]
    node = 4
    manifest["specs"].append({"dtype": "float64", "shape": [1 << 35], "device": "cpu"})
    column = tensors["graph/definition"]
    column[node] = len(manifest["definitions"]) - 1
    tensors["graph/spec"][node] = len(manifest["specs"]) - 1
    start = int(tensors["graph/parent_count"][:node].sum())
    tensors["graph/parents"][start : start + 2] = [0, 1]
    tracemalloc.start()
    try:
        h = rg.load(forged(tmp_path / "g", manifest, tensors))
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
    assert h["x"].shape == (1 << 40,)
    assert i.shape == (1 << 35,)


def test_the_place_of_an_operand_in_an_index_is_checked(tmp_path: Path) -> None:
    g = rg.Graph()
    x, i = g.input(np.zeros(3), name="x"), g.input([[0]], name="i")
    g.keep(rg.take(x, i, mode="wrap"))
    manifest, tensors = packed(g)
    kept = [at for at, one in enumerate(manifest["definitions"]) if one.get("op") == "gather"]
    definition = manifest["definitions"][kept[0]]
    assert definition["attrs"] == [{"index": [{"operand": [1, "wrap", None, False]}]}]
    for wrong in (
        [1, "first", None, False],
        [1, "wrap", 1 << 40, False],
        [1, "wrap", 0, 1],
        [1],
        "1",
        [-1, "wrap", 0, True],
    ):
        definition["attrs"] = [{"index": [{"operand": wrong}]}]
        with pytest.raises(rg.LoadError):
            rg.load(forged(tmp_path / "g", manifest, tensors))


def test_a_file_does_not_change_what_shapes_mean_elsewhere(tmp_path: Path) -> None:
    """7.0 equals 7: a shape of floats must not become the one that all arrays of length 7 share."""
    g = rg.Graph()
    g.keep(rg.reshape(g.input(np.zeros(7919)), (1, 7919)))
    manifest, tensors = packed(g)
    assert manifest["definitions"][1] == {"op": "reshape", "attrs": [{"tuple": [1, 7919]}]}
    for shape in ([7919.0, 1.0], [7919, True, True]):
        manifest["definitions"][1]["attrs"] = [{"tuple": shape}]
        with pytest.raises(rg.LoadError, match="'reshape_2'"):
            rg.load(forged(tmp_path / "g", manifest, tensors))
        x = g.input(np.zeros([int(n) for n in shape]))
        assert all(type(n) is int for n in x.shape)


# --- the file itself ------------------------------------------------------------------------------


def raw(path: Path, header: bytes, data: bytes = b"") -> Path:
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)
    return path


ENTRY = b'{"dtype":"F64","shape":[1],"data_offsets":[0,8]}'
RAW: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "truncated"),
    "seven bytes": (b"\0" * 7, "truncated"),
    "no header": (b"\0" * 8, "no JSON|should be JSON|damaged"),
    "a header of 2**62": (struct.pack("<Q", 1 << 62), "truncated"),
    "a header of the future": (struct.pack("<Q", 99_000_000) + b"{}", "truncated"),
    "a text": (b"This is not a graph at all, sorry.", "truncated"),
    "a pickle": (b"\x80\x04\x95" + b"\0" * 40, "truncated|damaged"),
    "a list": (struct.pack("<Q", 2) + b"[]", "the header is"),
    "deep lists": (struct.pack("<Q", 100_000) + b"[" * 100_000, "damaged"),
    "no text": (struct.pack("<Q", 4) + b'{"\xff"', "damaged"),
    "a number of many digits": (struct.pack("<Q", 6001) + b"{" + b"9" * 6000, "damaged"),
    "infinity": (struct.pack("<Q", 14) + b'{"a":Infinity}', "Infinity is no JSON"),
}


def test_deep_lists_are_refused_where_the_limit_of_recursion_is_high(
    tmp_path: Path,
) -> None:
    """In a process of its own, which would end here."""
    path = tmp_path / "g"
    path.write_bytes(RAW["deep lists"][0])
    program = f"""
import sys
import reactgrad as rg
sys.setrecursionlimit(10_000_000)
try:
    rg.load({str(path)!r})
except rg.LoadError as error:
    print("nested too deeply" in str(error))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


@pytest.mark.parametrize("what", RAW)
def test_what_is_no_safetensors_file_is_refused(what: str, tmp_path: Path) -> None:
    content, message = RAW[what]
    path = tmp_path / "g"
    path.write_bytes(content)
    with pytest.raises(rg.LoadError, match=message):
        rg.load(path)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b'{"a":%s,"a":%s}' % (ENTRY, ENTRY), "the name 'a' stands twice"),
        (b'{"__metadata__":{"format":"a","format":"b"}}', "'format' stands twice"),
        (b'{"a":{"dtype":"BF16","shape":[4],"data_offsets":[0,8]}}', "has the dtype 'BF16'"),
        (b'{"a":{"dtype":"F64","shape":[1000000000000000],"data_offsets":[0,8]}}', "damaged"),
        (b'{"a":{"dtype":"F64","shape":[1],"data_offsets":[0,800]}}', "damaged"),
        (
            b'{"a":{"dtype":"F64","shape":[%s1],"data_offsets":[0,8]}}' % (b"1," * 70),
            "'a' has 71 axes",
        ),
        (b'{"a":%s}' % ENTRY, "it is no saved graph"),
        (b'{"__metadata__":{"format":"reactgrad.graph"},"a":%s}' % ENTRY, "no format version"),
        (b'{"__metadata__":{"format":"pt"},"a":%s}' % ENTRY, "it is no saved graph"),
    ],
)
def test_headers_that_are_refused(header: bytes, message: str, tmp_path: Path) -> None:
    path = raw(tmp_path / "g", header, b"\0" * 8)
    with pytest.raises(rg.LoadError, match=message):
        rg.load(path)


def resealed(path: Path, **metadata: str) -> Path:
    """The file of a small graph with other metadata."""
    from safetensors.numpy import save_file

    manifest, tensors = packed(small())
    text = json.dumps(manifest)
    whole = {
        "format": "reactgrad.graph",
        "format_version": "1",
        "manifest": text,
        "checksum": checksum(text.encode(), tensors),
    } | metadata
    save_file(tensors, path, {k: v for k, v in whole.items() if v})
    return path


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"format_version": "2"}, "has format version 2, .* reads up to 1.*pip install --upgrade"),
        ({"format_version": "999999999"}, "has format version 999999999"),
        ({"format_version": "1" * 5000}, "no format version"),
        ({"format_version": "-1"}, "no format version"),
        ({"format_version": "0"}, "no format version"),
        ({"format_version": "1.5"}, "no format version"),
        ({"format_version": "²"}, "no format version"),
        ({"checksum": "0" * 64}, "its checksum is not that of its content"),
        ({"checksum": ""}, "its checksum"),
        ({"manifest": ""}, "it has not one manifest"),
    ],
)
def test_metadata_that_are_refused(metadata: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(rg.LoadError, match=message):
        rg.load(resealed(tmp_path / "g", **metadata))
    assert rg.load(resealed(tmp_path / "h"))["z"].value.tolist() == [2.0, 5.0]


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ("[]", "the manifest is"),
        ("{", "should be JSON"),
        ('{"seed": NaN}', "NaN is no JSON"),
        ('{"seed": 1, "seed": 2}', "the name 'seed' stands twice"),
        ("[" * 100_000, "should be JSON"),
        ('{"seed": ' + "9" * 5000 + "}", "should be JSON"),
    ],
    ids=repr,
)
def test_manifests_that_are_none(manifest: str, message: str, tmp_path: Path) -> None:
    _, tensors = packed(small())
    path = resealed(
        tmp_path / "g", manifest=manifest, checksum=checksum(manifest.encode(), tensors)
    )
    with pytest.raises(rg.LoadError, match=message):
        rg.load(path)


def test_two_manifests_are_one_too_many(tmp_path: Path) -> None:
    manifest, tensors = packed(small())
    tensors["manifest"] = np.frombuffer(json.dumps(manifest).encode(), np.uint8)
    with pytest.raises(rg.LoadError, match="it has not one manifest"):
        rg.load(forged(tmp_path / "g", manifest, tensors))


def test_booleans_of_other_bits_are_refused(tmp_path: Path) -> None:
    """NumPy computes nonsense with them; safetensors does not look."""
    g = rg.Graph()
    x = g.input(np.array([True, False]), name="x")
    manifest, tensors = packed(g)
    tensors["values/x"] = np.array([2, 255], np.uint8).view(bool)
    with pytest.raises(rg.LoadError, match="neither true nor false"):
        rg.load(forged(tmp_path / "g", manifest, tensors))
    assert x.value[0]


@pytest.mark.slow
def test_a_name_that_stands_twice_among_many_is_found_in_one_pass(tmp_path: Path) -> None:
    """Comparing each with each would take hours."""
    names = [*range(300_000), 299_999]
    header = ("{" + ",".join(f'"t{i}":0' for i in names) + "}").encode()
    path = tmp_path / "g"
    path.write_bytes(struct.pack("<Q", len(header)) + header)
    with pytest.raises(rg.LoadError, match="'t299999' stands twice"):
        rg.load(path)


def test_a_manifest_is_looked_at_before_arrays_are_read(tmp_path: Path) -> None:
    length = 1 << 28
    entry = {"dtype": "U8", "shape": [length], "data_offsets": [0, length]}
    metadata = {"format": FORMAT, "format_version": "1", "manifest": "no", "checksum": ""}
    header = json.dumps({"__metadata__": metadata, "large": entry}).encode()
    path = tmp_path / "g"
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.truncate(8 + len(header) + length)  # no place on the disk is taken for it
    tracemalloc.start()
    try:
        with pytest.raises(rg.LoadError, match="what should be JSON is none"):
            rg.load(path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_neither_waited_for_nor_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(rg.LoadError, match="no regular file"):
        rg.load(tmp_path / "pipe")
    with pytest.raises(rg.SaveError, match="no regular file"):
        small().save(tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()


def test_files_that_cannot_be_read_are_errors_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        rg.load(tmp_path / "absent")
    with pytest.raises(OSError, match="directory"):
        rg.load(tmp_path)


def test_a_descriptor_that_the_caller_has_open_is_no_path(tmp_path: Path) -> None:
    with open(tmp_path / "own", "wb") as file:
        with pytest.raises(TypeError, match="not int"):
            rg.load(file.fileno())  # type: ignore[arg-type]
        file.write(b"still open")


def test_every_truncation_is_noticed(tmp_path: Path) -> None:
    small().save(tmp_path / "whole")
    content = (tmp_path / "whole").read_bytes()
    for length in [*range(0, len(content), 3), len(content) - 1]:
        (tmp_path / "g").write_bytes(content[:length])
        with pytest.raises(rg.LoadError):
            rg.load(tmp_path / "g")
    (tmp_path / "g").write_bytes(content + b"\0")
    with pytest.raises(rg.LoadError):
        rg.load(tmp_path / "g")


@pytest.mark.slow
def test_every_flipped_byte_is_noticed_or_means_the_same(tmp_path: Path) -> None:
    g = small()
    g.save(tmp_path / "whole")
    content = bytearray((tmp_path / "whole").read_bytes())
    rng = random.Random(5)
    noticed = 0
    before = capture(rg.load(tmp_path / "whole"))
    for _ in range(1500):
        changed = content.copy()
        for _ in range(rng.choice([1, 1, 1, 2, 20])):
            changed[rng.randrange(len(changed))] ^= rng.choice([1, 2, 4, 8, 16, 32, 64, 128, 255])
        (tmp_path / "g").write_bytes(changed)
        try:
            loaded = rg.load(tmp_path / "g")
        except rg.LoadError:
            noticed += 1
        else:
            assert_same_state(before, capture(loaded))
    assert noticed > 1400


JUNK: st.SearchStrategy[Any] = st.one_of(
    st.integers(-3, 8),
    st.sampled_from([None, True, False, 1 << 40, 1 << 62, -(1 << 63), 10**40, 0.5, -0.0, "", "x"]),
    st.sampled_from([[], {}, [0], [[0]], {"tuple": []}, {"index": []}, {"op": "add", "attrs": []}]),
    st.sampled_from([{"leaf": "param"}, {"array": [0, "int64", [0]]}, {"choice": "switch"}]),
    st.sampled_from(["float32", "int8", "pooled", "own", "view", "missing", "object", "equal"]),
)


def places(thing: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where in a manifest something stands."""
    found = [path] if path else []
    items: Any = ()
    if isinstance(thing, dict):
        items = thing.items()
    elif isinstance(thing, list):
        items = enumerate(thing)
    for key, value in items:
        found += places(value, (*path, key))
    return found


def worn_graph() -> rg.Graph:
    g = a_bit_of_everything()
    g["z"].value
    g["affine"].value
    g["above"].value
    g["switch"].value
    g["x"].touch()
    return g


@given(data=st.data())
def test_no_manifest_harms(data: st.DataObject) -> None:
    """Anything in place of anything: refused, or a graph whose tables agree."""
    import tempfile

    manifest, tensors = packed(worn_graph())
    spots = places(manifest)
    for _ in range(data.draw(st.integers(1, 3))):
        *path, last = data.draw(st.sampled_from(spots))
        at = manifest
        with suppress(KeyError, IndexError, TypeError):
            for key in path:
                at = at[key]
            if data.draw(st.integers(0, 5)):
                at[last] = data.draw(JUNK)
            else:
                del at[last]
    columns = [name for name in tensors if name.startswith("graph/")]
    for _ in range(data.draw(st.integers(0, 2))):
        name = data.draw(st.sampled_from(columns))
        array = tensors[name].astype(np.int64)
        array[data.draw(st.integers(0, len(array) - 1))] = data.draw(
            st.one_of(st.integers(-2, 50), st.sampled_from([1 << 40, (1 << 63) - 1, -(1 << 63)]))
        )
        tensors[name] = array
    with tempfile.TemporaryDirectory() as folder:
        path = forged(Path(folder) / "g", manifest, tensors)
        try:
            g = rg.load(path)
        except rg.LoadError:
            return
    g.check_invariants()
    for var in g.nodes:
        with suppress(Exception):
            var.value
    g.check_invariants()
    functions.CALLS.clear()
