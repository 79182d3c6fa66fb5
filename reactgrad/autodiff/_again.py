"""``backward`` called again and again: what it has checked stays checked until something changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reactgrad.core._gradients import GradientBlock, Gradients, added
from reactgrad.flow._mode import is_grad_enabled
from reactgrad.reading._refresh import refresh
from reactgrad.reading._run import Run
from reactgrad.reading._value import clean_values

if TYPE_CHECKING:
    from reactgrad.autodiff._program import Program

# So many params have their gradients side by side, each of so many bytes at most.
MANY, MOST_BYTES = 8, 1 << 16


class Again:
    """A ``backward`` of one output without arguments, as it was last made.

    It can be repeated while the program has the same params and adjoints, no other ones are frozen, and
    nobody listens: no hook, no retained gradient, no observer.

    Attributes
    ----------
    targets : tuple of int
        The output and the adjoints: what is read together.
    blocks : list of (GradientBlock, list of int)
        The params whose gradients lie side by side, with their adjoints.
    alone : list of (int, int)
        The other params, with their adjoints.
    """

    __slots__ = ("_own", "alone", "blocks", "exchange", "frozen", "known", "params", "targets")

    def __init__(self, y: Any, program: Program, asked: dict[int, int]) -> None:
        graph = y._graph
        host = graph._host
        self.params = program.params()
        self.frozen = frozenset(host.frozen)
        self.exchange = None if graph._rounds is None else graph._rounds.token
        self.targets = tuple(dict.fromkeys([y._slot, *asked.values()]))
        self.blocks: list[tuple[GradientBlock, list[int]]] = []
        inside: set[int] = set()
        self._own: list[GradientBlock] = []
        self._gather(host, asked)
        self.known = host.gradient_blocks.known
        for block in host.gradient_blocks.all():
            if block.places.keys() <= asked.keys():
                self.blocks.append((block, [asked[slot] for slot in block.slots]))
                inside |= block.places.keys()
        self.alone = [(slot, at) for slot, at in asked.items() if slot not in inside]

    def _gather(self, host: Any, asked: dict[int, int]) -> None:
        """Let the gradients of many params lie side by side, where no optimiser has asked for that.

        It is one copy for all of them. The blocks live as long as this; other outputs use them, too.
        """
        known = host.gradient_blocks.all()
        alike: dict[Any, list[int]] = {}
        for slot in asked:
            found = host.specs[slot]
            if (
                host.scheduler.leaf[slot]
                and found.dtype == host.specs[asked[slot]].dtype
                and found.nbytes <= MOST_BYTES
                and not any(slot in block.places for block in known)
            ):
                alike.setdefault(found.dtype, []).append(slot)
        for dtype, slots in alike.items():
            if len(slots) >= MANY:
                block = GradientBlock(slots, [host.specs[slot].shape for slot in slots], dtype)
                self._own.append(block)
                host.gradient_blocks.add(block)

    def holds(self, graph: Any, program: Program) -> bool:
        """Return whether nothing has changed that the call depends on."""
        host, programs = graph._host, graph._programs
        return (
            program.has_params(self.params)
            and not (program.unsure or program.hollow or program.observed)
            and not (programs.waiting or programs.observing or programs.under_way)
            and host.gradient_blocks.known is self.known
            and host.frozen == self.frozen
            and host.policy is None
            and (graph._rounds is None or graph._rounds.token == self.exchange)
            and not (host.hooks or host.retained or host.after_grad or host.removed)
            and not (graph._observed or graph._transient or graph._computing)
            and not (host.gradients.between or host.gradients.replaced)
        )

    def repeat(self, y: Any, program: Program) -> Run | None:
        """Make the ``backward`` again. Return ``None``, with nothing done, if it may differ."""
        graph: Any = y._graph
        with graph._lock:
            if (
                graph._scheduler.notes
                or not self.holds(graph, program)
                or not is_grad_enabled(graph)
            ):
                return None
            host = graph._host
            run = refresh(graph, self.targets)
            data, alone, blocks = host.data, host.gradients.alone, dict(host.gradients.blocks)
            for block, adjoints in self.blocks:
                present = blocks.get(block)
                if alone and not alone.keys().isdisjoint(block.places):
                    present = block.filled([alone.get(slot) for slot in block.slots])
                    alone = {slot: one for slot, one in alone.items() if slot not in block.places}
                blocks[block] = block.added(present, list(map(data.__getitem__, adjoints)))
            if self.alone:
                values = clean_values(graph, [at for _, at in self.alone])
                alone = alone | {
                    slot: added(alone.get(slot), value)
                    for (slot, _), value in zip(self.alone, values, strict=True)
                }
            host.put_gradients(Gradients(alone, blocks))
            return Run(graph, run)


def remember_backward(y: Any, program: Program, asked: dict[int, int]) -> None:
    """Remember a ``backward`` that was just made; with the adjoints by param."""
    specs = y._graph._host.specs
    if all(
        (found := specs[slot]) is not None and found.kind == "cpu" for slot in (y._slot, *asked)
    ):
        program.again = Again(y, program, asked)
        made = y._programs_dict().get(None)
        if made is not None and made[1] is program:
            y._graph._generations.remember(y._graph, y._slot, made)
