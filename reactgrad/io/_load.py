"""From a file, which is not trusted, to a graph.

First the package that knows the format compares its header with the real size of the file; after
that nothing is larger than the file. Then the checksum is checked, then every number of the
manifest.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any

import numpy as np

from reactgrad._errors import LoadError
from reactgrad.autodiff._record import Key, Record
from reactgrad.backend import Spec
from reactgrad.core._core import C
from reactgrad.functions._function import Applied, Function
from reactgrad.io._format import (
    COLUMNS,
    FORMAT,
    PAIRS,
    TENSOR_DTYPES,
    VERSION,
    checksum,
    from_tensor,
    import_safetensors,
    tensor_name,
)
from reactgrad.io._json import (
    MOST_AXES,
    MOST_LENGTH,
    Reader,
    in_order,
    items_of,
    many,
    record,
    text,
    whole,
)
from reactgrad.io._restore import restore
from reactgrad.io._state import LEAVES, Absent, Choice, Computation, Definition, State, column
from reactgrad.io._strict_json import strict_json
from reactgrad.nodes._lifted import Lifted
from reactgrad.nodes._op import output
from reactgrad.ops._families import op_named
from reactgrad.scheduler import safe_repr

# The limit of the packages that read the header.
MOST_HEADER = 100_000_000

# More outputs than any function has, those counted that it leaves for its rules.
MOST_OUTPUTS = 1 << 16

_APPLIED = {"function", "layout", "keywords"}
_LIFTED = {*_APPLIED, "vjp", "jvp", "declared", "outputs"}
# Of the manifest: what a state has, but for columns, which are tensors, and values, which have forms.
_FIELDS = {one.name for one in fields(State)} - {*COLUMNS, "values"} | {"forms", "objects"}
_LATER = ("scopes", "gradients")  # not in the files of the first versions
_FORMER = ("floats",)  # no longer needed


def load(path: str | os.PathLike[str], trust: str | Iterable[str], make: Callable[[int], C]) -> C:
    """Return the graph in a file; see ``load`` of ``graph``.

    `make` returns an empty graph with a seed.
    """
    try:
        manifest, tensors = read(path)
        trusted = (trust,) if isinstance(trust, str) else tuple(trust)
        return restore(unpack(manifest, tensors, trusted), make, adopt=True)
    except LoadError as error:
        reason = str(error).rstrip(".")
        import zipfile  # slow to import, and only for this

        if os.path.isfile(path) and zipfile.is_zipfile(path):  # a pipe would be waited for
            reason = "it is an archive, as torch.save writes them: read its arrays by rg.load_weights(path)"
        raise LoadError(f"{os.fspath(path)} cannot be loaded: {reason}.") from error.__cause__


# --- the file ------------------------------------------------------------------------------------


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """Return the manifest and the tensors of a file, after checks that it is whole and undamaged."""
    path = os.fspath(path)  # refuses an integer, which would be a file that the caller has open
    package = import_safetensors()
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        raise LoadError("it is no regular file")
    _read_header(path)
    tensors: dict[str, np.ndarray[Any, Any]] = {}
    try:
        with package.safe_open(path, "np") as file:
            metadata = dict(file.metadata() or {})
            _check_format(metadata)
            names = list(file.keys())
            stored = metadata.get("manifest")
            if (stored is None) is not ("manifest" in names):
                raise LoadError("it has not one manifest")
            if stored is None:
                names.remove("manifest")
                content = file.get_tensor("manifest").tobytes()
            else:
                content = stored.encode()
            # Before the arrays, which may be large.
            manifest = record(strict_json(content), "the manifest")
            for name in names:
                tensors[name] = file.get_tensor(name)
    except package.SafetensorError as error:
        raise LoadError(f"it is damaged, or no safetensors file: {error}") from error
    except MemoryError as error:
        raise LoadError("it is damaged, or larger than the memory of this machine") from error
    if checksum(content, tensors) != metadata.get("checksum"):
        raise LoadError("it is damaged: its checksum is not that of its content")
    for name, array in tensors.items():
        if array.dtype == np.bool_ and array.size and array.view(np.uint8).max() > 1:
            raise LoadError(f"tensor {name!r:.60} holds booleans that are neither true nor false")
    return manifest, tensors


def checked(
    metadata: dict[str, str], tensors: dict[str, np.ndarray[Any, Any]]
) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """Return the manifest and the tensors of what was read, after checks that it is whole."""
    _check_format(metadata)
    stored = metadata.get("manifest")
    if (stored is None) is not ("manifest" in tensors):
        raise LoadError("it has not one manifest")
    content = tensors.pop("manifest").tobytes() if stored is None else stored.encode()
    if checksum(content, tensors) != metadata.get("checksum"):
        raise LoadError("it is damaged: its checksum is not that of its content")
    return record(strict_json(content), "the manifest"), tensors


def _read_header(path: str | os.PathLike[str]) -> None:
    """Check what the package does not: names that occur twice, and unexpected dtypes."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, MOST_HEADER):
            raise LoadError("it is truncated, or no safetensors file")
        header = file.read(length)
    for name, entry in record(strict_json(header), "the header").items():
        if name != "__metadata__":
            dtype = record(entry, "an entry of the header").get("dtype")
            shape = entry.get("shape")
            if isinstance(shape, list) and len(shape) > MOST_AXES:
                raise LoadError(
                    f"tensor {name!r:.60} has {len(shape)} axes; NumPy has at most {MOST_AXES}"
                )
            if not isinstance(dtype, str) or dtype not in TENSOR_DTYPES:
                raise LoadError(f"tensor {name!r:.60} has the dtype {safe_repr(dtype):.60}")


