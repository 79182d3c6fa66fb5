"""Several runs of the table as one: each figure's median, and its least and greatest over the runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from bench._goal import Goal
from bench._table import Figure, Line, cells

HEAD = ("", "case", "ours", "peer", "beside", "ratio", "goal", "met")


def spread(files: Sequence[Path]) -> str:
    """Return a table in Markdown of several files written by ``python -m bench --json``.

    Raises
    ------
    ValueError
        If a file is none of these, or has other cases than the first one.
    """
    runs: list[Any] = []
    columns: list[list[Line]] = []
    for file in files:
        try:
            runs.append(json.loads(file.read_text()))
            columns.append([_line(one) for one in runs[-1]["lines"]])
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{file} was not written by python -m bench --json.") from None
    names = [[(line.number, line.case, line.peer_name) for line in lines] for lines in columns]
    for file, own in zip(files, names, strict=True):
        if own != names[0]:
            raise ValueError(f"{file} has other cases than {files[0]}: run the same workloads.")
    rows = [HEAD, tuple("---" for _ in HEAD), *map(_row, zip(*columns, strict=True))]
    machine = ", ".join(f"{name} {value}" for name, value in runs[0]["machine"].items())
    return f"{machine}\n\n" + "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _line(said: dict[str, Any]) -> Line:
    figures = {
        name: Figure(**said[name]) if said[name] else None for name in ("ours", "peer", "ratio")
    }
    goal = Goal(**said["goal"]) if said["goal"] else None
    given = {key: value for key, value in said.items() if key != "met"}
    return Line(**{**given, **figures, "goal": goal})


def _row(lines: tuple[Line, ...]) -> tuple[str, ...]:
    last = lines[-1]
    together = replace(
        last,
        **{
            name: _figure([getattr(line, name) for line in lines])
            for name in ("ours", "peer", "ratio")
        },
    )
    judged = [line.met for line in lines if line.met is not None]
    met = f"{sum(judged)} of {len(judged)}" if judged else ""
    return (*cells(together)[:-1], met)


def _figure(figures: Sequence[Figure | None]) -> Figure | None:
    medians = [figure.median for figure in figures if figure is not None]
    return Figure(median(medians), min(medians), max(medians), len(medians)) if medians else None
