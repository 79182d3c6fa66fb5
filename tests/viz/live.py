"""A live page without a notebook: a session at one end of a socket, the page's program at the other."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from reactgrad.viz._page import program, style
from reactgrad.viz._session import Session
from tests.viz.browser import Seen, need

PAGE = """<!doctype html><meta charset="utf-8"><title>live</title><link rel="icon" href="data:,">
<style>STYLE body { margin: 0 } .rg-explorer { height: 100vh }</style><div id="page"></div>
<script type="module">
PROGRAM
const socket = new WebSocket(`ws://${location.host}/socket`);
const heard = new Set();
socket.onmessage = ({ data }) => { const m = JSON.parse(data); window.told.push(m); heard.forEach((f) => f(m)); };
window.told = [];
window.asked = [];
socket.onopen = () => explorer.render({ el: document.getElementById("page"), model: {
  on: (_, f) => heard.add(f), off: (_, f) => heard.delete(f),
  send: (m) => { window.asked.push(m); socket.send(JSON.stringify(m)); },
} });
</script>"""


class Live:
    """A session, served to any number of pages.

    Parameters
    ----------
    graph
        The graph.
    **options
        Of ``Session``.
    """

    def __init__(self, graph: Any, **options: Any) -> None:
        need("tornado")
        self._sockets: set[Any] = set()
        self._loop: Any = None
        self._end: Any = None
        self.url = ""
        self.told: list[dict[str, Any]] = []
        self.session = Session(graph, self._send, **options)
        started = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(started,), daemon=True)
        self._thread.start()
        assert started.wait(20)

    def _serve(self, started: threading.Event) -> None:
        from tornado.httpserver import HTTPServer
        from tornado.netutil import bind_sockets
        from tornado.web import Application, RequestHandler
        from tornado.websocket import WebSocketHandler

        text = PAGE.replace("STYLE", style()).replace(
            "PROGRAM", program().replace("export default {", "const explorer = {")
        )
        live = self

        class Page(RequestHandler):
            def get(self) -> None:
                self.write(text)

        class Socket(WebSocketHandler):
            def open(self, *args: Any, **kwargs: Any) -> None:
                self.set_nodelay(True)
                live._sockets.add(self)

            def on_message(self, message: str | bytes) -> None:
                live.session.receive(json.loads(message))

            def on_close(self) -> None:
                live._sockets.discard(self)

        async def serve() -> None:
            self._loop = asyncio.get_running_loop()
            self._end = asyncio.Event()
            sockets = bind_sockets(0, "127.0.0.1")
            self.url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}/"
            server = HTTPServer(Application([("/", Page), ("/socket", Socket)]))
            server.add_sockets(sockets)
            started.set()
            await self._end.wait()
            server.stop()
            for one in [*self._sockets]:
                one.close()
            await server.close_all_connections()
            await asyncio.sleep(0.05)  # for the sockets to say good-bye

        asyncio.run(serve())

    def _send(self, message: dict[str, Any]) -> None:
        self.told.append(message)
        text = json.dumps(message, allow_nan=False)

        def write() -> None:
            for one in [*self._sockets]:
                one.write_message(text)

        self._loop.call_soon_threadsafe(write)

    def close(self) -> None:
        self.session.close()
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(20)


@contextmanager
def live(
    chrome: Any, graph: Any, size: tuple[int, int] = (1400, 900), **options: Any
) -> Iterator[Seen]:
    """The explorer of a graph, open in a browser, for the length of a block."""
    served = Live(graph, **options)
    page = chrome.new_context(viewport={"width": size[0], "height": size[1]}).new_page()
    seen = Seen(page)
    seen.session = served.session
    try:
        page.goto(served.url)
        page.wait_for_selector(".rg-explorer[data-draws] .rg-box")
        yield seen
        assert seen.complaints == [], seen.complaints
    finally:
        page.context.close()
        served.close()
