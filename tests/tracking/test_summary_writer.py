"""TensorBoard reads what was logged, and nothing runs for the log."""

from __future__ import annotations

import io
import struct
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reactgrad as rg
from reactgrad.tracking._png import png
from reactgrad.tracking._summary_writer import _pixels
from tests.tracking.records import crc32c, masked, records, scalars


def read(folder: Path) -> Any:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    found = accumulator.EventAccumulator(
        str(folder), size_guidance=dict.fromkeys(accumulator.DEFAULT_SIZE_GUIDANCE, 0)
    )
    found.Reload()
    return found


@pytest.fixture
def tensorboard() -> Any:
    return pytest.importorskip("tensorboard")


def test_numbers_come_back_with_steps_and_times(tensorboard: Any, tmp_path: Path) -> None:
    with rg.Graph(), rg.SummaryWriter(tmp_path) as writer:
        x = rg.param(2.0)
        writer.add_scalar("loss", x * x, 3, walltime=5.0)
        writer.add_scalar("loss", np.array([0.5]), 4, walltime=6.0)
        writer.add_scalar("rate", float("nan"))
    found = read(tmp_path)
    assert [(one.step, one.value, one.wall_time) for one in found.Scalars("loss")] == [
        (3, 4.0, 5.0),
        (4, 0.5, 6.0),
    ]
    assert np.isnan(found.Scalars("rate")[0].value)


def test_a_watched_node_logs_what_reads_compute(tensorboard: Any, tmp_path: Path) -> None:
    ran = []

    @rg.lift
    def square(x: Any) -> Any:
        ran.append(float(x))
        return x * x

    with rg.Graph():
        x = rg.input(0.0)
        loss = square(x)
    with rg.SummaryWriter(tmp_path) as writer:
        writer.watch("loss", loss)
        observer = writer.watch("seldom", loss, every=2)
        for number in (1.0, 2.0, 3.0, 4.0):
            x.set(number)
            if number != 2.0:
                loss.value
        observer.cancel()
        x.set(5.0)
        loss.value
    x.set(6.0)
    loss.value
    assert ran == [1, 3, 4, 5, 6]
    found = read(tmp_path)
    assert [(one.step, one.value) for one in found.Scalars("loss")] == [
        (0, 1),
        (1, 9),
        (2, 16),
        (3, 25),
    ]
    assert [(one.step, one.value) for one in found.Scalars("seldom")] == [(0, 1), (2, 16)]


def test_histograms_images_texts_and_groups_come_back(tensorboard: Any, tmp_path: Path) -> None:
    values = np.array([0.0, 1.0, 1.0, 4.0, np.inf, np.nan])
    image = np.arange(24, dtype=np.uint8).reshape(3, 2, 4)
    with rg.SummaryWriter(tmp_path) as writer:
        writer.add_histogram("weights", values, 7, bins=4)
        writer.add_image("digit", image, 8)
        writer.add_text("note", "*first* run", 9)
        writer.add_scalars("losses", {"train": 1.0, "test": 2.0}, 10)
    found = read(tmp_path)
    (one,) = found.Histograms("weights")
    made = one.histogram_value
    assert (one.step, made.min, made.max, made.num, made.sum, made.sum_squares) == (
        7,
        0,
        4,
        4,
        6,
        18,
    )
    assert list(made.bucket_limit) == [0, 1, 2, 3, 4]
    assert list(made.bucket) == [0, 1, 2, 0, 1]
    (one,) = found.Images("digit")
    assert (one.step, one.height, one.width) == (8, 2, 4)
    assert one.encoded_image_string == png(np.moveaxis(image, 0, -1))
    (one,) = found.Tensors("note/text_summary")
    assert (one.step, list(one.tensor_proto.string_val)) == (9, [b"*first* run"])
    for name, value in (("train", 1.0), ("test", 2.0)):
        (one,) = read(tmp_path / f"losses_{name}").Scalars("losses")
        assert (one.step, one.value) == (10, value)


def test_what_is_logged_after_a_close_is_there_too(tensorboard: Any, tmp_path: Path) -> None:
    writer = rg.SummaryWriter(tmp_path, filename_suffix=".a")
    writer.add_scalar("x", 1.0, 1)
    writer.flush()
    assert [one.step for one in read(tmp_path).Scalars("x")] == [1]
    writer.close()
    writer.close()
    assert all(one.name.endswith(".a") for one in tmp_path.iterdir())


