"""The error for genomes that are no networks."""

from __future__ import annotations

from reactgrad import ReactgradError


class GenomeError(ReactgradError, ValueError):
    """A genome is no network. The message names the fault and the gene."""
