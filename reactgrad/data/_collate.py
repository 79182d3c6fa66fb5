"""From a list of samples to one batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reactgrad.data._errors import DataError
from reactgrad.scheduler import safe_repr


def default_collate(samples: Sequence[Any]) -> Any:
    """Return one batch of these samples.

    Arrays and numbers become arrays with a new first axis; tuples, lists, named tuples and mappings keep their form,
    with a batch for each of their fields; texts and bytes become a list.

    Parameters
    ----------
    samples : sequence
        At least one; all of the same form.

    Raises
    ------
    DataError
        If the samples have not all the same form or shape.

    Examples
    --------
    >>> import reactgrad as rg
    >>> rg.data.default_collate([([1.0, 2.0], 0), ([3.0, 4.0], 1)])
    ([array([1., 3.]), array([2., 4.])], array([0, 1]))
    """
    if not isinstance(samples, Sequence):
        raise DataError(
            f"default_collate({safe_repr(samples):.60}): it takes a list of samples, such as [dataset[0], dataset[1]]."
        )
    if not samples:
        raise DataError("default_collate got no samples, and a batch has at least one.")
    return _collate(samples, "")


def _collate(samples: Sequence[Any], where: str) -> Any:
    first = samples[0]
    if isinstance(first, str | bytes):
        return list(samples)
    if isinstance(first, Mapping):
        _same(samples, where, "keys", lambda one: sorted(map(str, one)), Mapping)
        fields = {
            key: _collate([one[key] for one in samples], f"{where}[{key!r}]") for key in first
        }
        return fields if type(first) is dict else _rebuilt(first, fields)
    if isinstance(first, tuple | list):
        _same(samples, where, "lengths", len, tuple | list)
        parts = [
            _collate(column, f"{where}[{at}]")
            for at, column in enumerate(zip(*samples, strict=True))
        ]
        if hasattr(first, "_fields"):
            return type(first)(*parts)
        return tuple(parts) if isinstance(first, tuple) else parts
    try:
        arrays = [np.asarray(one) for one in samples]
    except Exception as error:
        raise DataError(
            f"sample{where} is a {type(first).__name__}, which is no array ({error}). Give "
            "collate_fn=, a function of the list of samples."
        ) from error
    _same(arrays, where, "shapes", lambda one: one.shape, np.ndarray)
    batch = np.stack(arrays)
    if batch.dtype == object:
        raise DataError(
            f"sample{where} is a {type(first).__name__}, of which there are no arrays. Give "
            "collate_fn=, a function of the list of samples."
        )
    return batch


def _rebuilt(first: Mapping[Any, Any], fields: dict[Any, Any]) -> Any:
    try:
        return type(first)(fields)  # type: ignore[call-arg]
    except TypeError:
        return fields


def _same(samples: Sequence[Any], where: str, what: str, of: Any, kind: Any) -> None:
    """Raise unless all samples agree with the first one in `what`."""
    wanted = of(samples[0])
    for number, one in enumerate(samples):
        if not isinstance(one, kind):
            raise DataError(
                f"sample{where} is a {type(samples[0]).__name__} first, and a {type(one).__name__} at place {number} "
                "of the batch. Give all samples one form, or give collate_fn=."
            )
        found = of(one)
        if found != wanted:
            raise DataError(
                f"the samples{where} of a batch have the {what} {wanted} and {found} (places 0 and {number}), and "
                "are no array. Pad or crop them, or give collate_fn=, a function of the list of samples."
            )
