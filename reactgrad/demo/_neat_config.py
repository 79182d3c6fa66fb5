"""A config of neat-python with the settings of its XOR example, for any number of inputs and
outputs.
"""

from __future__ import annotations

import os
import tempfile
from typing import Any, Final

from reactgrad._errors import MissingExtraError

# The settings with which neat-python solves XOR in its own example; callers change what differs.
_SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "NEAT": {
        "fitness_criterion": "max",
        "fitness_threshold": 3.9,
        "pop_size": 150,
        "reset_on_extinction": False,
        "no_fitness_termination": False,
    },
    "DefaultGenome": {
        "num_inputs": 2,
        "num_hidden": 0,
        "num_outputs": 1,
        "feed_forward": True,
        "initial_connection": "full_direct",
        "node_add_prob": 0.2,
        "node_delete_prob": 0.2,
        "conn_add_prob": 0.5,
        "conn_delete_prob": 0.5,
        "single_structural_mutation": False,
        "structural_mutation_surer": "default",
        "compatibility_disjoint_coefficient": 1.0,
        "compatibility_weight_coefficient": 0.5,
        "activation_default": "sigmoid",
        "activation_options": "sigmoid",
        "activation_mutate_rate": 0.0,
        "aggregation_default": "sum",
        "aggregation_options": "sum",
        "aggregation_mutate_rate": 0.0,
        "enabled_default": True,
        "enabled_mutate_rate": 0.01,
        "enabled_rate_to_true_add": 0.0,
        "enabled_rate_to_false_add": 0.0,
    },
    "DefaultSpeciesSet": {"compatibility_threshold": 3.0},
    "DefaultStagnation": {
        "species_fitness_func": "max",
        "max_stagnation": 20,
        "species_elitism": 2,
    },
    "DefaultReproduction": {"elitism": 2, "survival_threshold": 0.2, "min_species_size": 2},
}
# number of a gene: (mean and deviation at first, power and rate of mutations, rate of replacements)
_NUMBERS: Final = {
    "bias": (0.0, 1.0, 0.5, 0.7, 0.1),
    "response": (1.0, 0.0, 0.0, 0.0, 0.0),
    "weight": (0.0, 1.0, 0.5, 0.8, 0.1),
}


def import_neat() -> Any:
    """Return the package neat-python.

    Raises
    ------
    MissingExtraError
        If it is not installed.
    """
    try:
        import neat
    except ImportError as error:
        raise MissingExtraError(
            'this demo needs neat-python, which is not installed: pip install "reactgrad[neat]"'
        ) from error
    return neat


def neat_config(**changes: Any) -> Any:
    """Return a config of neat-python with the settings of its XOR example.

    Parameters
    ----------
    **changes
        Settings of the sections ``NEAT`` and ``DefaultGenome`` to change.

    Returns
    -------
    neat.Config

    Raises
    ------
    MissingExtraError
        If neat-python is not installed.

    Examples
    --------
    >>> from reactgrad.demo import neat_config
    >>> config = neat_config(num_inputs=3, pop_size=20)
    >>> config.pop_size, config.genome_config.input_keys
    (20, [-1, -2, -3])
    """
    neat = import_neat()
    sections = {section: dict(settings) for section, settings in _SETTINGS.items()}
    genome = sections["DefaultGenome"]
    for gene, (mean, deviation, power, rate, replaced) in _NUMBERS.items():
        genome |= {
            f"{gene}_init_type": "gaussian",
            f"{gene}_init_mean": mean,
            f"{gene}_init_stdev": deviation,
            f"{gene}_min_value": -30.0,
            f"{gene}_max_value": 30.0,
            f"{gene}_mutate_power": power,
            f"{gene}_mutate_rate": rate,
            f"{gene}_replace_rate": replaced,
        }
    for name, value in changes.items():
        sections["NEAT" if name in sections["NEAT"] else "DefaultGenome"][name] = value
    lines: list[str] = []
    for section, settings in sections.items():
        lines += [f"[{section}]", *[f"{name} = {value}" for name, value in settings.items()]]
    # neat-python reads configs from files only.
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "config")
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        return neat.Config(
            neat.DefaultGenome,
            neat.DefaultReproduction,
            neat.DefaultSpeciesSet,
            neat.DefaultStagnation,
            path,
        )
