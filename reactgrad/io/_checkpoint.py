"""Checkpoints: everything that has a state, in one file of safetensors, to go on from.

Arrays are tensors of the file, named by their part and their keys, so that other programs can read them. The rest is
JSON in its metadata.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from reactgrad._errors import LoadError, SaveError
from reactgrad._files import named_as
from reactgrad.change._draws import check_draws, draws_of, put_draws
from reactgrad.core._core import Core
from reactgrad.io import _format
from reactgrad.io._format import checksum, write_tensors
from reactgrad.io._json import UnwritableError, items_of, many, record, text
from reactgrad.io._strict_json import strict_json
from reactgrad.io._tensor_file import read_tensors
from reactgrad.io._tree import TreeReader, TreeWriter
from reactgrad.io._whole_file import write_whole
from reactgrad.scheduler import safe_repr

FORMAT: Final = "reactgrad.checkpoint"
VERSION: Final = 1

Saved = Mapping[str, tuple[str, Any]]


def save_checkpoint(path: str | os.PathLike[str], /, **parts: Any) -> None:
    """Write the states of several objects, and numbers beside them, into one file.

    The file appears as a whole or not at all: whenever the process is killed, the former file is there.

    Parameters
    ----------
    path : str or path-like
        The file. ``rg.Checkpoints`` keeps the last ones and the best one of a run.
    **parts
        Objects with ``state_dict()`` and ``load_state_dict(state)``, such as models, optimisers, schedulers, scalers
        and loaders; generators of NumPy; graphs, whose random draws go on (their values are what ``g.save`` is for);
        and values made of numbers, texts, lists, dicts and arrays.

    Raises
    ------
    SaveError
        If a state holds something that has no form in a file. The former file is still there.

    Examples
    --------
    >>> import os, tempfile
    >>> import reactgrad as rg
    >>> loader = rg.data.DataLoader(range(10), batch_size=2, shuffle=True)
    >>> first, second, *rest = loader
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "run.safetensors")
    ...     rg.save_checkpoint(path, loader=loader, step=5)
    ...     other = rg.data.DataLoader(range(10), batch_size=2, shuffle=True)
    ...     state = rg.load_checkpoint(path, loader=other)
    >>> state, other.epoch
    ({'step': 5}, 1)
    """
    write(os.fspath(path), parts, "")


def write(path: str, parts: Mapping[str, Any], notes: str) -> None:
    """Write a checkpoint, with a text for those who read the header alone."""
    writer = TreeWriter()
    written = {}
    for name, part in parts.items():
        writer.path = [name]
        kind, state = _state_of(name, part)
        try:
            written[name] = [kind, writer.value(state)]
        except UnwritableError as error:
            where = ".".join(writer.path)
            value = ", or y.value for a node y" if hasattr(part, "value") else ""
            raise SaveError(
                f"save_checkpoint: {where} cannot be saved: {error}. Give numbers, texts, arrays, or an object with "
                f"state_dict() and load_state_dict(){value}."
            ) from None
    content = json.dumps(
        {"parts": written, "tensors": writer.names, "notes": notes}, separators=(",", ":")
    )
    tensors = dict(zip(writer.names, writer.arrays, strict=True))
    metadata = {
        "format": FORMAT,
        "format_version": str(VERSION),
        "checksum": checksum(content.encode(), tensors),
        "notes": notes,
    }
    if len(content) <= _format.MOST_MANIFEST:
        metadata["manifest"] = content
    else:
        tensors["manifest"] = np.frombuffer(content.encode(), np.uint8)
    with named_as(path):
        write_whole(
            Path(os.path.realpath(path)),
            partial(write_tensors, tensors=tensors, metadata=metadata),
        )


def load_checkpoint(path: str | os.PathLike[str], /, **parts: Any) -> dict[str, Any]:
    """Read what ``save_checkpoint`` wrote, and give their states back to objects.

    The whole file is checked before anything is loaded. If an object refuses its state, those before it get back the
    state that they had.

    Parameters
    ----------
    path : str or path-like
        The file.
    **parts
        Objects that take over the state of their name.

    Returns
    -------
    dict
        All other parts by their names: values, and states of objects that were not given.

    Raises
    ------
    LoadError
        If the file is damaged or no checkpoint, has no part of a name, or an object refuses its state.

    Examples
    --------
    >>> import reactgrad as rg
    >>> state = rg.load_checkpoint("run.safetensors", model=net, optimizer=opt)  # doctest: +SKIP
    >>> state["step"]  # doctest: +SKIP
    """
    path = os.fspath(path)
    try:
        saved = _read(path)
        _check_parts(parts, saved)
        _give(parts, saved)
    except LoadError as error:
        reason = str(error).rstrip(".")
        raise LoadError(f"{path} cannot be loaded: {reason}.") from error.__cause__
    return {name: state for name, (_, state) in saved.items() if name not in parts}


# --- states -------------------------------------------------------------------------------------------


def _has_state(part: Any) -> bool:
    return hasattr(part, "state_dict") and hasattr(part, "load_state_dict")


def _state_of(name: str, part: Any) -> tuple[str, Any]:
    """Return the kind and the state of a part."""
    if isinstance(part, type):
        raise SaveError(
            f"save_checkpoint: {name}={part.__name__} is a class. Give an object of that class."
        )
    if _has_state(part):
        return "state", part.state_dict()
    if isinstance(part, np.random.Generator):
        return "generator", part.bit_generator.state
    if isinstance(part, Core):
        return "draws", draws_of(part)
    return "value", part


def _check_parts(parts: Mapping[str, Any], saved: Saved) -> None:
    """Raise unless each object has a state in the file, and says nothing against it."""
    missing = [name for name in parts if name not in saved]
    if missing:
        raise LoadError(f"it has no {', '.join(missing)}; it has {', '.join(saved) or 'nothing'}")
    for name, part in parts.items():
        kind, state = saved[name]
        if isinstance(part, np.random.Generator):
            _check_generator(name, part, kind, state)
        elif isinstance(part, Core):
            if kind != "draws":
                raise LoadError(
                    f"{name}= is a graph, whose draws go on, and the file has a {kind} of this name"
                )
            try:
                check_draws(state)
            except Exception as error:
                raise _misfit(name, error) from error
        elif not _has_state(part) or isinstance(part, type):
            raise LoadError(
                f"{name}={safe_repr(part):.60} has no load_state_dict. Leave it out: load_checkpoint "
                "returns what is not given "
                "to an object"
            )
        elif kind != "state":
            raise LoadError(f"{name}= has a state, and the file has a {kind} of this name")
        elif hasattr(part, "check_state_dict"):
            try:
                part.check_state_dict(state)
            except Exception as error:
                raise _misfit(name, error) from error


def _check_generator(name: str, part: np.random.Generator, kind: str, state: Any) -> None:
    there = state.get("bit_generator") if kind == "generator" and isinstance(state, dict) else None
    here = part.bit_generator.state["bit_generator"]
    if there != here:
        raise LoadError(
            f"{name}= is a generator over {here}, and the file has {there or f'a {kind}'!r:.60}"
        )
    try:
        type(part.bit_generator)(0).state = state
    except Exception as error:
        raise _misfit(name, error) from error


def _give(parts: Mapping[str, Any], saved: Saved) -> None:
    """Give each object its state; all of them have their former ones if one refuses."""
    # Last what has been asked already: it does not refuse, and a loader under way is best left alone.
    order = sorted(parts, key=lambda name: _asked(parts[name]))
    former: list[tuple[Any, Any]] = []
    name = ""
    try:
        for name in order:
            part = parts[name]
            former.append((part, _copied(_state_of(name, part)[1])))
            _put(part, saved[name][1])
    except BaseException as error:
        for part, state in reversed(former):
            try:
                _put(part, state)
            except Exception as other:
                error.add_note(
                    f"The former state of a {type(part).__name__} could not be put back: {other}"
                )
        if not isinstance(error, Exception):
            raise
        raise _misfit(name, error) from error


def _asked(part: Any) -> bool:
    return isinstance(part, np.random.Generator | Core) or hasattr(part, "check_state_dict")


def _misfit(name: str, error: Exception) -> LoadError:
    reason = str(error).rstrip(".")
    made = LoadError(f"the state of {name}= does not fit: {reason}. Nothing was loaded")
    for note in getattr(error, "__notes__", ()):
        made.add_note(note)
    made.__cause__ = error
    return made


def _put(part: Any, state: Any) -> None:
    if isinstance(part, np.random.Generator):
        part.bit_generator.state = state
    elif isinstance(part, Core):
        put_draws(part, state)
    else:
        part.load_state_dict(state)


def _copied(state: Any) -> Any:
    """Return a state whose arrays are copies: optimisers write theirs in place."""
    if isinstance(state, np.ndarray):
        return state.copy(order="K")
    if isinstance(state, Mapping):
        return {key: _copied(value) for key, value in state.items()}
    if type(state) in (list, tuple):
        return type(state)([_copied(one) for one in state])
    return state


# --- the file -----------------------------------------------------------------------------------------


def _read(path: str) -> dict[str, tuple[str, Any]]:
    """Return kinds and states of all parts of a file."""
    tensors, metadata = read_tensors(path)
    if metadata.get("format") != FORMAT:
        raise LoadError(
            "it is no checkpoint: rg.load_checkpoint reads what rg.save_checkpoint wrote. Write rg.load(path) for a "
            "graph, or rg.load_weights(path) for the weights of another library"
        )
    if metadata.get("format_version") != str(VERSION):
        raise LoadError(
            f"it has format version {metadata.get('format_version')!r:.60}, and this reactgrad reads {VERSION}. Was it "
            "written by a newer one? pip install --upgrade reactgrad"
        )
    stored = metadata.get("manifest")
    content = (
        tensors.pop("manifest", np.empty(0, np.uint8)).tobytes()
        if stored is None
        else stored.encode(errors="replace")
    )
    if checksum(content, tensors) != metadata.get("checksum"):
        raise LoadError("it is damaged: its checksum is not that of its content")
    manifest = record(strict_json(content), "the manifest")
    names = [
        text(name, "the name of a tensor") for name in many(manifest.get("tensors"), "tensors")
    ]
    if sorted(names) != sorted(tensors):
        raise LoadError("it has other tensors than it declares")
    if manifest.get("notes") != metadata.get("notes"):
        raise LoadError("it is damaged: its notes are not those that it was written with")
    reader = TreeReader([(name, tensors[name]) for name in names])
    saved = {}
    for name, part in record(manifest.get("parts"), "the parts").items():
        kind, form = items_of(part, 2, "a part")
        saved[name] = (text(kind, "the kind of a part"), reader.value(form))
    return saved


def notes_of(path: str) -> Any:
    """Return the JSON in the notes of a checkpoint, from its header alone; ``None`` if it is none."""
    try:
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > os.fstat(file.fileno()).st_size:
                return None
            header = record(strict_json(file.read(length)), "the header")
        metadata = record(header.get("__metadata__"), "the metadata")
        if metadata.get("format") != FORMAT:
            return None
        return strict_json(text(metadata.get("notes"), "the notes").encode())
    except (LoadError, OSError, UnicodeError):
        return None
