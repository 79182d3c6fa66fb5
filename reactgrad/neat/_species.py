"""Species of genomes as arrays: neat-python's rule, with all distances from a genome in one call."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from reactgrad.neat._genome import rates_of
from reactgrad.neat._program import FLAT


class SpeciesSet:
    """neat-python's ``DefaultSpeciesSet`` for genomes as arrays.

    Attributes
    ----------
    species : dict
        neat-python's ``Species`` by key.
    genome_to_species : dict
        The key of the species of each genome.
    """

    def __init__(self, config: Any, reporters: Any) -> None:
        self.species_set_config, self.reporters = config, reporters
        self.indexer = 1
        self.species: dict[int, Any] = {}
        self.genome_to_species: dict[int, int] = {}

    def speciate(self, config: Any, population: dict[int, Any], generation: int) -> None:
        """Divide a population into species: each genome joins the nearest one, or founds one.

        A species is represented by the genome that is nearest to its representative before.
        """
        measure = rates_of(config.genome_config).measure
        limit = self.species_set_config.compatibility_threshold
        keys = sorted(population)
        genes = [population[key].genes for key in keys]
        all_distances: list[Any] = []

        def distances(genome: Any) -> np.ndarray[Any, Any]:
            out = np.empty(len(genes))
            FLAT.distances(genome.genes, genes, measure, out)
            return out

        is_free = np.ones(len(keys), bool)
        members: dict[int, list[int]] = {}
        nearest, best = np.zeros(len(keys), np.int64), np.full(len(keys), np.inf)
        founders: dict[int, int] = {}
        for key in sorted(self.species):
            if not is_free.any():
                break
            found = distances(self.species[key].representative)
            all_distances.append(found[is_free])
            found[~is_free] = np.inf
            place = int(found.argmin())
            is_free[place] = False
            founders[key] = place

        def join(key: int, place: int) -> None:
            found = distances(population[keys[place]])
            all_distances.append(found[is_free])
            is_nearer = (found < best) & (found < limit)
            nearest[is_nearer], best[is_nearer] = key, found[is_nearer]
            members[key] = [place]

        for key, place in founders.items():
            join(key, place)
        for place in range(len(keys)):
            if not is_free[place]:
                continue
            is_free[place] = False
            if best[place] < limit:
                members[int(nearest[place])].append(place)
            else:
                key, self.indexer = self.indexer, self.indexer + 1
                founders[key] = place
                join(key, place)
        self._update(population, keys, founders, members, generation)
        if len(population) > 1:
            every = np.concatenate(all_distances)
            self.reporters.info(
                f"Mean genetic distance {every.mean():.3f}, standard deviation {every.std():.3f}"
            )

    def _update(
        self,
        population: dict[int, Any],
        keys: list[int],
        founders: dict[int, int],
        members: dict[int, list[int]],
        generation: int,
    ) -> None:
        make = import_module("neat.species").Species
        self.genome_to_species = {}
        self.species = {key: one for key, one in self.species.items() if key in founders}
        for key in sorted(founders):
            if key not in self.species:
                self.species[key] = make(key, generation)
            several = [keys[place] for place in members[key]]
            self.genome_to_species |= dict.fromkeys(several, key)
            self.species[key].update(
                population[keys[founders[key]]], {one: population[one] for one in several}
            )

    def get_species_id(self, individual_id: int) -> int:
        """Return the key of the species of a genome."""
        return self.genome_to_species[individual_id]

    def get_species(self, individual_id: int) -> Any:
        """Return the species of a genome."""
        return self.species[self.genome_to_species[individual_id]]
