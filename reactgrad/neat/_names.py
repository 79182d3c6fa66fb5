"""The names of neat-python, so that a program which says ``neat.Config`` changes one import and nothing else."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import reactgrad as rg
from reactgrad._habits import absent, by_name
from reactgrad._later import as_found
from reactgrad.neat._feed_forward import FeedForwardNetwork
from reactgrad.neat._recurrent import RecurrentNetwork
from reactgrad.neat._spikes import IZNN
from reactgrad.neat._time import CTRNN

# Names of neat-python that programs begin with.
USUAL = (
    "Checkpointer",
    "Config",
    "DefaultGenome",
    "ParallelEvaluator",
    "StatisticsReporter",
    "StdOutReporter",
)
OURS = {
    "nn": SimpleNamespace(FeedForwardNetwork=FeedForwardNetwork, RecurrentNetwork=RecurrentNetwork),
    "ctrnn": SimpleNamespace(CTRNN=CTRNN),
    "iznn": SimpleNamespace(IZNN=IZNN),
}
HABITS = by_name(
    (
        "visualize draw_net draw plot_stats plot_species",
        "neat.Network.create(genome, config).draw('net.svg')",
    ),
    (
        "save load restore",
        "neat.Checkpointer(5) as a reporter, and neat.Checkpointer.restore_checkpoint(path)",
    ),
    (
        "ThreadedEvaluator DistributedEvaluator distributed",
        "population.run(fitness, n, over=client) with a client of Dask, or a group of rg.distributed",
    ),
)


def find(name: str) -> Any:
    """Return what neat-python has under a name, with the networks of this package in place of its own."""
    if name in OURS:
        return OURS[name]
    own, theirs = vars(sys.modules["reactgrad.neat"]), find_spec("neat") is not None
    if name[0] != "_" and theirs:
        import neat

        if name in vars(neat):
            return vars(neat)[name]
        own = {**vars(neat), **own}
    if name in USUAL and not theirs:
        raise rg.MissingExtraError(
            f'neat.{name} is that of the package neat-python, which is not installed: pip install "reactgrad[neat]"'
        )
    error = absent("module 'reactgrad.neat'", "neat", name, HABITS, (*own, *OURS))
    raise as_found(error, "reactgrad.neat") from None
