"""Pictures of a module's graph: boxes stand in frames by the module's paths, and fold by them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad import nn


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        self.norm = nn.LayerNorm(width)
        self.layers = [nn.Linear(width, width, rng=i) for i in range(2)]

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = x + rg.tanh(layer(self.norm(x)))
        return x


def called() -> tuple[rg.Graph, nn.Module, rg.Var]:
    g = rg.Graph()
    with g:
        net = nn.Sequential(nn.Linear(3, 4, rng=0), Block(4), Block(4), nn.Linear(4, 2, rng=1))
        y = net(g.input(np.ones((5, 3)), name="rows"))
    return g, net, y


def folders(dot: str) -> dict[str, int]:
    """The folded scopes of a picture, with how many nodes they hold."""
    found = re.findall(r'label="[^"]*\\n([^"]*)", tooltip="scope ([^"]*)"', dot)
    return {path: sum(map(int, re.findall(r"\d+", counts))) for counts, path in found}


def test_a_picture_folds_by_the_paths_of_modules() -> None:
    g, net, _ = called()
    (all_of_it,) = folders(g.to_dot(fold=1)).items()
    assert all_of_it[0] == "Sequential/"
    children = folders(g.to_dot(fold=2))
    assert list(children) == [f"Sequential/{name}/" for name, _ in net.named_children()]
    assert sum(children.values()) == all_of_it[1]
    deeper = folders(g.to_dot(fold=3))
    # A module that is called twice has a scope for each call.
    assert {path.rstrip("/") for path in deeper if path.startswith("Sequential/1/")} == {
        f"Sequential/1/{name}{call}" for name in ("norm", "layers") for call in ("", "/(2)")
    }
    for path, _ in net.named_parameters():  # without folding each param has its box
        assert f"Sequential/{path.replace('.', '/')} | param" in g.to_dot()


def test_folders_hold_what_is_stale_of_a_module() -> None:
    g, net, y = called()
    y.value
    layer: Any = net.get_submodule("2").norm
    layer.weight.set(layer.weight.value * 2.0)
    dot = g.to_dot(fold=2)
    stale = re.findall(r'stale", tooltip="scope (Sequential/\d)/"', dot)
    assert stale == ["Sequential/2", "Sequential/3"]


def test_a_picture_of_a_module_goes_into_files(tmp_path: Path) -> None:
    g, _, y = called()
    before = len(g), y.is_stale
    g.draw(tmp_path / "net.dot", fold=2)
    assert folders((tmp_path / "net.dot").read_text()) == folders(g.to_dot(fold=2))
    pytest.importorskip("pygraphviz")
    for name in ("net.svg", "net.png"):
        g.draw(tmp_path / name, fold=2)
    svg = (tmp_path / "net.svg").read_text()
    for path in ("Sequential/0/", "Sequential/3/"):
        assert f"scope {path}" in svg
    assert (tmp_path / "net.png").read_bytes().startswith(b"\x89PNG")
    assert (len(g), y.is_stale) == before  # drawing builds and runs nothing
