"""What users of pandas, tqdm, PyTorch and neat-python write first: it works, or the error says what to write."""

from __future__ import annotations

import importlib
import inspect
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reactgrad as rg


def made(name: str) -> Any:
    g = rg.Graph()
    x = g.input(2.0, name="x")
    y = x * 3.0
    y.name = "y"
    if name == "table":
        return rg.Table(pytest.importorskip("pandas").DataFrame({"qty": [1.0, 2.0]}), g)
    makers: dict[str, Callable[[], Any]] = {
        "scenarios": lambda: rg.scenarios(y, {x: [1.0, 2.0]}),
        "draws": lambda: rg.monte_carlo(y, {x: ("normal", 0.0, 1.0)}, 10),
        "tornado": lambda: rg.tornado(y),
        "bar": lambda: rg.progress([1, 2]),
        "optimizer": lambda: rg.optim.Adam([g.param([1.0])]),
        "graph": lambda: g,
    }
    return makers[name]()


@pytest.mark.parametrize(
    ("thing", "name", "way"),
    [
        (
            "table",
            "groupby",
            "a Table has no attribute 'groupby'. Write names, totals = t.groups(by, column)",
        ),
        ("table", "qty", "Columns are items: write t['qty']."),
        ("table", "to_csv", "write t.to_pandas().to_csv(...)."),
        ("table", "loc", "Write t.set_at(key, column, number)"),
        ("table", "sum", "Write t[column].sum()"),
        ("scenarios", "df", "a Scenarios has no attribute 'df'. Write found.to_pandas()."),
        ("draws", "hist", "a MonteCarlo has no attribute 'hist'. Write found.plot()."),
        (
            "tornado",
            "sort_values",
            "a Tornado has no attribute 'sort_values'. Write found.to_pandas()",
        ),
        (
            "bar",
            "set_postfix",
            "a Progress has no attribute 'set_postfix'. Write bar.show(loss=loss).",
        ),
        ("optimizer", "lr", "an Adam has no attribute 'lr'. Write opt.param_groups[0]['lr']."),
        ("graph", "values", "Write {one.name: one.value for one in g.inputs}"),
    ],
)
def test_names_of_other_libraries_say_what_to_write(thing: str, name: str, way: str) -> None:
    one = made(thing)
    assert not hasattr(one, name)
    assert name not in dir(one)
    with pytest.raises(rg.ReactgradError) as caught:
        getattr(one, name)
    assert way in str(caught.value)


def test_a_table_without_columns_yet_and_pickles_are_not_asked_for_words() -> None:
    t = made("table")
    assert not hasattr(t, "__array_interface__")
    assert not hasattr(type(t).__new__(type(t)), "qty")


def test_the_writer_says_what_it_logs() -> None:
    with pytest.raises(AttributeError, match=r"add_graph'. Write g.export_html\(path\)"):
        rg.SummaryWriter.add_graph  # type: ignore[attr-defined]


def test_a_sentence_stays_one_where_the_node_has_a_capital() -> None:
    g = rg.Graph()
    x = g.input(1.0, name="Net")
    with pytest.raises(AttributeError, match=r"no attribute 'cpu'\. Write Net\.value\."):
        x.cpu  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["from_pandas", "save_weights", "to_excel", "tqdm", "simulate"])
def test_the_package_says_what_to_write(name: str) -> None:
    with pytest.raises(AttributeError, match="Write|write"):
        getattr(rg, name)


def test_plots_say_what_to_write() -> None:
    pytest.importorskip("matplotlib")
    with pytest.raises(AttributeError, match=r"rg\.plot\.histogram\(found\)"):
        rg.plot.hist  # type: ignore[attr-defined]


def test_an_archive_of_torch_is_no_graph(tmp_path: Path) -> None:
    import zipfile

    pytest.importorskip("safetensors")
    path = tmp_path / "net.pt"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("archive/data.pkl", b"x" * 100)
    with pytest.raises(rg.LoadError, match=r"rg\.load_weights\(path\)"):
        rg.load(path)


class Labels:
    """As tensors of PyTorch are: NumPy can read them, and their dtype has no kind."""

    dtype, shape, ndim = object(), (2,), 1

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array([1, 2], dtype)


def test_labels_of_a_library_whose_dtypes_have_no_kind() -> None:
    with rg.Graph():
        net = rg.nn.Linear(3, 4, rng=0)
    scores = net(np.ones((2, 3)))
    theirs = rg.nn.CrossEntropyLoss()(scores, Labels()).item()
    assert theirs == rg.nn.CrossEntropyLoss()(scores, np.array([1, 2])).item()


def test_to_onnx_is_given_nodes_and_no_module() -> None:
    pytest.importorskip("onnx")
    with rg.Graph():
        net = rg.nn.Linear(3, 4, rng=0)
    with pytest.raises(rg.ReactgradError, match=r"was given a Linear, and writes nodes: call it"):
        rg.to_onnx(net)
    with pytest.raises(rg.ReactgradError, match="was given a int, and outputs are nodes"):
        rg.to_onnx(3)


def test_a_model_takes_arrays_in_the_order_of_its_inputs() -> None:
    pytest.importorskip("onnx")
    g = rg.Graph()
    x = g.input(np.ones((2, 3), "f4"), name="x")
    m = rg.from_onnx(rg.to_onnx({"y": x * 2.0}))
    assert np.array_equal(m(np.full((2, 3), 3.0, "f4"))["y"].value, np.full((2, 3), 6.0))
    with pytest.raises(rg.ReactgradError, match="2 arrays, and this model has 1 inputs"):
        m(1.0, 2.0)
    with pytest.raises(rg.ReactgradError, match="given 'x' twice"):
        m(1.0, x=2.0)


