"""The connection between a graph and the page that shows it: messages in, messages out.

One thread of the session does all work. The thread that messages come in on only takes notes, so it
never waits for a computation, and a newer value for an input replaces an older one. A second thread
reports which nodes are being computed, by any thread; it takes no lock of the graph.

The session listens to the engine only while a page is open.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reactgrad._errors import Cancelled, DTypeError
from reactgrad.explain._follower import Follower
from reactgrad.explain._snapshot import (
    NodeSnapshot,
    RunSnapshot,
    Snapshot,
    computing,
    finished,
    key_of,
    planned_keys,
    slots_of,
    snapshot_of_run,
    vars_of,
)
from reactgrad.explain._snapshots import Snapshots
from reactgrad.nodes._handle import Handle
from reactgrad.scheduler import CollectorPause, error_text
from reactgrad.viz._glance import glances
from reactgrad.viz._messages import (
    Message,
    control,
    flaw,
    flow_message,
    frame_message,
    graph_message,
    heading,
    table_message,
    wanted_value,
    why_message,
)
from reactgrad.viz._picture import Layer
from reactgrad.viz._text import sent
from reactgrad.viz._view import view_message

FRAME = 1 / 30  # least seconds between two messages about states
LOOK = 0.05  # seconds between two checks of which node is being computed
MOST_CONTROLS = 60
MOST_IN_SIGHT = 600  # nodes whose arrays pages have in sight; the latest are kept


class Session:
    """One graph, shown by any number of pages that all show the same.

    Parameters
    ----------
    graph
        The graph.
    send
        Takes messages to the pages; called by the session's threads.
    targets
        The nodes that a change on the page brings up to date; by default all that nothing is
        computed
        from.
    bounds
        Limits of sliders, by Var.
    former
        A snapshot; parts that were added or removed since are marked.
    layer, fold, limit
        As in ``Graph.to_dot``.
    """

    def __init__(
        self,
        graph: Any,
        send: Callable[[Message], None],
        *,
        targets: Sequence[Handle] = (),
        bounds: Mapping[Handle, tuple[float, float]] | None = None,
        former: Snapshot | None = None,
        layer: Layer = "values",
        fold: int | None = None,
        limit: int = 200,
    ) -> None:
        self._graph, self._send = graph, send
        self._asked_for = tuple(targets)
        self._bounds = {key_of(graph, var): pair for var, pair in (bounds or {}).items()}
        self._layer: Layer = layer
        self._former, self._fold, self._limit = former, fold, limit
        self._focus = ""
        self._snapshots = Snapshots(graph)
        self._shown: Snapshot | None = None  # the state that the pages have
        self._targets: list[int] = []
        self._controlled: list[int] = []
        self._drawn: set[int] = set()  # the nodes that are boxes of the latest view
        # The slots of nodes whose arrays pages have in sight, by their keys.
        self._in_sight: dict[int, int] = {}
        self._pages = 0
        self._follower: Follower | None = None
        # Notes of the thread that messages come in on, under `_lock`; `_due` is set when there are
        # some.
        self._due = threading.Event()
        self._lock = threading.Lock()
        self._asks: list[Message] = []
        self._sets: dict[int, Any] = {}
        self._computes: list[list[int] | None] = []  # nodes to compute; `None`: the targets
        self._mode = "once"
        self._planned: list[int] = []  # the nodes that a read would run, as told
        self._of_run = False  # whether what is left to tell is of a run that was told
        self._changed = self._edited = False
        self._stop = self._closed = False
        self._threads: list[threading.Thread] = []
        self._computing = False
        self._busy = False  # as told
        self._watched = threading.Event()  # set while a page is open

    # --- from the page ---------------------------------------------------------------------------

    def receive(self, message: Any) -> None:
        """Take in a message of a page; returns at once."""
        wrong = flaw(message)
        kind = None if wrong else message["kind"]
        with self._lock:
            if wrong:
                self._asks.append({"kind": "flaw", "text": wrong})
            elif kind == "set":
                self._sets[int(message["key"])] = message["value"]
            elif kind == "compute":
                keys = message.get("keys")
                self._computes.append(None if keys is None else [int(key) for key in keys])
            elif kind == "cancel":
                self._stop = True
            else:
                self._asks.append(message)
            if not self._threads and not self._closed:
                for work in (self._work, self._look_on):
                    thread = threading.Thread(target=work, name="reactgrad explorer", daemon=True)
                    thread.start()
                    self._threads.append(thread)
        if kind == "cancel":
            self._cancel()
        self._due.set()

    def close(self) -> None:
        """End the session. Pages keep what they show."""
        self._closed = True
        for thread, event in zip(self._threads, (self._due, self._watched), strict=False):
            event.set()
            if thread is not threading.current_thread():
                thread.join()
        self._unfollow()

    # --- the session's thread --------------------------------------------------------------------

    def _work(self) -> None:
        """Handle messages and changes until the session is closed."""
        while True:
            if not self._snapshots.left:
                self._due.wait()
            began = time.perf_counter()
            self._due.clear()
            if self._closed:
                return
            with self._lock:
                asks, self._asks = self._asks, []
                sets, self._sets = self._sets, {}
                computes, self._computes = self._computes, []
            try:
                self._tell_rest()  # before anything else changes the values of its run
                for ask in asks:
                    with CollectorPause():  # a large graph makes very many small objects
                        self._answer(ask)
                problem = self._set(sets) if sets else ""
                if sets and self._mode == "once" and None not in computes:
                    computes.append(None)
                for keys in computes:
                    self._compute(keys, problem)
                if self._shown is not None and (self._changed or sets or computes):
                    with CollectorPause():  # garbage is looked for after pages have their frame
                        self._tell()
            except Exception as error:  # the page shows it, and the thread goes on
                self._say(error_text(error))
            self._rested()
            # At most one message a frame, and at most half of the time spent on messages. What is shown
            # gets to the pages meanwhile, before the rest is made.
            time.sleep(max(FRAME - (time.perf_counter() - began), 0.5 * FRAME))

    def _answer(self, ask: Message) -> None:
        """Handle one message of a page."""
        kind = ask["kind"]
        if kind == "flaw":
            self._say(f"the page has sent what cannot be answered: {ask['text']}.")
        elif kind == "open":
            self._open(ask.get("page"))
        elif kind == "shut":
            self._pages -= 1
            if self._pages <= 0:
                self._pages = 0
                self._unfollow()
        elif kind == "why":
            for key, var in vars_of(self._graph, [int(ask["key"])]).items():
                self._send(why_message(self._graph, key, var))
        elif kind == "table":
            for key, var in vars_of(self._graph, [int(ask["key"])]).items():
                start, left = int(ask["start"]), int(ask["left"])
                self._send(table_message(self._graph, key, var, start, left))
        elif kind == "sight":
            self._look_at([int(key) for key in ask["keys"]])
        elif kind == "flow":
            self._send(flow_message(self._graph))
        elif kind == "mode":
            self._mode = ask["mode"]
            self._send({"kind": "mode", "mode": self._mode})
            if self._mode == "once" and self._planned:
                self._compute(None)
                self._changed = True
        elif kind == "view":
            former = self._layer, self._focus
            self._layer, self._focus = ask.get("layer", self._layer), ask.get("focus", "")
            try:
                self._show()
            except Exception:
                self._layer, self._focus = former  # for pages that are opened later
                raise
        else:  # "settle": what was added is no longer marked
            self._former = None
            self._changed = self._edited = False
            self._shown = self._snapshots.take()
            self._send(self._described(self._shown, edit=True))
            self._show()

    def _look_at(self, keys: Sequence[int]) -> None:
        """Send what boxes draw of these nodes, and do so again with each frame in which one differs."""
        found = slots_of(self._graph, keys[-MOST_IN_SIGHT:])
        for key in found:
            self._in_sight.pop(key, None)
        self._in_sight |= found
        for key in [*self._in_sight][:-MOST_IN_SIGHT]:
            del self._in_sight[key]
        self._send({"kind": "glances", "found": glances(self._graph, found)})

    def _set(self, sets: Mapping[int, Any]) -> str:
        """Set inputs to the latest values. Return what stood against some of them, or nothing."""
        problems: list[str] = []
        try:
            wanted: dict[Any, Any] = {}
            for key, var in vars_of(self._graph, sets).items():
                try:
                    wanted[var] = wanted_value(self._graph, sets[key], var)
                except DTypeError as error:
                    problems.append(str(error))
            self._graph.set(wanted)
        except Exception as error:
            problems.append(error_text(error))
        problem = " ".join(problems)
        if self._mode == "asked":
            self._say(problem)
        return problem

    def _compute(self, keys: Sequence[int] | None, problem: str = "") -> None:
        """Bring nodes up to date; by default the targets. `problem` is said if there is no other."""
        graph = self._graph
        self._stop = False
        try:
            targets = vars_of(graph, self._targets if keys is None else keys).values()
            if not targets:
                return
            planned = planned_keys(graph, targets)
            self._send({"kind": "busy", "busy": True, "planned": planned})
            self._computing = self._busy = True
            if not self._stop:
                graph.forward(*targets)
            self._say(problem)
        except Cancelled as error:
            self._say(str(error))
        except Exception as error:
            self._say(error_text(error))
        finally:
            self._computing = False

    def _rested(self) -> None:
        """Send that what was asked for has ended, if it has: right before what it did, to be drawn at once."""
        if self._busy:
            self._busy = False
            self._send({"kind": "busy", "busy": False})

    def _look_on(self) -> None:
        """Report which nodes are being computed, and which have ended."""
        told: list[int] = []
        ended = 0  # nodes of the read under way that are known to have ended
        while not self._closed:
            self._watched.wait()
            time.sleep(LOOK)
            found = computing(self._graph)
            done = finished(self._graph, ended) if found else []
            ended = ended + len(done) if found else 0
            if found != told or done:
                told = found
                self._send({"kind": "running", "keys": found, "done": done})
            if self._stop:  # the first cancel may have come before the run began
                self._cancel()

    def _cancel(self) -> None:
        running = self._graph.running
        if self._computing and running is not None:
            running.cancel()

    def _tell(self) -> None:
        """Send the differences from what the pages have."""
        assert self._shown is not None
        edited, self._changed, self._edited = self._edited, False, False
        former = self._shown
        shown = {*self._drawn, *self._targets, *self._controlled, *self._in_sight}
        now = self._snapshots.take(edited, shown)
        runs = self._follower.take() if self._follower is not None else []
        if edited and (now.by_key.keys() != former.by_key.keys() or now.edges != former.edges):
            self._former = former
            self._shown = now
            self._send(self._described(now, edit=True))
            self._show()
        moved = [
            key
            for key in self._controlled
            if key in former.by_key
            and key in now.by_key
            and former.by_key[key].version != now.by_key[key].version
        ]
        if now.weights != former.weights:
            self._shown = now
            self._show()
        told: Message = {"controls": self._controls(moved)} if moved else {}
        planned = self._plan()
        if planned != self._planned:
            self._planned = told["planned"] = planned
        frame = frame_message(former, now, runs)
        seen = {
            key: self._in_sight[key] for key in map(int, frame["states"]) if key in self._in_sight
        }
        if seen:
            told["glances"] = glances(self._graph, seen)
        self._rested()
        self._send(frame | told | {"part": bool(self._snapshots.left)})
        self._shown, self._of_run = now, bool(runs)

    def _tell_rest(self) -> None:
        """Send what the latest frame has left out, if anything: what is shown comes first."""
        if not self._snapshots.left or self._shown is None:
            return
        former, self._shown = self._shown, self._snapshots.take(edited=False)
        self._send(frame_message(former, self._shown, []) | {"rest": self._of_run})

    def _open(self, page: Any) -> None:
        """Send everything to a new page. Pages that are open already go on with what they have."""
        self._pages += 1
        if self._follower is None:
            self._follower = Follower(self._graph, self._hear)
            self._watched.set()
            self._shown = None
        elif self._changed:
            self._tell()
        if self._shown is None:
            self._shown = self._snapshots.take()
        self._send(self._described(self._shown) | {"page": page})
        self._show(page)

    def _described(self, now: Snapshot, edit: bool = False) -> Message:
        """Return the message that describes the graph."""
        asked_for = [key_of(self._graph, var) for var in self._asked_for]
        self._targets = asked_for or now.ends
        leaves = [n.key for n in now.nodes if n.kind in ("input", "param") and not n.gradient]
        self._controlled = leaves[:MOST_CONTROLS]
        self._planned = self._plan()
        return graph_message(
            now,
            targets=self._targets,
            title=heading(now, self._targets),
            gone=self._gone(now),
            controls=self._controls(self._controlled),
            last=self._last_run(),
            live=True,
        ) | {
            "edit": edit,
            "mode": self._mode,
            "planned": self._planned,
            "compared": self._former is not None,
            "more_controls": len(leaves[MOST_CONTROLS:]),
        }

    def _plan(self) -> list[int]:
        """Return the nodes that a read of the targets would run."""
        if not self._snapshots.stale:
            return []
        try:
            targets = vars_of(self._graph, self._targets).values()
            return planned_keys(self._graph, targets)
        except Exception:  # a read would say what is wrong
            return []

    def _last_run(self) -> RunSnapshot | None:
        """Return the graph's last run, which pages that open later have not seen."""
        last = snapshot_of_run(self._graph, self._graph._scheduler.last_run)
        return last if last.ran or last.failed or last.skipped or last.rebuilt else None

    def _controls(self, keys: Sequence[int]) -> list[Message]:
        """Return controls for those of these leaves that the page can set."""
        made = [
            control(self._graph, var, key, self._bounds.get(key))
            for key, var in vars_of(self._graph, keys).items()
        ]
        return [message for message in made if message is not None]

    def _show(self, page: Any = None) -> None:
        """Send the part of the graph that is shown, laid out, to all pages or to one."""
        assert self._shown is not None
        now, focus = self._shown, self._focus
        if focus.startswith("#") and int(focus[1:]) not in now.by_key:
            focus = self._focus = ""
        options: Any = {"former": self._former, "fold": self._fold, "limit": self._limit}
        view = view_message(now, layer=self._layer, focus=focus, targets=self._targets, **options)
        self._drawn = {box["node"] for box in view["boxes"]} - {None}
        self._send(view | {"page": page})

    def _say(self, text: str) -> None:
        self._send({"kind": "problem", "text": sent(text)})

    # --- the graph -------------------------------------------------------------------------------

    def _unfollow(self) -> None:
        if self._follower is not None:
            self._follower.close()
            self._follower = None
            self._watched.clear()

    def _hear(self, edited: bool) -> None:
        self._edited |= edited
        self._changed = True
        self._due.set()

    def _gone(self, now: Snapshot) -> list[NodeSnapshot]:
        if self._former is None:
            return []
        return [node for node in self._former.nodes if node.key not in now.by_key]
