"""Messages name the line of the user, in whichever part of the engine they arise.

A node remembers the line that built it, and a change the line that made it: the innermost one that is not
the engine's. Calls inside the engine may be moved as one likes; these tests see that none of its own
lines, and none of the lines that called the user's, is named for it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.nodes import _site
from reactgrad.nodes._site import site_text

PACKAGE = Path(rg.__file__).parent
# Folders of the package that raise or warn on behalf of a line; the backend sees arrays only, `serving` is a command.
PARTS = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
WITHOUT_LINES = {"backend", "demo", "flow", "serving"}


def place(back: int = 0) -> str:
    """This file and the line of the caller, or one above it, as messages show them."""
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return f"{__file__}:{frame.f_back.f_lineno - back}"


def line_of(node: Any) -> str:
    """The place where a node was built, without the text of the line."""
    return site_text(node._graph._host.sites[node._slot]).partition(": ")[0]


def whole_text(error: BaseException) -> str:
    """The message and its notes, and those of its cause."""
    cause = error.__cause__ or error.__context__
    own = "\n".join([str(error), *getattr(error, "__notes__", ())])
    return own + (f"\n{whole_text(cause)}" if cause is not None else "")


def part_of(error: BaseException) -> str:
    """The folder of the engine's innermost frame."""
    found = ""
    step = error.__traceback__
    while step is not None:
        file = Path(step.tb_frame.f_code.co_filename)
        if file.is_relative_to(PACKAGE) and not file.name.startswith("<"):  # not what is generated
            found = file.relative_to(PACKAGE).parts[0]
        step = step.tb_next
    return found


def own_line(error: BaseException) -> str:
    """The innermost line of this file that the traceback shows before it enters the engine."""
    found = ""
    step = error.__traceback__
    while step is not None and step.tb_frame.f_code.co_filename == __file__:
        found = f"{__file__}:{step.tb_lineno}"
        step = step.tb_next
    return found


def lines_of(error: BaseException) -> list[str]:
    """All lines of this file that the traceback shows."""
    found, step = [], error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == __file__:
            found.append(f"{__file__}:{step.tb_lineno}")
        step = step.tb_next
    return found


# --- each way to build a node ------------------------------------------------------------------------


