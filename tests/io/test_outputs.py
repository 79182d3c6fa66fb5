"""Files that say something impossible of functions with several outputs, or of classes with rules."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import reactgrad as rg
from tests.autodiff.functions import MulConstant, to_polar
from tests.io.files import forged, packed

pytest.importorskip("safetensors")


def small() -> rg.Graph:
    """Definitions: input, polar, polar[0], polar[1], MulConstant, MulConstant[0]."""
    g = rg.Graph()
    x, y = g.input(3.0, name="x"), g.input(4.0, name="y")
    radius, angle = to_polar(x, y)
    scaled = MulConstant.apply(angle, 2.0)
    for name, node in (("radius", radius), ("angle", angle), ("scaled", scaled)):
        g.keep(node).name = name
    g.forward(radius, angle, scaled)
    return g


def of(word: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The definition that has this word in it."""
    return lambda manifest: next(d for d in manifest["definitions"] if word in repr(d))


POLAR, FIRST = of("functions:polar'"), of("['polar', 0]")
APPLIED, SCALED = of("functions:MulConstant"), of("['MulConstant', 0]")


def saying(definition: Callable[[Any], dict[str, Any]], **fields: Any) -> Callable[[Any], None]:
    return lambda manifest: definition(manifest).update(fields)


SPEC = {"dtype": "float64", "shape": [], "device": "cpu"}
TAMPERED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "no such output": (saying(FIRST, output=["polar", 2]), "does not have"),
    "a negative one": (saying(FIRST, output=["polar", -1]), "should be from 0"),
    "no number": (saying(FIRST, output=["polar", "0"]), "should be from 0"),
    "another function's": (saying(FIRST, output=["angle", 0]), "not listed as its function's"),
    "declared otherwise": (saying(FIRST, declared=SPEC), "not listed as its function's"),
    "one output": (saying(POLAR, outputs=None), "an output of what has none"),
    "no outputs": (saying(POLAR, outputs=[]), "has no outputs"),
    "fewer outputs": (saying(POLAR, outputs=[None]), "does not have"),
    "twice declared": (saying(POLAR, declared=SPEC), "declares more than these"),
    "a class as a function": (
        saying(POLAR, function=["tests.autodiff.functions:MulConstant", 0]),
        "not the kind of function",
    ),
    "a function as a class": (
        saying(APPLIED, function=["tests.autodiff.functions:polar", 0]),
        "not the kind of function",
    ),
    "a class without arguments": (saying(APPLIED, layout=None), "not the kind of function"),
    "more of a class": (saying(APPLIED, outputs=None), "does not say what a node is"),
    "output of an unknown kind": (saying(SCALED, more=1), "does not say what a node is"),
    "a class that nobody has defined": (
        saying(APPLIED, function=["os:PathLike", 0]),
        "has not used in a graph itself",
    ),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_impossible_outputs_are_refused(name: str, tmp_path: Path) -> None:
    tamper, words = TAMPERED[name]
    manifest, tensors = packed(small())
    tamper(manifest)
    with pytest.raises(rg.LoadError, match=words):
        rg.load(forged(tmp_path / "g", manifest, tensors))


def test_the_same_file_untampered_is_loaded(tmp_path: Path) -> None:
    h = rg.load(forged(tmp_path / "g", *packed(small())))
    assert h["scaled"].value == h["angle"].value * 2.0


def test_output_of_another_node_is_refused(tmp_path: Path) -> None:
    manifest, tensors = packed(small())
    parents = tensors["graph/parents"]
    at = int((parents == 2).argmax())  # radius takes its part of polar
    parents[at] = 0
    with pytest.raises(rg.LoadError, match="an output of what has none"):
        rg.load(forged(tmp_path / "g", manifest, tensors))
