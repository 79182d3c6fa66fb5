"""Functions of a module, as saved graphs want them."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import reactgrad as rg

CALLS: list[str] = []


def double(a: Any) -> Any:
    """Twice `a`, noted."""
    CALLS.append("double")
    return a * 2.0


def double_vjp(g: Any, ans: Any, a: Any) -> Any:
    return g * 2.0


def double_jvp(tangents: Any, ans: Any, a: Any) -> Any:
    return tangents[0] * 2.0


def same_vjp(g: Any, ans: Any, a: Any) -> tuple[Any]:
    return (g,)


def itself(a: Any) -> Any:
    return a


def never_lifted(a: Any) -> Any:
    return a


def close(old: Any, new: Any) -> bool:
    return bool(np.all(np.abs(old - new) < 1.0))


def thing(kind: str) -> Any:
    """Results of many kinds."""
    CALLS.append(kind)
    return {
        "none": None,
        "text": "süß \ud800 \0",
        "int": 10**30,
        "nan": float("nan"),
        "minus zero": -0.0,
        "complex": complex(float("inf"), -0.0),
        "bytes": b"\0\xff",
        "scalar": np.float16(0.1),
        "bool": np.bool_(True),
        "nested": {"a": [1, (2.5, None)], (1, "b"): [np.arange(3), np.float32(2)], 7: {}},
        "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "axes": np.ascontiguousarray(np.arange(24.0).reshape(2, 3, 4).transpose(1, 2, 0)).transpose(
            2, 0, 1
        ),
        "empty": np.zeros((0, 3), np.complex64),
        "number": np.array(5, np.uint8),
        # What has no form in a file.
        "object": object,
        "set": {1, 2},
        "strings": np.array(["a", "b"]),
        "lists": [[], {1}],
    }[kind]


def view(a: Any) -> Any:
    """A view of the argument that does not fill its memory."""
    CALLS.append("view")
    return a[::2, ::-1]


def affine(a: Any, b: float, *rest: Any, scale: Any = 1.0, **options: Any) -> Any:
    """Fixed arguments of all kinds."""
    CALLS.append(repr((b, rest, options)))
    return a * scale + b


def fails(a: Any) -> Any:
    CALLS.append("fails")
    raise ArithmeticError(f"{a}")


READERS: dict[str, Any] = {}


def reads(which: Any) -> Any:
    """Reads one of two others while it runs."""
    return READERS["a" if which else "b"].value


@rg.lift
def decorated(a: Any) -> Any:
    CALLS.append("decorated")
    return a + 1.0


@rg.lift
@functools.lru_cache
def twice_decorated(a: Any) -> Any:
    return a + 2.0


class Holder:
    """Functions that are no functions of the module, and one that is."""

    def method(self, a: Any) -> Any:
        return a

    def __call__(self, a: Any) -> Any:
        return a

    @staticmethod
    def static(a: Any) -> Any:
        return a * 4.0


def redefined(a: Any) -> Any:
    return a


first_redefined = redefined


def redefined(a: Any) -> Any:  # type: ignore[no-redef]
    return a


nameless = eval("lambda a: a")


def maker() -> Any:
    def inner(a: Any) -> Any:
        return a

    return inner
