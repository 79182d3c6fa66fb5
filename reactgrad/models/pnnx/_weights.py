"""The arrays of a PNNX model: members of a zip archive that are stored as they are."""

from __future__ import annotations

import io
import os
import zipfile
from typing import Any

import numpy as np

from reactgrad.models._errors import ModelError
from reactgrad.models.pnnx._text import Typed, size_of


class Weights:
    """An archive of arrays. A size that is declared is compared with the member's before anything is read."""

    def __init__(self, source: str | os.PathLike[str] | bytes) -> None:
        self.path = None if isinstance(source, bytes) else os.fspath(source)
        try:
            file: Any = io.BytesIO(source) if isinstance(source, bytes) else open(source, "rb")  # noqa: SIM115 -- closed by ``close``
        except OSError as error:
            raise ModelError(
                f"rg.from_pnnx: the weights {self.path!r} cannot be read ({error.strerror}). Give the m.pnnx.bin "
                "that pnnx wrote beside the model."
            ) from error
        self.file = file
        self.size = file.seek(0, os.SEEK_END)
        try:
            # An archive without members is a file without a byte, or an end record alone.
            self.archive = zipfile.ZipFile(file) if self.size else None
        except (zipfile.BadZipFile, OSError, ValueError) as error:
            file.close()
            raise ModelError(
                f"rg.from_pnnx: the weights are no zip archive, or a damaged one ({error}). Give the m.pnnx.bin."
            ) from error

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    def array(self, name: str, one: Typed) -> np.ndarray[Any, Any]:
        """Return the array of this name.

        Raises
        ------
        ModelError
            If the archive has none, or one of another size.
        """
        if None in one.shape:
            raise ModelError(
                f"rg.from_pnnx: the weight {name!r} has an unknown length in {one.shape}."
            )
        if self.archive is None or name not in self.archive.NameToInfo:
            raise ModelError(
                f"rg.from_pnnx: the weights have no {name!r}. Are the two files of one model? Export it again."
            )
        info, nbytes = self.archive.getinfo(name), size_of(one)
        stored = info.compress_type == zipfile.ZIP_STORED and info.compress_size == info.file_size
        if not stored or info.file_size != nbytes or nbytes > self.size:
            raise ModelError(
                f"rg.from_pnnx: {name!r} is declared as {one.dtype.name}{list(one.shape)}, {nbytes} bytes, and the "
                f"archive stores {info.file_size} bytes ({info.compress_size} packed). The files are damaged, or not "
                "of one model."
            )
        try:
            data = self.archive.read(info)
        except (
            zipfile.BadZipFile,
            OSError,
            ValueError,
            NotImplementedError,
            RuntimeError,
        ) as error:
            raise ModelError(
                f"rg.from_pnnx: {name!r} cannot be read ({error}). The file is damaged."
            ) from error
        return np.frombuffer(data, one.dtype.newbyteorder("<")).astype(one.dtype).reshape(one.shape)  # type: ignore[arg-type]
