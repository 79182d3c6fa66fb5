"""Folders of checkpoints: the newest ones stay, and the best one.

A file is named by its step. Which is newest is said by a serial inside of it: a run that goes on from an older
checkpoint writes lower steps later.
"""

from __future__ import annotations

import json
import math
import operator
import os
import re
from contextlib import suppress
from typing import Any, NamedTuple

from reactgrad._attributes import OwnAttributes
from reactgrad._errors import SaveError
from reactgrad.io._checkpoint import notes_of, write
from reactgrad.scheduler import safe_repr

NAME = re.compile(r"step-\d{8,}\.safetensors")


class _Kept(NamedTuple):
    serial: int
    path: str
    metric: float | None


class Checkpoints(OwnAttributes):
    """A folder with the newest checkpoints of a run, and its best one.

    Parameters
    ----------
    folder : str or path-like
        Made by the first `save`, if it is not there.
    keep_last : int or None, default 3
        The number of newest checkpoints that stay; ``None``: all.
    monitor : str, optional
        The name of a number given to `save`. The checkpoint in which it is best stays, too.
    mode : {"min", "max"}, default "min"
        Best is lowest, or highest.

    Raises
    ------
    SaveError
        If an argument has no meaning.

    Examples
    --------
    >>> import tempfile
    >>> import reactgrad as rg
    >>> loader = rg.data.DataLoader(range(10), batch_size=2, shuffle=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kept = rg.Checkpoints(folder, keep_last=1, monitor="loss")
    ...     for step, loss in enumerate([0.5, 0.2, 0.4, 0.3]):
    ...         _ = kept.save(step=step, loss=loss, loader=loader)
    ...     (
    ...         rg.load_checkpoint(kept.best, loader=loader),
    ...         rg.load_checkpoint(kept.last, loader=loader),
    ...     )
    ({'step': 1, 'loss': 0.2}, {'step': 3, 'loss': 0.3})
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        keep_last: int | None = 3,
        monitor: str | None = None,
        mode: str = "min",
    ) -> None:
        self.folder = os.fspath(folder)
        self.keep_last = None if keep_last is None else _whole("keep_last", keep_last, 1)
        self.monitor = monitor
        if mode not in ("min", "max"):
            raise SaveError(
                f"Checkpoints: mode={safe_repr(mode):.60} is none. Write mode='min' or 'max'."
            )
        self.mode = mode

    def save(self, *, step: int, **parts: Any) -> str:
        """Write a checkpoint, as ``rg.save_checkpoint`` does, then remove those that need not stay.

        Parameters
        ----------
        step : int
            Names the file, and is one of its parts.
        **parts
            As for ``rg.save_checkpoint``.

        Returns
        -------
        str
            The path of the file.
        """
        number = _whole("step", step, 0)
        metric = self._metric(parts)
        if os.path.exists(self.folder) and not os.path.isdir(self.folder):
            raise SaveError(f"Checkpoints: {self.folder} is a file. Name a folder.")
        os.makedirs(self.folder, exist_ok=True)
        serial = max((one.serial for one in self._all()), default=0) + 1
        path = os.path.join(self.folder, f"step-{number:08d}.safetensors")
        write(path, {"step": number, **parts}, json.dumps({"serial": serial, "metric": metric}))
        self._prune()
        return path

    @property
    def paths(self) -> list[str]:
        """The files, from the oldest to the newest."""
        return [one.path for one in self._all()]

    @property
    def last(self) -> str | None:
        """The newest file, if there is any."""
        found = self._all()
        return found[-1].path if found else None

    @property
    def best(self) -> str | None:
        """The file with the best metric, the newest one of several; ``None`` if none has a metric."""
        best = self._best(self._all())
        return None if best is None else best.path

    def _metric(self, parts: dict[str, Any]) -> float | None:
        if self.monitor is None:
            return None
        if self.monitor not in parts:
            raise SaveError(
                f"Checkpoints.save: {self.monitor}= is monitored, and was not given. Write save(step=n, "
                f"{self.monitor}=number, ...)."
            )
        given = parts[self.monitor]
        try:
            if isinstance(given, str):
                raise TypeError
            metric = float(given)
        except (TypeError, ValueError, OverflowError):
            raise SaveError(
                f"Checkpoints.save: {self.monitor}={safe_repr(given):.60} is monitored, and is no number. Write "
                f"{self.monitor}=float(y.value) for a node y."
            ) from None
        return metric if math.isfinite(metric) else None  # never the best

    def _all(self) -> list[_Kept]:
        """Return the checkpoints of the folder, from the oldest to the newest."""
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return []
        found = []
        for name in names:
            path = os.path.join(self.folder, name)
            notes = notes_of(path) if NAME.fullmatch(name) else None
            if isinstance(notes, dict) and type(notes.get("serial")) is int:
                metric = notes.get("metric")
                known = type(metric) is float and math.isfinite(metric)
                found.append(_Kept(notes["serial"], path, metric if known else None))
        return sorted(found, key=lambda one: one[:2])

    def _best(self, found: list[_Kept]) -> _Kept | None:
        sign = 1 if self.mode == "max" else -1
        ranked = [(sign * one.metric, one.serial, one) for one in found if one.metric is not None]
        return max(ranked)[2] if ranked else None

    def _prune(self) -> None:
        if self.keep_last is None:
            return
        found = self._all()
        best = None if self.monitor is None else self._best(found)
        for one in found[: -self.keep_last]:
            if one != best:
                with suppress(FileNotFoundError):
                    os.unlink(one.path)

    def __repr__(self) -> str:
        return f"Checkpoints({self.folder!r}, {len(self.paths)} files)"


def _whole(what: str, given: Any, least: int) -> int:
    try:
        number = operator.index(given)
    except TypeError:
        number = least - 1
    if number < least:
        raise SaveError(
            f"Checkpoints: {what}={safe_repr(given):.60} is no number of its kind. Give {what}={least} or more."
        )
    return number
