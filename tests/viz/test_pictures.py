"""What pictures say is what snapshots say, and these are what the engine did; drawing runs nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reactgrad as rg
from reactgrad.viz._picture import look, picture
from tests.viz.browser import need


def fails(value: Any) -> Any:
    raise ValueError("no")


@pytest.fixture
def g() -> rg.Graph:
    return rg.Graph()


def states(g: rg.Graph) -> dict[str, str]:
    return {node.name: node.state for node in g.snapshot().nodes}


def looks(g: rg.Graph, run: rg.Run | None = None) -> dict[str, str]:
    return {node.name: look(node) for node in g.snapshot(run).nodes}


# --- snapshots -------------------------------------------------------------------------------


def test_a_snapshot_says_in_which_state_each_node_is(g: rg.Graph) -> None:
    x, unset = g.input(1.0, name="x"), g.input(shape=(), dtype="f8", name="unset")
    seen: list[dict[str, str]] = []

    def look_around(value: Any) -> Any:
        seen.append(states(g))
        return value

    clean, broken, running = rg.tanh(x), rg.lift(fails)(x), rg.lift(look_around)(x)
    stale = running + unset
    clean.name, broken.name, running.name, stale.name = "clean", "broken", "running", "stale"
    clean.value
    with pytest.raises(ValueError, match="no"):
        broken.value
    g.forward(running)
    assert states(g) == {
        "x": "clean",
        "unset": "unset",
        "clean": "clean",
        "broken": "error",
        "running": "clean",
        "stale": "stale",
    }
    assert seen[0]["running"] == "running"
    assert g.snapshot().by_key[4].error == "ValueError: no"


def test_a_snapshot_says_what_a_run_did(g: rg.Graph) -> None:
    x, z = g.input(1.0, name="x"), g.input(1.0, name="z")
    cut = rg.maximum(x, 0.0)
    cut.cutoff = "equal"
    after, other = cut + 1.0, z + 1.0
    cut.name, after.name, other.name = "cut", "after", "other"
    first = g.forward(after, other)
    x.set(1.0)
    last = g.forward(after)
    outcomes = {node.name: node.outcome for node in g.snapshot().nodes if node.kind == "op"}
    assert outcomes == {"cut": "cut_off", "after": "skipped", "other": None}
    assert looks(g)["cut"] == "cut_off"
    assert last.cut_off == [cut]
    assert {name for name, seen in looks(g, first).items() if seen == "ran"} == {
        var.name for var in first.ran
    }


def test_a_snapshot_takes_no_part(g: rg.Graph) -> None:
    x = g.input(np.ones(3), name="x")
    y = rg.tanh(x)
    y.value
    x.set(np.zeros(3))
    version, run = y.value_version, g.last_run.ran
    before = g.snapshot()
    g.to_dot(y, layer="all")
    assert y.is_stale
    assert (y.value_version, g.last_run.ran) == (version, run)
    y.value
    assert before.by_key[2].state == "stale"
    assert (before.by_key[2].version, y.value_version) == (1, 2)
    del y, run
    assert len(g) == 1, "a snapshot keeps nothing alive"
    with pytest.raises(AttributeError):
        before.nodes = ()  # type: ignore[misc]


def test_edges_say_what_passes_them(g: rg.Graph) -> None:
    x, w = g.input(1.0, name="x"), g.param(2.0, name="w")
    product = x.detach() * w

    def reads(a: Any) -> Any:
        return a + w.value

    found = rg.lift(reads)(x)
    found.value
    with rg.no_grad():
        closed = w + x
    edges = {(e.parent, e.child): (e.position, e.detached, e.read) for e in g.snapshot().edges}
    assert edges == {
        (1, 3): (0, True, False),
        (2, 3): (1, False, False),
        (1, 4): (0, False, False),
        (2, 4): (1, False, True),
        (2, 5): (0, True, False),
        (1, 5): (1, True, False),
    }
    assert len(closed.parents) == len(product.parents) == 2


def test_times_are_those_that_were_recorded(g: rg.Graph) -> None:
    y = rg.tanh(g.input(1.0))
    assert [node.seconds for node in g.snapshot().nodes] == [None, None]
    with g.record():
        y.value
    leaf, node = g.snapshot().nodes
    assert leaf.seconds is None
    assert node.seconds is not None
    assert f"{node.seconds * 1e3:.3g} ms" in g.to_dot()


# --- what is shown ---------------------------------------------------------------------------


def keys(text: str) -> set[str]:
    return set(re.findall(r'^ *"([^"]+)" \[shape="', text, re.MULTILINE))


def names(g: rg.Graph, text: str) -> set[str]:
    by_key = {str(key): node.name for key, node in g.snapshot().by_key.items()}
    return {by_key[key] for key in keys(text)}


def model(g: rg.Graph) -> tuple[rg.Var, rg.Var, rg.Var]:
    x, w = g.input(np.ones(3), name="x"), g.param(np.ones(3), name="w")
    h = rg.tanh(x * w)
    loss = h.sum()
    h.name, loss.name = "h", "loss"
    return x, w, loss


def test_a_plan_shows_what_it_holds_and_its_operands(g: rg.Graph) -> None:
    x, _, loss = model(g)
    loss.value
    x.set(np.zeros(3))
    plan = g.plan(loss)
    inner = {var.name for var in plan.nodes}
    assert names(g, g.to_dot(plan)) == inner | {"x", "w"}
    text = g.to_dot(plan)
    assert text.count("hexagon") == len(plan)
    run = g.forward(loss)
    assert names(g, g.to_dot(run)) == inner | {"x", "w"}
    assert g.to_dot(run).count('shape="ellipse"') == len(run.ran)


def test_a_node_shows_all_that_depends_on_it(g: rg.Graph) -> None:
    x, w, loss = model(g)
    beside = rg.exp(x)
    beside.name = "beside"
    assert names(g, g.to_dot(w)) == {"w", "x", "multiply_3", "h", "loss"}
    assert g.to_dot("w") == g.to_dot(w)
    assert "what depends on w: 3 nodes" in g.to_dot(w)
    assert loss in g.plan(loss).nodes


def test_an_answer_shows_all_that_it_is_computed_from(g: rg.Graph) -> None:
    x, w, loss = model(g)
    beside = rg.exp(x)
    beside.name = "beside"
    whole = {"w", "x", "multiply_3", "h", "loss"}
    assert names(g, g.to_dot(loss)) == whole
    assert "what loss is computed from: 4 nodes" in g.to_dot(loss)
    assert names(g, g.to_dot("beside")) == {"x", "beside"}
    rg.grad(loss, w)  # its nodes depend on values of this one; the loss is still an answer
    assert names(g, g.to_dot(loss)) == whole
    alone = g.input(1.0, name="alone")
    assert names(g, g.to_dot(alone)) == {"alone"}


def test_layers(g: rg.Graph) -> None:
    x, w, loss = model(g)
    gradient = rg.grad(loss, w)
    values = names(g, g.to_dot())
    assert values == {"x", "w", "multiply_3", "h", "loss"}
    assert names(g, g.to_dot(layer="all")) == {var.label for var in g.nodes}
    shown = names(g, g.to_dot(layer="gradients"))
    assert {var.label for var in g.nodes} - values < shown
    assert gradient.label in shown
    assert gradient.label in names(g, g.to_dot(gradient)), "who asks for a gradient sees it"
    assert not names(g, g.to_dot(x)) - values


def test_scopes_are_frames_and_fold(g: rg.Graph) -> None:
    x = g.input(1.0, name="x")
    for layer in ("one", "two"):
        x = rg.tanh(x * g.param(1.0, name=f"net/{layer}/w"))
        x.name = f"net/{layer}/out"
    text = g.to_dot()
    assert text.count("subgraph") == 3
    assert len(keys(text)) == 7
    one, two = g["net/one/out"], g["net/two/out"]
    g.forward(one)
    folded = picture(g.snapshot(), fold=2)
    boxes = {box.key: box for box in folded.boxes}
    assert boxes["net/one/"].inside == (("clean", 1), ("ran", 1))
    assert (boxes["net/one/"].look, boxes["net/two/"].look) == ("ran", "stale")
    assert boxes["net/one/"].scope == ("net",)
    outer = picture(g.snapshot(), fold=1)
    assert [box.key for box in outer.boxes if box.node is None] == ["net/"]
    assert 'shape="folder"' in g.to_dot(fold=1)
    assert two.is_stale


def ends(g: rg.Graph, **options: Any) -> set[tuple[str, str]]:
    """Which boxes are joined: scopes by their paths, nodes by their names."""
    found = picture(g.snapshot(), **options)
    names = {box.key: box.key if box.node is None else box.node.name for box in found.boxes}
    return {(names[line.parent], names[line.child]) for line in found.lines}


def test_a_number_written_in_two_scopes_does_not_join_them(g: rg.Graph) -> None:
    kept = []
    for name in ("one", "two"):
        with g.scope(name):
            x = g.input(1.0, name="x")
            kept += [2.0 * x, 2.0 * rg.tanh(x)]
    assert ends(g, fold=1) == set()
    shared = next(node for node in g.snapshot().nodes if node.kind == "const")
    found = picture(g.snapshot())
    copies = [box for box in found.boxes if box.node == shared]
    assert [box.scope for box in copies] == [("one",), ("two",)], "drawn where it is used"
    assert len(found.lines) == len(g.snapshot().edges)
    assert found.hidden == picture(g.snapshot(), fold=1).hidden == 0
    assert picture(g.snapshot(), fold=1).total == len(g)
    # One that has a name is something that they share.
    rate = g.const(3.0)
    rate.name = "rate"
    with g.scope("one"):
        kept.append(rate * kept[0])
    with g.scope("two"):
        kept.append(rate * kept[2])
    assert ends(g, fold=1) == {("rate", "one/"), ("rate", "two/")}


def test_a_constant_stands_where_it_is_used_not_where_it_was_first(g: rg.Graph) -> None:
    x = g.input(1.0, name="x")
    with g.scope("first"):
        gone = x * 2.0
    with g.scope("second"):
        stays = x * 2.0
    del gone
    assert ends(g, fold=1) == {("x", "second/")}
    assert stays.value == 2.0


def test_a_fork_is_compared_with_its_origin(g: rg.Graph) -> None:
    x, w, loss = model(g)
    loss.value
    fork = g.fork()
    fork[w].set(np.zeros(3))
    added = fork[loss] * 2.0
    added.name = "added"
    marks = {
        box.node.name: box.mark
        for box in picture(fork.snapshot(), former=g.snapshot()).boxes
        if box.node is not None and box.node.kind != "const"
    }
    assert marks == {
        "x": "",
        "w": "changed",
        "multiply_3": "changed",
        "h": "changed",
        "loss": "changed",
        "added": "added",
    }
    before = fork.snapshot()
    fork.remove(added)
    after = picture(fork.snapshot(), former=before)
    gone = {box.node.name for box in after.boxes if box.node and box.mark == "removed"}
    assert "added" in gone
    assert {line.mark for line in after.lines} == {"", "removed"}
    assert fork.to_dot(since=g).count("#9a6700") == 4
    assert x.value_version == 1


def test_past_the_limit_what_matters_is_shown_and_the_rest_counted(g: rg.Graph) -> None:
    leaves = [g.input(float(i)) for i in range(40)]
    sums = [rg.tanh(leaf) for leaf in leaves]
    total = rg.concatenate([rg.reshape(s, (1,)) for s in sums]).sum()
    total.value
    leaves[7].set(-1.0)
    shown = picture(g.snapshot(), limit=9)
    assert shown.total == len(g)
    assert len(shown.boxes) == 9
    stale = {var.label for var in g.plan(total).nodes}
    assert stale <= {box.node.name for box in shown.boxes if box.node}
    # Every line of the graph is drawn, or counted once where it leaves the picture.
    inside = {box.key for box in shown.boxes}
    edges = {(str(e.parent), str(e.child)) for e in g.snapshot().edges}
    crossing = [(a, b) for a, b in edges if (a in inside) != (b in inside)]
    assert sum(shown.more_parents.values()) + sum(shown.more_children.values()) == len(crossing)
    text = g.to_dot(limit=9)
    assert f"({len(g) - 9:,} of {len(g):,} nodes are not shown)" in text
    joined = next(key for key, node in g.snapshot().by_key.items() if node.op == "concatenate")
    assert f'label="+{shown.more_parents[str(joined)]}"' in text


@pytest.mark.slow
def test_ten_thousand_nodes_show_a_neighbourhood(g: rg.Graph) -> None:
    x = g.input(1.0)
    y = x
    for _ in range(10_000):
        y = rg.tanh(y)
    y.value
    pinned = y.parents[0].parents[0]
    pinned.pin(0.5)
    text = g.to_dot()
    assert len(keys(text)) == 500
    assert text.count("hexagon") == 2
    with pytest.raises(rg.VizError, match=r"10,001 nodes .* limit=500"):
        g.draw("all.svg", limit=20_000)


# --- text is text ----------------------------------------------------------------------------

TEXTS = st.text(min_size=1, max_size=80).filter(lambda name: name.strip())


@pytest.mark.slow
@given(TEXTS)
def test_names_are_text_whatever_they_hold(name: str) -> None:
    pygraphviz = pytest.importorskip("pygraphviz", reason="draws pictures, extra viz")
    g = rg.Graph()
    x = g.input(1.0)
    try:
        x.name = name
    except rg.ReactgradError:
        return
    y = rg.tanh(x)
    found = pygraphviz.AGraph(string=g.to_dot())
    assert sorted(found.nodes()) == ["1", "2"]
    assert found.edges() == [("1", "2")]
    assert len(y.parents) == 1


@pytest.mark.parametrize(
    "name",
    ['say "no"', "<b>bold</b>", "a\\N\\G\\l", "two words", "\u202eright to left", "a" * 10_000],
)
def test_hostile_names_are_shown_as_they_are(g: rg.Graph, name: str, tmp_path: Path) -> None:
    pytest.importorskip("pygraphviz", reason="draws pictures, extra viz")
    g.keep(g.input(1.0, name=name))
    g.draw(tmp_path / "a.svg")
    svg = (tmp_path / "a.svg").read_text()
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    shown = (
        next(text for text in texts if "\u25b7" in text)
        .replace("&quot;", '"')
        .replace("&lt;", "<")
        .replace("&gt;", ">")
    )
    plain = shown.replace("\xa0", " ").replace("&#160;", " ").removeprefix("\u25b7 ")
    assert "\u202e" not in svg
    assert len(plain) <= 40
    scope, _, expected = name.replace("\u202e", "\ufffd").rpartition("/")
    if scope:  # stands on its frame
        assert any(scope == text.replace("&lt;", "<").replace("&gt;", ">") for text in texts)
    assert plain == expected or (plain.endswith("...") and expected.startswith(plain[:-3]))
    assert "<b>" not in svg


# --- files -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ending", "begin"),
    [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF"), ("dot", b"digraph")],
)
def test_files_are_what_their_names_end_in(
    g: rg.Graph, ending: str, begin: bytes, tmp_path: Path
) -> None:
    pytest.importorskip("pygraphviz", reason="draws pictures, extra viz")
    model(g)
    g.draw(tmp_path / f"a.{ending.upper()}")
    assert (tmp_path / f"a.{ending.upper()}").read_bytes().startswith(begin)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda g: g.draw("a.gif"), r"draw\('a.gif'\): the name .* ends in .svg, .png"),
        (lambda g: g.draw("a"), "ends in"),
        (lambda g: g.to_dot(layer="other"), "layer='other': there are 'values'"),
        (lambda g: g.to_dot(limit=0), "limit=0"),
        (lambda g: g.to_dot(fold=-1), "fold=-1"),
        (lambda g: g.to_dot(3), "a picture of 3: give a Var or its name"),
    ],
)
def test_what_cannot_be_drawn_says_why(
    g: rg.Graph, call: Callable[[rg.Graph], None], message: str
) -> None:
    model(g)
    with pytest.raises(rg.VizError, match=message):
        call(g)


def test_a_node_of_another_graph_is_refused(g: rg.Graph) -> None:
    with pytest.raises(rg.GraphError, match="another graph"):
        g.to_dot(rg.Graph().input(1.0))


def test_without_the_extra_it_is_named(g: rg.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pygraphviz", None)
    with pytest.raises(rg.MissingExtraError, match=r"pip install 'reactgrad\[viz\]'"):
        g.draw("a.svg")
    assert g.to_dot().startswith("digraph")


def test_feeds_are_drawn_as_such(g: rg.Graph) -> None:
    with g:
        w = g.param([1.0, 2.0], name="w")

        @rg.subgraph
        def model(x: Any, factor: Any) -> Any:
            return (x * w * factor).sum()

        y = model(g.input([1.0, 2.0], name="x"), np.array([3.0, 4.0]))
        _ = y.value
    feeds = [node.name for node in g.snapshot().nodes if node.feed]
    assert len(feeds) == 3  # one for each argument, and the leaf that holds the array
    for name in feeds:
        (line,) = [one for one in g.to_dot().splitlines() if f'tooltip="{name} |' in one]
        assert 'shape="ellipse", fillcolor="#e4e4e4", style="filled,dashed"' in line
    (line,) = [one for one in g.to_dot().splitlines() if 'tooltip="x |' in one]
    assert "ellipse" not in line


def test_a_picture_too_wide_to_look_at_is_folded_and_then_made_of_less(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    need("pygraphviz")
    g = rg.Graph()
    x = g.input(1.0, name="x")
    ends = []
    for n in range(300):
        with g.scope(f"part{n % 3}"):
            ends.append(rg.tanh(x * float(n)))
    total = rg.stack(ends).sum()
    total.name = "total"
    g.draw(tmp_path / "scopes.svg")
    text = (tmp_path / "scopes.svg").read_text()
    assert {f">part{n}<" in text for n in range(3)} == {True}
    assert ">total<" in text
    for name in ("scopes.svg", "plain.svg"):
        if name == "plain.svg":  # no scopes to fold
            plain = rg.Graph()
            y = plain.input(1.0, name="y")
            end = rg.stack([rg.tanh(y * float(n)) for n in range(300)]).sum()
            plain.draw(tmp_path / name)
            assert "nodes are not shown" in (tmp_path / name).read_text()
            assert end.is_stale
        wide = re.search(r'width="(\d+)pt"', (tmp_path / name).read_text())
        assert wide is not None
        assert int(wide[1]) <= 6100
    assert "graph" not in capfd.readouterr().err.lower(), "Graphviz has complained"
