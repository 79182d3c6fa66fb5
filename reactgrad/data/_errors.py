"""The error for datasets that cannot be read as batches."""

from __future__ import annotations

from reactgrad._errors import ReactgradError


class DataError(ReactgradError, ValueError):
    """A dataset, a sampler or a file of data that does not give what a loader needs."""
