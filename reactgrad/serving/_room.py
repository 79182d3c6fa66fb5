"""One graph and the pages that show it: all see one state, and it stays when the file is saved.

What stays: values that a page has set (unless the file itself now gives the input another value), the mode, the
part and the layer that are open, and the node that each page explains. All of it is found again by names.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from reactgrad.serving._model_file import Model
from reactgrad.viz._messages import Message, flaw
from reactgrad.viz._session import Session

MOST_WAITING = 2**26  # letters for a page that does not take them; then it is cut off


class Client:
    """One page that is connected.

    Attributes
    ----------
    waiting : asyncio.Queue of str or None
        Messages to send, oldest first; ``None``: nothing more, it was too slow.
    page
        The number that it gave itself.
    chosen : int or None
        The node that it explains.
    """

    def __init__(self) -> None:
        self.waiting: asyncio.Queue[str | None] = asyncio.Queue()
        self._letters = 0  # of what waits
        self.page: Any = None
        self.chosen: int | None = None

    def tell(self, text: str) -> None:
        """Send a message when those before it are sent."""
        self._letters += len(text)
        if self._letters > MOST_WAITING:
            self.waiting = asyncio.Queue()
            self.waiting.put_nowait(None)
        else:
            self.waiting.put_nowait(text)

    async def next(self) -> str | None:
        """Return the next message, when there is one; ``None``: the page was too slow."""
        text = await self.waiting.get()
        self._letters -= len(text or "")
        return text


class Room:
    """A graph, a session, and its pages. All methods are called in the thread of `loop`.

    Parameters
    ----------
    model
        What the file has given.
    loop
        The server's loop.
    """

    def __init__(self, model: Model, loop: asyncio.AbstractEventLoop) -> None:
        self.clients: set[Client] = set()
        self._loop = loop
        self._model = model
        self._trouble = ""  # of the file, beside what the session has to say
        self._problem = ""  # of the session
        self._names: dict[int, str] = {}  # of nodes, by key, as pages know them
        self._set: dict[int, Any] = {}  # values that pages have set, by key
        self._view: Message | None = None
        self._mode: Message | None = None
        self._session = self._opened(model)

    @property
    def graph(self) -> Any:
        """The graph that is shown."""
        return self._model.graph

    # --- pages

    def join(self) -> Client:
        """Return a new client, which gets all messages from now on."""
        client = Client()
        self.clients.add(client)
        client.tell(self._said())  # also that there is nothing wrong any more
        return client

    def leave(self, client: Client) -> None:
        """Forget a client."""
        self.clients.discard(client)
        if client.page is not None:
            self._session.receive({"kind": "shut"})

    def hear(self, client: Client, text: str) -> None:
        """Take in what a page has sent."""
        try:
            message: Any = json.loads(text)
        except (ValueError, RecursionError):
            message = None
        if flaw(message):  # the session says so to the page
            self._session.receive(message)
            return
        kind = message["kind"]
        if kind in ("open", "shut") and client.page is not None:
            client.page = None
            self._session.receive({"kind": "shut"})
        if kind == "open":
            client.page = message.get("page")
        elif kind == "shut":
            return
        elif kind == "why":
            client.chosen = int(message["key"])
        elif kind == "set":
            self._set[int(message["key"])] = message["value"]
        elif kind == "view":
            self._view = message
        elif kind == "mode":
            self._mode = message
        self._session.receive(message)

    # --- the file

    def fails(self, trouble: str) -> None:
        """Show what is wrong with the file; the former model lives on. An empty text: nothing."""
        if trouble != self._trouble:
            self._trouble = trouble
            self._tell(self._said())

    def change(self, model: Model) -> Callable[[], None]:
        """Show another model. Return what ends the former one, which may wait for its computation."""
        former, given = self._session, self._model.given
        names, view, mode = self._names, self._view, self._mode
        values = {names[key]: value for key, value in self._set.items() if key in names}
        chosen = {client: names.get(client.chosen or -1) for client in self.clients}
        self._trouble = self._problem = ""
        self._names, self._set = {}, {}
        self._model = model
        self._session = session = self._opened(model)
        keys = {node.name: node.key for node in model.graph.snapshot().nodes}
        for message in (
            {"kind": "busy", "busy": False},
            {"kind": "running", "keys": [], "done": []},
            {"kind": "problem", "text": ""},
        ):
            self._tell(json.dumps(message))
        for client in self.clients:
            client.chosen = keys.get(chosen[client] or "")
            if client.page is not None:
                session.receive({"kind": "open", "page": client.page})
        if mode is not None:
            session.receive(mode)
        if view is not None:
            self._view = moved = view | {"focus": _moved(view.get("focus", ""), names, keys)}
            session.receive(moved)
        for key in {client.chosen for client in self.clients if client.chosen is not None}:
            session.receive({"kind": "why", "key": key})
        for name, value in values.items():
            if name in keys and _same(given.get(name), model.given.get(name)):
                self._set[keys[name]] = value
                session.receive({"kind": "set", "key": keys[name], "value": value})

        def end() -> None:
            former.receive({"kind": "cancel"})
            former.close()

        return end

    def close(self) -> None:
        """End the session."""
        self._session.receive({"kind": "cancel"})
        self._session.close()

    # --- the session

    def _opened(self, model: Model) -> Session:
        def send(message: Message) -> None:  # in threads of the session
            text = json.dumps(message, separators=(",", ":"), allow_nan=False)
            try:
                self._loop.call_soon_threadsafe(self._pass_on, session, message, text)
            except RuntimeError:  # the loop has ended, and the pages with it
                pass

        session = Session(model.graph, send, targets=model.targets)
        return session

    def _pass_on(self, session: Session, message: Message, text: str) -> None:
        """Send a message of a session to the pages that it is for."""
        if session is not self._session:  # of a former model
            return
        kind, page = message["kind"], message.get("page")
        if kind == "graph":
            self._names = {node[0]: node[1] for node in message["nodes"]}
        if kind == "problem":
            self._problem = message["text"]
            text = self._said()
        for client in [*self.clients]:
            if page is None or page == client.page:
                chosen = f'{{"chosen":{json.dumps(client.chosen)},' if kind == "graph" else "{"
                client.tell(chosen + text[1:] if client.page is not None else text)

    def _said(self) -> str:
        told = "\n".join(filter(None, (self._trouble, self._problem)))
        return json.dumps({"kind": "problem", "text": told})

    def _tell(self, text: str) -> None:
        for client in self.clients:
            client.tell(text)


def _moved(focus: str, names: dict[int, str], keys: dict[str, int]) -> str:
    """Return what is open, in another model."""
    if not focus.startswith("#"):
        return focus  # a scope, by its path
    key = keys.get(names.get(int(focus[1:]), ""))
    return "" if key is None else f"#{key}"


def _same(one: Any, other: Any) -> bool:
    """Return whether a leaf is given the same value by two versions of a file."""
    if one is None or other is None:
        return False
    first, second = np.asarray(one), np.asarray(other)
    if first.dtype != second.dtype or first.shape != second.shape:
        return False
    return bool(np.array_equal(first, second, equal_nan=first.dtype.kind in "fc"))
