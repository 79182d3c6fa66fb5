"""B1: a random DAG of 1,000 small nodes, beside the same NumPy calls written by hand.

Every node is ``tanh(a*w1 + b*w2)`` of two earlier values; all lead to the last one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

import reactgrad as rg
from bench._case import Case, Contest, Peer, Setting, Side, Step, Workload
from bench._goal import at_most

INPUTS = 8
WIDTH = 32  # the number of values that wait for a consumer
WINDOW = 64  # the distance to a node's earliest operand


@dataclass(frozen=True)
class Dag:
    """Nodes as pairs of earlier values; values are counted from the inputs on."""

    pairs: list[tuple[int, int]]
    swapped: bool  # True if the second product comes first

    @property
    def nodes(self) -> int:
        return len(self.pairs)


def random_dag(setting: Setting) -> Dag:
    """Return a DAG in which every value is used and all lead to the last node."""
    pick = Random(5 if setting.permuted else 1)
    nodes = setting.size(1000, 20)
    unused = list(range(INPUTS))
    pairs: list[tuple[int, int]] = []
    for i in range(nodes):
        last = INPUTS + i
        left = nodes - i
        if len(unused) > left:  # join the open ends
            a, b = pick.sample(unused, 2)
        else:
            waiting = len(unused) >= min(WIDTH, left)
            a = pick.choice(unused) if waiting else _recent(pick, last)
            b = _recent(pick, last)
        unused = [value for value in unused if value not in (a, b)] + [last]
        pairs.append((a, b))
    assert unused == [INPUTS + nodes - 1]
    return Dag(pairs, setting.permuted)


def _recent(pick: Random, last: int) -> int:
    return pick.randrange(max(0, last - WINDOW), last)


def first_weights(dag: Dag) -> np.ndarray:
    """Return the weights at the start, one row a node."""
    return np.random.default_rng(7).normal(0.0, 0.8, (dag.nodes, 2))


class Model:
    """The DAG as a reactgrad graph."""

    def __init__(self, dag: Dag, batch: int, jit: bool | None = False) -> None:
        self.graph = rg.Graph(jit=jit)
        self.inputs = [self.graph.input(np.zeros(batch)) for _ in range(INPUTS)]
        self.weights = [
            (self.graph.param(first), self.graph.param(second))
            for first, second in first_weights(dag).tolist()
        ]
        self.output = built(dag, self.inputs, self.weights, rg.tanh)
        self.flat_weights = [w for pair in self.weights for w in pair]

    def set_inputs(self, rows: Any) -> None:
        self.graph.set(dict(zip(self.inputs, rows, strict=True)))

    def forward(self) -> Step:
        def step(rows: Any) -> Any:
            self.set_inputs(rows)
            return self.output.value

        return step

    def forward_with_weights(self) -> Step:
        def step(drawn: Any) -> Any:
            rows, numbers = drawn
            self.graph.set(dict(zip(self.inputs, rows, strict=True)))
            self.graph.set(dict(zip(self.flat_weights, numbers, strict=True)))
            return self.output.value

        return step

    def gradient(self) -> Step:
        """Return a step whose gradients stay where the graph keeps them, as those by hand do."""
        total = self.output.sum()
        gradients = rg.grad(total, self.flat_weights)
        forward = self.graph.forward

        def step(rows: Any) -> Any:
            self.set_inputs(rows)
            forward(total, *gradients)
            return total, gradients

        return step

    def gradient_kept(self) -> Step:
        """Return a step that hands out each gradient, which then stays as it is."""
        step = self.gradient()

        def kept(rows: Any) -> Any:
            total, gradients = step(rows)
            return total.value, [gradient.value for gradient in gradients]

        return kept


def built(dag: Dag, inputs: Any, weights: Any, tanh: Callable[[Any], Any]) -> Any:
    """Return the last node of the DAG, in any library whose values support ``*`` and ``+``."""
    values = list(inputs)
    for (a, b), (w1, w2) in zip(dag.pairs, weights, strict=True):
        if dag.swapped:
            values.append(tanh(values[b] * w2 + values[a] * w1))
        else:
            values.append(tanh(values[a] * w1 + values[b] * w2))
    return values[-1]


def read(outputs: Any) -> Any:
    """Return the values of a total and its gradients."""
    total, gradients = outputs
    return total.value, np.array([gradient.value for gradient in gradients])


class ByHand:
    """The same calls on existing arrays, one statement each.

    As fast as NumPy can be called: straight-line code, every result in an array of its own or in a
    scratch array that is not an operand (``out=`` over an operand is slower), numbers without an
    axis beside arrays (which broadcast at a third of the cost of those with one), one copy for all
    inputs and one for all weights, dot products where a gradient is summed over the batch.
    """

    def __init__(self, dag: Dag, batch: int) -> None:
        self.dag = dag
        self.batch = batch
        self.values = np.zeros((INPUTS + dag.nodes, batch))
        self.weights = first_weights(dag)
        self.gradients = np.empty((dag.nodes, 2))
        self.total = np.empty(())
        rows = INPUTS + dag.nodes
        self.names: dict[str, Any] = {
            name: getattr(np, name) for name in ("multiply", "add", "subtract", "tanh", "dot")
        }
        self.names |= {"total": self.total, "reduce": np.add.reduce, "one": np.ones(())}
        self.names |= {f"t{i}": np.empty(batch) for i in range(4)}
        self.names |= {f"v{i}": self.values[i] for i in range(rows)}
        for i in range(dag.nodes):
            for k in range(2):
                weight, gradient = self.weights[i, k : k + 1], self.gradients[i, k : k + 1]
                self.names[f"w{i}_{k}"] = weight if batch == 1 else weight.reshape(())
                self.names[f"g{i}_{k}"] = gradient if batch == 1 else gradient.reshape(())

    def _compiled(self, lines: list[str]) -> Callable[[], None]:
        exec("def run():\n    " + "\n    ".join(lines), self.names)
        return self.names["run"]

    def _forward_lines(self) -> list[str]:
        lines: list[str] = []
        for i, (a, b) in enumerate(self.dag.pairs):
            first, second = ("t1", "t0") if self.dag.swapped else ("t0", "t1")
            lines += [
                f"multiply(v{a}, w{i}_0, t0)",
                f"multiply(v{b}, w{i}_1, t1)",
                f"add({first}, {second}, t2)",
                f"tanh(t2, v{INPUTS + i})",
            ]
        return lines

    def _backward_lines(self) -> list[str]:
        last = INPUTS + self.dag.nodes - 1
        lines = [f"reduce(v{last}, None, None, total)"]
        # The name of the array with the adjoint of a value so far.
        known: dict[int, str] = {last: "ones"}
        self.names["ones"] = np.ones(self.batch)
        times = "multiply" if self.batch == 1 else "dot"
        for i in reversed(range(self.dag.nodes)):
            at = INPUTS + i
            lines += [
                f"multiply(v{at}, v{at}, t0)",
                "subtract(one, t0, t1)",
                f"multiply({known.pop(at)}, t1, t2)",
            ]
            for k, value in enumerate(self.dag.pairs[i]):
                lines.append(f"{times}(t2, v{value}, g{i}_{k})")
                if value < INPUTS:
                    continue
                former = known.get(value)
                name = f"a{value}" if former != f"a{value}" else f"b{value}"
                self.names.setdefault(name, np.empty(self.batch))
                if former is None:
                    lines.append(f"multiply(t2, w{i}_{k}, {name})")
                else:
                    lines += [f"multiply(t2, w{i}_{k}, t3)", f"add({former}, t3, {name})"]
                known[value] = name
        return lines

    def forward(self) -> Step:
        run = self._compiled(self._forward_lines())
        inputs, output = self.values[:INPUTS], self.values[-1]

        def step(rows: Any) -> Any:
            inputs[...] = rows
            run()
            return output

        return step

    def forward_with_weights(self) -> Step:
        run = self._compiled(self._forward_lines())
        inputs, output, weights = self.values[:INPUTS], self.values[-1], self.weights.reshape(-1)

        def step(drawn: Any) -> Any:
            rows, numbers = drawn
            inputs[...] = rows
            weights[:] = numbers
            run()
            return output

        return step

    def gradient(self) -> Step:
        run = self._compiled(self._forward_lines() + self._backward_lines())
        inputs = self.values[:INPUTS]

        def step(rows: Any) -> Any:
            inputs[...] = rows
            run()
            return self.total, self.gradients

        return step

    def gradient_kept(self) -> Step:
        step = self.gradient()

        def kept(rows: Any) -> Any:
            total, gradients = step(rows)
            return total[()], list(gradients.reshape(-1))  # a new number each

        return kept


def draw_inputs(batch: int) -> Callable[[np.random.Generator], Any]:
    """Return a function that draws new values for the inputs, one row each."""
    return lambda rng: rng.normal(size=(INPUTS, batch))


def cases(setting: Setting) -> list[Case]:
    """Return the cases of this workload."""
    dag = random_dag(setting)
    found: list[Case] = []
    for batch in (1, 30 if setting.permuted else 32):
        draw = draw_inputs(batch)
        found += [
            Contest(
                f"forward, batch {batch}",
                draw,
                Side("reactgrad", lambda batch=batch: Model(dag, batch).forward()),
                (
                    Peer(
                        Side("by hand", lambda batch=batch: ByHand(dag, batch).forward()),
                        at_most(1.1),
                    ),
                ),
            ),
            Contest(
                f"forward + gradient of all weights, batch {batch}",
                draw,
                Side("reactgrad", lambda batch=batch: Model(dag, batch).gradient(), show=read),
                (
                    Peer(
                        Side(
                            "by hand",
                            lambda batch=batch: ByHand(dag, batch).gradient(),
                            show=lambda found: (found[0], found[1].reshape(-1)),
                        ),
                        at_most(1.15),
                    ),
                ),
            ),
            Contest(
                f"forward + gradient of all weights, each handed out, batch {batch}",
                draw,
                Side("reactgrad", lambda batch=batch: Model(dag, batch).gradient_kept()),
                (Peer(Side("by hand", lambda batch=batch: ByHand(dag, batch).gradient_kept())),),
            ),
            Contest(
                f"all weights set, forward, batch {batch}",
                lambda rng, draw=draw: (draw(rng), rng.normal(0, 0.8, 2 * dag.nodes).tolist()),
                Side("reactgrad", lambda batch=batch: Model(dag, batch).forward_with_weights()),
                (
                    Peer(
                        Side(
                            "by hand", lambda batch=batch: ByHand(dag, batch).forward_with_weights()
                        ),
                        at_most(1.3),
                    ),
                ),
            ),
        ]
    return found


WORKLOAD = Workload("B1", "random DAG", cases)


def test_b01(benchmark: Any, race: Any) -> None:
    """Time one side of one contest."""
    race(benchmark)
