"""Attributes, Python values, specs and functions as JSON, and back without trusting it.

A value that JSON has no form for becomes an object with one key that names its kind: ``{"tuple":
[...]}``, ``{"slice": [0, null, 2]}``. Floats are written so that they read back the same. Those
that JSON cannot write are written as the hexadecimal digits of their bits, so that NaN keeps all
its bits.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from reactgrad._errors import LoadError, MissingExtraError
from reactgrad.backend import WEAK_DTYPES, Spec, spec, weak_spec
from reactgrad.io._format import DTYPES, NAMES, from_tensor, to_tensor
from reactgrad.io._former_names import present_name
from reactgrad.nodes._cutoff import Tolerance, equal
from reactgrad.nodes._function_names import (
    FunctionName,
    UnnamedError,
    UntrustedError,
    find,
    name_of,
)
from reactgrad.nodes._lifted import OPERAND
from reactgrad.ops import Index, Slot
from reactgrad.scheduler import safe_repr

# Deeper nesting is refused in both directions.
MOST_NESTED = 50
MOST_AXES = 64
MOST_LENGTH = 1 << 60
# Before functions that are written as code; no name of a module has a space.
CODE = "code of cloudpickle "


class UnwritableError(Exception):
    """A value cannot be written; the message says why."""


def _bits(number: float) -> str:
    return struct.pack(">d", number).hex()


class Writer:
    """Turns values into JSON; arrays inside of them are collected.

    With `code`, functions that have no name are written as code, by cloudpickle.
    """

    def __init__(self, code: bool = False) -> None:
        self._code = code
        self.arrays: list[np.ndarray[Any, Any]] = []
        self._names: dict[int, tuple[Any, list[Any]]] = {}

    def value(self, thing: Any, depth: int = 0) -> Any:
        """Return the form of any value that can be written."""
        kind = type(thing)
        if depth > MOST_NESTED:
            raise UnwritableError(f"it is nested more than {MOST_NESTED} deep")
        if thing is None or kind is bool or kind is str:
            return thing
        if kind is int:
            return thing if abs(thing) < 1 << 63 else {"int": hex(thing)}
        if kind is float:
            return thing if math.isfinite(thing) else {"float": _bits(thing)}
        if kind is complex:
            return {"complex": [_bits(thing.real), _bits(thing.imag)]}
        if kind is bytes:
            return {"bytes": thing.hex()}
        if kind is tuple or kind is list:
            items = [self.value(item, depth + 1) for item in thing]
            return items if kind is list else {"tuple": items}
        if kind is dict:
            below = depth + 1
            return {
                "dict": [[self.value(k, below), self.value(v, below)] for k, v in thing.items()]
            }
        if kind is slice:
            return {
                "slice": [self.value(e, depth + 1) for e in (thing.start, thing.stop, thing.step)]
            }
        if thing is Ellipsis:
            return {"ellipsis": None}
        if thing is OPERAND:
            return {"argument": None}
        if isinstance(thing, np.dtype):
            return {"dtype": self.dtype(thing)}
        if isinstance(thing, np.generic):
            return {"scalar": [self.array(np.asarray(thing)), self.dtype(thing.dtype)]}
        if kind is np.ndarray:
            axes = axes_in_memory(thing)
            if axes is None:
                thing, axes = np.ascontiguousarray(thing), tuple(range(thing.ndim))
            return {"array": [self.array(thing.transpose(axes)), self.dtype(thing.dtype), [*axes]]}
        if kind is Index:
            return {"index": [self.value(part, depth + 1) for part in thing.parts]}
        if kind is Slot:
            plain = thing.mode == "raise" and thing.axis is None
            how = [thing.number, thing.mode, thing.axis, thing.short]
            return {"operand": thing.number if plain else how}
        raise UnwritableError(f"a {kind.__module__}.{kind.__qualname__} has no form in a file")

    def array(self, array: np.ndarray[Any, Any]) -> int:
        """Collect an array and return its place among those collected."""
        self.dtype(array.dtype)
        self.arrays.append(to_tensor(array))
        return len(self.arrays) - 1

    @staticmethod
    def dtype(dtype: np.dtype[Any]) -> str:
        """Return the name of a dtype."""
        name = NAMES.get(dtype)
        if name is None:
            raise UnwritableError(
                f"arrays of dtype {dtype} have no form in a file that every machine reads alike"
            )
        return name

    def spec(self, found: Spec | None) -> Any:
        """Return the form of a spec."""
        if found is None:
            return None
        if found.weak is not None:
            return {"number": found.weak.__name__, "device": found.device}
        return {
            "dtype": self.dtype(found.dtype),
            "shape": [*found.shape],
            "device": found.device,
        }

    def function(self, function: Callable[..., Any]) -> list[Any]:
        """Return the form of a function: its name."""
        known = self._names.get(id(function))
        if known is None:
            try:
                known = (function, [*name_of(function)])
            except UnnamedError as error:
                if not self._code:
                    raise UnwritableError(str(error)) from None
                known = (function, [CODE + _as_code(function), 0])
            self._names[id(function)] = known
        return known[1]

    def cutoff(self, rule: Callable[..., Any]) -> Any:
        """Return the form of a cutoff rule."""
        if rule is equal:
            return "equal"
        if type(rule) is Tolerance:
            return {"tolerance": [self.value(rule.rtol), self.value(rule.atol)]}
        return {"function": self.function(rule)}


def _as_code(function: Callable[..., Any]) -> str:
    """Return a function as code in text."""
    try:
        import cloudpickle
    except ImportError as error:
        raise MissingExtraError(
            "functions without a name travel as code by the package cloudpickle, which is not installed: "
            'pip install "reactgrad[farm]". Functions at the top level of a module need no package.'
        ) from error
    import base64

    return base64.b85encode(cloudpickle.dumps(function)).decode()


def axes_in_memory(array: np.ndarray[Any, Any]) -> tuple[int, ...] | None:
    """Return the axes from the slowest to the fastest.

    Return ``None`` if the array does not fill its memory without gaps.
    """
    if array.flags.c_contiguous:
        return tuple(range(array.ndim))
    strides = array.strides
    axes = tuple(sorted(range(array.ndim), key=lambda axis: -strides[axis]))
    return axes if array.transpose(axes).flags.c_contiguous else None


class Reader:
    """Turns JSON into values; nothing is called or imported that is not allowed.

    Parameters
    ----------
    arrays
        Returns the stored array with a number, which must have the given dtype.
    trust
        Modules whose functions may be used.
    """

    def __init__(
        self, arrays: Callable[[int, str], np.ndarray[Any, Any]], trust: Collection[str]
    ) -> None:
        self._arrays = arrays
        self._trust = trust
        self._functions: dict[FunctionName, Callable[..., Any]] = {}

    def value(self, form: Any, depth: int = 0) -> Any:
        """Return the value that ``Writer.value`` was given."""
        if depth > MOST_NESTED:
            raise LoadError(f"a value is nested more than {MOST_NESTED} deep")
        if form is None or isinstance(form, bool | str | int | float):
            return form
        if isinstance(form, list):
            return [self.value(item, depth + 1) for item in form]
        what, given = only(form, "a value")
        if what in ("tuple", "slice", "dict", "index"):
            items = many(given, f"a {what}")
            if what == "dict":
                pairs = [items_of(pair, 2, "an entry of a dict") for pair in items]
                return {self.key(k, depth): self.value(v, depth + 1) for k, v in pairs}
            parts = tuple([self.value(item, depth + 1) for item in items])
            if what == "tuple":
                return parts
            return _slice(parts) if what == "slice" else _index(parts)
        if what == "int":
            return _from_hex(given)
        if what == "float":
            return _from_bits(given)
        if what == "complex":
            real, imaginary = items_of(given, 2, "a complex number")
            return complex(_from_bits(real), _from_bits(imaginary))
        if what == "bytes":
            try:
                return bytes.fromhex(text(given, "bytes"))
            except ValueError:
                raise LoadError("bytes are not written in hexadecimal digits") from None
        if what == "ellipsis":
            return Ellipsis
        if what == "argument":
            return OPERAND
        if what == "operand":
            return _slot(given)
        if what == "dtype":
            return self.dtype(given)
        if what == "scalar":
            place, dtype = items_of(given, 2, "a scalar")
            array = self.array(place, dtype)
            if array.shape != ():
                raise LoadError("a scalar is stored as more than one number")
            return array[()]
        if what == "array":
            place, dtype, axes = items_of(given, 3, "an array")
            return in_order(self.array(place, dtype), axes)
        raise LoadError(f"{safe_repr(what):.60} is no kind of value")

    def key(self, form: Any, depth: int) -> Any:
        key = self.value(form, depth + 1)
        try:
            hash(key)
        except TypeError:
            raise LoadError("a key of a dict is not hashable") from None
        return key

    def array(self, place: Any, dtype: Any) -> np.ndarray[Any, Any]:
        name = self.dtype(dtype).name
        array = self._arrays(whole(place, "the number of an array", 0, MOST_LENGTH), name)
        array.flags.writeable = False
        return from_tensor(array, name)

    @staticmethod
    def dtype(name: Any) -> np.dtype[Any]:
        """Return the dtype of this name."""
        try:
            return DTYPES[name]
        except (KeyError, TypeError):
            raise LoadError(f"{safe_repr(name):.60} is no dtype of a value") from None

    def spec(self, form: Any) -> Spec | None:
        """Return the spec that ``Writer.spec`` was given."""
        if form is None:
            return None
        fields = record(form, "what is known of a value")
        device = text(fields.get("device"), "the device of a value")
        if "number" in fields:
            for number in WEAK_DTYPES:
                if number.__name__ == fields["number"]:
                    return weak_spec(number, device)
            raise LoadError(f"{fields['number']!r:.60} is no kind of Python number")
        shape = many(fields.get("shape"), "a shape")
        if len(shape) > MOST_AXES:
            raise LoadError(f"a shape has {len(shape)} axes; NumPy has at most {MOST_AXES}")
        lengths = tuple(
            [None if n is None else whole(n, "a length of a shape", 0, MOST_LENGTH) for n in shape]
        )
        if math.prod(max(n or 0, 1) for n in lengths) > MOST_LENGTH:
            raise LoadError(f"an array of shape {shape} does not fit any memory")
        return spec(lengths, self.dtype(fields.get("dtype")), device)

    def function(self, form: Any, user: str) -> Callable[..., Any]:
        """Return the function of this name, for the node or rule `user`."""
        name, wrappers = items_of(form, 2, "the name of a function")
        if isinstance(name, str) and name.startswith(CODE):
            return self._from_code(name.removeprefix(CODE), user)
        key = FunctionName(
            present_name(text(name, "the name of a function")),
            whole(wrappers, "a number of wrappers", 0, 8),
        )
        found = self._functions.get(key)
        if found is None:
            try:
                found = self._functions[key] = find(key, self._trust)
            except UntrustedError:
                module = key.text.partition(":")[0]
                raise LoadError(
                    f"{user} calls {key.text!r}, a function that this program has not used in a "
                    "graph itself. Whoever wrote the file would choose what runs here. If you "
                    f"trust this module, write rg.load(path, trust=[{module!r}]), or import the "
                    "part of your program that gives the function to rg.lift before you load"
                ) from None
            except LookupError as error:
                raise LoadError(
                    f"{user} calls {safe_repr(key.text):.200}: {error.args[0]}"
                ) from error
        return found

    def _from_code(self, form: str, user: str) -> Callable[..., Any]:
        """Return a function that was written as code."""
        if "cloudpickle" not in self._trust:
            raise LoadError(
                f"{user} calls a function that is code, not a name, and whoever wrote it chooses what runs "
                "here. If you trust all of it, write rg.from_bytes(data, trust=['cloudpickle'])"
            )
        import base64
        import pickle

        return pickle.loads(base64.b85decode(form))

    def cutoff(self, form: Any) -> Callable[..., Any]:
        """Return the rule that ``Writer.cutoff`` was given."""
        if form == "equal":
            return equal
        what, given = only(form, "a cutoff")
        if what == "function":
            return self.function(given, "a cutoff")
        if what != "tolerance":
            raise LoadError(f"{safe_repr(what):.60} is no kind of cutoff")
        sizes = [self.value(size) for size in items_of(given, 2, "a tolerance")]
        if not all(type(size) in (int, float, bool) and size >= 0 for size in sizes):
            raise LoadError("a tolerance is negative, or no number")
        return Tolerance(sizes[0], sizes[1])


def in_order(array: np.ndarray[Any, Any], axes: Any) -> np.ndarray[Any, Any]:
    """Return an array that was stored with its axes in the order `axes`, in its former order."""
    order = [whole(a, "an axis", 0, MOST_AXES) for a in many(axes, "the axes of an array")]
    if sorted(order) != list(range(array.ndim)):
        raise LoadError(f"an array with {array.ndim} axes has them in the order {order}")
    return array.transpose([order.index(axis) for axis in range(array.ndim)])


def _slice(parts: tuple[Any, ...]) -> slice:
    if len(parts) != 3:
        raise LoadError("a slice has not three parts")
    return slice(*parts)


def _slot(form: Any) -> Slot:
    """Return the place of an operand in an index."""
    if not isinstance(form, list):
        return Slot(whole(form, "the number of an operand", 0, MOST_LENGTH))
    number, mode, axis, short = items_of(form, 4, "the place of an operand")
    if mode not in ("raise", "wrap", "clip") or type(short) is not bool:
        raise LoadError(f"{safe_repr(form):.60} is no place of an operand")
    if axis is not None:
        whole(axis, "the axis of an operand", -MOST_AXES, MOST_AXES)
    return Slot(whole(number, "the number of an operand", 0, MOST_LENGTH), mode, axis, short)


def _index(parts: tuple[Any, ...]) -> Index:
    """Return an index of these parts, after a check of each."""
    for part in parts:
        if isinstance(part, slice):
            ends = (part.start, part.stop, part.step)
            fits = all(e is None or type(e) is int for e in ends) and part.step != 0
        elif isinstance(part, np.ndarray):
            fits = part.dtype.kind in "biu"
        else:
            fits = part is None or part is Ellipsis or type(part) in (int, Slot)
        if not fits:
            raise LoadError(f"{safe_repr(part):.60} is no part of an index")
    return Index(parts)


def _from_bits(digits: Any) -> float:
    try:
        return struct.unpack(">d", bytes.fromhex(text(digits, "a float")))[0]
    except (ValueError, struct.error):
        raise LoadError(f"{safe_repr(digits):.60} is not the bits of a float") from None


def _from_hex(digits: Any) -> int:
    try:
        return int(text(digits, "an integer"), 16)
    except ValueError:
        raise LoadError(f"{safe_repr(digits):.60} is no integer") from None


# --- checks of the manifest's parts --------------------------------------------------------------


def whole(number: Any, what: str, least: int, most: int) -> int:
    """Return `number` if it is an integer within these bounds, else raise."""
    if type(number) is not int or not least <= number <= most:
        raise LoadError(f"{what} is {safe_repr(number):.60}, and should be from {least} to {most}")
    return number


def text(string: Any, what: str) -> str:
    """Return `string` if it is a string, else raise."""
    if type(string) is not str:
        raise LoadError(f"{what} is {safe_repr(string):.60}, and should be a string")
    return string


def many(items: Any, what: str) -> list[Any]:
    """Return `items` if it is a list, else raise."""
    if type(items) is not list:
        raise LoadError(f"{what} is {safe_repr(items):.60}, and should be a list")
    return items


def items_of(items: Any, count: int, what: str) -> list[Any]:
    """Return `items` if it is a list of `count` items, else raise."""
    if len(many(items, what)) != count:
        raise LoadError(f"{what} has {len(items)} parts, and should have {count}")
    return items


def record(fields: Any, what: str) -> dict[str, Any]:
    """Return `fields` if it is a JSON object, else raise."""
    if type(fields) is not dict:
        raise LoadError(f"{what} is {safe_repr(fields):.60}, and should be an object")
    return fields


def only(fields: Any, what: str) -> tuple[str, Any]:
    """Return the key and the content of a JSON object with one key; raise for anything else."""
    if len(record(fields, what)) != 1:
        raise LoadError(f"{what} is {safe_repr(fields):.60}, and should be an object with one key")
    return next(iter(fields.items()))
