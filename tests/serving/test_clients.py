"""Several pages of one server see one state, and one that has gone leaves nothing behind."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

import reactgrad.serving._room as room
from tests.serving.served import Page, served, until


def test_two_pages_see_one_state(tmp_path: Path) -> None:
    with served(tmp_path / "model.py") as server, Page(server) as one, Page(server, 0.7) as other:
        one.set("spot", 110.0)
        until(lambda: other.value("forward").startswith("111.1"))
        frame = other.latest("frame")
        other.set("rate", 0.0)
        until(lambda: one.value("forward") == "110")
        assert frame is not None
        until(lambda: one.states() == other.states())
        # One that opens later sees the same.
        with Page(server, 0.9) as late:
            assert late.states()["forward"][4] == "110"
            # Its opening tells the others nothing.
            assert [told["kind"] for told in one.told].count("graph") == 1


@pytest.mark.slow
def test_twenty_pages(tmp_path: Path) -> None:
    with served(tmp_path / "model.py") as server, ExitStack() as stack:
        pages = [stack.enter_context(Page(server, n + 0.5)) for n in range(20)]
        for n, page in enumerate(pages):
            page.set("spot", 200.0 + n)
            after = pages[(n + 1) % 20]
            until(lambda after=after, n=n: after.value("spot") == f"{200 + n}")
        for page in pages:  # all at once
            page.set("rate", 0.0)
        for page in pages:
            until(lambda page=page: page.value("forward") == "219")
        assert len({json.dumps(page.states(), sort_keys=True) for page in pages}) == 1
        assert len(server.room.clients) == 20


def test_a_page_that_dies_leaves_nothing_behind(tmp_path: Path) -> None:
    with served(tmp_path / "model.py") as server:
        with Page(server) as first:
            first.set("spot", 110.0)
            until(lambda: first.value("forward").startswith("111.1"))
        until(lambda: not server.room.clients)
        session = server.room._session
        until(lambda: session._follower is None)  # the engine is not watched
        threads = threading.active_count()
        for n in range(5):
            page = Page(server, n + 0.5)
            until(lambda: session._follower is not None)
            page.socket.socket.shutdown(
                socket.SHUT_RDWR
            )  # the connection breaks, without a good-bye
            until(lambda: not server.room.clients)
            until(lambda: session._follower is None)
            page._thread.join(10)
        assert session._pages == 0
        until(lambda: threading.active_count() <= threads)
        with Page(server) as last:  # and the graph is as it was left
            assert last.value("forward").startswith("111.1")


@pytest.mark.slow
def test_a_page_that_falls_silent_is_found(tmp_path: Path) -> None:
    import httpx

    with served(tmp_path / "model.py", ping=0.2) as server:
        url = httpx.URL(server.address)
        asked = (
            f"GET /socket?token={server.token} HTTP/1.1\r\nHost: 127.0.0.1:{url.port}\r\n"
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", url.port)) as raw, Page(server) as page:
            raw.sendall(asked.encode())
            assert raw.recv(12) == b"HTTP/1.1 101"
            until(lambda: len(server.room.clients) == 2)
            # Its cable is cut: no word comes from it, and no end.
            until(lambda: len(server.room.clients) == 1)
            page.set("spot", 110.0)
            until(lambda: page.value("forward").startswith("111.1"))


@pytest.mark.slow
def test_a_page_that_takes_nothing_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "MOST_WAITING", 20_000)
    with served(tmp_path / "model.py") as server:
        stuck = room.Client()
        server.room.clients.add(stuck)  # nobody takes its messages
        with Page(server) as page:
            for n in range(60):
                page.set("spot", 100.0 + n)
                until(lambda n=n: page.value("spot") == f"{100 + n}")
                if stuck.waiting.qsize() == 1 and stuck._letters > 20_000:
                    break
            assert stuck.waiting.get_nowait() is None
        server.room.clients.discard(stuck)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "[" * 100_000, '{"kind": "set"}', '{"kind": ["x"]}']
)
def test_what_no_page_sends_is_answered_with_a_reason(tmp_path: Path, text: str) -> None:
    with served(tmp_path / "model.py") as server, Page(server) as page:
        page.socket.send(text)
        until(lambda: "cannot be answered" in (page.latest("problem") or {"text": ""})["text"])
        page.set("spot", 110.0)
        until(lambda: page.value("forward").startswith("111.1"))


def test_a_page_may_open_again_and_shut(tmp_path: Path) -> None:
    with served(tmp_path / "model.py") as server, Page(server) as page:
        page.say("open", page=page.number)
        page.say("open", page=page.number)
        until(lambda: [one["kind"] for one in page.told].count("view") >= 3)
        assert server.room._session._pages == 1
        page.say("shut")
        page.say("shut")
        until(lambda: server.room._session._pages == 0)
