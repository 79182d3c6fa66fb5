"""The error for genomes that are no networks, and those that are also neat-python's."""

from __future__ import annotations

from reactgrad import ReactgradError, ShapeError


class GenomeError(ReactgradError, ValueError):
    """A genome is no network. The message names the fault and the gene."""


class UnknownFunctionError(GenomeError, TypeError, LookupError):
    """A node has a function that the config does not know; ``TypeError`` in neat-python."""


class SampleError(ShapeError, RuntimeError):
    """A sample has not one number for each input; ``RuntimeError`` in neat-python."""
