"""What is written for PyTorch and is another thing here: the error says what to write, or it works."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import reactgrad as rg

ROWS = np.ones((2, 3))
SET = rg.data.ArrayDataset(np.arange(4.0))

REFUSED: list[tuple[str, str]] = [
    # Vars and functions of arrays.
    (
        "x.size()",
        "x.size(): size is the number of elements here, as in NumPy, and no function. Write x.shape.",
    ),
    (
        "x.size(0)",
        "x.size(0): size is the number of elements here, as in NumPy, and no function. Write x.shape[0].",
    ),
    (
        "x.contiguous()",
        "a Var has no attribute 'contiguous'. Values are arrays of one layout, so take x itself.",
    ),
    ("x.masked_fill", "a Var has no attribute 'masked_fill'. Write rg.where(mask, value, x)."),
    ("x.gather", "a Var has no attribute 'gather'. Write rg.take_along_axis(x, index, axis)."),
    ("w.data", "a Var has no attribute 'data'. Write w.value."),
    ("setattr(w, 'data', 1.0)", "a value cannot be assigned; write w.set(1.0)."),
    (
        "setattr(w, 'clone', 1.0)",
        (
            "a Var has no attribute 'clone'. Values are never written in place, so take w itself, or w.snapshot() for "
            "a const of the present value."
        ),
    ),
    (
        "rg.concatenate([x, x], dim=0)",
        "rg.concatenate has no argument 'dim', as in dim=0. Write axis=0.",
    ),
    ("rg.stack([x, x], dim=1)", "rg.stack has no argument 'dim', as in dim=1. Write axis=1."),
    (
        "rg.expand_dims(x, dim=1)",
        "rg.expand_dims has no argument 'dim', as in dim=1. Write axis=1.",
    ),
    (
        "x.var(unbiased=False)",
        "x.var has no argument 'unbiased', as in unbiased=False. Write ddof=0.",
    ),
    (
        "rg.std(x, unbiased=True)",
        "rg.std has no argument 'unbiased', as in unbiased=True. Write ddof=1.",
    ),
    (
        "rg.zeros(3, 4)",
        "rg.zeros(3, 4): the shape is one argument, and the second one is the dtype. Write rg.zeros((3, 4)).",
    ),
    (
        "rg.empty(3, 4)",
        "rg.empty(3, 4): the shape is one argument, and the second one is the dtype. Write rg.empty((3, 4)).",
    ),
    (
        "rg.manual_seed(0)",
        (
            "module 'reactgrad' has no attribute 'manual_seed'. Write g.reseed(7), or rg.Graph(rng=7); layers take a "
            "seed of their own, rng=7."
        ),
    ),
    (
        "rg.randn(3, 4)",
        "module 'reactgrad' has no attribute 'randn'. Write rg.random.normal((2, 3)).",
    ),
    ("rg.Linear", "module 'reactgrad' has no attribute 'Linear'. Write rg.nn.Linear."),
    # Modules.
    (
        "rg.nn.Linear(3, 2, device='cpu')",
        (
            "Linear has no argument 'device', as in device='cpu'. What is made is moved by .to('cuda:0') behind, so "
            "leave it out."
        ),
    ),
    (
        "rg.nn.Linear(3, 2, bais=False)",
        "Linear has no argument 'bais', as in bais=False. Write bias=False.",
    ),
    (
        "rg.nn.CrossEntropyLoss(size_average=True)",
        (
            "CrossEntropyLoss has no argument 'size_average', as in size_average=True. Write reduction='mean' or "
            "reduction='sum'."
        ),
    ),
    ("net.type('float32')", "a Sequential has no attribute 'type'. Write net.to('float32')."),
    (
        "net[0].bfloat16()",
        "a Linear has no attribute 'bfloat16'. Write with rg.autocast('bfloat16'): around the calls.",
    ),
    (
        "net.zero_grad(set_to_none=False)",
        (
            "zero_grad(set_to_none=False): a module's params have no gradient afterwards. Leave it out, or write "
            "opt.zero_grad(set_to_none=False) for zeros."
        ),
    ),
    (
        "rg.nn.utils.clip_grad_norm_",
        (
            "module 'reactgrad.nn.utils' has no attribute 'clip_grad_norm_'. Write rg.optim.clip_grad_norm_."
        ),
    ),
    ("rg.nn.Linaer", "module 'reactgrad.nn' has no attribute 'Linaer'. Is it Linear?"),
    # Labels.
    (
        "rg.nn.CrossEntropyLoss()(x, np.eye(3, dtype=int)[:2])",
        (
            "cross_entropy of scores of shape (2, 3) with labels of shape (2, 3) and dtype int64: labels that are "
            "integers are the number of each sample's class, and not a row for each. For rows of zeros and ones write "
            "labels.argmax(1); for probabilities labels.astype(float)."
        ),
    ),
    (
        "rg.nn.CrossEntropyLoss()(x, np.array([[0], [2]]))",
        (
            "cross_entropy of scores of shape (2, 3) with labels of shape (2, 1) and dtype int64: labels that are "
            "integers are the number of each sample's class, in the shape of the scores without axis 1. Write "
            "labels.squeeze(1)."
        ),
    ),
    # Optimisers and schedules.
    (
        "rg.optim.Adam([w], learning_rate=0.1)",
        "Adam has no argument 'learning_rate', as in learning_rate=0.1. Write lr=0.1.",
    ),
    (
        "rg.optim.SGD([w], foreach=True)",
        (
            "SGD has no argument 'foreach', as in foreach=True. All params of a group are changed at once anyway, so "
            "leave it out."
        ),
    ),
    (
        "rg.optim.StepLR(rg.optim.SGD([w]), 3, verbose=True)",
        (
            "StepLR has no argument 'verbose', as in verbose=True. The rates are shown by get_last_lr(), so "
            "leave it out."
        ),
    ),
    (
        "rg.optim.lr_scheduler",
        (
            "module 'reactgrad.optim' has no attribute 'lr_scheduler'. Schedules are in rg.optim itself: write "
            "rg.optim.StepLR(opt, 10)."
        ),
    ),
    (
        "rg.optim.clip_grad_norm_([w], 1.0, foreach=True)",
        (
            "rg.optim.clip_grad_norm_ has no argument 'foreach', as in foreach=True. All params of a group are changed "
            "at once anyway, so leave it out."
        ),
    ),
    # Functions and methods.
    (
        "rg.nn.functional.relu(x, inplace=True)",
        (
            "rg.nn.functional.relu has no argument 'inplace', as in inplace=True. Values are never written in place, "
            "so leave it out."
        ),
    ),
    (
        "rg.nn.functional.normalize(x, dim=1)",
        "rg.nn.functional.normalize has no argument 'dim', as in dim=1. Write axis=1.",
    ),
    (
        "rg.nn.RNN(3, 4, device='cpu')",
        (
            "RNN has no argument 'device', as in device='cpu'. What is made is moved by .to('cuda:0') behind, so leave "
            "it out."
        ),
    ),
    (
        "x.topk(2)",
        "a Var has no attribute 'topk'. Ops are functions: write rg.topk(x, ...).",
    ),
    ("x.chunk(2)", "a Var has no attribute 'chunk'. Write rg.split(x, n, axis)."),
    # Data.
    (
        "rg.data.random_split(SET, [2, 2], generator=7)",
        "rg.data.random_split has no argument 'generator', as in generator=7. Write rng=7.",
    ),
    (
        "rg.data.RandomSampler(SET, generator=7)",
        "RandomSampler has no argument 'generator', as in generator=7. Write rng=7.",
    ),
    (
        "rg.data.DataLoader(SET, num_workers=2)",
        "DataLoader has no argument 'num_workers', as in num_workers=2. Write workers=2.",
    ),
    (
        "rg.data.DataLoader(SET, generator=7)",
        "DataLoader has no argument 'generator', as in generator=7. Write rng=7.",
    ),
    (
        "rg.data.DataLoader(SET, pin_memory=True)",
        (
            "DataLoader has no argument 'pin_memory', as in pin_memory=True. Batches are arrays in the memory of the "
            "host, so leave it out."
        ),
    ),
    (
        "rg.data.DataLoader(SET, persistent_workers=True)",
        (
            "DataLoader has no argument 'persistent_workers', as in persistent_workers=True. Workers are threads, "
            "which start at once, so leave it out."
        ),
    ),
    (
        "rg.data.TensorDataset(ROWS)",
        "module 'reactgrad.data' has no attribute 'TensorDataset'. Write rg.data.ArrayDataset(X, y).",
    ),
]


@pytest.mark.parametrize(("written", "says"), REFUSED)
def test_what_is_refused_says_what_to_write(g: rg.Graph, written: str, says: str) -> None:
    with g:
        names = {
            "x": g.input(ROWS, name="x"),
            "w": g.param(1.0, name="w"),
            "net": rg.nn.Sequential(rg.nn.Linear(3, 2, rng=0)),
        }
        with pytest.raises(rg.ReactgradError) as caught:
            eval(written, globals(), names)
    assert str(caught.value) == says


def test_what_works_as_in_pytorch(g: rg.Graph) -> None:
    with g:
        net = rg.nn.Sequential(rg.nn.Linear(3, 2, rng=0, dtype=rg.float32))
        assert net.cpu() is net
        net.zero_grad(set_to_none=True)
        likely = np.array([[0.25, 0.75], [1.0, 0.0]])
        scores = g.input([[1.0, 2.0], [0.5, 0.0]])
        cost = rg.nn.CrossEntropyLoss()(scores, likely)
    assert cost.value == pytest.approx(0.5186693358491647, rel=1e-12)  # of PyTorch
    assert isinstance(g.input(ROWS).size, int)


def test_a_size_is_a_number_wherever_it_goes(g: rg.Graph) -> None:
    x = g.input(ROWS)
    assert x.size == 6
    assert repr(x.size) == "6"
    assert type(pickle.loads(pickle.dumps(x.size))) is int
    assert type(copy.copy(x.size)) is int
    assert type(x.size + 1) is int
    assert x.reshape(x.size).shape == rg.zeros(x.size).shape == (6,)


def test_names_of_pytorch_are_no_attributes(g: rg.Graph) -> None:
    class Net(rg.nn.Module):
        def __init__(self) -> None:
            self.summary = rg.nn.Linear(2, 2, rng=0)

    with g:
        net: Any = Net()
        held: Any = rg.nn.ModuleDict({"type": rg.nn.ReLU()})
    assert not hasattr(net, "share_memory")
    assert "share_memory" not in dir(net)
    assert "summary" in dir(net)
    assert list(net.state_dict()) == ["summary.weight", "summary.bias"]
    assert isinstance(held.type, rg.nn.ReLU)


def test_a_class_whose_init_takes_any_name_gets_them(g: rg.Graph) -> None:
    class Net(rg.nn.Module):
        def __init__(self, **options: Any) -> None:
            self.options = options

    assert Net(device="cpu").options == {"device": "cpu"}


PREFIXED = [
    (
        {"module.weight": [[1.0, 2.0]], "module.bias": [0.0]},
        (
            "The paths of this state dict begin with 'module.', which the module's do not. Write net.load_state_dict("
            "{path.removeprefix('module.'): array for path, array in state.items()})."
        ),
    ),
    (
        {"state_dict": {"weight": [[1.0, 2.0]], "bias": [0.0]}, "epoch": 3},
        (
            "These are no paths of a module: the state dict is one of the values. Write "
            "net.load_state_dict(state['state_dict'])."
        ),
    ),
    (
        {"weight": [[1.0, 2.0]], "other": [0.0]},
        "Make the module as the one that was saved, or pass strict=False to load the paths that both have.",
    ),
]


@pytest.mark.parametrize(("state", "says"), PREFIXED)
def test_paths_with_a_prefix(g: rg.Graph, state: dict[str, Any], says: str) -> None:
    with g:
        net = rg.nn.Linear(2, 1, rng=0)
    with pytest.raises(rg.ReactgradError) as caught:
        net.load_state_dict(state)
    assert str(caught.value).splitlines()[-1] == says


def test_a_module_inside_of_the_one_that_was_saved(g: rg.Graph) -> None:
    class Net(rg.nn.Module):
        def __init__(self) -> None:
            self.model = rg.nn.Linear(2, 1, rng=0)

    with g:
        net = Net()
    with pytest.raises(rg.ReactgradError, match=r"Write net\.model\.load_state_dict\(state\)"):
        net.load_state_dict({"weight": [[1.0, 2.0]], "bias": [0.0]})
    net.model.load_state_dict({"weight": [[1.0, 2.0]], "bias": [0.0]})


def test_a_dtype_that_is_none_is_not_called_a_shape(g: rg.Graph) -> None:
    with g:
        net = rg.nn.Linear(2, 1, rng=0)
    with pytest.raises(rg.ReactgradError) as caught:
        net.load_state_dict({"weight": np.array([["a", "b"]]), "bias": [0.0]})
    assert str(caught.value).splitlines()[1:] == [
        "  wrong dtype: weight is of <U1, and not of float64",
        "Give arrays or tensors of numbers: state[path].astype('float32').",
    ]


def test_bfloat16_of_other_libraries_loads(g: rg.Graph) -> None:
    torch = pytest.importorskip("torch")
    with g:
        net = rg.nn.Linear(2, 1, rng=0)
    net.load_state_dict({"weight": torch.ones(1, 2, dtype=torch.bfloat16), "bias": torch.zeros(1)})
    assert net.weight.tolist() == [[1.0, 1.0]]


def test_rows_and_probabilities_that_are_none_are_errors(g: rg.Graph) -> None:
    """Row -1 was the last one, and a probability of 1.5 cost nan."""
    with g:
        table = rg.nn.Embedding(4, 2, rng=0)
        numbers = g.input([0, 3])
        rows = table(numbers)
        assert rows.shape == (2, 2)
        numbers.set([0, -1])
        with pytest.raises(rg.IndexingError, match="-1 is among the numbers"):
            _ = rows.value
        likely = g.input([0.2, 1.0])
        cost = rg.nn.BCELoss()(likely, np.array([0.0, 1.0]))
        assert cost.value == pytest.approx(0.11157177565710488)
        likely.set([0.2, 1.5])
        with pytest.raises(rg.DTypeError, match=r"from 0\.2 to 1\.5: they are probabilities"):
            _ = cost.value
        likely.set([0.2, np.nan])
        assert np.isnan(cost.value)
