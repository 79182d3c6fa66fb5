"""The time of each node, run by run."""

from __future__ import annotations

from typing import Any

import numpy as np

import reactgrad as rg
from reactgrad.plot._axes import axes, color, label_rows, tidy


def heat(log: rg.Recording, *, top: int = 20, ax: Any = None) -> Any:
    """Draw which nodes took the time: of one run as bars, of several as a map with a column a run.

    Parameters
    ----------
    log : Recording
        Of ``with g.record() as log``.
    top : int
        How many nodes to draw: those that took the longest together.
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    VizError
        If nothing ran in the recording.
    MissingExtraError
        Without matplotlib (extra ``plot``).

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> y = rg.tanh(g.input(1.0))
    >>> with g.record() as log:
    ...     _ = y.value
    >>> rg.plot.heat(log)  # doctest: +SKIP
    <Axes: xlabel='milliseconds'>
    """
    calls = log.calls
    if not calls:
        raise rg.VizError(
            "heat: nothing ran in this recording. Read a stale node in it: "
            "`with g.record() as log: y.value`."
        )
    runs = sorted({call.run for call in calls})
    spent: dict[str, dict[int, float]] = {}
    for call in calls:
        row = spent.setdefault(call.node, {})
        row[call.run] = row.get(call.run, 0.0) + 1e3 * call.self_seconds
    names = sorted(spent, key=lambda name: -sum(spent[name].values()))
    total, names = sum(sum(row.values()) for row in spent.values()), names[:top]
    places = np.arange(len(names))
    ax = axes(ax, 7.0, 1.2 + 0.26 * len(names))
    if len(runs) == 1:
        ax.barh(places, [spent[name][runs[0]] for name in names], height=0.75, color=color(0))
        ax.set_xlabel("milliseconds")
        tidy(ax)
    else:
        _map(ax, np.array([[spent[name].get(run, np.nan) for run in runs] for name in names]))
        _label_runs(ax, runs)
    label_rows(ax, range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    seen = sum(sum(spent[name].values()) for name in names)
    if len(spent) > len(names) and total:
        ax.set_title(
            f"{len(names)} of {len(spent):,} nodes, {100 * seen / total:.0f} % of the time",
            fontsize="medium",
            loc="left",
        )
    return ax


def _map(ax: Any, times: np.ndarray[Any, Any]) -> None:
    """Draw milliseconds as colours, on a logarithmic scale; a node that did not run has none."""
    from matplotlib.colors import LogNorm

    known = times[np.isfinite(times) & (times > 0.0)]
    low, high = (known.min(), known.max()) if known.size else (1e-3, 1.0)
    norm = LogNorm(low, max(high, low * 1.01))
    # A view takes no time: it has the least colour.
    shown = np.where(np.isfinite(times), np.maximum(times, low), np.nan)
    image = ax.imshow(shown, aspect="auto", cmap="viridis_r", norm=norm, interpolation="nearest")
    ax.figure.colorbar(image, ax=ax, label="milliseconds")
    ax.set_facecolor("#f2f2f0")


def _label_runs(ax: Any, runs: list[int]) -> None:
    step = max(1, len(runs) // 10)
    at = range(0, len(runs), step)
    ax.set_xticks([*at], [str(runs[i] + 1) for i in at])
    ax.set_xlabel("run (empty: the node did not run)")
