"""A model file, served in a thread of the test; and a page without a browser, at the other end of a socket."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from reactgrad.serving._server import Server

MODEL = """
import reactgrad as rg

g = rg.Graph()
spot = g.input(100.0, name="spot")
rate = g.input(0.02, name="rate")
growth = rg.exp(rate * 0.5)
growth.name = "growth"
forward = spot * growth
forward.name = "forward"
"""


@contextmanager
def served(path: Path, text: str = MODEL, **options: Any) -> Iterator[Server]:
    """The server of a file with this text, for the length of a block."""
    path.write_text(text)
    server = Server(path, **options)
    ready = threading.Event()
    thread = threading.Thread(target=server.run, args=(ready.set,))
    thread.start()
    try:
        assert ready.wait(20)
        yield server
    finally:
        server.stop()
        thread.join(20)
        assert not thread.is_alive()


def until(holds: Callable[[], Any], seconds: float = 20.0) -> Any:
    """What a function returns, once that is true."""
    end = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < end, "it did not come to be"
        time.sleep(0.01)
    return found


class Page:
    """A page: it opens, sends, and keeps what it is told."""

    def __init__(self, server: Server, number: float = 0.5) -> None:
        from websockets.sync.client import connect

        self.number = number
        self.told: list[dict[str, Any]] = []
        address = server.address.replace("http:", "ws:").replace("/?", "/socket?")
        self._stack = ExitStack()
        self.socket: Any = self._stack.enter_context(connect(address, max_size=None))
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        self.say("open", page=number)
        until(lambda: self.latest("view"))

    def _listen(self) -> None:
        from websockets.exceptions import ConnectionClosedError

        with suppress(ConnectionClosedError):
            for text in self.socket:
                message = json.loads(text)
                if message.get("page") in (None, self.number):
                    self.told.append(message)

    def say(self, kind: str, **more: Any) -> None:
        self.socket.send(json.dumps({"kind": kind, **more}))

    def latest(self, kind: str) -> dict[str, Any] | None:
        return next((one for one in reversed(self.told) if one["kind"] == kind), None)

    def key(self, name: str) -> int:
        graph = self.latest("graph")
        assert graph is not None
        return next(node[0] for node in graph["nodes"] if node[1] == name)

    def set(self, name: str, value: Any) -> None:
        self.say("set", key=self.key(name), value=value)

    def states(self) -> dict[str, list[Any]]:
        """The state of each node, by its name, as a page shows it."""
        at = max(i for i, one in enumerate(self.told) if one["kind"] == "graph")
        names = {str(node[0]): node[1] for node in self.told[at]["nodes"]}
        states = dict(self.told[at]["states"])
        for one in self.told[at:]:
            if one["kind"] == "frame":
                states |= one["states"]
        return {names[key]: state for key, state in states.items() if key in names}

    def value(self, name: str) -> str:
        return self.states()[name][4]

    def close(self) -> None:
        self._stack.close()
        self._thread.join(10)

    def __enter__(self) -> Page:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
