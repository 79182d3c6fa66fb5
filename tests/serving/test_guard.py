"""Who may ask: nobody without the token, no page of another site, and no other machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from reactgrad.serving._server import Server
from tests.serving.served import served


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("model") / "model.py") as running:
        yield running


def place(server: Server) -> str:
    return server.address.partition("?")[0]


def test_the_page_is_shown_to_who_has_the_token(server: Server) -> None:
    import httpx

    answer = httpx.get(server.address)
    assert answer.status_code == 200
    assert "class Explorer" in answer.text
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-store"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert server.token not in answer.text


@pytest.mark.parametrize(
    "query", ["", "?token=", "?token=wrong", "?token={0}x", "?token={0}&token={0}"]
)
@pytest.mark.parametrize("path", ["", "socket", "nothing"])
def test_without_the_token_all_is_refused(server: Server, path: str, query: str) -> None:
    import httpx

    answer = httpx.get(place(server) + path + query.format(server.token))
    assert answer.status_code == 403
    assert "`reactgrad explore` has printed" in answer.text
    assert server.token not in answer.text


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "0.0.0.0:{port}", ""],
)
def test_another_host_is_refused(server: Server, host: str) -> None:
    import httpx

    port = httpx.URL(server.address).port
    answer = httpx.get(server.address, headers={"Host": host.format(port=port)})
    assert answer.status_code in ((400, 403) if not host else (403,))


def test_it_is_called_localhost_as_well(server: Server) -> None:
    import httpx

    port = httpx.URL(server.address).port
    assert httpx.get(server.address, headers={"Host": f"localhost:{port}"}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1"]
)
def test_another_origin_is_refused(server: Server, origin: str) -> None:
    import httpx
    from websockets.exceptions import InvalidStatus

    port = httpx.URL(server.address).port
    given = origin.format(port=port)
    assert httpx.get(server.address, headers={"Origin": given}).status_code == 403
    with pytest.raises(InvalidStatus) as refused:
        socket(server, origin=given)
    assert refused.value.response.status_code == 403


def test_a_socket_needs_token_and_host_as_well(server: Server) -> None:
    import httpx
    from websockets.exceptions import InvalidStatus

    port = httpx.URL(server.address).port
    for change in ({"query": "?token=wrong"}, {"headers": {"Host": "evil.example"}}):
        with pytest.raises(InvalidStatus) as refused:
            socket(server, **change)
        assert refused.value.response.status_code == 403
    socket(server, origin=f"http://localhost:{port}")  # raises nothing


def socket(server: Server, query: str = "", headers: Any = None, **options: Any) -> None:
    """Open a socket, and close it."""
    import socket as sockets

    import httpx
    from websockets.sync.client import connect

    url = httpx.URL(server.address)
    host = (headers or {}).get("Host", f"127.0.0.1:{url.port}")
    raw = sockets.create_connection(("127.0.0.1", url.port))
    address = f"ws://{host}/socket{query or '?' + url.query.decode()}"
    with raw, connect(address, sock=raw, **options):
        pass


def test_only_this_machine_can_reach_it(server: Server) -> None:
    assert server._socket.getsockname()[0] == "127.0.0.1"


def test_each_server_has_another_token(server: Server, tmp_path: Any) -> None:
    with served(tmp_path / "model.py") as other:
        assert other.token != server.token
        assert len(other.token) >= 32
