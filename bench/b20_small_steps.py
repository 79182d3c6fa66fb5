"""B20: small steps from a plain installation: the DAG of B1 on 1, 8 and 32 numbers, without ``jit`` or any extra.

Forward, and forward with the gradients of all weights read as one array. Beside the same NumPy calls by hand, and
PyTorch eager. A step is an op: four for each node of the DAG.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import reactgrad as rg
from bench._case import Case, Contest, Peer, Setting, Side, Step, Workload
from bench._goal import faster, within
from bench.b01_dag import ByHand, Dag, Model, draw_inputs, random_dag
from bench.b02_dag_torch import Torch, tensors

OPS = 4  # two products, a sum and a tanh for each node
# So many numbers a step may take 15 ns.
NUMBERS, GOAL = 8, 15e-9


def with_gradients(dag: Dag, batch: int) -> Step:
    """Return a step whose gradients are one array."""
    model = Model(dag, batch, jit=None)
    total = model.output.sum()
    block = rg.stack(rg.grad(total, model.flat_weights))
    read = model.graph.reader(total, block, feeds=model.inputs)
    return lambda rows: read(*rows)


def forward(dag: Dag, batch: int) -> Step:
    """Return a step that reads the output alone."""
    model = Model(dag, batch, jit=None)
    read = model.graph.reader(model.output, feeds=model.inputs)
    return lambda rows: read(*rows)


def flat_by_hand(dag: Dag, batch: int) -> Step:
    """Return the step by hand, with its gradients as one array."""
    step = ByHand(dag, batch).gradient()

    def flat(rows: Any) -> Any:
        total, gradients = step(rows)
        return total[()], gradients.reshape(-1).copy()

    return flat


def in_torch(dag: Dag) -> Step:
    """Return PyTorch's step, with its gradients as one tensor."""
    model = Torch(dag)
    step, stack = model.gradient(), model.torch.stack

    def flat(rows: Any) -> Any:
        total, gradients = step(rows)
        return total, stack(gradients)

    return flat


def cases(setting: Setting) -> list[Case]:
    """Return the cases of this workload."""
    dag = random_dag(setting)
    found: list[Case] = []
    for batch in (1, 9, 30) if setting.permuted else (1, NUMBERS, 32):
        goal = within(GOAL) if batch in (NUMBERS, 9) else None

        def contest(
            name: str,
            ours: Callable[[Dag, int], Step],
            hand: Callable[[], Step],
            torch: Callable[[], Step],
            show: Callable[[Any], Any],
            *,
            batch: int = batch,
            **more: Any,
        ) -> Contest:
            return Contest(
                f"{name}, {batch} number{'s' if batch > 1 else ''}",
                draw_inputs(batch),
                Side("reactgrad", lambda: ours(dag, batch)),
                (
                    Peer(Side("by hand", hand)),
                    Peer(
                        Side("PyTorch eager", torch, take=tensors, show=show, needs="torch"),
                        faster(40.0),
                    ),
                ),
                **more,
            )

        found += [
            contest(
                "forward",
                forward,
                lambda batch=batch: ByHand(dag, batch).forward(),
                lambda: Torch(dag).forward(),
                lambda one: one.numpy(),
                goal=goal,
                unit="op",
                per=OPS * dag.nodes,
            ),
            contest(
                "forward + gradients as one array",
                with_gradients,
                lambda batch=batch: flat_by_hand(dag, batch),
                lambda: in_torch(dag),
                lambda found: (found[0].detach().numpy(), found[1].numpy()),
            ),
        ]
    return found


WORKLOAD = Workload("B20", "small steps", cases)


def test_b20(benchmark: Any, race: Any) -> None:
    """Time one side of one contest."""
    race(benchmark)
