"""The names of neat-python, so that a program which says ``neat.Config`` changes one import and nothing else."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import reactgrad as rg
from reactgrad._habits import absent, by_name
from reactgrad._later import as_found
from reactgrad.neat._feed_forward import FeedForwardNetwork
from reactgrad.neat._recurrent import RecurrentNetwork
from reactgrad.neat._spikes import IZNN
from reactgrad.neat._time import CTRNN

# What neat-python has, and what is taken from it as it is.
THEIRS = (
    "BaseReporter",
    "Checkpointer",
    "CompleteExtinctionException",
    "Config",
    "DefaultGenome",
    "DefaultReproduction",
    "DefaultSpeciesSet",
    "DefaultStagnation",
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
        "genes genome reporting species stagnation reproduction statistics",
        "import neat as neat_python",
    ),
)


def find(name: str) -> Any:
    """Return what neat-python has under a name, with the networks of this package in place of its own."""
    if name in OURS:
        return OURS[name]
    if name not in THEIRS:
        error = absent(
            "module 'reactgrad.neat'",
            "neat",
            name,
            HABITS,
            (*THEIRS, *OURS, *vars(sys.modules["reactgrad.neat"])),
        )
        raise as_found(error, "reactgrad.neat") from None
    try:
        import neat
    except ModuleNotFoundError as error:
        raise rg.MissingExtraError(
            f'neat.{name} is that of the package neat-python, which is not installed: pip install "reactgrad[neat]"'
        ) from error
    try:
        return getattr(neat, name)
    except AttributeError:
        raise absent("the installed neat-python", "neat", name, {}, vars(neat)) from None
