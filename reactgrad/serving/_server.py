"""The server: one page, one socket, and a loop that runs the file again when it is saved."""

from __future__ import annotations

import asyncio
import secrets
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from reactgrad._errors import MissingExtraError
from reactgrad.serving._guard import App, Guard
from reactgrad.serving._model_file import Model, ModelFile, trouble
from reactgrad.serving._page import headers, page
from reactgrad.serving._room import Client, Room
from reactgrad.viz._draw import need_graphviz

GLANCE = 0.25  # seconds between two looks at the file
PATIENCE = 2.0  # seconds that the end waits for a computation
MOST_BYTES = 2**20  # of one message of a page


class Server:
    """A model file, served to pages of this machine.

    Parameters
    ----------
    path
        The file.
    name
        Of a Graph, a Var, or a function that returns one; by default the file has one graph.
    port
        0: one that is free.
    ping
        Seconds between two questions whether a page is still there, and the most until its answer.

    Attributes
    ----------
    address : str
        The address to open, with the token.
    room : Room
        The graph and its pages; while the server runs.

    Raises
    ------
    MissingExtraError
        If a package of the extra ``serve`` is not installed.
    OSError
        If the port is taken, or the file cannot be read.
    ModelError
        If the file has no graph. What the file itself raises is raised as well.
    """

    room: Room

    def __init__(
        self, path: Path, name: str | None = None, port: int = 0, *, ping: float = 10.0
    ) -> None:
        _need_packages()
        self._file = ModelFile(path, name)
        self._model: Model | None = self._file.load()
        self._socket = _bound(port)
        self._port: int = self._socket.getsockname()[1]
        self.token = secrets.token_urlsafe(24)
        self.address = f"http://127.0.0.1:{self._port}/?token={self.token}"
        self._server = self._made(ping)

    def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Serve until Ctrl-C, or until `stop` is called.

        Parameters
        ----------
        ready
            Called when pages can be opened.
        """
        self._ready = ready
        self._server.run(sockets=[self._socket])

    def stop(self) -> None:
        """Make `run` return."""
        self._server.should_exit = True

    def _made(self, ping: float) -> Any:
        import uvicorn

        config = uvicorn.Config(
            self._app(),
            log_level="error",  # a line for each request would have the token
            access_log=False,
            server_header=False,
            ws="websockets-sansio",
            ws_max_size=MOST_BYTES,
            ws_ping_interval=ping,
            ws_ping_timeout=ping,
            timeout_graceful_shutdown=1,
        )
        return uvicorn.Server(config)

    def _app(self) -> App:
        from starlette.applications import Starlette
        from starlette.requests import Request
        from starlette.responses import HTMLResponse
        from starlette.routing import Route, WebSocketRoute
        from starlette.websockets import WebSocket

        async def show(request: Request) -> HTMLResponse:
            nonce = secrets.token_urlsafe(12)
            title = f"{self._file.path.name} – reactgrad"
            return HTMLResponse(page(title, nonce), headers=headers(nonce, self._port))

        async def speak(websocket: WebSocket) -> None:
            await websocket.accept()
            client = self.room.join()
            try:
                await _first_to_end(_take(websocket, self.room, client), _give(websocket, client))
            finally:
                self.room.leave(client)

        routes = [Route("/", show), WebSocketRoute("/socket", speak)]
        return Guard(Starlette(routes=routes, lifespan=self._lifespan), self.token, self._port)

    @asynccontextmanager
    async def _lifespan(self, app: object) -> AsyncIterator[None]:
        assert self._model is not None
        self.room = Room(self._model, asyncio.get_running_loop())
        self._model = None  # the room has it, until the file is saved
        watching = asyncio.create_task(self._watch())
        self._ready()
        try:
            yield
        finally:
            watching.cancel()
            # A node that takes minutes cannot be interrupted, and does not hold up the end.
            closing = threading.Thread(target=self.room.close, daemon=True)
            closing.start()
            closing.join(PATIENCE)

    async def _watch(self) -> None:
        """Run the file again whenever it has been saved."""
        while True:
            await asyncio.sleep(GLANCE)
            if not self._file.is_saved():
                continue
            await asyncio.sleep(GLANCE / 5)  # until it is written whole
            await self.reload()

    async def reload(self) -> None:
        """Run the file again, and show its graph, or what went wrong."""
        try:
            model = await asyncio.to_thread(self._file.load)
            end = self.room.change(model)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # whatever a file may raise, SystemExit too
            self.room.fails(trouble(self._file.path, error))
        else:
            threading.Thread(target=end, daemon=True).start()  # may wait for a computation


async def _take(websocket: Any, room: Room, client: Client) -> None:
    """Hand on what a page sends, until it goes."""
    while True:
        message = await websocket.receive()
        if message["type"] == "websocket.disconnect":
            return
        room.hear(client, message.get("text") or "")


async def _give(websocket: Any, client: Client) -> None:
    """Send a page what is there for it, until it goes or is too slow."""
    while (text := await client.next()) is not None:
        await websocket.send_text(text)
    await websocket.close(1013)  # it connects again, and gets all anew


async def _first_to_end(*works: Any) -> None:
    """Wait until one of these ends, and end the others."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        # A page that has gone makes sends fail: nobody is left to hear of it.
        await asyncio.gather(*tasks, return_exceptions=True)


def _bound(port: int) -> socket.socket:
    """Return a socket that only this machine can reach."""
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(("127.0.0.1", port))
        bound.listen(128)  # pages that come before the loop runs wait
    except OSError:
        bound.close()
        raise
    return bound


def _need_packages() -> None:
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
        import websockets  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            f"reactgrad explore needs {error.name}: pip install 'reactgrad[serve]'. "
            "g.export_html(path) writes a page that needs no server."
        ) from None
    need_graphviz(1)
