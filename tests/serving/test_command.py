"""``reactgrad explore`` as a person starts it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reactgrad._cli import main
from tests.__main__ import ROOT
from tests.serving.served import MODEL


def test_it_says_where_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    import httpx

    (tmp_path / "model.py").write_text(MODEL)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "scheduler")])}
    command = [sys.executable, "-m", "reactgrad", "explore", "model.py:forward"]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        said = "".join(iter(process.stdout.readline, "\n")) + process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{32}", said)
        assert found, said
        assert httpx.get(found[0]).status_code == 200
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (0, "")
    assert "token" not in out


@pytest.mark.slow
def test_ctrl_c_ends_it_while_a_page_is_open_and_a_node_runs(tmp_path: Path) -> None:
    from websockets.sync.client import connect

    slow = "\nimport time\nnap = rg.lift(lambda x: time.sleep(60))(forward)\n"
    (tmp_path / "model.py").write_text(MODEL + slow)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "scheduler")])}
    command = [sys.executable, "-m", "reactgrad", "explore", "model.py"]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        said = "".join(process.stdout.readline() for _ in range(3))
        address = re.search(r"http://\S+", said)
        assert address
        with connect(address[0].replace("http", "ws").replace("/?", "/socket?")) as page:
            page.send('{"kind": "open", "page": 1}')
            page.send('{"kind": "set", "key": 1, "value": 110.0}')
            while '"running"' not in str(page.recv(timeout=20)):
                pass
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=20)  # not a minute
    assert (process.returncode, err) == (0, "")


def test_open_opens_the_browser_at_the_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import webbrowser

    from reactgrad.serving._server import Server

    (tmp_path / "model.py").write_text(MODEL)
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)

    def run(self: Server, ready: Any) -> None:
        ready()
        self._socket.close()

    monkeypatch.setattr(Server, "run", run)
    assert main(["explore", str(tmp_path / "model.py"), "--open"]) == 0
    assert opened[0] in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = = 1", "model.py, line 1: SyntaxError: invalid syntax"),
        ("x = 1", "model.py has no graph at its top level"),
        (None, "is no file"),
    ],
)
def test_a_file_that_fails_at_first_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, said: str
) -> None:
    if text is not None:
        (tmp_path / "model.py").write_text(text)
    assert main(["explore", str(tmp_path / "model.py")]) in (1, 2)
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("package", ["starlette", "uvicorn", "websockets", "pygraphviz"])
def test_without_a_package_its_extra_is_named(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    package: str,
) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    monkeypatch.setitem(sys.modules, package, None)
    assert main(["explore", str(tmp_path / "model.py")]) == 2
    extra = "viz" if package == "pygraphviz" else "serve"
    assert f"pip install 'reactgrad[{extra}]'" in capsys.readouterr().err


def test_a_port_that_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import socket

    (tmp_path / "model.py").write_text(MODEL)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert main(["explore", str(tmp_path / "model.py"), "--port", port]) == 1
    assert "in use" in capsys.readouterr().err


@pytest.mark.parametrize("port", ["0", "-1", "65536", "x"])
def test_what_is_no_port(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "model.py", f"--port={port}"]) == 2
    assert "expected a port from 1 to 65535" in capsys.readouterr().err
