"""Pictures and tables of the site say what the files say that they are made from."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
TABLE = """| B2 | forward: batch 1 | 1 ms | 5 ms | PyTorch | 5.05× faster (4.95–5.08) | ≥ 6× | 0 of 3 |
| B2 | forward: by hand | 2 ms | 1 ms | by hand | 2× (1.6–2.5) | ≤ 1.25× | 0 of 3 |
| B2 | forward: a count | 200 | – |  |  | ≤ 200 | 3 of 3 |
"""


@pytest.fixture(scope="module")
def figures() -> Iterator[ModuleType]:
    sys.path.insert(0, str(ROOT / "docs"))
    from _parts import figures

    yield figures
    sys.path.remove(str(ROOT / "docs"))


def test_a_bar_is_the_time_of_the_peer_by_ours(figures: ModuleType) -> None:
    faster, slower = figures.bars(TABLE)["B2"]
    assert (faster.speed, faster.low, faster.high, faster.goal) == (5.05, 4.95, 5.08, 6.0)
    assert (slower.speed, slower.low, slower.high, slower.goal) == (0.5, 0.4, 0.625, 0.8)
    assert slower.beside == "by hand"


def test_a_picture_has_each_row_once_and_is_valid(figures: ModuleType) -> None:
    picture = ElementTree.fromstring(figures.drawn("a < b", figures.bars(TABLE)["B2"]))
    assert picture.get("aria-label") == "a < b"
    said = [text.text for text in picture.iter("text") if text.get("class") == "said"]
    assert said == ["5.05×", "2× slower"]
    assert [bar.get("class") for bar in picture.iter("rect")] == ["faster", "slower"]


def test_each_row_with_a_ratio_of_the_tables_is_drawn(figures: ModuleType) -> None:
    text = (ROOT / "bench" / "FIGURES.md").read_text(encoding="utf-8")
    ratios = re.findall(
        r"^\| B\d+ \|.*\| [\d.,]+×[^|]*\([^|]*\) \| (?!the same)", text, re.MULTILINE
    )
    found = figures.bars(text)
    assert sum(map(len, found.values())) == len(ratios) > 100
    assert found.keys() <= figures.TITLES.keys()


def test_the_table_of_ops_has_all_ops_and_names_of_both_libraries(figures: ModuleType) -> None:
    from _parts import names, operations

    peers = json.loads(names.FILE.read_text(encoding="utf-8"))
    ops = {f"{group}.{name}" for group, found in operations.groups().items() for name in found}
    assert (
        peers.keys() - {"versions"} <= ops
    )  # a new op has no names until the file is written anew
    page = operations.table()
    assert "| `rg.exp` | `np.exp` | `torch.exp` | `jnp.exp` | 0.6 / 0.6 |" in page
    assert (
        "| `rg.norm_cdf` |  | `torch.special.ndtr` | `jax.scipy.stats.norm.cdf` | 16.0 / 11.0 |"
        in page
    )
    assert "| x + y | PyTorch |" in page


@pytest.mark.parametrize("place", [0, 1])
def test_what_is_called_a_name_of_another_library_is_one(figures: ModuleType, place: int) -> None:
    pytest.importorskip(("torch", "jax")[place])
    from _parts import names

    peers = json.loads(names.FILE.read_text(encoding="utf-8"))
    peers.pop("versions")
    lost = [
        both[place] for both in peers.values() if both[place] and names.find(both[place]) is None
    ]
    assert not lost
