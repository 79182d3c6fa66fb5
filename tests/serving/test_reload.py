"""What happens when the file is saved: its new graph is shown, and what was set and open stays."""

from __future__ import annotations

import gc
import os
import weakref
from pathlib import Path

import pytest

from tests.serving.served import MODEL, Page, served, until


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.py"


def test_a_saved_file_is_shown(path: Path) -> None:
    with served(path) as server, Page(server) as page:
        assert "half" not in page.states()
        path.write_text(MODEL + "half = forward / 2.0\nhalf.name = 'half'\n")
        until(lambda: "half" in page.states())


def test_values_that_were_set_stay(path: Path) -> None:
    with served(path) as server, Page(server) as page:
        page.set("spot", 120.0)
        until(lambda: page.value("forward").startswith("121.2"))
        path.write_text(
            "# a line above all\n" + MODEL.replace("spot * growth", "spot * growth * 2.0")
        )
        until(lambda: page.value("forward").startswith("242.4"))
        assert page.value("spot") == "120"
        # It stays over another save.
        path.write_text(MODEL.replace("spot * growth", "spot * growth * 3.0"))
        until(lambda: page.value("forward").startswith("363.6"))


def test_a_value_that_the_file_changes_is_the_new_one(path: Path) -> None:
    with served(path) as server, Page(server) as page:
        page.set("spot", 120.0)
        page.set("rate", 0.04)
        until(lambda: page.value("forward").startswith("122.4"))
        path.write_text(MODEL.replace("100.0", "105.0"))
        until(lambda: page.value("spot") == "105")
        until(lambda: page.value("forward").startswith("107.1"))  # with the rate that was set


@pytest.mark.slow
def test_what_is_open_stays_though_keys_move(path: Path) -> None:
    with served(path) as server, Page(server) as page, Page(server, 0.7) as other:
        before = page.key("growth")
        page.say("why", key=before)
        page.say("view", layer="values", focus=f"#{before}")
        until(lambda: other.latest("view")["focus"] == f"#{before}")
        first = "g = rg.Graph()\n"
        path.write_text(MODEL.replace(first, first + "early = g.input(1.0, name='early')\n"))
        until(lambda: "early" in page.states())
        after = page.key("growth")
        assert after != before
        until(lambda: page.latest("view")["focus"] == f"#{after}")
        assert page.latest("graph")["chosen"] == after
        assert other.latest("graph")["chosen"] is None
        until(lambda: page.latest("why")["key"] == after)
        # A node that is gone is open no more.
        path.write_text(MODEL.replace("growth", "factor"))
        until(lambda: "factor" in page.states())
        until(lambda: page.latest("view")["focus"] == "")
        assert page.latest("graph")["chosen"] is None


def test_the_mode_stays(path: Path) -> None:
    with served(path) as server, Page(server) as page:
        page.say("mode", mode="asked")
        page.set("spot", 120.0)
        until(lambda: page.value("spot") == "120")
        path.write_text(MODEL + "half = forward / 2.0\nhalf.name = 'half'\n")
        until(lambda: "half" in page.states() and page.value("spot") == "120")
        assert page.states()["forward"][0] == "stale"  # nobody has asked for it


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = = 1\n", "model.py, line 1: SyntaxError: invalid syntax"),
        ("\n1 / 0\n", "model.py, line 2: ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)\n", "model.py, line 1: SystemExit: 3"),
        ("x = 1\n", "model.py has no graph at its top level"),
        ("import no_such_module\n", "model.py, line 1: ModuleNotFoundError"),
    ],
)
def test_a_file_that_fails_is_told_and_the_former_model_lives(
    path: Path, text: str, said: str
) -> None:
    with served(path) as server, Page(server) as page:
        path.write_text(text)
        until(lambda: said in (page.latest("problem") or {"text": ""})["text"])
        assert str(path.parent) not in page.latest("problem")["text"]
        page.set("spot", 200.0)
        until(lambda: page.value("forward").startswith("202.0"))
        assert said in page.latest("problem")["text"]  # a run does not hide it
        with Page(server, 0.9) as late:
            assert said in late.latest("problem")["text"]
        path.write_text(MODEL + "half = forward / 2.0\nhalf.name = 'half'\n")
        until(lambda: "half" in page.states())
        until(lambda: page.value("half").startswith("101.0"))
        assert page.latest("problem")["text"] == ""


@pytest.mark.slow
def test_a_file_that_is_gone_comes_again(path: Path) -> None:
    with served(path) as server, Page(server) as page:
        path.unlink()
        until(lambda: "FileNotFoundError" in (page.latest("problem") or {"text": ""})["text"])
        # As editors save: another file takes its name.
        aside = path.with_suffix(".new")
        aside.write_text(MODEL + "half = forward / 2.0\nhalf.name = 'half'\n")
        os.replace(aside, path)
        until(lambda: "half" in page.states())


@pytest.mark.slow
def test_a_module_beside_the_file_is_run_anew_as_well(path: Path) -> None:
    beside = path.with_name("rg_test_rates_beside.py")
    beside.write_text("RATE = 0.02\n")
    text = "from rg_test_rates_beside import RATE\n" + MODEL.replace("0.02", "RATE")
    with served(path, text) as server, Page(server) as page:
        beside.write_text("RATE = = 0.05\n")
        until(lambda: beside.name in (page.latest("problem") or {"text": ""})["text"])
        beside.write_text("RATE = 0.05\n")
        until(lambda: page.value("rate") == "0.05")


@pytest.mark.slow
def test_a_former_model_is_forgotten(path: Path) -> None:
    with served(path) as server, Page(server) as page:
        former = weakref.ref(server.room.graph)
        path.write_text(MODEL + "half = forward / 2.0\nhalf.name = 'half'\n")
        until(lambda: "half" in page.states())

        def gone() -> bool:
            gc.collect()
            return former() is None

        until(gone)


@pytest.mark.slow
def test_a_slow_run_of_the_former_model_does_not_hold_up_the_new_one(path: Path) -> None:
    slow = MODEL + (
        "import time\n"
        "def nap(x):\n    time.sleep(1.5)\n    return x\n"
        "nap = rg.lift(nap)(forward)\nnap.name = 'nap'\nend = rg.lift(lambda x: x)(nap)\n"
    )
    with served(path, slow) as server, Page(server) as page:
        page.set("spot", 110.0)
        until(lambda: (page.latest("busy") or {"busy": False})["busy"])
        former = server.room._session
        path.write_text(MODEL)
        until(lambda: "nap" not in page.states() and page.value("forward").startswith("111.1"))
        assert not page.latest("busy")["busy"]
        # What the former one has to say at its end, that it was cancelled, is of no graph that is shown.
        until(lambda: not any(thread.is_alive() for thread in former._threads))
        page.set("rate", 0.0)
        until(lambda: page.value("forward") == "110")
        assert not any(one["text"] for one in page.told if one["kind"] == "problem")
