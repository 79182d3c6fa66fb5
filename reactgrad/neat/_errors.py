"""What is wrong with a genome."""

from __future__ import annotations

from reactgrad import ReactgradError


class GenomeError(ReactgradError, ValueError):
    """A genome that is no network: it names what is wrong, and in which gene."""
