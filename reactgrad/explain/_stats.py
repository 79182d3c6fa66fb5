"""A graph in figures, at one moment."""

from __future__ import annotations

from dataclasses import dataclass

from reactgrad.core._core import Core
from reactgrad.core._display import display
from reactgrad.core._handles import tidy
from reactgrad.memory._budget import Budget
from reactgrad.values._ledger import Ledger


@dataclass(frozen=True, slots=True)
class Stats:
    """The result of ``Graph.stats``.

    Attributes
    ----------
    nodes, leaves, edges : int
        Present size; an operand that is used twice by a node is one edge. Gradient nodes that
        are put aside with a shape that a leaf had count, too.
    bytes : int
        Memory of the arrays that hold values: each buffer once, however many views show it.
        Python objects, ``.grad`` and copies that callers hold are not counted; values shared with a
        fork are, in both.
    spare_bytes : int
        Memory that released values have left, which the next ones take; 32 MiB at most.
    max_bytes : int or None
        The memory budget; ``None`` if there is none.
    peak_bytes : int
        Without a budget: what large arrays (64 KiB and more) took at most since the graph was made, also
        within runs: leaves, results of ops, spare arrays, and what callers hold of these without a
        copy; what Python functions return counts when it is asked for, and what a fork has of its
        origin does not. At least what `bytes` was whenever it was asked for.
        With one, since there is a budget, exactly: what `bytes` was at most, also within runs. To
        count so and release nothing set a budget that is never reached, ``g.max_bytes = 1 << 60``.
    evicted, evicted_bytes : int
        Values released to keep to the budget, and their memory.
    runs : int
        Reads that searched for stale nodes since the graph was made; clean values are returned
        without.
    ran, cut_off, rebuilt, failed : int
        Nodes in all these runs together.
    plans : int
        Cached plans.
    plan_hits, plan_misses : int
        Runs that followed a cached plan, and runs that had to find theirs.
    observers : int
        Callbacks attached to nodes.

    Examples
    --------
    >>> import reactgrad as rg
    >>> g = rg.Graph()
    >>> x = g.input([1.0, 2.0, 3.0])
    >>> y = rg.tanh(x)
    >>> _ = y.value
    >>> stats = g.stats()
    >>> stats.nodes, stats.leaves, stats.edges, stats.bytes, stats.ran
    (2, 1, 1, 48, 1)
    """

    nodes: int
    leaves: int
    edges: int
    bytes: int
    spare_bytes: int
    max_bytes: int | None
    peak_bytes: int
    evicted: int
    evicted_bytes: int
    runs: int
    ran: int
    cut_off: int
    rebuilt: int
    failed: int
    plans: int
    plan_hits: int
    plan_misses: int
    observers: int

    def __str__(self) -> str:
        rows = {
            "nodes": f"{self.nodes:,} ({self.leaves:,} of them leaves), {self.edges:,} edges",
            "values": bytes_text(self.bytes),
            **({"spare": bytes_text(self.spare_bytes)} if self.spare_bytes else {}),
            **self._memory_rows(),
            "runs": f"{self.runs:,}: ran {self.ran:,}, cut off {self.cut_off:,}, "
            f"rebuilt {self.rebuilt:,}, failed {self.failed:,}",
            "plans": f"{self.plans:,} cached, {self.plan_hits:,} hits, {self.plan_misses:,} misses",
            "observers": f"{self.observers:,}",
        }
        return "\n".join(f"{word:<10} {text}" for word, text in rows.items())

    def _memory_rows(self) -> dict[str, str]:
        if self.max_bytes is None:
            return {"peak": bytes_text(self.peak_bytes)} if self.peak_bytes > self.bytes else {}
        return {
            "budget": f"{bytes_text(self.max_bytes)}: peak {bytes_text(self.peak_bytes)}, "
            f"released {self.evicted:,} values of {bytes_text(self.evicted_bytes)}"
        }

    def _repr_html_(self) -> str:
        """Return the HTML that notebooks show."""
        return display(self)


def take_stats(graph: Core) -> Stats:
    """Return the figures of a graph; see ``Graph.stats``."""
    with graph._lock:
        tidy(graph)
        scheduler = graph._scheduler
        topology, totals = scheduler.topology, scheduler.counted()
        slots, host = topology.slots(), graph._host
        ledger = Ledger()
        ledger.update(slots, host.data)
        host.footprint.reached(ledger.bytes)
        budget = host.policy if isinstance(host.policy, Budget) else None
        return Stats(
            nodes=len(slots),
            leaves=sum(map(scheduler.leaf.__getitem__, slots)),
            edges=sum(len(topology.children[slot]) for slot in slots),
            bytes=ledger.bytes,
            spare_bytes=host.spares.bytes,
            max_bytes=host.limit,
            peak_bytes=host.footprint.peak if budget is None else budget.ledger.peak,
            evicted=0 if budget is None else budget.evicted,
            evicted_bytes=0 if budget is None else budget.evicted_bytes,
            runs=totals.runs,
            ran=totals.ran,
            cut_off=totals.cut_off,
            rebuilt=totals.rebuilt,
            failed=totals.failed,
            plans=len(scheduler.plans),
            plan_hits=totals.runs - totals.resolved,
            plan_misses=totals.resolved,
            observers=len(graph._observers),
        )


def bytes_text(count: int) -> str:
    """Return a number of bytes for people, such as ``1.5 MiB``."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
