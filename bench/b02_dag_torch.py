"""B2: the random DAG of B1 beside PyTorch eager.

Also by the register machine, and defined anew at every step, as PyTorch does. Values and gradients
are handed out one by one, as PyTorch's are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import reactgrad as rg
from bench._case import Case, Contest, Peer, Setting, Side, Step, Workload
from bench._goal import faster
from bench._peers import load
from bench.b01_dag import Dag, Model, built, draw_inputs, first_weights, random_dag


class Torch:
    """The DAG in PyTorch: the same expression, run eagerly."""

    def __init__(self, dag: Dag) -> None:
        self.torch = load("torch")
        self.dag = dag
        self.weights = [
            tuple(self.torch.tensor(w, dtype=self.torch.float64) for w in pair)
            for pair in first_weights(dag).tolist()
        ]

    def _output(self, inputs: Any) -> Any:
        return built(self.dag, inputs, self.weights, self.torch.tanh)

    def forward(self) -> Step:
        no_grad = self.torch.no_grad

        def step(inputs: Any) -> Any:
            with no_grad():
                return self._output(inputs)

        return step

    def gradient(self) -> Step:
        flat = [w.requires_grad_() for pair in self.weights for w in pair]
        grad = self.torch.autograd.grad

        def step(inputs: Any) -> Any:
            total = self._output(inputs).sum()
            return total, grad(total, flat)

        return step


def tensors(rows: Any) -> Any:
    """Return the inputs as separate tensors."""
    torch = load("torch")
    return [torch.tensor(row) for row in rows]


def read_torch(outputs: Any) -> Any:
    """Return a total and its gradients, for comparing."""
    total, gradients = outputs
    return total.item(), [gradient.item() for gradient in gradients]


def redefined(dag: Dag, batch: int) -> Step:
    """Return a step that writes the model of B1 anew, from the same leaves."""
    model = Model(dag, batch)
    reuse = model.graph.reuse

    def step(rows: Any) -> Any:
        model.set_inputs(rows)
        with reuse():
            output = built(dag, model.inputs, model.weights, rg.tanh)
            total = output.sum()
            gradients = rg.grad(total, model.flat_weights)
        model.graph.forward(total, *gradients)
        return total.value, [gradient.value for gradient in gradients]

    return step


def cases(setting: Setting) -> list[Case]:
    """Return the cases of this workload."""
    dag = random_dag(setting)
    found: list[Case] = []
    for batch in (1, 30 if setting.permuted else 32):
        draw = draw_inputs(batch)
        forward, gradient = (
            f"forward, batch {batch}",
            f"forward + gradient of all weights, batch {batch}",
        )
        for how, jit, goals in (
            ("", False, (6.0, 3.0)),
            ("register machine: ", True, (15.0, 15.0)),
        ):
            found += [
                Contest(
                    how + forward,
                    draw,
                    Side(
                        "reactgrad",
                        lambda batch=batch, jit=jit: Model(dag, batch, jit).forward(),
                    ),
                    (_torch(lambda: Torch(dag).forward(), goals[0]),),
                ),
                Contest(
                    how + gradient,
                    draw,
                    Side(
                        "reactgrad",
                        lambda batch=batch, jit=jit: Model(dag, batch, jit).gradient_kept(),
                    ),
                    (_torch(lambda: Torch(dag).gradient(), goals[1], read_torch),),
                ),
            ]
    found.append(
        Contest(
            "model redefined every step (g.reuse())",
            draw_inputs(1),
            Side("reactgrad", lambda: redefined(dag, 1)),
            (_torch(lambda: Torch(dag).gradient(), 1.8, read_torch),),
        )
    )
    return found


def _torch(
    build: Callable[[], Step], goal: float, show: Callable[[Any], Any] = lambda found: found
) -> Peer:
    return Peer(Side("PyTorch eager", build, take=tensors, show=show, needs="torch"), faster(goal))


WORKLOAD = Workload("B2", "random DAG", cases)


def test_b02(benchmark: Any, race: Any) -> None:
    """Time one side of one contest."""
    race(benchmark)
