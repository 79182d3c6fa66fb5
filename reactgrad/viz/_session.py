"""What happens between a graph and the page that shows it: messages in, messages out.

All work is done by one thread of the session: the thread that messages come in on only takes notes, so
it never waits for a computation, and what it is told last replaces what it was told before.
The engine hears of a session only while a page is open.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reactgrad._errors import Cancelled
from reactgrad._follow import Follower
from reactgrad._graph import Graph
from reactgrad._snapshot import NodeSnapshot, Snapshot, key_of
from reactgrad._var import Var
from reactgrad.viz._messages import (
    Message,
    control,
    cut,
    frame_message,
    graph_message,
    wanted_value,
    why_message,
)
from reactgrad.viz._picture import Layer
from reactgrad.viz._view import view_message

FRAME = 1 / 30  # seconds between two messages about states, at least
MOST_CONTROLS = 60


class Session:
    """One graph, shown by any number of pages that all see the same.

    Parameters
    ----------
    graph
        Which one.
    send
        Takes messages to the pages; called by the session's thread.
    targets
        What a change on the page brings up to date; by default all that nothing is computed from.
    bounds
        Of sliders, by Var.
    since
        Compared with it, added and removed parts are marked.
    layer, fold, limit
        As in ``Graph.to_dot``.
    """

    def __init__(
        self,
        graph: Graph,
        send: Callable[[Message], None],
        *,
        targets: Sequence[Var] = (),
        bounds: Mapping[Var, tuple[float, float]] | None = None,
        since: Snapshot | None = None,
        layer: Layer = "values",
        fold: int | None = None,
        limit: int = 200,
    ) -> None:
        self._graph, self._send = graph, send
        self._asked_for = tuple(targets)
        self._bounds = {key_of(graph, var): pair for var, pair in (bounds or {}).items()}
        self._layer: Layer = layer
        self._former, self._fold, self._limit = since, fold, limit
        self._focus = ""
        self._shown: Snapshot | None = None  # what the pages know
        self._targets: dict[int, Callable[[], Var | None]] = {}
        self._pages = 0
        self._follower: Follower | None = None
        # Notes of the thread that messages come in on; `_due` says that there are some.
        self._due = threading.Event()
        self._lock = threading.Lock()
        self._asks: list[Message] = []
        self._sets: dict[int, Any] = {}
        self._changed = self._edited = False
        self._computing = self._stop = self._closed = False
        self._thread: threading.Thread | None = None

    # --- from the page ---------------------------------------------------------------------------

    def receive(self, message: Any) -> None:
        """Take in a message of a page; returns at once."""
        kind = message.get("kind") if isinstance(message, dict) else None
        with self._lock:
            if kind == "set":
                self._sets[int(message["key"])] = message["value"]
            elif kind == "cancel":
                self._stop = True
            elif kind in ("open", "shut", "view", "why", "settle"):
                self._asks.append(message)
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(
                    target=self._work, name="reactgrad explorer", daemon=True
                )
                self._thread.start()
        if kind == "cancel" and self._computing:
            running = self._graph.running
            if running is not None:
                running.cancel()
        self._due.set()

    def close(self) -> None:
        """End it; pages show what they were told last."""
        self._closed = True
        self._due.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        self._unfollow()

    # --- the session's thread --------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            self._due.wait()
            began = time.perf_counter()
            self._due.clear()
            if self._closed:
                return
            with self._lock:
                asks, self._asks = self._asks, []
                sets, self._sets = self._sets, {}
            try:
                for ask in asks:
                    self._answer(ask)
                if sets:
                    self._compute(sets)
                if self._shown is not None and (self._changed or sets):
                    self._tell()
            except Exception as error:  # a page shows it; the next message gets its answer
                self._say(f"{type(error).__name__}: {error}")
            # At most one message a frame, and at most half of the time is spent on them.
            time.sleep(max(FRAME - (time.perf_counter() - began), 0.5 * FRAME))

    def _answer(self, ask: Message) -> None:
        kind = ask["kind"]
        if kind == "open":
            self._pages += 1
            self._follow()
            self._tell_all()
        elif kind == "shut":
            self._pages -= 1
            if self._pages <= 0:
                self._pages = 0
                self._unfollow()
        elif kind == "why":
            var = self._find(int(ask["key"]))
            if var is not None:
                self._send(why_message(self._graph, int(ask["key"]), var))
        elif kind == "view":
            self._layer, self._focus = ask.get("layer", self._layer), ask.get("focus", "")
            self._show()
        else:  # "settle": what was added is no news any more
            self._former = None
            self._tell_all(edit=True)

    def _compute(self, sets: Mapping[int, Any]) -> None:
        """Set inputs to the latest values, and bring the targets up to date."""
        graph = self._graph
        self._stop = False
        try:
            found = {self._find(key): value for key, value in sets.items()}
            graph.set({v: wanted_value(graph, new, v) for v, new in found.items() if v is not None})
            self._send({"kind": "busy", "busy": True})
            self._computing = True
            if not self._stop:
                graph.forward(*self._target_vars())
            self._say("")
        except Cancelled as error:
            self._say(str(error))
        except Exception as error:
            self._say(f"{type(error).__name__}: {error}")
        finally:
            self._computing = False
            self._send({"kind": "busy", "busy": False})

    def _tell(self) -> None:
        """What is different from what the pages know."""
        assert self._shown is not None
        edited, self._changed, self._edited = self._edited, False, False
        former, now = self._shown, self._graph.snapshot(values=True)
        runs = self._follower.take() if self._follower is not None else []
        if edited and (now.by_key.keys() != former.by_key.keys() or now.edges != former.edges):
            self._former = former
            self._shown = now
            self._send(self._described(now, edit=True))
            self._show()
        self._send(frame_message(former, now, runs))
        self._shown = now

    def _tell_all(self, edit: bool = False) -> None:
        """Everything, for a page that has just been opened; or what an edit has changed of it."""
        self._changed = self._edited = False
        now = self._shown = self._graph.snapshot(values=True)
        self._send(self._described(now, edit))
        self._show()

    def _described(self, now: Snapshot, edit: bool = False) -> Message:
        self._choose_targets(now)
        inputs: list[Message] = []
        left = 0
        for node in now.nodes:
            if node.kind not in ("input", "param") or node.gradient:
                continue
            if len(inputs) == MOST_CONTROLS:
                left += 1
                continue
            var = self._find(node.key, now)
            bounds = self._bounds.get(node.key)
            made = None if var is None else control(self._graph, var, node.key, bounds)
            if made is not None:
                inputs.append(made)
        return graph_message(
            now,
            targets=self._targets,
            title=repr(self._graph)[1:-1],
            gone=self._gone(now),
            controls=inputs,
            live=True,
        ) | {"edit": edit, "compared": self._former is not None, "more_controls": left}

    def _show(self) -> None:
        """The part of the graph that is looked at, laid out."""
        assert self._shown is not None
        now, focus = self._shown, self._focus
        if focus.startswith("#") and int(focus[1:]) not in now.by_key:
            focus = self._focus = ""
        options: Any = {"former": self._former, "fold": self._fold, "limit": self._limit}
        self._send(view_message(now, layer=self._layer, focus=focus, **options))

    def _say(self, text: str) -> None:
        self._send({"kind": "problem", "text": cut(text)})

    # --- the graph -------------------------------------------------------------------------------

    def _follow(self) -> None:
        if self._follower is None:
            self._follower = Follower(self._graph, self._hear)

    def _unfollow(self) -> None:
        if self._follower is not None:
            self._follower.close()
            self._follower = None

    def _hear(self, edited: bool) -> None:
        self._edited |= edited
        self._changed = True
        self._due.set()

    def _gone(self, now: Snapshot) -> list[NodeSnapshot]:
        if self._former is None:
            return []
        return [node for node in self._former.nodes if node.key not in now.by_key]

    def _choose_targets(self, now: Snapshot) -> None:
        """What a change is to bring up to date; the session keeps no node alive that was not given."""
        if self._asked_for:
            self._targets = {
                key_of(self._graph, var): (lambda var=var: var) for var in self._asked_for
            }
            return
        self._targets = {}
        for key in now.ends:
            var = self._find(key, now)
            if var is not None:
                self._targets[key] = weakref.ref(var)

    def _target_vars(self) -> list[Var]:
        found: list[Var] = []
        for key, ref in self._targets.items():
            var = ref()
            if var is None:  # its node may live on without it
                var = self._find(key)
            if var is not None:
                found.append(var)
        return found

    def _find(self, key: int, now: Snapshot | None = None) -> Var | None:
        """The Var of a node, if it is still there."""
        now = now or self._shown
        node = None if now is None else now.by_key.get(key)
        if node is None or node.name not in self._graph:
            return None
        var = self._graph[node.name]
        return var if key_of(self._graph, var) == key else None
