"""Odd numbers and words in the place of each argument of all public functions and constructors end in words."""

from __future__ import annotations

import inspect
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

BEYOND = 10**5000  # Python refuses to write numbers of more than 4,300 digits
ODD: dict[str, Any] = {
    "beyond": BEYOND,
    "huge": -(10**30),
    "negative": -7,
    "nan": float("nan"),
    "inf": float("inf"),
    "fraction": 2.5,
    "word": "bogus",
    "None": None,
    "numbers": (1, (BEYOND, 2)),
    "object": object(),
}
# What is made by the engine alone, or works outside of this process.
NOT_CALLED = {
    *("Plan", "Run", "Running", "HookHandle", "VarList", "Var", "DetachedVar", "Farm"),
    *("load", "load_checkpoint", "load_weights", "save_checkpoint", "from_bytes", "from_excel"),
    *("from_onnx", "from_pnnx", "from_networkx", "save_on_disk", "SummaryWriter", "plot"),
    *("betainc", "gammainc", "gammaincc", "set_num_threads"),  # the first three take long
}
X = np.arange(1.0, 13.0).reshape(3, 4) / 10
# Of arguments that these names have, where an array would not do.
BY_NAME: dict[str, Any] = {
    **dict.fromkeys(("in_features", "out_features", "in_channels", "out_channels"), 2),
    **dict.fromkeys(("input_size", "hidden_size", "num_embeddings", "embedding_dim", "k", "n"), 2),
    **dict.fromkeys(("kernel_size", "num_groups", "num_features", "num_channels", "size"), 2),
    "axis": 0,
    "shape": (3, 4),
    "dtype": "float64",
    "indices_or_sections": 1,
    "num": 3,
    "fn": lambda *a: a[0],
    "f": lambda *a: a[0],
    "index": 0,
    "indices": np.array([0, 1]),
    "subscripts": "ij->i",
    "lr": 0.1,
    "normalized_shape": (4,),
    "p": 0.5,
    "name": None,
}


class Slow(BaseException):
    """A call took longer than any error should."""


@contextmanager
def seconds(limit: float) -> Iterator[None]:
    def end(number: int, frame: FrameType | None) -> None:
        raise Slow

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def functions() -> dict[str, Callable[..., Any]]:
    found: dict[str, Callable[..., Any]] = {}
    for room in ("", "linalg", "fft", "random", "nn", "nn.functional", "optim", "data"):
        owner: Any = rg
        for part in room.split("."):
            owner = getattr(owner, part) if part else owner
        for name in dir(owner):
            one = getattr(owner, name)
            error = isinstance(one, type) and issubclass(one, BaseException | Warning)
            ours = getattr(one, "__module__", "").startswith("reactgrad")
            if ours and name[0] != "_" and name not in NOT_CALLED and callable(one) and not error:
                found[f"{room}.{name}".lstrip(".")] = one
    return found


FUNCTIONS = functions()


def usual(one: inspect.Parameter, g: rg.Graph) -> Any:
    if one.name in BY_NAME:
        return BY_NAME[one.name]
    return [g.param(X)] if one.name == "params" else g.input(X)


