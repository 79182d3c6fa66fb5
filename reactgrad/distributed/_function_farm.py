"""A function on many workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from reactgrad._errors import DTypeError
from reactgrad.distributed._crew import Crew


class Caller:
    """A function that came from another process, and its answers."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def call(self, arguments: Sequence[Any]) -> tuple[bool, Any]:
        """Return whether all went well, and the results or the error."""
        try:
            return True, [self._function(one) for one in arguments]
        except Exception as error:
            return False, error


class FunctionFarm(Crew):
    """A function on the workers of a Dask cluster.

    The function is shipped once to each worker, with the data that it holds; a call then sends its argument
    only. Results come in order. A worker that dies is replaced, and what it was at is computed again.

    Parameters
    ----------
    function : callable
        It takes one argument. Dask ships lambdas and closures, too.
    client : distributed.Client, LocalHosts or int
        A number stands for threads of this process.
    workers : int, optional
        How many workers to use; all by default.
    patience : float
        The seconds to wait for another worker when the last one has died.

    Raises
    ------
    DTypeError
        If this is no function, or no client.
    DistributedError
        If there is no worker.

    Examples
    --------
    >>> import reactgrad as rg
    >>> table = {"spot": 100.0, "rate": 0.02}
    >>> with rg.distributed.FunctionFarm(table.get, 2) as farm:
    ...     list(farm.map(["rate", "spot"]))
    [0.02, 100.0]
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        client: Any,
        *,
        workers: int | None = None,
        patience: float = 30.0,
    ) -> None:
        if not callable(function):
            raise DTypeError(
                f"FunctionFarm was given {function!r:.60} as the function. Give what is called with each "
                "argument; a graph goes to rg.distributed.Farm."
            )
        super().__init__(client, Caller, function, workers, patience)

    def __repr__(self) -> str:
        return f"<function farm of {len(self._places)} workers>"

    def map(self, arguments: Iterable[Any], *, chunk: int | None = None) -> Iterator[Any]:
        """Yield the results for all arguments, in order.

        Parameters
        ----------
        arguments : iterable
        chunk : int, optional
            How many arguments one call takes. If their number is known, an eighth of a worker's share by
            default, else 1.

        Returns
        -------
        iterator
            Closing it cancels what has not begun.

        Raises
        ------
        Exception
            What the function has raised.

        Examples
        --------
        See ``FunctionFarm``.
        """
        count = len(arguments) if isinstance(arguments, Sequence) else None
        share = self._share(count) if chunk is None else chunk
        return self._work("call", iter(arguments), (), share)
