"""The guard at the door: pages of this machine that know the token may ask, and nobody else.

A page of any site may send requests to a port of this machine. Its browser says so in ``Origin``, and where a
name of that site leads here, in ``Host``. Both are compared with the names of this server.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from secrets import compare_digest
from typing import Any
from urllib.parse import parse_qs

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

NAMES = ("127.0.0.1", "localhost")


class Guard:
    """An ASGI application in front of another one: answers 403 unless the request is one of our pages'.

    Parameters
    ----------
    app
        The application behind it.
    token
        What the address has to hold.
    port
        The port of the server.
    """

    def __init__(self, app: App, token: str, port: int) -> None:
        self._app = app
        self._token = token.encode()
        self._hosts = {f"{name}:{port}" for name in NAMES}
        if port == 80:
            self._hosts |= {*NAMES}
        self._origins = {f"http://{host}" for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        refused = None if scope["type"] == "lifespan" else self.refusal(scope)
        if refused is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})  # before it is open: 403
        else:
            headers = [(b"content-type", b"text/plain; charset=utf-8")]
            await send({"type": "http.response.start", "status": 403, "headers": headers})
            await send({"type": "http.response.body", "body": refused.encode()})

    def refusal(self, scope: Scope) -> str | None:
        """Return the reason to refuse a request; ``None`` if there is none."""
        hosts, origins = (_all(scope, name) for name in (b"host", b"origin"))
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return "403: this server answers to 127.0.0.1 and localhost only.\n"
        if any(origin not in self._origins for origin in origins):
            return "403: this server answers its own pages only.\n"
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
        if len(given) != 1 or not compare_digest(given[0].encode(), self._token):
            return "403: open the address that `reactgrad explore` has printed, token and all.\n"
        return None


def _all(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1").lower() for key, value in scope["headers"] if key == name]
