"""Two tasks that share a trunk, and a third one on top of the trunk from a file of ONNX."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

import reactgrad as rg
from reactgrad._errors import MissingExtraError

from ._digits import Digits

HIDDEN: Final = 64
FEATURES: Final = 16


class BothLosses(rg.nn.Module):
    """The costs of both tasks and their sum. One module, so its nodes and gradients are built once."""

    def __init__(self, trunk: rg.nn.Module, digit: rg.nn.Module, centre: rg.nn.Module) -> None:
        self.trunk, self.digit, self.centre = trunk, digit, centre
        self.of_digit, self.of_centre = rg.nn.CrossEntropyLoss(), rg.nn.MSELoss()

    def forward(self, images: Any, labels: Any, centres: Any) -> tuple[Any, Any, Any]:
        """Return the cost of the digits, that of the centres, and both together."""
        features = self.trunk(images)
        digit_loss = self.of_digit(self.digit(features), labels)
        centre_loss = self.of_centre(self.centre(features), centres)
        return digit_loss, centre_loss, digit_loss + centre_loss


class TwoTasks:
    """A digit is recognised, and the centre of its ink found, from the same features.

    Parameters
    ----------
    side : int
        The pixels of a row.
    digits : int
        The number of digits that occur: 0, 1, ...
    seed : int
    learning_rate : float
    """

    def __init__(self, side: int, digits: int, seed: int, learning_rate: float = 3e-3) -> None:
        rng = np.random.default_rng(seed)
        with rg.Graph() as self.graph:
            self.trunk = rg.nn.Sequential(
                rg.nn.Linear(side**2, HIDDEN, rng=rng),
                rg.nn.ReLU(),
                rg.nn.Linear(HIDDEN, FEATURES, rng=rng),
                rg.nn.ReLU(),
            )
            self.digit = rg.nn.Linear(FEATURES, digits, rng=rng)
            self.centre = rg.nn.Linear(FEATURES, 2, rng=rng)
        self._losses = BothLosses(self.trunk, self.digit, self.centre)
        self.optimizer = rg.optim.Adam(
            [*self.trunk.parameters(), *self.digit.parameters(), *self.centre.parameters()],
            lr=learning_rate,
        )

    def step(self, images: Any, labels: Any, centres: Any) -> tuple[float, float]:
        """Train with one batch, and return the losses of both tasks before the step."""
        digit_loss, centre_loss, both = self._losses(images, labels, centres)
        self.optimizer.zero_grad()
        both.backward()
        losses = digit_loss.item(), centre_loss.item()
        self.optimizer.step()
        return losses


def ink_centres(digits: Digits) -> Any:
    """Return row and column of the centre of each digit's ink, from -1 to 1."""
    images = digits.images.reshape(-1, digits.side, digits.side)
    places = np.linspace(-1.0, 1.0, digits.side)
    ink = images.sum(axis=(1, 2))
    return np.stack([images.sum(axis=2) @ places / ink, images.sum(axis=1) @ places / ink], axis=1)


def trunk_file(trunk: rg.nn.Sequential) -> bytes:
    """Return the trunk as a file of ONNX: images in, features out.

    Raises
    ------
    MissingExtraError
        If onnx is not installed.
    """
    try:
        from onnx import TensorProto, helper, numpy_helper
    except ImportError as error:
        raise MissingExtraError(
            "reactgrad demo multitask needs onnx, which is not installed: "
            'pip install "reactgrad[demo]"'
        ) from error
    values = {path.replace(".", "_"): value for path, value in trunk.state_dict().items()}
    nodes = [
        helper.make_node("Gemm", ["images", "0_weight", "0_bias"], ["sums"], transB=1),
        helper.make_node("Relu", ["sums"], ["hidden"]),
        helper.make_node("Gemm", ["hidden", "2_weight", "2_bias"], ["more_sums"], transB=1),
        helper.make_node("Relu", ["more_sums"], ["features"]),
    ]
    pixels, double = values["0_weight"].shape[1], TensorProto.DOUBLE
    graph = helper.make_graph(
        nodes,
        "trunk",
        [helper.make_tensor_value_info("images", double, ["n", pixels])],
        [helper.make_tensor_value_info("features", double, ["n", FEATURES])],
        [numpy_helper.from_array(value, name) for name, value in values.items()],
    )
    return helper.make_model(graph).SerializeToString()


class OnTop:
    """A new layer on top of a frozen trunk that is read from a file.

    The trunk's features of all images are a node. A batch takes rows of it, so they are computed once.

    Parameters
    ----------
    file : bytes
        The trunk, as ``trunk_file`` returns it.
    train, test : Digits
    digits : int
        The number of digits that occur: 0, 1, ...
    batch : int
        The images of a batch.
    seed : int

    Attributes
    ----------
    trunk_ran, ran : int
        Nodes of the trunk that ran in the last epoch, and all nodes that ran.
    """

    def __init__(
        self, file: bytes, train: Digits, test: Digits, digits: int, batch: int, seed: int
    ) -> None:
        model = rg.from_onnx(file)
        for param in model.params.values():
            param.freeze()
        self.graph = g = model.graph
        model.inputs["images"].set(np.concatenate([train.images, test.images]))
        self.features = model.outputs["features"]
        self._of_trunk = set(g.plan(self.features))
        with g:
            self.head = rg.nn.Linear(FEATURES, digits, rng=seed)
        self._rows = g.input(np.zeros(batch, int), name="rows")
        self._wanted = g.input(np.zeros(batch, int), name="wanted")
        self._loss = rg.nn.CrossEntropyLoss()(self.head(self.features[self._rows]), self._wanted)
        scores = self.head(self.features[np.arange(len(train), len(train) + len(test))])
        self._right = (rg.argmax(scores, axis=1) == test.labels).astype(float).mean()
        self._optimizer = rg.optim.Adam(self.head.parameters(), lr=0.01)
        rows = rg.data.ArrayDataset(np.arange(len(train)), train.labels)
        self._loader = rg.data.DataLoader(rows, batch, shuffle=True, rng=seed, drop_last=True)
        self.trunk_ran = self.ran = 0

    @property
    def trunk_nodes(self) -> int:
        """The number of nodes that compute the features."""
        return len(self._of_trunk)

    def epoch(self) -> tuple[float, float]:
        """Train for one epoch; return the mean loss, and the share of test images that are right."""
        losses: list[float] = []
        with self.graph.record() as log:
            for rows, labels in self._loader:
                self.graph.set({self._rows: rows, self._wanted: labels})
                self._optimizer.zero_grad()
                self._loss.backward()
                losses.append(self._loss.item())
                self._optimizer.step()
            right = self._right.item()
        ran = [node for run in log.runs for node in run.ran]
        self.ran = len(ran)
        self.trunk_ran = sum(node in self._of_trunk for node in ran)
        return float(np.mean(losses)), right