def test_a_program_of_neat_python_changes_its_import_only(tmp_path: Path) -> None:
    neat_python = pytest.importorskip("neat")
    from reactgrad import neat
    from reactgrad.demo import neat_config

    assert neat.Config is neat_python.Config
    assert neat.nn.FeedForwardNetwork is neat.FeedForwardNetwork
    assert neat.ctrnn.CTRNN is neat.CTRNN
    assert neat.iznn.IZNN is neat.IZNN
    names = [name for name in vars(neat_python) if name[0] != "_"]
    assert {"genome", "graphs", "activations", "InnovationTracker", "math_util"} <= {*names}
    ours = ("Population", "nn", "ctrnn", "iznn")
    assert all(getattr(neat, one) is getattr(neat_python, one) for one in names if one not in ours)
    config = neat_config(pop_size=10)

    def eval_genomes(genomes: Any, config: Any) -> None:
        for _, genome in genomes:
            net = neat.nn.FeedForwardNetwork.create(genome, config)
            genome.fitness = 1.0 - abs(net.activate((1.0, 0.0))[0] - 1.0)

    population = neat.Population(config, seed=1)
    population.add_reporter(neat.StatisticsReporter())
    population.add_reporter(neat.Checkpointer(1, filename_prefix=str(tmp_path / "c-")))
    winner = population.run(eval_genomes, 3)
    again = neat.FeedForwardNetwork.create(pickle.loads(pickle.dumps(winner)), config)
    assert abs(again.activate((1.0, 0.0))[0] - 1.0) == 1.0 - winner.fitness
    assert list(tmp_path.iterdir())
    with pytest.raises(AttributeError, match=r"create\(genome, config\)\.draw"):
        neat.visualize
    with pytest.raises(rg.ReactgradError, match=r"If it is the path of one, read it: neat\.Config"):
        neat.Population("config-feedforward")


@pytest.mark.parametrize(
    ("module", "name", "way"),
    [
        ("reactgrad", "Tensor", "Write rg.input(value), rg.param(value) if it is trained"),
        ("reactgrad", "Grph", "Is it Graph?"),
        ("reactgrad", "autograd", "Write rg.grad(y, x), rg.jacobian"),
        ("reactgrad", "Generator", "Write rg.Graph(rng=7)"),
        ("reactgrad.nn", "DataParallel", "Write rg.distributed.DataParallel."),
        ("reactgrad.data", "transforms", "Transforms are in rg.data itself"),
        ("reactgrad.data", "MNIST", "Write rg.data.ArrayDataset(X, y) of arrays"),
        ("reactgrad.neat", "ThreadedEvaluator", "Write population.run(fitness, n, over=client)"),
        ("reactgrad.data", "TensorDataset", "Write rg.data.ArrayDataset(X, y)."),
        ("reactgrad.optim", "LBFGSX", "Is it LBFGS?"),
        ("reactgrad.nn", "Linaer", "Is it Linear?"),
        ("reactgrad.nn.functional", "reluu", "Is it relu"),
        ("reactgrad.random", "seed", "Write rg.Graph(rng=7), or g.reseed(7)"),
        ("reactgrad.linalg", "matrixrank", "Is it matrix_rank?"),
        ("reactgrad.fft", "fftfrq", "Is it fftfreq"),
        ("reactgrad.neat", "Popluation", "Is it Population"),
        (
            "reactgrad.neat",
            "visualize",
            "Write neat.Network.create(genome, config).draw('net.svg').",
        ),
        ("reactgrad.plot", "loss", "Write rg.plot.convergence(losses)."),
    ],
)
def test_name_that_is_imported_and_is_not_there(module: str, name: str, way: str) -> None:
    with pytest.raises(ImportError) as caught:
        exec(f"from {module} import {name}", {})
    assert str(caught.value).startswith(f"module {module!r} has no attribute {name!r}.")
    assert way in str(caught.value)
    assert caught.value.name == module
    assert not hasattr(importlib.import_module(module), name)
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
        getattr(importlib.import_module(module), name)


# Those that `import reactgrad` has at once are called as they are: each build of a node would pay for more.
FOUND_LATER = sorted(name for name in rg._LATER if inspect.isfunction(getattr(rg, name)))


@pytest.mark.parametrize("name", FOUND_LATER)
def test_argument_that_a_function_does_not_have_is_named(name: str) -> None:
    parameters = inspect.signature(getattr(rg, name)).parameters.values()
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters):
        return  # it says so itself, or takes names of the caller's own
    with pytest.raises(
        rg.DTypeError, match=f"rg.{name} has no argument 'nonsense', as in nonsense=7"
    ):
        getattr(rg, name)(nonsense=7)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda y: rg.goal_seek(y, "x", 3.0, tol=1e-9), "Write rtol=1e-09."),
        (lambda y: rg.scenarios(y, {"x": [1.0]}, num_workers=2), "Write workers=2."),
        (
            lambda y: rg.monte_carlo(y, {"x": ("normal", 0, 1)}, random_state=1),
            "It takes outputs, ",
        ),
        (
            lambda y: importlib.import_module("reactgrad.neat").fit(None, [], [], None, lr=0.1),
            "Write learning_rate=0.1.",
        ),
    ],
)
def test_argument_of_another_library_is_named(call: Callable[[Any], Any], text: str) -> None:
    y = rg.Graph().input(2.0, name="x") * 3.0
    with pytest.raises(rg.DTypeError) as caught:
        call(y)
    assert text in str(caught.value)