class Twice(rg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2.0

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2.0


class Halves(rg.Function, outputs=2):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x[:1], x[1:]

    @staticmethod
    def backward(ctx: Any, first: Any, second: Any) -> Any:
        return rg.concatenate([first, second])


def _negated(a: Any) -> Any:
    return np.negative(a)


def _plus(a: rg.Var, b: rg.Var) -> rg.Var:
    a += b
    return a


_poured = rg.subgraph(poured := lambda a: a * 3.0 + 1.0)
_DEFINED = poured.__code__.co_firstlineno

# Each is one line, and the lambda's own: the place that a message must name.
WAYS: dict[str, Callable[[rg.Graph, rg.Var], Any]] = {
    "input": lambda g, x: g.input(1.0),
    "param": lambda g, x: g.param([1.0]),
    "const": lambda g, x: g.const(1.0),
    "operator": lambda g, x: x + x,
    "operator with a number": lambda g, x: x * 2.0,
    "reflected operator": lambda g, x: 2.0 / x,
    "power": lambda g, x: x**2,
    "matmul": lambda g, x: x @ x,
    "comparison": lambda g, x: x > 0.5,
    "negation": lambda g, x: -x,
    "absolute": lambda g, x: abs(x),
    "index": lambda g, x: x[0],
    "method": lambda g, x: x.sum(),
    "method with an axis": lambda g, x: x.mean(axis=0, keepdims=True),
    "reshape": lambda g, x: x.reshape(2, 1),
    "transpose": lambda g, x: x.reshape(2, 1).T,
    "function": lambda g, x: rg.exp(x),
    "function of two": lambda g, x: rg.maximum(x, 0.0),
    "function of many": lambda g, x: rg.concatenate([x, x]),
    "stack": lambda g, x: rg.stack([x, x]),
    "where": lambda g, x: rg.where(x > 0.0, x, 0.0),
    "clip": lambda g, x: rg.clip(x, 0.0, 1.0),
    "softmax": lambda g, x: rg.softmax(x),
    "layer norm": lambda g, x: rg.layer_norm(x),
    "cast": lambda g, x: rg.astype(x, np.float32),
    "split": lambda g, x: rg.split(x, 2)[1],
    "unbind": lambda g, x: rg.unbind(x)[1],
    "NumPy's ufunc": lambda g, x: np.exp(x),
    "NumPy's function": lambda g, x: np.concatenate([x, x]),
    "array on the left": lambda g, x: np.ones(2) + x,
    "lifted": lambda g, x: rg.lift(_negated)(x),
    "lifted with a shape": lambda g, x: rg.lift(_negated, shape=(2,), dtype=float)(x),
    "lifted with outputs": lambda g, x: rg.lift(lambda a: (a, a), outputs=2)(x)[0],
    "Function": lambda g, x: Twice.apply(x),
    "Function with outputs": lambda g, x: Halves.apply(x)[1],
    "switch": lambda g, x: rg.switch(x.sum() > 0.0, x, -x),
    "detach": lambda g, x: x.detach() * 1.0,
    "grad": lambda g, x: rg.grad((x * x).sum(), x),
    "grad by an operator": lambda g, x: rg.grad(x.sum() * x.sum(), x) * 2.0,
    "value and grad": lambda g, x: rg.value_and_grad((x * x).sum(), x)[1],
    "jacobian": lambda g, x: rg.jacobian(x * x, x),
    "hessian": lambda g, x: rg.hessian((x * x).sum(), x),
    "jvp": lambda g, x: rg.jvp(x * x, x, np.ones(2)),
    "vjp": lambda g, x: rg.vjp(x * x, x, np.ones(2)),
    "grad of a function": lambda g, x: rg.grad(lambda a: a.sum() ** 2)(x),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_node_knows_the_line_that_built_it(g: rg.Graph, way: str) -> None:
    x = g.input([1.0, 2.0])
    build = WAYS[way]
    node = build(g, x)
    while isinstance(node, tuple | list):
        node = node[-1]
    assert line_of(node) == f"{__file__}:{build.__code__.co_firstlineno}"


@pytest.mark.parametrize("way", WAYS)
def test_also_when_it_is_built_again_by_lines_that_differ(g: rg.Graph, way: str) -> None:
    """The place that was asked for last is remembered, and is not taken for another one."""
    x = g.input([1.0, 2.0])
    before = x * 3.0
    build = WAYS[way]
    build(g, x)
    after = x * 5.0
    assert line_of(before) == place(4)
    assert line_of(after) == place(2)


def test_in_place_operators_know_their_line(g: rg.Graph) -> None:
    x = g.input([1.0, 2.0])
    assert line_of(_plus(x * 2.0, x)) == f"{__file__}:{_plus.__code__.co_firstlineno + 1}"


def test_inside_of_a_checkpoint_each_line_is_named(g: rg.Graph) -> None:
    x = g.input([1.0, 2.0])
    lines: list[str] = []

    def block(a: rg.Var) -> rg.Var:
        b = rg.tanh(a)
        lines.append(place(1))
        c = rg.sin(b)
        lines.append(place(1))
        return c

    out = rg.checkpoint(block, x)
    assert [line_of(out.parents[0]), line_of(out)] == lines


def test_inside_of_a_reuse_block_each_line_is_named(g: rg.Graph) -> None:
    x = g.input([1.0, 2.0])
    with g.reuse():
        y = rg.tanh(x)
        z = y + 1.0
    assert [line_of(y), line_of(z)] == [place(2), place(1)]


def test_of_a_subgraph_the_line_in_its_function_is_named(g: rg.Graph) -> None:
    x = g.input([1.0, 2.0])
    first, second = _poured(x), _poured(x * 2.0)
    assert line_of(first) == line_of(second) == f"{__file__}:{_DEFINED}"


# --- each way to change something --------------------------------------------------------------------


def _mutated(x: rg.Var) -> None:
    with x.mutate() as array:
        array[0] = 7.0


def _together(g: rg.Graph, x: rg.Var) -> None:
    with g.transaction():
        x.set([3.0, 4.0])


CHANGES: dict[str, tuple[Callable[[rg.Graph, rg.Var, rg.Var], Any], int]] = {
    "set": (lambda g, x, y: x.set([3.0, 4.0]), 0),
    "set without a copy": (lambda g, x, y: x.set(np.array([3.0, 4.0]), copy=False), 0),
    "set together": (lambda g, x, y: g.set({x: [3.0, 4.0]}), 0),
    "set by name": (lambda g, x, y: g.set({"x": [3.0, 4.0]}), 0),
    "touch": (lambda g, x, y: x.touch(), 0),
    "pin": (lambda g, x, y: y.pin([0.0, 0.0]), 0),
    "rewire": (lambda g, x, y: y.rewire(x, g["other"]), 0),
    "mutate": (lambda g, x, y: _mutated(x), _mutated.__code__.co_firstlineno + 1),
    "transaction": (lambda g, x, y: _together(g, x), _together.__code__.co_firstlineno + 2),
}


@pytest.mark.parametrize("how", CHANGES)
def test_a_change_knows_the_line_that_made_it(g: rg.Graph, how: str) -> None:
    x, other = g.input([1.0, 2.0], name="x"), g.input([5.0, 6.0], name="other")
    y = x * other
    z = y + 1.0
    z.value
    g.events = True
    change, line = CHANGES[how]
    change(g, x, y)
    line = line or change.__code__.co_firstlineno
    lines = {str(event.line).partition(": ")[0] for event in g.events or ()}
    assert lines == {f"{__file__}:{line}"}
    assert f"{__file__}:{line}: " in str(g.why(z))
    del other


# --- each part of the engine -------------------------------------------------------------------------


def raised(act: Callable[[], Any]) -> BaseException:
    try:
        act()
    except Exception as error:
        return error
    pytest.fail("nothing was raised")


def lifted(function: Callable[..., Any], *operands: Any, **options: Any) -> Any:
    return rg.lift(function, **options)(*operands)


def _divided(a: Any) -> Any:
    raise ZeroDivisionError("no")


def _three(a: Any) -> Any:
    return np.ones(3)


class Forgetful(rg.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2.0

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.sign


class Short(rg.Function):
    """Its gradient has another shape than its argument."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2.0

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g[0]


def test_nodes_a_function_that_returns_too_few(g: rg.Graph) -> None:
    first, _ = rg.lift(_three, outputs=2)(g.input(1.0))
    built = place(1)
    error = raised(lambda: first.value)
    assert part_of(error) == "nodes"
    assert f"built at {built}: " in whole_text(error)


def test_a_function_that_raises(g: rg.Graph) -> None:
    y = rg.lift(_divided)(g.input(1.0))
    built = place(1)
    error = raised(lambda: (y + 1.0).value)
    assert f"built at {built}: " in whole_text(error)


def test_ops_shapes_that_only_the_run_shows(g: rg.Graph) -> None:
    unknown = rg.lift(_three)(g.input(1.0))
    y = unknown + g.input([1.0, 2.0])
    built = place(1)
    error = raised(lambda: y.value)
    assert part_of(error) == "ops"
    assert f"built at {built}: " in whole_text(error)


def test_ops_shapes_that_do_not_fit_when_they_are_built(g: rg.Graph) -> None:
    x, y = g.input([1.0, 2.0]), g.input([1.0, 2.0, 3.0])
    with pytest.raises(rg.ShapeError) as caught:
        x + y
    assert part_of(caught.value) == "ops"
    assert own_line(caught.value) == place(2)


def test_values_another_shape_than_declared(g: rg.Graph) -> None:
    y = rg.lift(_three, shape=(2,), dtype=float)(g.input(1.0))
    built = place(1)
    error = raised(lambda: y.value)
    assert part_of(error) == "values"
    assert f"built at {built}: " in whole_text(error)


def test_core_a_name_that_is_taken(g: rg.Graph) -> None:
    x, y = g.input(1.0, name="x"), g.input(2.0)
    with pytest.raises(rg.GraphError) as caught:
        y.name = "x"
    assert part_of(caught.value) == "core"
    assert own_line(caught.value) == place(2)
    del x


def test_memory_too_small_a_budget() -> None:
    g = rg.Graph(max_bytes=100)
    y = rg.sin(g.input(np.ones(1000)))
    with pytest.warns(rg.BudgetWarning) as told:
        y.value
    assert f"{told[0].filename}:{told[0].lineno}" == place(1)


def test_build_nodes_of_two_graphs(g: rg.Graph) -> None:
    x, y = g.input(1.0), rg.Graph().input(1.0)
    with pytest.raises(rg.GraphError) as caught:
        x * y
    assert part_of(caught.value) == "build"
    assert own_line(caught.value) == place(2)


def test_change_a_shape_that_a_node_below_refuses(g: rg.Graph) -> None:
    x = g.input([1.0, 2.0])
    y = x + g.const([1.0, 2.0])
    built = place(1)
    with pytest.raises(rg.ShapeError) as caught:
        x.set([1.0, 2.0, 3.0])
    assert own_line(caught.value) == place(1)
    assert f"built at {built}: " in whole_text(caught.value)
    del y


def test_change_a_set_inside_of_a_function(g: rg.Graph) -> None:
    x = g.input(1.0)
    y = rg.lift(lambda a: x.set(2.0))(x)
    built = place(1)
    error = raised(lambda: y.value)
    assert part_of(error) == "change"
    assert f"built at {built}: " in whole_text(error)


def test_reading_a_read_that_would_close_a_cycle(g: rg.Graph) -> None:
    held: list[rg.Var] = []
    y = rg.lift(lambda a: held[0].value)(g.input(1.0))
    built = place(1)
    held.append(y)
    error = raised(lambda: y.value)
    assert f"built at {built}: " in whole_text(error)
    step, files = error.__traceback__, set()
    while step is not None:
        files.add(step.tb_frame.f_code.co_filename)
        step = step.tb_next
    assert any(Path(file).is_relative_to(PACKAGE / "reading") for file in files)


def test_reading_a_timeout_that_is_none(g: rg.Graph) -> None:
    y = g.input(1.0) + 1.0
    with pytest.raises(rg.DTypeError) as caught:
        g.forward(y, timeout="soon")  # type: ignore[arg-type]
    assert part_of(caught.value) == "reading"
    assert own_line(caught.value) == place(2)


def test_autodiff_backward_inside_no_grad(g: rg.Graph) -> None:
    w = g.param(2.0)
    y = w * w
    with rg.no_grad():
        with pytest.warns(rg.GradModeWarning) as told:
            y.backward()
    assert f"{told[0].filename}:{told[0].lineno}" == place(1)


def test_autodiff_a_rule_of_another_shape(g: rg.Graph) -> None:
    x = g.input([1.0, 2.0])
    gradient = rg.grad(Short.apply(x).sum(), x)
    built = place(1)
    error = raised(lambda: gradient.value)
    assert part_of(error) == "autodiff"
    assert f"built at {built}: " in whole_text(error)


def test_autodiff_nothing_to_differentiate(g: rg.Graph) -> None:
    x = g.param([1.0, 2.0])
    y = (x.detach() * 2.0).sum()
    with pytest.raises(rg.GradientError) as caught:
        rg.grad(y, x)
    assert part_of(caught.value) == "autodiff"
    assert own_line(caught.value) == place(2)


def test_explain_where_a_gradient_ends(g: rg.Graph) -> None:
    x = g.param([1.0, 2.0])
    y = x.detach() * 2.0
    assert f"detached ({place(1)}: " in str(g.why(x))
    del y


def test_observing_a_callback_that_is_none(g: rg.Graph) -> None:
    x = g.input(1.0)
    with pytest.raises(rg.DTypeError) as caught:
        x.observe("callback")  # type: ignore[arg-type]
    assert part_of(caught.value) == "observing"
    assert own_line(caught.value) == place(2)


def test_observing_what_a_callback_sets_is_set_by_the_line_that_read(g: rg.Graph) -> None:
    x, other = g.input(1.0), g.input(1.0, name="other")
    y = x + 1.0
    y.value
    observer = y.observe(lambda *_: other.set(5.0))
    g.events = True
    x.set(2.0)
    y.value
    read = place(1)
    (line,) = [event.line for event in g.events or () if event.node == "other"]
    assert str(line).startswith(f"{read}: ")
    del observer


def test_functions_what_forward_has_not_left(g: rg.Graph) -> None:
    x = g.input([1.0, 2.0])
    y = Forgetful.apply(x).sum()
    with pytest.raises(AttributeError, match="ctx has no 'sign'") as caught:
        rg.grad(y, x).value
    assert part_of(caught.value) == "functions"
    assert place(2) in lines_of(caught.value)
    assert f"{__file__}:{Forgetful.backward.__code__.co_firstlineno + 2}" in lines_of(caught.value)


def test_functions_a_condition_that_is_no_number(g: rg.Graph) -> None:
    x = g.input([1.0, 2.0])
    with pytest.raises(rg.ShapeError) as caught:
        rg.switch(x, x, x)
    assert part_of(caught.value) == "functions"
    assert own_line(caught.value) == place(2)


def test_subgraphs_a_call_that_does_not_fit(g: rg.Graph) -> None:
    x = g.input([1.0, 2.0])
    with pytest.raises(TypeError) as caught:
        _poured(x, x)
    assert part_of(caught.value) == "subgraphs"
    assert own_line(caught.value) == place(2)


def test_subgraphs_a_function_that_reads_its_argument(g: rg.Graph) -> None:
    x = g.input([1.0, 2.0])

    @rg.subgraph
    def reads(a: rg.Var) -> Any:
        return a * a.sum().value

    error = raised(lambda: reads(x))
    assert place(1) in whole_text(error)
    assert own_line(error) == place(2)


def test_explain_where_a_nan_began(g: rg.Graph) -> None:
    shifted = g.input([1.0, 2.0]) - 5.0
    y = rg.log(shifted)
    built = place(1)
    with rg.detect_anomaly():
        error = raised(lambda: y.value)
    assert part_of(error) == "explain"
    assert f"built at {built}: " in whole_text(error)


def test_io_what_was_loaded_was_built_by_the_line_that_loaded_it(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    g = rg.Graph()
    y = g.keep(g.input([1.0, 2.0], name="x") * 2.0)
    y.name = "y"
    g.save(tmp_path / "graph")
    loaded = rg.load(tmp_path / "graph")
    assert line_of(loaded["y"]) == line_of(loaded["x"]) == place(1)
    z = g.keep(lifted(lambda a: a, y))
    error = raised(lambda: g.save(tmp_path / "graph"))
    assert part_of(error) == "io"
    assert own_line(error) == place(2)
    del z


def test_viz_a_layer_that_there_is_not(g: rg.Graph) -> None:
    g.input(1.0)
    with pytest.raises(rg.ReactgradError) as caught:
        g.to_dot(layer="nothing")  # type: ignore[arg-type]
    assert part_of(caught.value) == "viz"
    assert own_line(caught.value) == place(2)


def test_graph_what_is_no_number(g: rg.Graph) -> None:
    x = g.const([1.0, 2.0])
    with pytest.raises(rg.ShapeError) as caught:
        bool(x)
    assert part_of(caught.value) == "graph"
    assert own_line(caught.value) == place(2)


def test_transforms_a_function_that_returns_no_number() -> None:
    slope = rg.grad(lambda a: a * 2.0)
    with pytest.raises(rg.ShapeError) as caught:
        slope(np.ones(2))
    assert part_of(caught.value) == "transforms"
    assert own_line(caught.value) == place(2)


def test_linalg_a_node_and_a_matrix_that_is_not_square(g: rg.Graph) -> None:
    inverse = rg.linalg.inv(g.input(np.eye(2)))
    assert line_of(inverse) == place(1)
    with pytest.raises(rg.ShapeError) as caught:
        rg.linalg.inv(g.input(np.ones((2, 3))))
    assert part_of(caught.value) == "linalg"
    assert own_line(caught.value) == place(2)


def test_fft_a_node_and_an_axis_that_is_not_there(g: rg.Graph) -> None:
    spectrum = rg.fft.fft(g.input([1.0, 2.0]))
    assert line_of(spectrum) == place(1)
    with pytest.raises(rg.ShapeError) as caught:
        rg.fft.fft2(g.input([1.0, 2.0]))
    assert own_line(caught.value) == place(1)


def test_random_a_draw_and_a_shape_that_is_none(g: rg.Graph) -> None:
    with g:
        draw = rg.random.normal((2,), 1.0, 2.0)
    assert line_of(draw) == place(1)
    with pytest.raises(rg.DTypeError) as caught:
        rg.random.normal(0.5)
    assert part_of(caught.value) == "random"
    assert own_line(caught.value) == place(2)


def test_neat_nodes_of_a_network_and_what_is_no_genome() -> None:
    pytest.importorskip("neat", reason="genomes are those of neat-python")
    import random

    from reactgrad import neat
    from tests.neat.mutations import config, new_genome

    settings = config()
    net = neat.Network.create(new_genome(settings, random.Random(0)), settings)
    assert {line_of(net[key]) for key in (0, 1)} == {place()}  # which asked for the first node
    with pytest.raises(rg.DTypeError) as caught:
        neat.Network.create(None, settings)
    assert part_of(caught.value) == "neat"
    assert own_line(caught.value) == place(2)


def test_models_nodes_of_a_file_and_an_input_that_there_is_not() -> None:
    onnx = pytest.importorskip("onnx", reason="it parses the file")
    value = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2])
    result = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2])
    node = onnx.helper.make_node("Exp", ["x"], ["y"])
    proto = onnx.helper.make_model(onnx.helper.make_graph([node], "one", [value], [result]))
    model = rg.from_onnx(proto)
    assert {line_of(model.inputs["x"]), line_of(model.outputs["y"])} == {place(1)}
    with pytest.raises(rg.ReactgradError) as caught:
        rg.from_onnx(proto, constants={"z": 1.0})
    assert part_of(caught.value) == "models"
    assert own_line(caught.value) == place(2)


def test_nn_nodes_of_a_layer_and_what_is_no_module(g: rg.Graph) -> None:
    with g:
        layer = rg.nn.Linear(2, 1, rng=0)
    y = layer([1.0, 2.0])
    assert (line_of(layer.weight), line_of(y)) == (place(2), place(1))
    with pytest.raises(rg.DTypeError) as caught:
        rg.nn.Sequential(1.0)
    assert part_of(caught.value) == "nn"
    assert own_line(caught.value) == place(2)


def test_nn_an_input_that_does_not_fit(g: rg.Graph) -> None:
    with g:
        layer = rg.nn.Linear(2, 1)
    with pytest.raises(rg.ShapeError) as caught:
        layer(np.ones((3, 4)))
    assert own_line(caught.value) == place(1)


def test_optim_a_param_that_is_there_twice(g: rg.Graph) -> None:
    w = g.param(1.0)
    with pytest.raises(rg.ReactgradError) as caught:
        rg.optim.SGD([w, w], lr=0.1)
    assert part_of(caught.value) == "optim"
    assert own_line(caught.value) == place(2)


def test_data_a_loader_of_no_rows() -> None:
    with pytest.raises(rg.ReactgradError) as caught:
        rg.data.DataLoader(range(3), batch_size=0)
    assert part_of(caught.value) == "data"
    assert own_line(caught.value) == place(2)


def test_tracking_a_row_in_place_of_a_number(g: rg.Graph) -> None:
    with pytest.raises(rg.ShapeError) as caught:
        rg.progress([1], loss=g.input([1.0, 2.0]))
    assert part_of(caught.value) == "tracking"
    assert own_line(caught.value) == place(2)


def test_whatif_an_input_that_is_no_leaf(g: rg.Graph) -> None:
    x = g.input(1.0, name="x")
    y = x * 2.0
    with pytest.raises(rg.ReactgradError) as caught:
        rg.scenarios([y], {y: [1.0]})
    assert part_of(caught.value) == "whatif"
    assert own_line(caught.value) == place(2)


def test_tables_what_is_no_table(g: rg.Graph) -> None:
    with pytest.raises(rg.ReactgradError) as caught:
        rg.Table(3.0)
    assert part_of(caught.value) == "tables"
    assert own_line(caught.value) == place(2)


def test_distributed_a_place_that_there_is_not() -> None:
    with pytest.raises(rg.ReactgradError) as caught:
        rg.distributed.init("nowhere")
    assert part_of(caught.value) == "distributed"
    assert own_line(caught.value) == place(2)


def test_neurons_nodes_of_a_neuron_and_one_of_nothing(g: rg.Graph) -> None:
    x = g.input([1.0, 2.0])
    y = rg.neuron([x])
    assert line_of(y.node) == place(1)
    with pytest.raises(rg.ReactgradError) as caught:
        rg.neuron([x], weights=[1.0, 2.0])
    assert part_of(caught.value) == "neurons"
    assert own_line(caught.value) == place(2)


def test_plot_a_ladder_of_no_node() -> None:
    pytest.importorskip("matplotlib", reason="draws, extra plot")
    with pytest.raises(rg.ReactgradError) as caught:
        rg.plot.ladder(3.0, 4.0, [1.0])
    assert part_of(caught.value) == "plot"
    assert own_line(caught.value) == place(2)


def test_there_is_a_test_for_each_part() -> None:
    tests = [name for name in globals() if name.startswith("test_")]
    missing = [part for part in PARTS if not any(f"test_{part}_" in name for name in tests)]
    assert sorted(missing) == sorted(WITHOUT_LINES)


def test_only_the_demo_of_the_package_counts_as_a_users_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A checkout below a folder called demo is no demo."""
    monkeypatch.setattr(_site, "_OURS", ("/srv/demo/reactgrad/",))
    monkeypatch.setattr(_site, "_DEMO", "/srv/demo/reactgrad/demo/")

    def ours(file: str) -> bool:
        return _site.Places(compile("", f"/srv/demo/reactgrad/{file}", "exec")).ours

    assert ours("ops/_join.py")
    assert not ours("demo/_story.py")
