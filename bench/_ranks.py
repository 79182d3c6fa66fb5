"""The program of B25 on each rank: ``mpiexec -n 2 python -m bench._ranks WHAT SIZE``.

Rank 0 reads orders, a line each: the name of a side. Both ranks then make a step, and rank 0 writes its
seconds.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad import distributed as rd

Side = Callable[[], float]


def reduced(group: rd.Group, size: int) -> dict[str, Side]:
    """Return an all-reduce of float64 as a node, and the raw calls."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    graph = rg.Graph()
    given, into = np.ones(size), np.empty(size)
    x = graph.input(given)
    y = rd.all_reduce(x, "sum", group)
    _ = y.value

    def ours() -> float:
        x.set(given)
        comm.Barrier()
        began = perf_counter()
        graph.forward(y)
        return perf_counter() - began

    def raw() -> float:
        comm.Barrier()
        began = perf_counter()
        comm.Allreduce(given, into)
        return perf_counter() - began

    return {"ours": ours, "raw": raw}


def trained(group: rd.Group, width: int) -> dict[str, Side]:
    """Return a data-parallel step of a perceptron, and a step of one process on the same batch."""
    from mpi4py import MPI

    rng = np.random.default_rng(group.rank)
    batch, target = rng.normal(size=(64, width)), rng.normal(size=(64, 10))
    sides: dict[str, Side] = {}
    for name in ("ours", "raw"):
        with rg.Graph(rng=1):
            net: Any = rg.nn.Sequential(
                rg.nn.Linear(width, 512), rg.nn.ReLU(), rg.nn.Linear(512, 10)
            )
        if name == "ours":
            net = rd.DataParallel(net, group)
        opt = rg.optim.SGD(net.parameters(), lr=1e-3)
        criterion = rg.nn.MSELoss()

        def step(net: Any = net, opt: Any = opt, criterion: Any = criterion) -> float:
            MPI.COMM_WORLD.Barrier()
            began = perf_counter()
            opt.zero_grad()
            criterion(net(batch), target).backward()
            opt.step()
            return perf_counter() - began

        sides[name] = step
    return sides


class Ranks:
    """Two ranks that wait for orders; they end with this object."""

    def __init__(self, what: str, size: int) -> None:
        beside = Path(sys.executable).with_name("mpiexec")
        starter = str(beside) if beside.exists() else shutil.which("mpiexec") or "mpiexec"
        command = [starter, "-n", "2", sys.executable, "-m", "bench._ranks", what, str(size)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def seconds(self, side: str) -> float:
        """Let the ranks make a step, and return its seconds."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(side + "\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def __del__(self) -> None:
        process = self._process
        if process.stdin is not None:
            process.stdin.close()
        process.wait(timeout=20)
        if process.stdout is not None:
            process.stdout.close()


def main() -> None:
    """Obey orders until there are no more."""
    group = rd.init("mpi")
    what, size = sys.argv[1], int(sys.argv[2])
    sides = {"reduced": reduced, "trained": trained}[what](group, size)
    while True:
        order = sys.stdin.readline().strip() if group.rank == 0 else ""
        order = group.broadcast_object(order)
        if not order:
            return
        took = sides[order]()
        if group.rank == 0:
            print(took, flush=True)


if __name__ == "__main__":
    main()
