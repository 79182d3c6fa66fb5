"""Long runs: a killed one goes on exactly from its checkpoint, and memory stays flat over 1,000 generations."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reactgrad import neat
from reactgrad.neat import _program
from tests.neat.mutations import neat_python
from tests.neat.test_population import fitness, settings

pytestmark = pytest.mark.skipif(
    not _program.is_compiled(), reason="there was no compiler when the package was built"
)

KILLED = """
import os, signal, sys
from reactgrad import neat
from tests.neat.mutations import neat_python
from tests.neat.test_population import fitness, settings

population = neat.Population(settings(), seed=5)
population.add_reporter(neat_python.Checkpointer(4, filename_prefix=sys.argv[1]))

def scored(genomes, config):
    if population.generation == 10:
        os.kill(os.getpid(), signal.SIGKILL)
    return fitness(genomes, config)

population.run(scored, 20)
"""

FLAT = """
import gc, sys
from reactgrad import neat
from tests.neat.test_population import fitness, settings

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

changes = {"node_add_prob": 0.03, "node_delete_prob": 0.05, "conn_add_prob": 0.05, "conn_delete_prob": 0.07}
population = neat.Population(settings(no_fitness_termination=True, **changes), seed=1)
for generations in (300, 700):
    population.run(fitness, generations)
    gc.collect()
    genes = sum(sum(one.genes.size()[:2]) for one in population.population.values())
    print(resident(), len(gc.get_objects()), genes, population.generation)
"""


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def rows(population: Any) -> dict[int, Any]:
    """What all genomes are made of, but for the keys of nodes."""
    found: dict[int, Any] = {}
    for key, genome in population.population.items():
        nodes, links = genome.genes.rows()
        found[key] = [one[1:] for one in nodes], [one[3:] for one in links]
    return found


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal here")
def test_a_killed_run_goes_on_exactly(tmp_path: Path) -> None:
    prefix = str(tmp_path / "at-")
    ended = run(KILLED, prefix)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    saved = sorted(tmp_path.iterdir(), key=lambda path: int(path.name.rpartition("-")[2]))
    again = neat.Population.restore_checkpoint(str(saved[-1]))
    assert not again.exact
    assert 0 < again.generation <= 10
    again.run(fitness, 14 - again.generation)
    whole = neat.Population(settings(), seed=5)
    whole.add_reporter(neat_python.Checkpointer(4, filename_prefix=str(tmp_path / "other-")))
    whole.run(fitness, 14)
    assert again.generation == whole.generation == 14
    # neat-python gives away a key of a node when it saves, so later keys differ by that.
    assert rows(again) == rows(whole)
    best = max(one.fitness or 0.0 for one in whole.population.values())
    assert best == max(one.fitness or 0.0 for one in again.population.values())
    assert {one: len(two.members) for one, two in again.species.species.items()} == {
        one: len(two.members) for one, two in whole.species.species.items()
    }


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc here")
def test_memory_is_flat_over_a_thousand_generations() -> None:
    ended = run(FLAT)
    assert ended.returncode == 0, ended.stderr
    first, last = [list(map(int, line.split())) for line in ended.stdout.splitlines()[-2:]]
    assert last[3] == 1000
    assert last[2] < 1.5 * first[2]  # the genomes themselves have not grown
    assert last[1] < 1.05 * first[1]
    assert last[0] < first[0] + 4 * 2**20, (first, last)
