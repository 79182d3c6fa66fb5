"""From the two files of PNNX to a live graph."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import reactgrad as rg
from reactgrad.models._errors import ModelError
from reactgrad.models._model import Model
from reactgrad.models.pnnx import Weights, built, program_of

MAX_TEXT = 2**28


def from_pnnx(
    param: str | os.PathLike[str],
    bin: str | os.PathLike[str] | bytes | None = None,
    *,
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    graph: rg.Graph | None = None,
) -> Model:
    """Return the model in the files of PNNX as a live graph.

    The package pnnx writes them for models of PyTorch; neither is needed to read them. Inputs are called
    ``in0``, ``in1``, ..., outputs ``out0``, ``out1``, ..., and params as in the file: mostly the names of
    PyTorch's ``state_dict``.

    Parameters
    ----------
    param : path
        The file ``m.pnnx.param``.
    bin : path or bytes, optional
        The file ``m.pnnx.bin``; by default the one beside it.
    shapes : mapping of str to sequence of int or None, optional
        Shapes of inputs in place of those in the file; ``None`` for lengths that differ from set to set.
    graph : Graph, optional
        The graph to build in; by default a new one.

    Returns
    -------
    Model

    Raises
    ------
    OpError
        If the model needs operators that have no function here: all of them by name, before anything is built.
    UnknownLengthError
        If the graph hangs on a length that is not known.
    ModelError
        If the files are damaged, or not of one model.

    Examples
    --------
    >>> import numpy as np, reactgrad as rg
    >>> m = rg.from_pnnx("classifier.pnnx.param")  # doctest: +SKIP
    >>> m(in0=np.ones((1, 4), "f4"))["out0"].value  # doctest: +SKIP
    array([[0.2, 0.8]], dtype=float32)
    """
    path = os.fspath(param)
    if os.path.getsize(path) > MAX_TEXT:
        raise ModelError(
            f"rg.from_pnnx: {path!r} has more than {MAX_TEXT} bytes: it is no text of PNNX."
        )
    with open(path, "rb") as file:
        data = file.read()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ModelError(
            f"rg.from_pnnx: {path!r} is no text ({error.reason}). Give the m.pnnx.param first, and the m.pnnx.bin "
            "second."
        ) from error
    program = program_of(text)
    if bin is None:
        bin = path.removesuffix(".param") + ".bin"
    weights = Weights(bin)
    try:
        return built(
            program, weights, dict(shapes or {}), graph if graph is not None else rg.Graph()
        )
    finally:
        weights.close()