def _key(form: Any) -> Key:
    """Return a key by which a gradient program is found."""
    if type(form) is list:
        return tuple([_key(one) for one in form])
    if form is not None and type(form) not in (int, str):
        raise LoadError(f"{form!r:.60} is no key of a gradient")
    return form


def _check_once(names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise LoadError(f"two nodes have the name {name!r:.60}")
        seen.add(name)


def _check_format(metadata: dict[str, str]) -> None:
    """Raise unless this is a saved graph of a known version."""
    if metadata.get("format") != FORMAT:
        raise LoadError("it is no saved graph: rg.load reads what Graph.save wrote")
    version = metadata.get("format_version", "")
    if not (version.isascii() and version.isdigit()) or len(version) > 9 or not int(version):
        raise LoadError(f"it has no format version that exists, but {version!r:.60}")
    if int(version) > VERSION:
        raise LoadError(
            f"it has format version {version}, and this reactgrad reads up to {VERSION}. A newer "
            "one wrote it: pip install --upgrade reactgrad"
        )


# --- the state -----------------------------------------------------------------------------------


def unpack(
    manifest: dict[str, Any], tensors: dict[str, np.ndarray[Any, Any]], trust: tuple[str, ...]
) -> State:
    """Return the state that ``pack`` was given, as far as a file can be believed."""
    return _Unpacking(manifest, tensors, trust).state()


class _Unpacking:
    """One unpacking. Tensors are taken out as they are used, and none may be left."""

    def __init__(
        self,
        manifest: dict[str, Any],
        tensors: dict[str, np.ndarray[Any, Any]],
        trust: tuple[str, ...],
    ) -> None:
        # Only files of graphs on another device than the host name it.
        manifest = {**{name: [] for name in _LATER}, "device": "cpu", **manifest}
        for name in _FORMER:
            manifest.pop(name, None)
        if set(manifest) != _FIELDS:
            odd = sorted(set(manifest) ^ _FIELDS)
            raise LoadError(f"its manifest lacks or does not know {odd[0]!r:.60}")
        self.manifest = manifest
        self.tensors = tensors
        self.reader = Reader(self.array, trust)
        self.pools: dict[str, np.ndarray[Any, Any]] = {}
        self.used: dict[str, int] = {}
        self.count = 0

    def state(self) -> State:
        """Return the state, with each entry checked by itself; ``check`` compares them."""
        manifest, reader, node, nodes = self.manifest, self.reader, self.node, self.nodes
        columns = {name: self.column(name) for name in COLUMNS}
        form, serial = columns.pop("form"), columns["serial"]
        self.count = len(serial)
        names = [(node(i), text(name, "a name")) for i, name in self.entries("names", 2)]
        _check_once([name for _, name in names])
        values = self.values(form.tolist(), serial.tolist(), dict(names))
        state = State(
            **columns,
            seed=whole(manifest["seed"], "the seed", 0, 1 << 128),
            next_serial=whole(manifest["next_serial"], "the next serial", 1, MOST_LENGTH),
            device=text(manifest["device"], "the device of the graph"),
            max_bytes=None
            if manifest["max_bytes"] is None
            else whole(manifest["max_bytes"], "the memory budget", 0, 1 << 128),
            definitions=tuple(
                [self.definition(one) for one in many(manifest["definitions"], "definitions")]
            ),
            specs=tuple([reader.spec(one) for one in many(manifest["specs"], "specs")]),
            values=tuple(values),
            names=tuple(names),
            scopes=tuple(
                [
                    (i, text(path, "a scope"))
                    for path, inside in self.entries("scopes", 2)
                    for i in nodes(inside)
                ]
            ),
            kept=nodes(manifest["kept"]),
            forced=nodes(manifest["forced"]),
            frozen=nodes(manifest["frozen"]),
            retained=nodes(manifest["retained"]),
            numbers=nodes(manifest["numbers"]),
            closed=tuple(
                [
                    (node(i), None if positions is None else nodes(positions))
                    for i, positions in self.entries("closed", 2)
                ]
            ),
            cutoffs=tuple(
                [(node(i), reader.cutoff(rule)) for i, rule in self.entries("cutoffs", 2)]
            ),
            former_cutoffs=nodes(manifest["former_cutoffs"]),
            patterns=tuple(
                [(node(i), self.pattern(form)) for i, form in self.entries("patterns", 2)]
            ),
            dtypes=tuple([(node(i), reader.dtype(name)) for i, name in self.entries("dtypes", 2)]),
            pins=tuple(
                [
                    (node(i), nodes(parents), None if fixed is None else node(fixed))
                    for i, parents, fixed in self.entries("pins", 3)
                ]
            ),
            choices=tuple([(node(i), nodes(chosen)) for i, chosen in self.entries("choices", 2)]),
            dynamic=tuple([(node(i), node(count)) for i, count in self.entries("dynamic", 2)]),
            gradients=tuple([self.gradient(form) for form in self.entries("gradients", 8)]),
        )
        # Every tensor was taken out when it was used.
        if self.tensors:
            raise LoadError(f"tensor {min(self.tensors)!r:.60} belongs to nothing")
        return state

    def node(self, number: Any) -> int:
        """Return the number of a node, or any number below their count."""
        return whole(number, "the number of a node", 0, self.count - 1)

    def nodes(self, numbers: Any) -> tuple[int, ...]:
        return tuple([self.node(number) for number in many(numbers, "a list of nodes")])

    def take(self, name: str) -> np.ndarray[Any, Any]:
        array = self.tensors.pop(name, None)
        if array is None:
            raise LoadError(f"tensor {name!r:.60} is missing")
        return array

    def column(self, name: str) -> np.ndarray[Any, np.dtype[np.int64]]:
        array = self.take(f"graph/{name}")
        if array.ndim != 1 or array.dtype not in (np.int32, np.int64):
            raise LoadError(f"column {name!r} is {array.dtype} with {array.ndim} axes")
        return column(array)

    def array(self, place: int, dtype: str) -> np.ndarray[Any, Any]:
        """Return the array with this number inside of attributes and objects."""
        array = self.take(f"arrays/{place}")
        self.check_dtype(f"arrays/{place}", array, dtype)
        return array

    @staticmethod
    def check_dtype(name: str, array: np.ndarray[Any, Any], dtype: str) -> None:
        pairs = dtype in PAIRS
        if array.dtype.name != PAIRS.get(dtype, dtype) or (pairs and array.shape[-1:] != (2,)):
            raise LoadError(f"tensor {name!r:.60} should hold {dtype}, and holds {array.dtype}")

    def entries(self, what: str, count: int) -> list[list[Any]]:
        listed = many(self.manifest[what], f"the list of {what}")
        return [items_of(entry, count, f"an entry of {what}") for entry in listed]

    def pairs(self, form: Any) -> tuple[tuple[int, int], ...]:
        """Return pairs of nodes."""
        found = [items_of(pair, 2, "a pair of nodes") for pair in many(form, "pairs of nodes")]
        return tuple([(self.node(a), self.node(b)) for a, b in found])

    def gradient(self, form: list[Any]) -> Record:
        """Return the record of a gradient program."""
        kind, output, keys, seeds, given, observed, about, nodes = form
        shapes = [items_of(one, 2, "an observed shape") for one in many(observed, "shapes")]
        return Record(
            text(kind, "the kind of a gradient"),
            self.node(output),
            tuple([_key(key) for key in many(keys, "keys")]),
            self.pairs(seeds),
            self.pairs(given),
            tuple(
                [
                    (
                        self.node(at),
                        tuple(
                            [whole(n, "a length", 0, MOST_LENGTH) for n in many(shape, "a shape")]
                        ),
                    )
                    for at, shape in shapes
                ]
            ),
            self.nodes(about),
            self.nodes(nodes),
        )

    def pattern(self, form: Any) -> Spec:
        pattern = self.reader.spec(form)
        if pattern is None:
            raise LoadError("a declared shape is missing")
        return pattern

    def definition(self, form: Any) -> Definition:
        """Return the definition of a node."""
        fields = record(form, "what a node is")
        if set(fields) == {"leaf"}:
            leaf = LEAVES.get(text(fields["leaf"], "the kind of a leaf"))
            if leaf is None:
                raise LoadError(f"{fields['leaf']!r:.60} is no kind of leaf")
            return leaf
        if fields == {"choice": Choice.SWITCH.value}:
            return Choice.SWITCH
        if set(fields) == {"op", "attrs"}:
            op = op_named(text(fields["op"], "the name of an op"))
            if op is None:
                raise LoadError(
                    f"there is no op {fields['op']!r:.60} here. Import the package that defines it "
                    "before you load the graph"
                )
            attrs = [self.reader.value(one) for one in many(fields["attrs"], "attributes")]
            return Computation(op, tuple(attrs))
        if set(fields) == {"output", "declared"}:
            name, index = items_of(fields["output"], 2, "an output")
            index = whole(index, "the number of an output", 0, MOST_OUTPUTS)
            return output(
                text(name, "the name of a function"), index, self.promise(fields["declared"])
            )
        if set(fields) in (_APPLIED, _LIFTED):
            return self.lifted(fields)
        raise LoadError(f"{form!r:.60} does not say what a node is")

    def promise(self, form: Any) -> Spec | None:
        """Return the spec that a function declares for its result."""
        declared = self.reader.spec(form)
        if declared is not None and (declared.weak is not None or not declared.known):
            raise LoadError(f"a function declares {declared!r}, which is no array")
        return declared

    def lifted(self, fields: dict[str, Any]) -> Lifted:
        """Return the definition of a node that calls a Python function."""
        reader = self.reader
        function: Any = reader.function(fields["function"], "a node")
        keywords = tuple([text(k, "a keyword") for k in many(fields["keywords"], "keywords")])
        layout = fields["layout"]
        if layout is not None:
            layout = tuple([reader.value(fixed) for fixed in many(layout, "arguments")])
        if len(keywords) > len(layout or ()) or len(set(keywords)) != len(keywords):
            raise LoadError("a function has keywords without arguments, or one twice")
        applied = isinstance(function, type) and issubclass(function, Function)
        if applied != (set(fields) == _APPLIED) or (applied and layout is None):
            raise LoadError(f"{fields['function']!r:.60} is not the kind of function that it was")
        if applied:
            return Applied(function, layout, keywords)  # type: ignore[arg-type]
        vjp, jvp = (
            None if fields[rule] is None else reader.function(fields[rule], "the rule of a node")
            for rule in ("vjp", "jvp")
        )
        declared, outputs = self.promise(fields["declared"]), fields["outputs"]
        if outputs is not None:
            outputs = tuple([self.promise(one) for one in many(outputs, "outputs")])
            if not outputs or declared is not None:
                raise LoadError("a function has no outputs, or declares more than these")
        return Lifted(function, declared, vjp, layout, keywords, jvp, outputs)

    # --- values

    def values(self, form: list[int], serial: list[int], names: dict[int, str]) -> list[Any]:
        """Return the values of all nodes."""
        forms = [self.form(one) for one in many(self.manifest["forms"], "forms")]
        objects = iter(many(self.manifest["objects"], "objects"))
        if len(form) != len(serial):
            raise LoadError("column 'form' has not one row for each node")
        values: list[Any] = []
        for node, place in enumerate(form):
            if not 0 <= place < len(forms):
                raise LoadError("column 'form' points to nothing")
            kind, *rest = forms[place]
            if kind == "object":
                try:
                    values.append(self.reader.value(next(objects)))
                except StopIteration:
                    raise LoadError("there are fewer objects than nodes that hold one") from None
            elif kind == "own":
                values.append(self.own(serial[node], names.get(node), *rest))
            elif kind == "pooled":
                values.append(self.pooled(*rest))
            else:
                values.append(Absent(kind))
        if next(objects, self) is not self:
            raise LoadError("there are more objects than nodes that hold one")
        if any(len(pool) != self.used[dtype] for dtype, pool in self.pools.items()):
            raise LoadError("a pool of values holds more than its nodes")
        return values

    def form(self, form: Any) -> tuple[Any, ...]:
        """Return the form in which a value is stored."""
        kind = many(form, "the form of a value")[:1]
        if kind in (["own"], ["pooled"]):
            _, dtype, shape, axes = items_of(form, 4, "the form of a value")
            name = self.reader.dtype(dtype).name
            lengths = [whole(m, "a length", 0, MOST_LENGTH) for m in many(shape, "a shape")]
            if axes is not None and len(many(axes, "axes")) != len(lengths):
                raise LoadError("an array has not as many axes as lengths")
            return kind[0], name, tuple(lengths), axes
        if form not in (["missing"], ["view"], ["object"]):
            raise LoadError(f"{form!r:.60} is no form of a value")
        return (kind[0],)

    def own(self, serial: int, name: str | None, dtype: str, shape: Any, axes: Any) -> Any:
        """Return a value that has its own tensor."""
        for tensor in (tensor_name(serial, name), tensor_name(serial, None)):
            array = self.tensors.pop(tensor, None)
            if array is not None:
                break
        else:
            raise LoadError(f"tensor {tensor_name(serial, name)!r:.60} is missing")
        self.check_dtype(tensor, array, dtype)
        array = from_tensor(array, dtype)
        if array.shape != shape:
            raise LoadError(f"tensor {safe_repr(tensor):.60} has shape {array.shape}, not {shape}")
        return array if axes is None else in_order(array, axes)

    def pooled(self, dtype: str, shape: tuple[int, ...], axes: Any) -> Any:
        """Return the next value of a pool."""
        stored = PAIRS.get(dtype, dtype)
        pool = self.pools.get(stored)
        if pool is None:
            pool = self.take(f"pool/{stored}")
            if pool.ndim != 1 or pool.dtype.name != stored:
                raise LoadError(f"the pool of {stored} holds {pool.dtype}")
            pool.flags.writeable = False
            self.pools[stored] = pool
        start = self.used.get(stored, 0)
        count = math.prod(shape) * (2 if dtype in PAIRS else 1)
        if start + count > len(pool):
            raise LoadError(f"the pool of {stored} holds less than its nodes")
        self.used[stored] = start + count
        pair = (2,) if dtype in PAIRS else ()
        array = from_tensor(pool[start : start + count].reshape((*shape, *pair)), dtype)
        return array if axes is None else in_order(array, axes)
