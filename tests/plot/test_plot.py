"""``rg.plot``: one call each, which returns the Axes, and draws what is there."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import reactgrad as rg


@pytest.fixture(autouse=True)
def _pictures() -> Iterator[None]:
    matplotlib = pytest.importorskip("matplotlib", reason="extra plot")
    matplotlib.use("agg")
    yield
    from matplotlib import pyplot

    pyplot.close("all")


def recorded() -> tuple[rg.Recording, rg.Var, rg.Var, rg.Var]:
    g = rg.Graph()
    x = g.input(1.0, name="x")
    y = x * x
    y.name = "y"
    rows = rg.stack([x, y])
    rows.name = "rows"
    with g.record(snapshots=True) as log:
        for value in (1.0, 2.0, 3.0):
            x.set(value)
            _ = y.value if value == 2.0 else rows.value
    return log, x, y, rows


def test_a_history_has_the_value_after_each_run() -> None:
    log, x, y, _ = recorded()
    ax = rg.plot.history(log, x, "y")
    first, second = ax.get_lines()
    assert first.get_ydata().tolist() == [1.0, 2.0, 3.0]
    assert second.get_ydata().tolist() == [1.0, 4.0, 9.0]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["x", "y"]
    ax = rg.plot.history(log, y)
    assert ax.get_ylabel() == "y"


def heights(figure: Any) -> list[float]:
    """How much of the height of its Axes each line takes."""
    figure.canvas.draw()
    found = []
    for ax in figure.axes:
        for line in ax.get_lines():
            _, y = ax.transAxes.inverted().transform(ax.transData.transform(line.get_xydata())).T
            found.append(float(np.ptp(y)))
    return found


def moved() -> tuple[rg.Recording, list[rg.Var]]:
    """A recording of numbers of very different sizes, one of which stays."""
    g = rg.Graph()
    share, price = g.input(0.59, name="share"), g.input(11.5, name="price")
    profit, other = share * price * 1e6, share + 0.01
    profit.name, other.name = "profit", "other"
    with g.record(snapshots=True) as log:
        for value in (0.592, 0.621, 0.58):
            share.set(value)
            g.forward(profit, other)
    return log, [share, profit, other, price]


def test_no_line_is_flat_beside_a_larger_one() -> None:
    log, nodes = moved()
    lowest = rg.plot.history(log, *nodes)
    figure = lowest.figure
    assert len(figure.axes) == 3  # share and other have one
    at = {line.get_label(): line for ax in figure.axes for line in ax.get_lines()}
    assert at["share"].get_ydata().tolist() == [0.592, 0.621, 0.58]
    assert at["profit"].axes is not at["share"].axes
    assert at["profit"].axes is not at["price"].axes  # what stays makes no other line flat
    assert sorted(height > 0.09 for height in heights(figure)) == [False, True, True, True]
    assert lowest.get_xlabel() == "run"
    assert all(ax.get_shared_x_axes().joined(ax, lowest) for ax in figure.axes)
    assert min(figure.axes, key=lambda ax: ax.get_position().y0) is lowest
    named = {ax.get_title(loc="left") for ax in figure.axes}
    named |= {
        text.get_text()
        for ax in figure.axes
        if ax.get_legend()
        for text in ax.get_legend().get_texts()
    }
    assert named - {""} == {"share", "profit", "other", "price"}


@pytest.mark.parametrize("kind", ["of a grid", "anywhere"])
def test_axes_that_are_given_are_split_and_nothing_else(kind: str) -> None:
    from matplotlib import pyplot

    log, nodes = moved()
    if kind == "of a grid":
        figure, (ax, beside) = pyplot.subplots(1, 2, layout="constrained")
    else:
        figure = pyplot.figure()
        ax, beside = figure.add_axes((0.1, 0.1, 0.4, 0.8)), figure.add_axes((0.6, 0.1, 0.3, 0.8))
    figure.canvas.draw()
    room, other = ax.get_position(), beside.get_position()
    assert rg.plot.history(log, *nodes[:2], ax=ax) is ax
    figure.canvas.draw()
    parts = [one for one in figure.axes if one is not beside]
    assert len(parts) == 2
    for one in parts:
        place = one.get_position()
        assert place.x1 <= room.x1 + 0.02
        assert (place.y0, place.y1) >= (room.y0 - 0.02, 0.0)
        assert place.y1 <= room.y1 + 0.02
    assert beside.get_position().bounds == pytest.approx(other.bounds, abs=0.05)
    low, high = sorted(parts, key=lambda one: one.get_position().y0)
    assert low.get_position().y1 < high.get_position().y0


def test_a_ladder_of_outputs_of_different_sizes_shows_each() -> None:
    g = rg.Graph()
    x = g.input(2.0, name="x")
    small, large = x * 1e-3, x * x * 1e6
    small.name, large.name = "small", "large"
    figure = rg.plot.ladder([small, large], x).figure
    assert len(figure.axes) == 2
    assert min(height for height in heights(figure) if height) > 0.3


def overlap(labels: Any) -> bool:
    boxes = [label.get_window_extent() for label in labels if label.get_text()]
    return any(a.overlaps(b) for n, a in enumerate(boxes) for b in boxes[:n])


@pytest.mark.parametrize("layers", [2, 40, 300])
@pytest.mark.parametrize("size", [None, (5.0, 3.0), (3.0, 2.0)])
def test_labels_of_a_gradient_flow_do_not_overlap(
    layers: int, size: tuple[float, float] | None
) -> None:
    from matplotlib import pyplot

    with rg.Graph():
        params = [rg.param(1.0 + 0.01 * n, name=f"layer{n}/w") for n in range(layers)]
        frozen = rg.param(1.0, name="frozen/w")
        rg.stack([p * p for p in params]).sum().backward()
    ax = None if size is None else pyplot.subplots(figsize=size, layout="constrained")[1]
    ax = rg.plot.gradient_flow([*params, frozen], ax=ax)
    ax.figure.canvas.draw()
    rows = ax.get_yticklabels()
    assert not overlap(rows)
    assert rows[0].get_text() == "layer0"
    assert not overlap([*ax.get_xticklabels(), *ax.get_xticklabels(minor=True)])
    assert len([one for one in ax.get_xticklabels() if one.get_text()]) >= 1
    assert not overlap(ax.texts)
    assert len(ax.patches) == layers
    told = [text.get_text() for text in ax.texts]
    if ax.get_legend() is not None:
        told += [text.get_text() for text in ax.get_legend().get_texts()]
    assert any("no gradient" in text for text in told)
    assert ax.figure.get_figheight() <= 9.0


def test_labels_of_heat_do_not_overlap() -> None:
    from matplotlib import pyplot

    g = rg.Graph()
    x = g.input(1.0)
    outputs = [rg.tanh(x + float(n)) for n in range(30)]
    with g.record() as log:
        g.forward(*outputs)
    ax = pyplot.subplots(figsize=(4.0, 2.0), layout="constrained")[1]
    rg.plot.heat(log, ax=ax)
    ax.figure.canvas.draw()
    assert not overlap(ax.get_yticklabels())


def test_what_was_stale_is_a_gap() -> None:
    g = rg.Graph()
    x = g.input(1.0, name="x")
    total, other = x * 2.0, x + 1.0
    total.name, other.name = "total", "other"
    with g.record(snapshots=True) as log:
        for value, read in ((1.0, total), (2.0, other), (3.0, total)):
            x.set(value)
            _ = read.value
    (line,) = rg.plot.history(log, total).get_lines()
    assert np.isnan(line.get_ydata()).tolist() == [False, True, False]


def test_a_ladder_is_what_a_set_would_give_and_sets_nothing() -> None:
    g = rg.Graph()
    x, y = g.input(2.0, name="x"), None
    y = x * x * 3.0
    y.name = "y"
    ax = rg.plot.ladder(y, x, [4.0, 1.0, 2.5])
    line, here, tangent = ax.get_lines()
    assert line.get_xdata().tolist() == [1.0, 2.5, 4.0]
    assert line.get_ydata() == pytest.approx([3.0, 18.75, 48.0])
    assert (here.get_xdata()[0], here.get_ydata()[0]) == (2.0, 12.0)
    rise = np.diff(tangent.get_ydata()) / np.diff(tangent.get_xdata())
    assert rise == pytest.approx([12.0])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x", "y")
    assert "slope 12" in [text.get_text() for text in ax.texts]
    assert x.value == 2.0
    z = y * 0.5
    ax = rg.plot.ladder([y, z], "x", tangent=False)
    assert len(ax.get_lines()) == 4
    assert ax.get_lines()[0].get_xdata()[[0, -1]].tolist() == [1.0, 3.0]


def test_a_tornado_is_that_of_its_result() -> None:
    g = rg.Graph()
    a, b = g.input(2.0, name="a"), g.input(3.0, name="b")
    y = a * b * b
    ax = rg.plot.tornado(rg.tornado(y, [a, b]))
    assert [text.get_text().split()[0] for text in ax.get_yticklabels()] == ["b", "a"]
    assert len(ax.patches) == 4


def test_convergence_marks_the_least_loss() -> None:
    ax = rg.plot.convergence({"Adam": [1.0, 0.01, 0.1], "SGD": [1.0, 0.5, 0.3]})
    assert ax.get_yscale() == "log"
    adam, least, sgd, last = ax.get_lines()
    assert adam.get_xdata().tolist() == [1, 2, 3]
    assert (least.get_xdata()[0], least.get_ydata()[0]) == (2, 0.01)
    assert last.get_xdata()[0] == 3
    assert sgd.get_label() == "SGD"
    assert rg.plot.convergence([1.0, 0.9]).get_yscale() == "linear"
    assert rg.plot.convergence([1.0, -1.0, 100.0]).get_yscale() == "linear"
    assert rg.plot.convergence([1.0, float("nan"), 0.5]).get_lines()[1].get_xdata()[0] == 3


def test_a_gradient_flow_has_the_norm_of_each_layer() -> None:
    with rg.Graph():
        net = rg.nn.Sequential(rg.nn.Linear(3, 4, rng=0), rg.nn.ReLU(), rg.nn.Linear(4, 1, rng=1))
        net["2"].bias.freeze()
        net(np.ones((2, 3))).sum().backward()
        ax = rg.plot.gradient_flow(net)
        assert [text.get_text() for text in ax.get_yticklabels()] == ["0", "2"]
        widths = [bar.get_width() for bar in ax.patches]
        first = [p.grad for name, p in net.named_parameters() if name.startswith("0.")]
        assert widths[0] == pytest.approx(np.sqrt(sum(float((g * g).sum()) for g in first)))
        assert ax.get_xscale() == "log"
        ax = rg.plot.gradient_flow(net, by="param")
        assert len(ax.patches) == 3
        assert "no gradient" in [text.get_text() for text in ax.texts]


def test_params_of_a_graph_and_alone() -> None:
    g = rg.Graph()
    w = g.param([3.0, 4.0], name="layer1/w")
    b = g.param(0.0, name="layer1/b")
    (w * w + b).sum().backward()
    assert len(rg.plot.gradient_flow(g).patches) == 1
    (bar,) = rg.plot.gradient_flow(w).patches
    assert bar.get_width() == pytest.approx(10.0)


def test_heat_has_a_cell_for_each_node_and_run() -> None:
    log, *_ = recorded()
    ax = rg.plot.heat(log)
    (image,) = ax.get_images()
    times = image.get_array()
    assert times.shape == (2, 3)
    assert {text.get_text() for text in ax.get_yticklabels()} == {"y", "rows"}
    rows = [text.get_text() for text in ax.get_yticklabels()].index("rows")
    assert np.ma.getmaskarray(np.ma.masked_invalid(times))[rows].tolist() == [False, True, False]
    assert len(rg.plot.heat(log, top=1).get_yticklabels()) == 1


def test_heat_of_one_run_is_bars() -> None:
    g = rg.Graph()
    y = rg.tanh(g.input(1.0, name="x"))
    z = y * 2.0
    with g.record() as log:
        _ = z.value
    ax = rg.plot.heat(log)
    assert len(ax.patches) == 2
    assert ax.get_xlabel() == "milliseconds"


CALLS: list[Callable[[Any], Any]] = [
    lambda ax: rg.plot.convergence([1.0, 0.5], ax=ax),
    lambda ax: rg.plot.history(recorded()[0], "y", ax=ax),
    lambda ax: rg.plot.heat(recorded()[0], ax=ax),
]


@pytest.mark.parametrize("call", CALLS)
def test_axes_that_are_given_are_used_and_returned(call: Callable[[Any], Any]) -> None:
    from matplotlib import pyplot

    ax = pyplot.figure().add_subplot()
    assert call(ax) is ax
    assert len(pyplot.get_fignums()) == 1


def test_names_are_text_and_no_formulas() -> None:
    ax = rg.plot.convergence({"$x_1$": [1.0, 0.5], "_b\n" * 30: [1.0, 0.2]})
    ax.figure.canvas.draw()
    assert ax.get_legend_handles_labels()[1][0] == r"\$x_1\$"


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda log: rg.plot.history(log), rg.VizError, "name the nodes to draw"),
        (lambda log: rg.plot.history(log, "rows"), rg.VizError, "'rows' holds [1, 1], and a line"),
        (lambda log: rg.plot.history(log, "none"), rg.VizError, "has no node 'none'"),
        (
            lambda log: rg.plot.history(rg.Graph().record(), "y"),
            rg.VizError,
            "record(snapshots=True)",
        ),
        (lambda log: rg.plot.heat(rg.Graph().record()), rg.VizError, "nothing ran"),
        (lambda log: rg.plot.convergence({"a": 3.0}), rg.ShapeError, "'a' is no sequence"),
        (lambda log: rg.plot.gradient_flow([]), rg.VizError, "there are no params"),
        (lambda log: rg.plot.gradient_flow(rg.param(1.0)), rg.VizError, "Call loss.backward()"),
        (lambda log: rg.plot.gradient_flow([], by="x"), rg.VizError, "'layer' or 'param'"),
    ],
)
def test_errors_teach(call: Callable[[Any], Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error) as raised:
        call(recorded()[0])
    assert said in str(raised.value)


def test_without_matplotlib_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("matplotlib")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(rg.MissingExtraError, match=r"pip install 'reactgrad\[plot\]'"):
        rg.plot.convergence([1.0])
