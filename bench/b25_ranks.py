"""B25: several ranks and workers. Collectives as nodes beside raw MPI; a data-parallel step beside one rank, and
beside its own compute where messages take 10 ms; a scenario on a Dask actor beside a raw call of an actor.
"""

from __future__ import annotations

import atexit
import time
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

import reactgrad as rg
from bench._case import Case, Contest, Count, Later, Peer, Setting, Side, Step, Workload
from bench._goal import Goal, at_most
from bench._ranks import Ranks
from reactgrad import distributed as rd

LATENCY = 0.01
LAYERS = 12


@cache
def ranks(what: str, size: int) -> Ranks:
    """Return two ranks for all sides of a contest."""
    return Ranks(what, size)


def on_ranks(name: str, what: str, size: int, peer: str, goal: Goal | None) -> Case:
    def side(called: str, order: str) -> Side:
        def build() -> Step:
            both = ranks(what, size)
            for _ in range(10):
                both.seconds(order)
            return lambda _: both.seconds(order)

        return Side(called, build, needs="mpi4py", reports=True)

    if find_spec("mpi4py") is None:
        return Later(name, "needs the extra distributed")
    return Contest(
        name,
        lambda rng: None,
        side("reactgrad", "ours"),
        (Peer(side(peer, "raw"), goal),),
        alike=False,
    )


def overlapped(small: bool) -> tuple[float, float]:
    """Return the milliseconds of a step whose buckets each take 10 ms, and of its compute alone."""
    work = 0.001 if small else 0.02

    class Layer(rg.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            return x + w

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return slowed(g), g.sum(0)

    @rg.lift(shape=(4, 8), vjp=lambda g, ans, x: (g,))
    def slowed(value: Any) -> Any:
        time.sleep(work)
        return value

    class Net(rg.nn.Module):
        def __init__(self) -> None:
            self.weights = rg.nn.ParameterList([np.zeros(8) for _ in range(LAYERS)])

        def forward(self, x: Any) -> Any:
            for w in self.weights:
                x = Layer.apply(x, w)
            return x

    def body(group: rd.Group) -> float:
        with rg.Graph() as graph:
            net = rd.DataParallel(Net(), group, first_bucket_bytes=1, bucket_bytes=1)
            x = graph.input(np.ones((4, 8)))
        loss = (net(x) ** 2).sum()
        loss.backward()
        took = []
        for i in range(3):
            x.set(np.full((4, 8), i + 2.0))
            group.barrier()
            began = time.perf_counter()
            loss.backward()
            took.append(time.perf_counter() - began)
        return min(took)

    (alone,) = rd.run(body, "local:1")
    return 1e3 * max(rd.run(body, "local:2", latency=LATENCY)), 1e3 * max(alone, LATENCY * LAYERS)


class Adder:
    """An actor that does nothing else than a scenario of the smallest graph would."""

    def run(self, value: float) -> float:
        return value * 2.0


@cache
def client() -> Any:
    """Return a client of one worker process."""
    import distributed

    cluster = distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,  # pyright: ignore[reportArgumentType]
    )
    made = distributed.Client(cluster)
    atexit.register(lambda: (made.close(), cluster.close()))
    return made


def scenario() -> Step:
    """Return a scenario on a farm, one at a time."""
    g = rg.Graph()
    x = g.input(1.0, name="x")
    farm = rd.Farm(g, client(), outputs=[x * 2.0])
    return lambda value: float(farm.run({x: value}))


def raw_call() -> Step:
    """Return a call of an actor."""
    actor = client().submit(Adder, actor=True).result()
    return lambda value: actor.run(value).result()


def heads(setting: Setting) -> Case:
    """Return a new batch for 20 members on one trunk, beside the same nodes written by hand."""
    width, rows = setting.size(256, 8), setting.size(64, 4)
    rng = np.random.default_rng(3)
    trunks = [rng.normal(size=(width, width)) / width**0.5 for _ in range(4)]
    ends = rng.normal(size=(20, width))

    def trunk() -> tuple[Any, Any, Any]:
        g = rg.Graph()
        x = hidden = g.input(np.zeros((rows, width)))
        for one in trunks:
            hidden = rg.tanh(hidden @ g.param(one))
        return g, x, hidden

    def population() -> Step:
        g, x, hidden = trunk()
        w = g.param(ends[0])
        loss = ((hidden @ w) ** 2).mean()
        members = rg.Population(g, 20, outputs=[loss], own=[w])
        g.set({member[w]: one for member, one in zip(members, ends, strict=True)})

        def step(batch: Any) -> Any:
            x.set(batch)
            return members.read(loss)

        return step

    def by_hand() -> Step:
        g, x, hidden = trunk()
        losses = [((hidden @ g.param(one)) ** 2).mean() for one in ends]

        def step(batch: Any) -> Any:
            x.set(batch)
            g.forward(*losses)
            return [one.value for one in losses]

        return step

    return Contest(
        "20 members on one trunk, a new batch",
        lambda rng: rng.normal(size=(rows, width)),
        Side("reactgrad", population),
        (Peer(Side("by hand", by_hand), at_most(1.2)),),
    )


def scaling(small: bool) -> tuple[float, None]:
    """Return the speed of 64 workers over that of one, a worker: each call takes 0.1 s there."""
    count = 8 if small else 64
    g = rg.Graph()
    x = g.input(1.0)
    y = x * 2.0
    took = []
    for workers, calls in ((1, 8), (count, 8 * count)):
        with rd.Farm(g, rd.LocalHosts(workers, service=0.1), outputs=[y]) as farm:
            began = time.perf_counter()
            for _ in farm.map([{x: float(i)} for i in range(calls)], chunk=1):
                pass
            took.append((time.perf_counter() - began) / calls)
    return took[1] * count / took[0], None


def cases(setting: Setting) -> list[Case]:
    """Return the cases of this workload."""
    found: list[Case] = [
        on_ranks(f"all-reduce of {8 * size:,} bytes, 2 ranks", "reduced", size, "mpi4py", goal)
        for size, goal in ((8, None), (8192, None), (524_288, at_most(1.2)))
        if not setting.small or size < 9000
    ]
    width = setting.size(784, 16)
    found.append(
        on_ranks(f"step of {width}-512-10, batch 64 a rank", "trained", width, "one rank", None)
    )
    found.append(
        Count(
            f"a step with {LAYERS} buckets of 10 ms",
            "ms",
            lambda: overlapped(setting.small),
            "max(compute, communication)",
            None if setting.small else at_most(1.15),
        )
    )
    found.append(
        Count(
            "a call on 64 simulated workers, in calls of one worker",
            "x",
            lambda: scaling(setting.small),
            goal=None if setting.small else Goal(1.0 / 0.85, "within"),
        )
    )
    found.append(heads(setting))
    if find_spec("distributed") is None:
        found.append(Later("a scenario on a Dask actor", "needs the extra farm"))
        return found
    found.append(
        Contest(
            "a scenario on a Dask actor",
            lambda rng: float(rng.normal()),
            Side("reactgrad", scenario, needs="distributed", reports=False),
            (Peer(Side("raw actor", raw_call, needs="distributed"), None),),
        )
    )
    return found


WORKLOAD = Workload("B25", "ranks and workers", cases)


def test_b25(benchmark: Any, race: Any) -> None:
    """Time one side of one contest."""
    race(benchmark)