def test_what_cannot_be_logged_is_named(tensorboard: Any, tmp_path: Path) -> None:
    with rg.SummaryWriter(tmp_path) as writer:
        for act, text in (
            (
                lambda: writer.add_scalar("x", [1.0, 2.0]),
                (
                    "add_scalar('x'): the value has the shape (2,), and one number is shown. Give its mean(), or "
                    "another number."
                ),
            ),
            (
                lambda: writer.add_histogram("x", [np.nan]),
                "add_histogram('x'): there is no finite number. Give at least one.",
            ),
        ):
            with pytest.raises(rg.ShapeError) as error:
                act()
            assert str(error.value) == text


def test_another_reader_finds_the_numbers_by_the_specification(
    tensorboard: Any, tmp_path: Path
) -> None:
    with rg.Graph(), rg.SummaryWriter(tmp_path) as writer:
        x = rg.param(2.0)
        for step in range(3):
            writer.add_scalar("loss/train", x * x + step, step, walltime=5.0 + step)
        writer.add_scalars("losses", {"test": 0.5}, 300, walltime=9.0)
    (own,) = tmp_path.glob("events.out.tfevents.*")
    assert scalars(own) == [(5.0 + step, step, "loss/train", 4.0 + step) for step in range(3)]
    (other,) = tmp_path.glob("losses_test/events.out.tfevents.*")
    assert scalars(other) == [(9.0, 300, "losses", 0.5)]


# --- without tensorboard ------------------------------------------------------------------------------


def test_without_tensorboard_its_name_is_given_and_no_folder_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("tensorboard", "tensorboard.summary.writer.event_file_writer"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(rg.MissingExtraError) as error:
        rg.SummaryWriter()
    assert str(error.value) == (
        "SummaryWriter needs the package tensorboard, which is not installed: pip install "
        '"reactgrad[tensorboard]"'
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_a_png_file_holds_the_pixels(channels: int) -> None:
    pixels = np.random.default_rng(0).integers(256, size=(5, 7, channels), dtype=np.uint8)
    content = png(pixels)
    at = content.index(b"IDAT")
    size = int.from_bytes(content[at - 4 : at], "big")
    rows = zlib.decompress(content[at + 4 : at + 4 + size])
    assert rows == b"".join(b"\0" + row.tobytes() for row in pixels)
    image = pytest.importorskip("PIL.Image")
    with image.open(io.BytesIO(content)) as file:
        file.load()
        assert np.array_equal(np.asarray(file).reshape(pixels.shape), pixels)


def test_images_are_turned_into_pixels() -> None:
    assert _pixels("x", np.array([[0.0, 0.5, 2.0, np.nan]]), "HW").tolist() == [
        [[0], [128], [255], [0]]
    ]
    assert _pixels("x", np.zeros((3, 4, 5)), "CHW").shape == (4, 5, 3)
    assert _pixels("x", np.zeros((4, 5, 3)), "HWC").shape == (4, 5, 3)


@pytest.mark.parametrize(
    ("shape", "formats", "text"),
    [
        (
            (2, 3),
            "CHW",
            "the image has the shape (2, 3), and dataformats='CHW' should name its axes. Write 'CHW', 'HWC' or 'HW'.",
        ),
        (
            (9, 2, 3),
            "CHW",
            "the image has 2 by 3 pixels of 9 channels. Give at least one pixel, and 1 to 4 channels.",
        ),
    ],
)
def test_images_that_cannot_be_are_named(shape: Any, formats: str, text: str) -> None:
    with pytest.raises(rg.ShapeError) as error:
        _pixels("x", np.zeros(shape), formats)
    assert str(error.value) == f"add_image('x'): {text}"


def test_the_reader_of_records_finds_damage() -> None:
    assert crc32c(b"123456789") == 0xE3069283  # RFC 3720
    head, data = struct.pack("<Q", 5), b"hello"
    record = head + struct.pack("<I", masked(head)) + data + struct.pack("<I", masked(data))
    assert list(records(record)) == [data]
    for at in range(len(record)):
        broken = bytearray(record)
        broken[at] ^= 1
        with pytest.raises(AssertionError, match="damaged"):
            list(records(bytes(broken)))