def calls(function: Callable[..., Any], g: rg.Graph, odd: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield for each parameter its name and the arguments of a call with `odd` in its place."""
    parameters = list(inspect.signature(function).parameters.values())
    for at, odd_one in enumerate(parameters):
        if odd_one.kind is odd_one.VAR_KEYWORD or odd_one.name == "out":
            continue
        by_place: list[Any] = []
        by_name: dict[str, Any] = {}
        for place, one in enumerate(parameters):
            value = odd if place == at else usual(one, g)
            if place != at and (one.default is not one.empty or "VAR" in one.kind.name):
                continue
            if one.kind is one.KEYWORD_ONLY or len(by_place) < place:
                by_name[one.name] = value
            else:
                by_place.append(value)
        yield odd_one.name, by_place, by_name


def read(value: Any) -> None:
    if isinstance(value, rg.Var):
        value.value
    elif isinstance(value, list | tuple):
        for one in value[:3]:
            read(one)


def said(error: Exception) -> bool:
    """Return whether an error says in words what is wrong, in few of them."""
    notes = getattr(error, "__notes__", ())
    text = str(error) + "".join(notes)
    if isinstance(error, rg.ReactgradError):
        return 20 < len(text) < 2500 and "whose repr" not in text
    # A kernel's own error keeps its type, and has a note with the node; files are the system's.
    return isinstance(error, OSError) or (bool(notes) and not isinstance(error, OverflowError))


@pytest.mark.slow
@pytest.mark.parametrize("word", ODD)
@pytest.mark.filterwarnings("ignore")
def test_odd_arguments_end_in_words(word: str) -> None:
    wrong: list[str] = []
    # Each word goes to every third function, each function gets three words at least.
    for name, function in list(FUNCTIONS.items())[list(ODD).index(word) % 3 :: 3]:
        g = rg.Graph(rng=0)
        with g:
            for parameter, by_place, by_name in calls(function, g, ODD[word]):
                try:
                    with seconds(60.0):
                        read(function(*by_place, **by_name))
                except Slow:
                    wrong.append(f"{name}({parameter}): for ever")
                except MemoryError:
                    wrong.append(f"{name}({parameter}): all memory")
                except Exception as error:
                    if not said(error):
                        wrong.append(f"{name}({parameter}): {type(error).__name__}")
    assert not wrong


def test_there_are_functions_to_call() -> None:
    assert len(FUNCTIONS) > 700


def _user(value: Any) -> Any:
    raise ValueError("mine")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda x: rg.eye(2.5),
            r"^rg.eye\(N=2.5\): TypeError: .* These are not arguments that it can use; it takes \(N, M, k,",
        ),
        (
            lambda x: rg.choose(x, 5),
            r"^rg.choose\(a=x, choices=5\): TypeError: object of type 'int' has no len\(\)",
        ),
        (
            lambda x: rg.nn.Linear(BEYOND, 2),
            r"^Linear\(in_features=<int of 16610 bits>, out_features=2\): OverflowError",
        ),
        (
            lambda x: rg.can_cast(BEYOND, "f4"),
            r"dtype=<int of 16610 bits> is no dtype; write for example 'float64'",
        ),
        (
            lambda x: rg.split(x, BEYOND),
            r"^split into <int of 16610 bits> parts: each part is a node, and no memory holds so many",
        ),
        (lambda x: rg.pad(x, BEYOND), r"^pad by <int of 16610 bits>: widths are integers"),
        (
            lambda x: rg.unflatten(x, 0, (BEYOND, 1)),
            r"^unflatten: \(<int of 16610 bits>, 1\) is no shape that an array can have",
        ),
        (lambda x: rg.linalg.norm(x, BEYOND), r"^norm: ord=<int of 16610 bits> is no norm"),
        (lambda x: rg.elu(x, BEYOND), r"^elu: alpha=<int of 16610 bits>; no float is so large"),
        (lambda x: rg.tril(x, 2**62), r"^tril: k=4611686018427387904; no array is so large"),
        (
            lambda x: rg.broadcast_to(x[0, 0], (2**62,)),
            r"^float64\[4611686018427387904\] would take 36893488147419103232 bytes; no array is so large",
        ),
        (
            lambda x: rg.equal(x, BEYOND).value,
            r"<int of 16610 bits> does not fit into float64.* No float64 is so large, and np.inf",
        ),
        (
            lambda x: rg.Threads(BEYOND),
            r"^Threads\(<int of 16610 bits>\): write how many .* at most 10,000",
        ),
        (
            lambda x: rg.set_num_threads(BEYOND),
            r"^set_num_threads\(<int of 16610 bits>\): .* 1 or more and at most 10,000",
        ),
        (
            lambda x: rg.Graph(max_bytes=-BEYOND),
            r"^max_bytes=<int of 16610 bits>: a number of bytes, such as 2\*\*30, or None",
        ),
        (
            lambda x: rg.optim.SGD([rg.param([1.0])], lr=BEYOND),
            r"^SGD\(lr=<int of 16610 bits>\) must be a number",
        ),
        (
            lambda x: rg.checkpoint_sequential(5, 1, x),
            r"^rg.checkpoint_sequential\(5, ...\): the first argument is a list of functions",
        ),
    ],
)
def test_what_is_said(call: Callable[[rg.Var], Any], words: str) -> None:
    g = rg.Graph()
    with g, pytest.raises(rg.ReactgradError, match=words):
        call(g.input(X, name="x"))


def test_an_error_of_a_function_of_the_users_stays_as_it_is(g: rg.Graph) -> None:
    x = g.input(X)
    for call in (
        lambda: rg.checkpoint(_user, x),
        lambda: rg.checkpoint_sequential([_user], 1, x),
        lambda: rg.grad(_user)(X),
        lambda: rg.apply_along_axis(_user, 0, x),
        lambda: rg.subgraph(_user)(x),
    ):
        with pytest.raises(ValueError, match="^mine$") as caught:
            call()
        assert type(caught.value) is ValueError


def test_more_differences_than_elements_leave_none(g: rg.Graph) -> None:
    x = g.input([1.0, 4.0, 9.0])
    assert rg.diff(x, 2**62).shape == np.diff(x.value, 5).shape == (0,)
    assert rg.polyder(x, 2**62).shape == (0,)
    images = g.input(np.arange(1.0, 7.0).reshape(1, 3, 2))
    for size in (6, 7):
        np.testing.assert_allclose(
            rg.local_response_norm(images, size + 2**40, alpha=2.0**40 + size, beta=1.0).value,
            images.value / (1 + (images.value**2).sum(1, keepdims=True)),
        )
