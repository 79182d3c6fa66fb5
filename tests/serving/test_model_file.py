"""Which graph a file has: by a name, or because there is but one."""

from __future__ import annotations

from pathlib import Path

import pytest

from reactgrad.serving._model_file import ModelError, ModelFile, split, trouble

TWO = """
import reactgrad as rg
g = rg.Graph()
x = g.input(1.0, name="x")
y = x * 2.0
h = rg.Graph()
z = h.input(2.0, name="z")
def book():
    return y
def nothing():
    pass
number = 3
"""


def load(path: Path, text: str, name: str | None = None):
    path.write_text(text)
    return ModelFile(path, name).load()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.py"


def test_a_graph_by_its_name(path: Path) -> None:
    assert load(path, TWO, "h").graph.inputs[0].name == "z"
    assert load(path, TWO, "h").targets == ()


def test_a_node_by_its_name_is_the_target(path: Path) -> None:
    found = load(path, TWO, "y")
    assert found.targets[0].value == 2.0
    assert found.graph.inputs[0].name == "x"


def test_a_function_is_called(path: Path) -> None:
    assert load(path, TWO, "book").targets[0].value == 2.0


def test_nodes_made_without_a_graph_are_of_one(path: Path) -> None:
    text = "import reactgrad as rg\nw = rg.param(3.0)\nloss = (w - 1.0) ** 2\n"
    first, second = load(path, text), load(path, text)
    assert first.graph is not second.graph
    assert len(first.graph) == len(second.graph)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (None, "model.py has 2 graphs: say which, model.py:name (g, h)."),
        ("q", "model.py has no name 'q': it has g, x, y, h, z, book, nothing."),
        (
            "number",
            "model.py:number is of type int: name a Graph, a Var, or a function that returns one.",
        ),
        ("nothing", "model.py:nothing is of type NoneType: name a Graph, a Var, or a function"),
    ],
)
def test_what_is_no_graph_is_told(path: Path, name: str | None, said: str) -> None:
    with pytest.raises(ModelError) as raised:
        load(path, TWO, name)
    assert said in str(raised.value)
    assert trouble(path, raised.value) == str(raised.value)


def test_a_path_and_a_name(path: Path) -> None:
    assert split(f"{path}:book") == (path, "book")
    assert split(str(path)) == (path, None)
    odd = path.with_name("a:b")
    odd.write_text("")
    assert split(str(odd)) == (odd, None)
    assert split("C:\\models\\a.py")[1] is None


def test_a_dataclass_in_the_file_and_no_main(path: Path) -> None:
    text = TWO.replace(
        "number = 3",
        "from dataclasses import dataclass\n@dataclass\nclass Deal:\n    size: 'int' = 3\n"
        "if __name__ == '__main__':\n    raise SystemExit\n",
    )
    assert load(path, text, "g").module.Deal().size == 3
