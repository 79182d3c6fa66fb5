"""A log that TensorBoard reads, with the names of PyTorch's ``SummaryWriter``."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any

import numpy as np

from reactgrad._attributes import OwnAttributes
from reactgrad._errors import MissingExtraError, ShapeError
from reactgrad._habits import answer
from reactgrad._names_of_pandas import OF_WRITERS
from reactgrad.core._observer import Observer
from reactgrad.graph._var import Var
from reactgrad.tracking._numbers import number
from reactgrad.tracking._png import png

Array = np.ndarray[Any, Any]


class SummaryWriter(OwnAttributes):
    """Writes numbers, histograms, images and texts into a folder that TensorBoard shows (extra ``tensorboard``).

    Parameters
    ----------
    log_dir : str or path-like, optional
        The folder of this run; default: ``runs/`` and the present time.
    max_queue : int, default 10
        Events that wait in memory at most.
    flush_secs : int, default 120
        Seconds between two writes to the disk.
    filename_suffix : str, default ""

    Raises
    ------
    MissingExtraError
        If tensorboard is not installed.

    Examples
    --------
    >>> import reactgrad as rg
    >>> with rg.SummaryWriter("runs/first") as writer:  # doctest: +SKIP
    ...     writer.watch("loss", loss)  # each value that a read computes
    ...     writer.add_scalar("rate", 0.1, global_step=3)
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str] | None = None,
        *,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        _import("summary.writer.event_file_writer")  # before a folder is made
        if log_dir is None:
            log_dir = os.path.join("runs", time.strftime("%Y-%m-%d_%H-%M-%S"))
        self.log_dir = os.fspath(log_dir)
        self._settings = {
            "max_queue_size": max_queue,
            "flush_secs": flush_secs,
            "filename_suffix": filename_suffix,
        }
        self._files: dict[str, Any] = {}
        self._observers: list[Observer] = []
        self._file(self.log_dir)

    # --- what is logged -----------------------------------------------------------------------------

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Log a number: a node of one number is read."""
        value = number(f"add_scalar({tag!r:.60}): the value", scalar_value)
        self._write(self.log_dir, {"tag": tag, "simple_value": value}, global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Log several numbers for one chart; each has a folder of its own below `log_dir`."""
        for name, given in tag_scalar_dict.items():
            value = number(f"add_scalars({main_tag!r:.60}): {name!r:.60}", given)
            folder = os.path.join(self.log_dir, f"{main_tag}_{name}".replace("/", "_"))
            self._write(folder, {"tag": main_tag, "simple_value": value}, global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        bins: Any = 64,
        walltime: float | None = None,
    ) -> None:
        """Log how the finite numbers of an array are spread; `bins` as for ``np.histogram``."""
        numbers = _array(values).ravel().astype(np.float64)
        numbers = numbers[np.isfinite(numbers)]
        if not len(numbers):
            raise ShapeError(
                f"add_histogram({tag!r:.60}): there is no finite number. Give at least one."
            )
        counts, edges = np.histogram(numbers, bins)
        made = _import("compat.proto.summary_pb2").HistogramProto(
            min=numbers.min(),
            max=numbers.max(),
            num=len(numbers),
            sum=numbers.sum(),
            sum_squares=numbers @ numbers,
            # What lies below the first limit has a count, too.
            bucket_limit=edges.tolist(),
            bucket=[0, *counts.tolist()],
        )
        self._write(self.log_dir, {"tag": tag, "histo": made}, global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Log an image: floats from 0 to 1, or integers of 8 bits; with 1 to 4 channels, or ``"HW"`` without."""
        pixels = _pixels(tag, _array(img_tensor), dataformats)
        made = _import("compat.proto.summary_pb2").Summary.Image(
            height=pixels.shape[0],
            width=pixels.shape[1],
            colorspace=pixels.shape[2],
            encoded_image_string=png(pixels),
        )
        self._write(self.log_dir, {"tag": tag, "image": made}, global_step, walltime)

    def add_text(
        self,
        tag: str,
        text_string: str,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Log a text in Markdown."""
        value = {
            "tag": f"{tag}/text_summary",
            "metadata": _import("plugins.text.metadata").create_summary_metadata(tag, ""),
            "tensor": _import("compat.proto.tensor_pb2").TensorProto(
                dtype="DT_STRING", string_val=[text_string.encode()]
            ),
        }
        self._write(self.log_dir, value, global_step, walltime)

    def watch(self, tag: str, node: Var, every: int = 1) -> Observer:
        """Log a node of one number by itself, whenever a read has computed a new value.

        Parameters
        ----------
        tag : str
        node : Var
            It is observed, so nothing runs for the log.
        every : int, default 1
            Log the first one of so many values. The step is the number of values before it.

        Returns
        -------
        Observer
            ``cancel()`` ends it, as does ``close``.
        """
        step = -1

        def log(old: object, new: object) -> None:
            nonlocal step
            step += 1
            if step % every == 0:
                self.add_scalar(tag, new, step)

        observer = node.observe(log)
        self._observers.append(observer)
        return observer

    # --- files --------------------------------------------------------------------------------------

    def _file(self, folder: str) -> Any:
        if folder not in self._files:
            writer = _import("summary.writer.event_file_writer").EventFileWriter
            self._files[folder] = writer(folder, **self._settings)
        return self._files[folder]

    def _write(
        self, folder: str, value: Mapping[str, Any], step: int | None, walltime: float | None
    ) -> None:
        summary = _import("compat.proto.summary_pb2").Summary
        event = _import("compat.proto.event_pb2").Event(
            wall_time=time.time() if walltime is None else walltime,
            step=0 if step is None else int(step),
            summary=summary(value=[summary.Value(**value)]),
        )
        self._file(folder).add_event(event)

    def flush(self) -> None:
        """Write to the disk what waits in memory."""
        for one in self._files.values():
            one.flush()

    def close(self) -> None:
        """End all observers of ``watch``, and close the files. What is logged later begins new ones."""
        while self._observers:
            self._observers.pop().cancel()
        while self._files:
            self._files.popitem()[1].close()

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


answer(SummaryWriter, "writer", OF_WRITERS)


def _import(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(f"tensorboard.{name}")
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            'SummaryWriter needs the package tensorboard, which is not installed: pip install "reactgrad[tensorboard]"'
        ) from error


def _array(given: Any) -> Array:
    return np.asarray(given.value if isinstance(given, Var) else given)


def _pixels(tag: str, image: Array, formats: str) -> Array:
    """Return an image as pixels of 8 bits, with the axes height, width, channels."""
    if sorted(formats) not in (["C", "H", "W"], ["H", "W"]) or image.ndim != len(formats):
        raise ShapeError(
            f"add_image({tag!r:.60}): the image has the shape {image.shape}, and dataformats={formats!r:.20} should "
            "name its axes. Write 'CHW', 'HWC' or 'HW'."
        )
    if len(formats) == 2:
        image, formats = image[..., None], formats + "C"
    image = image.transpose([formats.index(axis) for axis in "HWC"])
    if 0 in image.shape or image.shape[2] > 4:
        raise ShapeError(
            f"add_image({tag!r:.60}): the image has {image.shape[0]} by {image.shape[1]} pixels of {image.shape[2]} "
            "channels. Give at least one pixel, and 1 to 4 channels."
        )
    if image.dtype == np.uint8:
        return image
    return np.rint(np.nan_to_num(np.clip(image.astype(np.float64), 0, 1)) * 255).astype(np.uint8)
